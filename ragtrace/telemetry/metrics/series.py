"""What tells one series of scores from another: the point attributes of a score, with bounded cardinality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragtrace import semconv
from ragtrace.capture.forking import ForkSafeLock
from ragtrace.telemetry.wire import clean_attributes, clean_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace.model import MetricResult, Scale

OTHER = "other"


class Names:
    """Keeps the first `limit` names, and calls every further one ``other``. Thread-safe.

    Example:
        >>> names = Names(1)
        >>> names.bounded("support"), names.bounded("sales"), names.bounded("support")
        ('support', 'other', 'support')
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = ForkSafeLock()
        self._known: set[str] = set()

    def bounded(self, name: str) -> str:
        """Return the name, or ``other``."""
        if name in self._known:
            return name
        with self._lock:
            if len(self._known) < self._limit:
                self._known.add(name)
            return name if name in self._known else OTHER  # another thread may have added it meanwhile


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One metric as it is measured: everything that forbids averaging two results together, but not whose they are.

    Attributes:
        name: the exported metric name.
        scale: of its values.
    """

    name: str
    scale: Scale
    judge_model: str | None = None
    judge_version: str | None = None
    label_scale: str | None = None
    universe: str | None = None
    k: int | str | None = None

    @classmethod
    def of(cls, result: MetricResult, scale: Scale, k: int | str | None) -> Measure:
        """Return how a result was measured, at a cut-off as points have it."""
        judge = result.judge
        return cls(
            name=result.name,
            judge_model=judge.model if judge else None,
            judge_version=judge_version(result),
            label_scale=judge.label_scale if judge else None,
            universe=result.label_scope,
            k=k,
            scale=scale,
        )

    def attributes(self, about: Mapping[str, Any], stratum: str) -> dict[str, Any]:
        """Return the point attributes of a score of this measure."""
        return clean_attributes(
            {
                **about,
                semconv.GEN_AI_EVALUATION_NAME: self.name,
                semconv.JUDGE_MODEL: self.judge_model,
                semconv.JUDGE_VERSION: self.judge_version,
                semconv.K: self.k,
                semconv.LABEL_SCALE: self.label_scale,
                semconv.UNIVERSE: self.universe,
                semconv.STRATUM: stratum,
            }
        )


def judge_version(result: MetricResult) -> str | None:
    """Return the version under which a result's scores are exported; None where nothing was judged."""
    return (result.version or result.judge.prompt_hash or None) if result.judge else None


def bounded_text(text: str, limit: int = 128) -> str:
    """Return a label value of at most `limit` characters in valid Unicode."""
    shown: str = clean_value(text[:limit])
    return shown
