"""Count, sum and observe captured and scored runs."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.context import Context

from ragtrace import semconv
from ragtrace.capture import Retrieval, internal_errors, record_internal_error
from ragtrace.model import Scale
from ragtrace.telemetry.metrics.client_metrics import record_operations
from ragtrace.telemetry.metrics.multi_meter import MultiMeter
from ragtrace.telemetry.metrics.series import LabelValues, Measure
from ragtrace.telemetry.metrics.window import Window
from ragtrace.telemetry.wire import remote_context

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opentelemetry.metrics import Meter

    from ragtrace.capture import FinishedRun
    from ragtrace.model import MetricResult, RagRecord, Score
    from ragtrace.telemetry.metrics.multi_meter import Points, Reader

    Like = tuple[str, str | None]  # workflow and model, as points have them

_EVALUATOR = "ragtrace"
_SUMS = (
    semconv.SCORE_N, semconv.SCORE_W, semconv.SCORE_WX, semconv.SCORE_W2, semconv.SCORE_W2X, semconv.SCORE_W2X2,
)  # fmt: skip
_WINDOW_FIELDS = {
    semconv.WINDOW_MEAN: "mean", semconv.WINDOW_LOW: "low", semconv.WINDOW_HIGH: "high",
    semconv.PASS_RATIO: "passed",
}  # fmt: skip
_MOST_PRECREATED = 1_000  # label sets; the SDK folds what lies beyond 2,000 an instrument into one
_MOST_WINDOWS = 2_000
_MOST_COUNT = 10**12  # of one score: sums beyond 2^63 would end the export of every metric
_ANY_SCALE = Scale()  # of a score that no chosen metric gives: one that a killed scorer had written
# Not the empty context: the SDK would then take whatever span is current in the scorer's thread.
_NO_TRACE = trace.set_span_in_context(trace.INVALID_SPAN, Context())


class Instruments:
    """Writes ragtrace's metrics to one or several meters. Thread-safe; no method waits.

    Args:
        meters: each gets every instrument; a scrape-only meter may stand beside the application's own.
        window_s: seconds of the window of mean gauges.
        captures: whether runs are captured in this process; a worker has no count of captured traces to show.
        clock: monotonic seconds.

    Example:
        >>> from opentelemetry.metrics import NoOpMeter
        >>> instruments = Instruments([NoOpMeter("ragtrace")])
        >>> instruments.traces("sampled", None)
    """

    def __init__(
        self,
        meters: Sequence[Meter],
        *,
        window_s: float = 3_600.0,
        captures: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._meter = MultiMeter(meters)
        self._window_s = window_s
        self._clock = clock
        self._labels = LabelValues()
        self._lock = threading.Lock()
        self._seen: set[Like] = set()
        self._searched: set[str] = set()
        self._measures: set[Measure] = set()
        self._created: set[tuple[Any, ...]] = set()
        self._windows: dict[tuple[Any, ...], tuple[Window, dict[str, Any]]] = {}
        self._scored_at: float | None = None
        self.observe(
            {
                semconv.INTERNAL_LOSSES: _loss_points,
                semconv.EVALUATION_LAST_TIME: self._last_time_points,
                **{name: partial(self._window_points, field) for name, field in _WINDOW_FIELDS.items()},
            }
        )
        if captures:
            self._meter.add(semconv.TRACES, 0, {semconv.DECISION: "sampled"})  # so that the first increase is seen

    def workflow(self, record: RagRecord) -> str:
        """Return a record's workflow as points have it: bounded in length and number."""
        return self._labels.workflow(record.workflow)

    # -- captured runs: called in the application's process --

    def operations(self, captured: FinishedRun) -> None:
        """Count a finished run: pre-create its scores' label sets, and record the conventions' metrics."""
        record = captured.record
        self.precreate(record.workflow, record.model or None)
        workflow = self.workflow(record)
        searches = [step for step in captured.steps if isinstance(step, Retrieval) and step.failure is None]
        if searches:
            is_empty = not any(step.passages for step in searches)
            if is_empty or workflow not in self._searched:  # 0 once, so that the first increase is seen
                self._searched.add(workflow)
                self._meter.add(semconv.RETRIEVAL_EMPTY, int(is_empty), {semconv.GEN_AI_WORKFLOW_NAME: workflow})
        record_operations(self._meter, captured, workflow, self._labels)

    def precreate(self, workflow: str, model: str | None) -> None:
        """Create with add(0) the label sets of scores of a workflow and the model that answers in it.

        ``increase()`` loses the first increment of a series that was never seen at 0.
        """
        like = (self._labels.workflow(workflow), self._labels.model(model) if model else None)
        if like in self._seen:
            return
        with self._lock:
            self._seen.add(like)
            measures = list(self._measures)
        for measure in measures:
            self._create(measure, like)

    def precreate_metric(self, result: MetricResult, scale: Scale) -> None:
        """Create the label sets of a metric, by any result of it (``na`` will do): see `precreate`."""
        self._know(Measure.of(result, scale, self._labels.cutoff(result.k)))

    def known_series(self) -> set[Like]:
        """Return the (workflow, model) pairs seen so far."""
        with self._lock:
            return set(self._seen)

    def traces(self, decision: str, reason: str | None) -> None:
        """Count one captured trace as what was decided of it, once: ``sampled``, ``skipped`` or ``dropped``."""
        attributes = {semconv.DECISION: decision}
        if reason:
            attributes[semconv.REASON] = reason
        self._meter.add(semconv.TRACES, 1, attributes)

    # -- scores: called in the scorer's thread --

    def scored(
        self, record: RagRecord, scores: Sequence[Score], scales: Mapping[str, Scale], *, is_recorded: bool
    ) -> None:
        """Enter the scores of one record: outcomes, histograms, weighted sums and windows.

        Sums and windows take the random stratum with a known weight alone. The histogram takes metrics in [0, 1]
        and 1-5 forms, and the sums those that are never negative, as counters only rise.

        Args:
            record: what was scored.
            scores: its scores, of any state, and whether they passed.
            scales: of the metrics by name.
            is_recorded: whether the root was exported, so that an exemplar may point at it.
        """
        about = self._about(record)
        context = remote_context(record.trace_id, record.span_id, is_sampled=True) if is_recorded else None
        for score in scores:
            result = score.result
            scale = scales.get(result.name, _ANY_SCALE)
            measure = Measure.of(result, scale, self._labels.cutoff(result.k))
            self._know(measure)
            self._meter.add(semconv.EVALUATIONS, 1, _outcome(about[semconv.GEN_AI_WORKFLOW_NAME], result))
            if result.value is None:
                continue
            self._scored_at = score.scored_at or time.time()
            value = scale.exported(result.value)
            attributes = measure.attributes(about, score.stratum)
            if scale.is_unit:
                value = min(max(value, 0.0), 1.0)
                self._meter.record(semconv.EVALUATION_SCORE, value, attributes, context or _NO_TRACE)
            if score.stratum == "random" and score.weight is not None:
                if _has_sums(scale) and value >= 0.0:
                    self._sum(attributes, value, score.weight, is_pass=result.passed)
                self._into_window(scale, attributes, value, score.weight, is_pass=result.passed)

    def evaluated(
        self,
        record: RagRecord,
        scores: Sequence[Score],
        *,
        duration_s: float | None,
        lag_s: float | None,
        cost_usd: float | None = None,
    ) -> None:
        """Enter what scoring one trace took: time, lag behind the run's end, judge calls, tokens and dollars.

        Of scores that another process left, the times are not known: None.
        """
        about = {semconv.GEN_AI_WORKFLOW_NAME: self.workflow(record), semconv.EVALUATOR: _EVALUATOR}
        if duration_s is not None:
            self._meter.record(semconv.EVALUATION_DURATION, max(duration_s, 0.0), about)
        if lag_s is not None:
            self._meter.record(semconv.EVALUATION_LAG, max(lag_s, 0.0), about)
        if cost_usd is not None:
            self._meter.add(semconv.EVALUATION_COST_METRIC, cost_usd, about)
        for score in scores:
            self._count_calls(score.result)

    def weight_capped(self, record: RagRecord) -> None:
        """Count one score whose weight hit the cap."""
        self._meter.add(semconv.WEIGHT_CAPPED, 1, {semconv.GEN_AI_WORKFLOW_NAME: self.workflow(record)})

    def count_drift_alarms(self, attributes: Mapping[str, Any], count: int) -> None:
        """Count alarms of a drift detector; 0 lets the series exist, so that the first alarm is an increase."""
        self._meter.add(semconv.DRIFT_ALARMS, count, attributes)

    # -- gauges: read when metrics are collected --

    def observe(self, readers: Mapping[str, Reader]) -> None:
        """Let functions give the points of observable instruments, by name, in place of earlier ones."""
        self._meter.readers.update(readers)

    def take_gauges(self) -> None:
        """Show the gauges from now on, in place of earlier `Instruments` on the same meters."""
        self._meter.observe()

    def close(self) -> None:
        """Observe nothing any more; what was counted stays counted."""
        self._meter.close()

    def reset_after_fork(self) -> None:
        """Take a fresh lock and empty windows, in a forked child: the parent exports what it had."""
        self._lock = threading.Lock()
        self._windows = {}

    # -- inside --

    def _about(self, record: RagRecord) -> dict[str, Any]:
        return {
            semconv.GEN_AI_WORKFLOW_NAME: self.workflow(record),
            semconv.GEN_AI_REQUEST_MODEL: self._labels.model(record.model) if record.model else None,
            semconv.EVALUATOR: _EVALUATOR,
        }

    def _know(self, measure: Measure) -> None:
        if measure in self._measures:
            return
        with self._lock:
            self._measures.add(measure)
            likes = list(self._seen)
        for like in likes:
            self._create(measure, like)

    def _create(self, measure: Measure, like: Like) -> None:
        workflow, model = like
        about = {
            semconv.GEN_AI_WORKFLOW_NAME: workflow,
            semconv.GEN_AI_REQUEST_MODEL: model,
            semconv.EVALUATOR: _EVALUATOR,
        }
        attributes = measure.attributes(about, "random")
        key = tuple(sorted(attributes.items()))
        with self._lock:
            if key in self._created or len(self._created) >= _MOST_PRECREATED:
                return
            self._created.add(key)
        if _has_sums(measure.scale):
            for name in _SUMS:
                self._meter.add(name, 0.0, attributes)
            if measure.scale.threshold is not None:
                self._meter.add(semconv.SCORE_LOW_W, 0.0, attributes)
        outcome = {
            semconv.GEN_AI_EVALUATION_NAME: measure.name, semconv.GEN_AI_WORKFLOW_NAME: workflow,
            semconv.OUTCOME: "ok", **_judged_by(measure.judge_model),
        }  # fmt: skip
        self._meter.add(semconv.EVALUATIONS, 0, outcome)

    def _count_calls(self, result: MetricResult) -> None:
        if not (result.llm_calls or result.input_tokens or result.output_tokens):
            return
        about = _judged_by(result.judge.model if result.judge else None)
        outcome = "error" if result.state == "error" else "ok"
        self._meter.add(semconv.JUDGE_CALLS, _bounded_count(result.llm_calls), about | {semconv.OUTCOME: outcome})
        for kind, tokens in (("input", result.input_tokens), ("output", result.output_tokens)):
            self._meter.add(semconv.JUDGE_TOKENS, _bounded_count(tokens), about | {semconv.GEN_AI_TOKEN_TYPE: kind})

    def _sum(self, attributes: dict[str, Any], x: float, w: float, *, is_pass: bool | None) -> None:
        parts = (1.0, w, w * x, w * w, w * w * x, w * w * x * x)
        for name, part in zip(_SUMS, parts, strict=True):
            self._meter.add(name, part, attributes)
        if is_pass is not None:
            self._meter.add(semconv.SCORE_LOW_W, 0.0 if is_pass else w, attributes)

    def _into_window(
        self, scale: Scale, attributes: dict[str, Any], x: float, w: float, *, is_pass: bool | None
    ) -> None:
        low, high = (0.0, 1.0) if scale.is_unit else (scale.low, scale.high)
        key = tuple(sorted(attributes.items()))
        with self._lock:
            found = self._windows.get(key)
            if found is None:
                if len(self._windows) >= _MOST_WINDOWS:
                    record_internal_error("ragtrace.telemetry.instruments.windows")
                    return
                found = self._windows[key] = (Window(self._window_s, low, high), attributes)
            found[0].add(self._clock(), x, w, is_pass=is_pass)

    def _window_points(self, field: str) -> Points:
        now = self._clock()
        points = []
        with self._lock:
            for key, (window, attributes) in list(self._windows.items()):
                mean = window.read(now)
                if mean is None:
                    del self._windows[key]
                elif (value := getattr(mean, field)) is not None:
                    points.append((value, attributes))
        return points

    def _last_time_points(self) -> Points:
        return [] if self._scored_at is None else [(self._scored_at, {})]


def _has_sums(scale: Scale) -> bool:
    return scale.is_unit or scale.low >= 0.0


def _outcome(workflow: str, result: MetricResult) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        semconv.GEN_AI_EVALUATION_NAME: result.name,
        semconv.GEN_AI_WORKFLOW_NAME: workflow,
        semconv.OUTCOME: result.state,
        **_judged_by(result.judge.model if result.judge else None),
    }
    if result.reason:
        attributes[semconv.REASON] = result.reason
    return attributes


def _judged_by(model: str | None) -> dict[str, Any]:
    about: dict[str, Any] = {semconv.EVALUATOR: _EVALUATOR}
    if model is not None:
        about[semconv.JUDGE_MODEL] = model
    return about


def _bounded_count(number: int) -> int:
    """Return what a judge of the application's own counted, as a counter can take it."""
    return min(max(number, 0), _MOST_COUNT)


def _loss_points() -> Points:
    return [(float(count), {semconv.SITE: site}) for site, count in internal_errors().items()]
