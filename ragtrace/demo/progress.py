"""What the demo knows at one moment, as values that a view draws."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

WATCHED = "faithfulness"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricLine:
    """One metric so far: n scores of state ok, their mean with 95 % bounds, and the rest by reason."""

    name: str
    n: int
    mean: float | None
    low: float | None
    high: float | None
    na: Mapping[str, int] = field(default_factory=dict)
    errors: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorLine:
    """The drift detector of the watched metric; `state` is learning, ok, warning or alarm."""

    state: str
    seen: int
    baseline_n: int
    baseline_mean: float | None
    statistic: float
    threshold: float
    changed_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """The first alarm and why it was raised.

    Attributes:
        question: number of the question at whose score the statistic crossed the threshold.
        changed_at: number of the question at which the change is estimated to have begun.
        recent_mean: mean of the scores from `changed_at` on.
        after_incident: questions since the incident began; None when there was none, negative for a false alarm.
    """

    metric: str
    question: int
    changed_at: int | None
    baseline_mean: float
    recent_mean: float
    recent_n: int
    statistic: float
    threshold: float
    after_incident: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstAnswer:
    """An answer with low faithfulness.

    Attributes:
        before: the end of what the answer says before the sentence, "" when it begins with it.
        marked: the sentence that the contexts support least.
        why: what the judge says of it.
    """

    question: int
    query: str
    value: float
    before: str
    marked: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One faithfulness score by question number."""

    question: int
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Everything a view shows."""

    asked: int
    total: int
    failed: int
    sampled: int
    scored: int
    pending: int
    dropped: int
    seconds: float
    incident_at: int | None
    metrics: tuple[MetricLine, ...]
    points: tuple[Point, ...]
    worst: tuple[WorstAnswer, ...]
    detector: DetectorLine | None
    alarm: Alarm | None

    @property
    def has_incident(self) -> bool:
        """Whether the incident has begun."""
        return self.incident_at is not None and self.asked >= self.incident_at
