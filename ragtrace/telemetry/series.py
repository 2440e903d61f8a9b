"""What tells one series of scores from another: the point attributes of a score, with bounded cardinality."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragtrace import semconv
from ragtrace.telemetry.wire import clean_attributes, clean_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace.model import MetricResult

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
        self._lock = threading.Lock()
        self._known: set[str] = set()

    def bounded(self, name: str) -> str:
        """Return the name, or ``other``."""
        if name in self._known:
            return name
        with self._lock:
            if len(self._known) >= self._limit:
                return OTHER
            self._known.add(name)
        return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One metric as it is measured: everything that forbids averaging two results together, but not whose they are.

    Attributes:
        name: the exported metric name.
        low: lowest value.
        high: highest value.
        direction: up = higher is better.
        threshold: of pass and fail, None = none.
    """

    name: str
    judge_model: str | None = None
    judge_version: str | None = None
    label_scale: str | None = None
    universe: str | None = None
    k: int | None = None
    low: float = 0.0
    high: float = 1.0
    direction: str = "up"
    threshold: float | None = None

    @classmethod
    def of(
        cls, result: MetricResult, *, low: float, high: float, direction: str, threshold: float | None
    ) -> Measure:
        """Return how a result was measured."""
        judge = result.judge
        return cls(
            name=result.name,
            judge_model=judge.model if judge else None,
            judge_version=judge_version(result),
            label_scale=judge.label_scale if judge else None,
            universe=result.universe,
            k=result.k,
            low=low,
            high=high,
            direction=direction,
            threshold=threshold,
        )

    @property
    def is_summed(self) -> bool:
        """Whether it has counters and a histogram: only scores in [0, 1], a 1-5 form as (s - 1) / 4."""
        return (self.low >= 0.0 and self.high <= 1.0) or self.is_five_point

    @property
    def is_five_point(self) -> bool:
        """Whether it is a 1-5 form."""
        return (self.low, self.high) == (1.0, 5.0)

    def exported(self, value: float) -> float:
        """Return the value as it enters sums and gauges.

        Example:
            >>> Measure(name="grade", low=1.0, high=5.0).exported(4.0)
            0.75
        """
        return (value - 1.0) / 4.0 if self.is_five_point else value

    def is_pass(self, value: float) -> bool | None:
        """Say whether a raw value meets the threshold; None without one."""
        if self.threshold is None:
            return None
        # A 1-5 form may have its threshold as .5 or as 3 of 5.
        shown = self.exported(value) if self.is_five_point and self.threshold < 1.0 else value
        return shown >= self.threshold if self.direction == "up" else shown <= self.threshold

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
