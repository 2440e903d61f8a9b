"""Counts what the scorer sends while the demo runs, and notices the alarm."""

from __future__ import annotations

import threading
import time
from collections import Counter
from statistics import fmean
from typing import TYPE_CHECKING

from ragtrace.demo.progress import (
    WATCHED,
    Alarm,
    DetectorLine,
    MetricLine,
    Point,
    Progress,
    WorstAnswer,
)
from ragtrace.demo.weakness import before, weakest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ragtrace.model import RagRecord, Score

TAG = "demo:"
WORST_KEPT = 5


def number_of(record: RagRecord) -> int:
    """Return the number of the question, from 1, that a record's tag carries.

    Example:
        >>> from ragtrace import RagRecord
        >>> number_of(RagRecord(id="1", tags=("demo:17",)))
        17
    """
    return next(int(tag.removeprefix(TAG)) for tag in record.tags if tag.startswith(TAG))


class _Values:
    """The scores of one metric so far."""

    def __init__(self) -> None:
        self.ok: list[float] = []
        self.na: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()

    def add(self, score: Score) -> None:
        result = score.result
        if result.value is not None:
            self.ok.append(result.value)
        elif result.state == "na":
            self.na[result.reason or ""] += 1
        else:
            self.errors[result.reason or ""] += 1


class Tally:
    """A sink that keeps the demo's numbers. `emit` runs in the scorer's thread, the rest in the main one.

    Args:
        total: questions that will be asked.
        incident_at: number of the question with which the incident begins, None without one.
        detector: reads the state of the watched metric's detector; called after each score.
        interval: returns the 95 % bounds of the mean of values.
    """

    def __init__(
        self,
        *,
        total: int,
        incident_at: int | None,
        detector: Callable[[], DetectorLine | None],
        interval: Callable[[Sequence[float]], tuple[float | None, float | None]],
    ) -> None:
        self._total = total
        self._incident_at = incident_at
        self._detector = detector
        self._interval = interval
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._asked = 0
        self._failed = 0
        self._values: dict[str, _Values] = {}
        self._points: list[Point] = []
        self._worst: list[WorstAnswer] = []
        self._alarm: Alarm | None = None

    def emit(self, record: RagRecord, scores: Sequence[Score]) -> None:
        """Take one scored record."""
        number = number_of(record)
        with self._lock:
            for score in scores:
                self._values.setdefault(score.result.key, _Values()).add(score)
                if score.result.name == WATCHED and score.result.value is not None:
                    self._watch(number, record, score)

    def asked(self) -> None:
        """Count one more question."""
        with self._lock:
            self._asked += 1

    def failed(self) -> None:
        """Count one more question that the chain could not answer."""
        with self._lock:
            self._failed += 1

    @property
    def count(self) -> int:
        """Questions asked so far."""
        return self._asked

    @property
    def alarm(self) -> Alarm | None:
        """The first alarm."""
        return self._alarm

    def progress(self, accounts: Mapping[str, int]) -> Progress:
        """Return everything as of now.

        Args:
            accounts: `ragtrace.scoring.Ledger.snapshot`.
        """
        with self._lock:
            detector = self._detector()
            return Progress(
                asked=self._asked,
                total=self._total,
                failed=self._failed,
                sampled=accounts.get("offered", 0) - accounts.get("skipped", 0),
                scored=accounts.get("scored", 0),
                pending=accounts.get("pending", 0),
                dropped=accounts.get("dropped", 0) + accounts.get("failed", 0),
                seconds=time.monotonic() - self._started,
                incident_at=self._incident_at,
                metrics=tuple(self._line(name, values) for name, values in self._values.items()),
                points=tuple(self._points),
                worst=tuple(self._worst),
                detector=detector,
                alarm=self._alarm,
            )

    def _line(self, name: str, values: _Values) -> MetricLine:
        low, high = self._interval(values.ok)
        return MetricLine(
            name=name,
            n=len(values.ok),
            mean=fmean(values.ok) if values.ok else None,
            low=low,
            high=high,
            na=dict(values.na),
            errors=dict(values.errors),
        )

    def _watch(self, number: int, record: RagRecord, score: Score) -> None:
        value = score.result.value
        if value is None:
            return
        self._points.append(Point(question=number, value=value))
        self._note_worst(number, record, score, value)
        line = self._detector()
        if self._alarm is None and line is not None and line.state == "alarm":
            self._alarm = self._explained(number, line)

    def _note_worst(self, number: int, record: RagRecord, score: Score, value: float) -> None:
        if len(self._worst) == WORST_KEPT and value >= self._worst[-1].value:
            return
        marked, why = weakest(score.result.details)
        worst = WorstAnswer(
            question=number,
            query=record.query,
            value=value,
            before=before(record.answer, marked),
            marked=marked,
            why=why,
        )
        others = [kept for kept in self._worst if kept.query != record.query or kept.value < value]
        if any(kept.query == record.query for kept in others):
            return  # one line a question: the worst of its answers
        self._worst = sorted([*others, worst], key=lambda kept: kept.value)[:WORST_KEPT]

    def _explained(self, number: int, line: DetectorLine) -> Alarm:
        index = line.changed_at if line.changed_at is not None else len(self._points) - 1
        since = self._points[min(max(index, 0), len(self._points) - 1) :]
        return Alarm(
            metric=WATCHED,
            question=number,
            changed_at=since[0].question,
            baseline_mean=line.baseline_mean if line.baseline_mean is not None else 0.0,
            recent_mean=fmean(point.value for point in since),
            recent_n=len(since),
            statistic=line.statistic,
            threshold=line.threshold,
            after_incident=None if self._incident_at is None else number - self._incident_at + 1,
        )
