"""Combine the scores of two judges into one mean for each series, over the window of the mean gauges."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ragtrace import semconv
from ragtrace.capture import guarded, record_internal_error
from ragtrace.metrics.evaluate import expected
from ragtrace.telemetry.metrics.series import AnsweredBy, score_attributes
from ragtrace.telemetry.wire import clean_attributes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opentelemetry.util.types import AttributeValue

    from ragtrace.metrics.base import Output
    from ragtrace.model import RagRecord, Score, SeriesKey
    from ragtrace.scoring import Scorer
    from ragtrace.stats.two_phase import CombinedMean, JudgedRun
    from ragtrace.telemetry.metrics.instruments import Instruments

    Attributes = dict[str, AttributeValue]
    Points = Sequence[tuple[float, Mapping[str, AttributeValue]]]

MAX_SERIES = 200
MAX_RUNS = 10_000
"""Runs of one series that are kept; a busier window is shorter."""
_PAST_PAIRS = 500
GAUGES = {
    semconv.COMBINED_MEAN: "mean",
    semconv.COMBINED_LOW: "low",
    semconv.COMBINED_HIGH: "high",
}
"""Gauges of the combined mean, each with its field of `ragtrace.stats.two_phase.CombinedMean`."""


@dataclass(slots=True, eq=False)
class _Entry:
    """A run in the window; its scores are replaced once the second judge has given its own."""

    at: float
    span: tuple[str, str]
    run: JudgedRun


@dataclass(slots=True, eq=False)
class _CombinedSeries:
    """The runs of one series in the window, and pairs of both judges from before.

    Attributes:
        attributes: labels of the points; None before the first result of the second judge.
        waiting: of `runs` those that the second judge is to be asked about again, by trace and span.
    """

    attributes: Attributes | None = None
    runs: deque[_Entry] = field(default_factory=lambda: deque(maxlen=MAX_RUNS))
    waiting: dict[tuple[str, str], _Entry] = field(default_factory=dict)
    past: deque[JudgedRun] = field(default_factory=lambda: deque(maxlen=_PAST_PAIRS))
    mean: CombinedMean | None = None
    is_read: bool = False

    def add(self, now: float, span: tuple[str, str], run: JudgedRun) -> None:
        self.is_read = False
        if (entry := self.waiting.pop(span, None)) is None:
            if len(self.runs) == MAX_RUNS:
                self._leave()
            entry = _Entry(now, span, run)
            self.runs.append(entry)
        entry.run = run
        if run.is_missing:
            self.waiting[span] = entry

    def read(self, oldest: float) -> CombinedMean | None:
        """Return the mean over the runs since `oldest`, computed anew where runs came or left."""
        from ragtrace.stats.two_phase import combined_mean  # noqa: PLC0415 - numpy only where two judges score

        while self.runs and self.runs[0].at < oldest:
            self._leave()
        if not self.is_read:
            self.mean = combined_mean([entry.run for entry in self.runs], self.past)
            self.is_read = True
        return self.mean

    def _leave(self) -> None:
        entry = self.runs.popleft()
        self.waiting.pop(entry.span, None)
        self.is_read = False
        if entry.run.second is not None:
            self.past.append(entry.run)


class CombinedMeans:
    """The combined mean of each series that both judges score. Thread-safe.

    Takes scores of the random stratum whose weight is known, of metrics with values in [0, 1] and 1-to-5 forms.

    Args:
        first: name of the first judge.
        second: name of the judge that scores a part.
        outputs: the outputs of the chosen metrics by name.
        instruments: know the labels of a series.
        window_s: seconds.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        *,
        first: str,
        second: str,
        outputs: Mapping[str, Output],
        instruments: Instruments,
        window_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._first = first
        self._second = second
        self._outputs = outputs
        self._instruments = instruments
        self._window_s = window_s
        self._clock = clock
        self._lock = threading.Lock()
        self._series: dict[tuple[SeriesKey, AnsweredBy], _CombinedSeries] = {}

    @guarded
    def observe(self, record: RagRecord, scores: Sequence[Score]) -> None:
        """Take the scores of one run; once more when the second judge has given those that failed at first."""
        of_second = {score.result.key: score for score in scores if self._is_of(score, self._second)}
        for score in scores:
            output = self._outputs.get(score.result.name)
            if self._is_of(score, self._first) and output is not None and output.is_unit:
                self._add(record, output, score, of_second.get(score.result.key))

    def points(self, field: str) -> Points:
        """Return one field of the combined mean of each series that has enough runs."""
        oldest = self._clock() - self._window_s
        points = []
        with self._lock:
            for series in self._series.values():
                found = series.read(oldest)
                if found is not None and series.attributes is not None:
                    points.append((float(getattr(found, field)), series.attributes))
        return points

    def _is_of(self, score: Score, judge: str) -> bool:
        is_weighed = score.stratum == "random" and score.weight is not None
        return is_weighed and score.result.judge is not None and score.result.judge.model == judge

    def _add(self, record: RagRecord, output: Output, first: Score, second: Score | None) -> None:
        key, by = self._instruments.series(record, first.result)
        with self._lock:
            series = self._series_of(key, by)
            if series is None:
                return
            if second is not None and series.attributes is None:
                about = {semconv.FIRST_JUDGE_MODEL: key.judge, semconv.FIRST_JUDGE_VERSION: key.version}
                of_second = score_attributes(*self._instruments.series(record, second.result))
                series.attributes = of_second | clean_attributes(about)
            span = (first.key.trace_id, first.key.span_id)
            series.add(self._clock(), span, _run_of(output, first, second))

    def _series_of(self, key: SeriesKey, by: AnsweredBy) -> _CombinedSeries | None:
        found = self._series.get((key, by))
        if found is None:
            if len(self._series) >= MAX_SERIES:
                record_internal_error("ragtrace.service.means.series", reason="too many series")
                return None
            found = self._series[key, by] = _CombinedSeries()
        return found


def combined_means(
    scorer: Scorer, outputs: Mapping[str, Output], instruments: Instruments, *, window_s: float
) -> CombinedMeans | None:
    """Return the combined means of a scorer with two judges, whose series it creates at 0; None with one judge."""
    first = scorer.first
    if first is None or scorer.judge is None:
        return None
    for result in expected(first.metrics, first.judge, scorer.embedder, scorer.options, scorer.pairs):
        if result.name in outputs:
            instruments.precreate_metric(result, outputs[result.name])
    return CombinedMeans(
        first=first.judge.name,
        second=scorer.judge.name,
        outputs=outputs,
        instruments=instruments,
        window_s=window_s,
    )


def _run_of(output: Output, first: Score, second: Score | None) -> JudgedRun:
    from ragtrace.stats.two_phase import JudgedRun  # noqa: PLC0415 - numpy only where two judges score

    weight = first.weight or 1.0
    if second is None:
        return JudgedRun(weight=weight, first=_value(output, first))
    return JudgedRun(
        weight=weight,
        first=_value(output, first),
        probability=min(weight / (second.weight or weight), 1.0),
        second=_value(output, second),
        is_missing=second.result.state not in {"ok", "na"},
    )


def _value(output: Output, score: Score) -> float | None:
    value = score.result.value
    return None if value is None else min(max(output.exported(value), 0.0), 1.0)
