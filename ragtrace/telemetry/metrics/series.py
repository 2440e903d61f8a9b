"""The point attributes of scores and runs, with a bounded number of values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragtrace import semconv
from ragtrace.telemetry.wire import clean_attributes, clean_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace.model import MetricResult, Scale

OTHER = "other"
_MOST_NAMES = 100
_MOST_CHARS = 128
_MOST_K = 1_000


class LabelValues:
    """Cleans what an application names, and calls it ``other`` beyond 100 values of a label.

    Threads may pass the limit by a name or two; it guards memory.

    Example:
        >>> labels = LabelValues()
        >>> {labels.workflow(f"w{number}") for number in range(150)} >= {"w0", "w99", "other"}
        True
    """

    def __init__(self) -> None:
        self._known: dict[str, set[str]] = {"workflow": set(), "model": set(), "source": set(), "k": set()}

    def workflow(self, name: str) -> str:
        """Return a workflow's name."""
        return self._bounded("workflow", bounded_text(name))

    def model(self, name: str) -> str:
        """Return a model's name."""
        return self._bounded("model", bounded_text(name))

    def source(self, name: str) -> str:
        """Return a data source's name."""
        return self._bounded("source", bounded_text(name))

    def cutoff(self, k: int | None) -> int | str | None:
        """Return a cut-off; an application names it, or its retriever returns so many."""
        if k is None or (0 <= k <= _MOST_K and self._bounded("k", str(k)) != OTHER):
            return k
        return OTHER

    def _bounded(self, label: str, value: str) -> str:
        known = self._known[label]
        if value in known:
            return value
        if len(known) >= _MOST_NAMES:
            return OTHER
        known.add(value)
        return value


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
    label_scope: str | None = None
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
            label_scope=result.label_scope,
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
                semconv.UNIVERSE: self.label_scope,
                semconv.STRATUM: stratum,
            }
        )


def judge_version(result: MetricResult) -> str | None:
    """Return the version under which a result's scores are exported; None where nothing was judged."""
    return (result.version or result.judge.prompt_hash or None) if result.judge else None


def bounded_text(text: str) -> str:
    """Return a label value of at most 128 characters in valid Unicode."""
    shown: str = clean_value(text[:_MOST_CHARS])
    return shown
