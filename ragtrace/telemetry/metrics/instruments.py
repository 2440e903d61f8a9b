"""Count, time and sum captured and scored runs, and observe the windows of their scores."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.context import Context

from ragtrace import semconv
from ragtrace.capture import Generation, Rerank, Retrieval, guarded, internal_errors, record_internal_error
from ragtrace.model import Scale, Usage
from ragtrace.telemetry.metrics.multi_meter import MultiMeter
from ragtrace.telemetry.metrics.series import LabelValues, Measure, Window
from ragtrace.telemetry.wire import clean_value, remote_context

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opentelemetry.metrics import Meter

    from ragtrace.capture import FinishedRun, Step
    from ragtrace.model import MetricResult, RagRecord, Score
    from ragtrace.telemetry.metrics.multi_meter import Points, Reader

    Like = tuple[str, str | None]  # workflow and model, as points have them

_NS = 1e9
_NO_USAGE = Usage()
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
        return self._labels.bounded("workflow", record.workflow)

    # -- captured runs: called in the application's process --

    def operations(self, captured: FinishedRun) -> None:
        """Count a finished run: pre-create its scores' label sets, and record the conventions' own metrics.

        These are the durations of the run and of its steps, and the tokens of its model calls.
        """
        record, meter = captured.record, self._meter
        self.precreate(record.workflow, record.model or None)
        workflow = self.workflow(record)
        about: dict[str, Any] = {semconv.GEN_AI_WORKFLOW_NAME: workflow}
        searches = [step for step in captured.steps if isinstance(step, Retrieval) and step.failure is None]
        if searches:
            is_empty = not any(step.passages for step in searches)
            if is_empty or workflow not in self._searched:  # 0 once, so that the first increase is seen
                self._searched.add(workflow)
                meter.add(semconv.RETRIEVAL_EMPTY, int(is_empty), about)
        if record.outcome == "error":
            about[semconv.ERROR_TYPE] = clean_value(captured.failure.kind) if captured.failure else "_OTHER"
        seconds = max((captured.ended_ns - captured.started_ns) / _NS, 0.0)
        meter.record(semconv.INVOKE_WORKFLOW_DURATION, seconds, about)
        for step in captured.steps:
            self._record_step(step)

    def _record_step(self, step: Step) -> None:
        about: dict[str, Any] = {semconv.ERROR_TYPE: step.failure.kind} if step.failure else {}
        seconds = max((step.ended_ns - step.started_ns) / _NS, 0.0)
        if isinstance(step, Generation):
            self._record_generation(step, seconds, about)
        elif not seconds:
            return  # a step that was reported without times has none: 0 s would be a false latency
        elif isinstance(step, Retrieval):
            about[semconv.GEN_AI_OPERATION_NAME] = semconv.OPERATION_RETRIEVAL
            if step.source:
                about[semconv.GEN_AI_DATA_SOURCE_ID] = self._labels.bounded("source", step.source)
            self._meter.record(semconv.CLIENT_OPERATION_DURATION, seconds, about)
        elif isinstance(step, Rerank):
            if step.model:
                about[semconv.GEN_AI_REQUEST_MODEL] = self._labels.bounded("model", step.model)
            self._meter.record(semconv.RERANK_DURATION, seconds, about)

    def _record_generation(self, step: Generation, seconds: float, failure: dict[str, Any]) -> None:
        meter, usage, is_embedding = self._meter, step.usage or _NO_USAGE, step.operation == "embeddings"
        about = {
            semconv.GEN_AI_OPERATION_NAME: clean_value(step.operation),
            semconv.GEN_AI_PROVIDER_NAME: clean_value(step.provider or semconv.PROVIDER_UNKNOWN),
        }
        if step.model:
            about[semconv.GEN_AI_REQUEST_MODEL] = self._labels.bounded("model", step.model)
        if step.response_model:
            about[semconv.GEN_AI_RESPONSE_MODEL] = self._labels.bounded("model", step.response_model)
        # Under the conventions' former names, and under today's.
        today = semconv.CLIENT_EMBEDDINGS_DURATION if is_embedding else semconv.CLIENT_INFERENCE_DURATION
        meter.record(semconv.CLIENT_OPERATION_DURATION, seconds, about | failure)
        meter.record(today, seconds, about | failure)
        for kind, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            if tokens is not None and tokens >= 0:
                meter.record(semconv.CLIENT_TOKEN_USAGE, tokens, about | {semconv.GEN_AI_TOKEN_TYPE: kind})
        if is_embedding:
            return
        about[semconv.GEN_AI_TOKEN_MODALITY] = semconv.MODALITY_UNKNOWN
        for name, tokens in (
            (semconv.CLIENT_INPUT_TOKENS, usage.input_tokens or 0),  # a call without usage counts 0, by convention
            (semconv.CLIENT_OUTPUT_TOKENS, usage.output_tokens or 0),
            (semconv.CLIENT_CACHE_READ_TOKENS, usage.cache_read_tokens),
            (semconv.CLIENT_CACHE_WRITE_TOKENS, usage.cache_write_tokens),
            (semconv.CLIENT_REASONING_TOKENS, usage.reasoning_tokens),
        ):
            if tokens is not None:
                meter.add(name, max(tokens, 0), about)

    @guarded
    def precreate(self, workflow: str, model: str | None) -> None:
        """Create with add(0) the label sets of scores of a workflow and the model that answers in it.

        ``increase()`` loses the first increment of a series that was never seen at 0.
        """
        bounded = self._labels.bounded
        like = (bounded("workflow", workflow), bounded("model", model) if model else None)
        if like in self._seen:
            return
        with self._lock:
            self._seen.add(like)
            measures = list(self._measures)
        for measure in measures:
            self._create(measure, like)

    def precreate_metric(self, result: MetricResult, scale: Scale) -> None:
        """Create the label sets of a metric, by any result of it (``na`` will do): see `precreate`."""
        self._know(Measure.of(result, scale, self._labels))

    def known_series(self) -> set[Like]:
        """Return the (workflow, model) pairs seen so far."""
        with self._lock:
            return set(self._seen)

    def traces(self, decision: str, reason: str | None) -> None:
        """Count one captured trace by its decision: ``sampled``, ``skipped`` or ``dropped``."""
        attributes = {semconv.DECISION: decision}
        if reason:
            attributes[semconv.REASON] = reason
        self._meter.add(semconv.TRACES, 1, attributes)

    # -- scores: called in the scorer's thread --

    def scored(
        self, record: RagRecord, scores: Sequence[Score], scales: Mapping[str, Scale], *, is_recorded: bool
    ) -> None:
        """Record the scores of one trace: outcomes, histograms, weighted sums and windows.

        Sums and windows take the random stratum with a known weight alone. The histogram takes metrics in [0, 1]
        and 1-5 forms, and the sums those that are never negative, as counters only rise.

        Args:
            record: the scored record.
            scores: its scores, of any state, and whether they passed.
            scales: of the metrics by name.
            is_recorded: whether the root was exported, so that an exemplar may point at it.
        """
        workflow, model = self.workflow(record), record.model
        about = {
            semconv.GEN_AI_WORKFLOW_NAME: workflow,
            semconv.GEN_AI_REQUEST_MODEL: self._labels.bounded("model", model) if model else None,
            semconv.EVALUATOR: _EVALUATOR,
        }
        context = remote_context(record.trace_id, record.span_id, is_sampled=True) if is_recorded else None
        for score in scores:
            result = score.result
            scale = scales.get(result.name, _ANY_SCALE)
            measure = Measure.of(result, scale, self._labels)
            if measure not in self._measures:
                self._know(measure)
            outcome = _outcome(result.name, workflow, result.state, measure.judge_model)
            if result.reason:
                outcome[semconv.REASON] = result.reason
            self._meter.add(semconv.EVALUATIONS, 1, outcome)
            if result.value is None:
                continue
            self._scored_at = score.scored_at or time.time()
            value = scale.exported(result.value)
            attributes = measure.attributes(about, score.stratum)
            if scale.is_unit:
                value = min(max(value, 0.0), 1.0)
                self._meter.record(semconv.EVALUATION_SCORE, value, attributes, context or _NO_TRACE)
            if score.stratum == "random" and score.weight is not None:
                self._add_weighted(scale, attributes, value, score.weight, is_pass=result.passed)

    def evaluated(
        self,
        record: RagRecord,
        scores: Sequence[Score],
        *,
        duration_s: float | None,
        lag_s: float | None,
        cost_usd: float | None = None,
    ) -> None:
        """Record time, lag behind the run's end, judge calls, tokens and dollars of scoring one trace.

        Of scores that another process left, the times are not known: None.
        """
        about = {semconv.GEN_AI_WORKFLOW_NAME: self.workflow(record), semconv.EVALUATOR: _EVALUATOR}
        if duration_s is not None:
            self._meter.record(semconv.EVALUATION_DURATION, max(duration_s, 0.0), about)
        if lag_s is not None:
            self._meter.record(semconv.EVALUATION_LAG, max(lag_s, 0.0), about)
        if cost_usd is not None:
            self._meter.add(semconv.EVALUATION_COST_METRIC, cost_usd, about)
        for result in [score.result for score in scores]:
            if not (result.llm_calls or result.input_tokens or result.output_tokens):
                continue
            about = {semconv.EVALUATOR: _EVALUATOR}
            if result.judge is not None:
                about[semconv.JUDGE_MODEL] = result.judge.model
            outcome = {**about, semconv.OUTCOME: "error" if result.state == "error" else "ok"}
            # A judge of the application's own may count anything.
            self._meter.add(semconv.JUDGE_CALLS, min(max(result.llm_calls, 0), _MOST_COUNT), outcome)
            for kind, tokens in (("input", result.input_tokens), ("output", result.output_tokens)):
                used = {**about, semconv.GEN_AI_TOKEN_TYPE: kind}
                self._meter.add(semconv.JUDGE_TOKENS, min(max(tokens, 0), _MOST_COUNT), used)

    def weight_capped(self, record: RagRecord) -> None:
        """Count one score whose weight hit the cap."""
        self._meter.add(semconv.WEIGHT_CAPPED, 1, {semconv.GEN_AI_WORKFLOW_NAME: self.workflow(record)})

    def count_drift_alarms(self, attributes: Mapping[str, Any], count: int) -> None:
        """Count alarms of a drift detector; 0 lets the series exist, so that the first alarm is an increase."""
        self._meter.add(semconv.DRIFT_ALARMS, count, attributes)

    # -- gauges: read when metrics are collected --

    def observe(self, readers: Mapping[str, Reader]) -> None:
        """Set the functions that return the points of observable instruments, by name."""
        self._meter.readers.update(readers)

    def take_gauges(self) -> None:
        """Show the gauges from now on, in place of earlier `Instruments` on the same meters."""
        self._meter.observe()

    def close(self) -> None:
        """Stop observing; counters keep their values."""
        self._meter.close()

    # -- inside --

    def _know(self, measure: Measure) -> None:
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
        if measure.scale.is_unit or measure.scale.low >= 0.0:
            for name in _SUMS:
                self._meter.add(name, 0.0, attributes)
            if measure.scale.threshold is not None:
                self._meter.add(semconv.SCORE_LOW_W, 0.0, attributes)
        self._meter.add(semconv.EVALUATIONS, 0, _outcome(measure.name, workflow, "ok", measure.judge_model))

    def _add_weighted(
        self, scale: Scale, attributes: dict[str, Any], x: float, w: float, *, is_pass: bool | None
    ) -> None:
        """Add a score to its sums, as counters only where it is never negative, and to its window."""
        if (scale.is_unit or scale.low >= 0.0) and x >= 0.0:
            parts = (1.0, w, w * x, w * w, w * w * x, w * w * x * x)
            for name, part in zip(_SUMS, parts, strict=True):
                self._meter.add(name, part, attributes)
            if is_pass is not None:
                self._meter.add(semconv.SCORE_LOW_W, 0.0 if is_pass else w, attributes)
        key = tuple(sorted(attributes.items()))
        with self._lock:
            found = self._windows.get(key)
            if found is None:
                if len(self._windows) >= _MOST_WINDOWS:
                    record_internal_error("ragtrace.telemetry.instruments.windows")
                    return
                low, high = (0.0, 1.0) if scale.is_unit else (scale.low, scale.high)
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


def _outcome(metric: str, workflow: str, outcome: str, judge_model: str | None) -> dict[str, Any]:
    about = {
        semconv.EVALUATOR: _EVALUATOR,
        semconv.GEN_AI_EVALUATION_NAME: metric,
        semconv.GEN_AI_WORKFLOW_NAME: workflow,
        semconv.OUTCOME: outcome,
    }
    if judge_model is not None:
        about[semconv.JUDGE_MODEL] = judge_model
    return about


def _loss_points() -> Points:
    return [(float(count), {semconv.SITE: site}) for site, count in internal_errors().items()]
