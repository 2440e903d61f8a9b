"""Count, time and sum captured and scored runs, and observe the windows of their scores."""

from __future__ import annotations

import time
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec import structs
from opentelemetry import trace
from opentelemetry.context import Context

from ragtrace import semconv
from ragtrace.capture import Generation, Rerank, Retrieval, internal_errors
from ragtrace.model import SIGNS, Scale, Usage
from ragtrace.model.cluster import cluster_of
from ragtrace.model.reading import ANY_SIGN
from ragtrace.telemetry.metrics.clusters import ClusterSums, Squares
from ragtrace.telemetry.metrics.meters import instruments_of
from ragtrace.telemetry.metrics.series import (
    EVALUATOR,
    AnsweredBy,
    LabelValues,
    Windows,
    measured,
    score_attributes,
)
from ragtrace.telemetry.metrics.shares import Shares
from ragtrace.telemetry.wire import clean_value, remote_context

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opentelemetry.metrics import Meter
    from opentelemetry.util.types import AttributeValue

    from ragtrace.capture import FinishedRun, Step
    from ragtrace.model import MetricResult, Missed, RagRecord, Score, SeriesKey
    from ragtrace.telemetry.metrics.meters import Points, Reader
    from ragtrace.telemetry.metrics.series import Attributes

    Source = tuple[str, str | None, str | None, str | None]  # workflow and `AnsweredBy`

_NS = 1e9
_NO_USAGE = Usage()
_NOTHING_MISSED: Mapping[str, Missed] = MappingProxyType({})
_SUMS = (
    semconv.SCORE_N, semconv.SCORE_W, semconv.SCORE_WX, semconv.SCORE_W2, semconv.SCORE_W2X, semconv.SCORE_W2X2,
)  # fmt: skip
_WINDOW_FIELDS = {
    semconv.WINDOW_MEAN: "mean", semconv.WINDOW_LOW: "low", semconv.WINDOW_HIGH: "high",
    semconv.PASS_RATIO: "passed",
}  # fmt: skip
_MOST_PRECREATED = 1_000  # label sets; the SDK folds those beyond 2,000 an instrument into one
_MOST_COUNT = 10**12  # of one score: sums beyond 2^63 would end the export of every metric
_ANY_SCALE = Scale()  # of a score that no chosen metric gives: one that a killed scorer had written
# Not the empty context: the SDK would then take the current span of the scorer's thread.
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
        self._meters = [instruments_of(meter) for meter in meters]
        self._labels = LabelValues()
        self._windows = Windows(window_s, clock)
        self._clusters = ClusterSums(clock)
        self._shares = Shares(self._add, clock)
        self._sources: set[Source] = set()
        self._searched: set[str] = set()
        self._ran: set[str] = set()
        self._scales: dict[SeriesKey, Scale] = {}
        self._created: set[tuple[SeriesKey, AnsweredBy]] = set()
        self._scored_at: float | None = None
        self._readers: dict[str, Reader] = {
            semconv.INTERNAL_LOSSES: _loss_points,
            semconv.EVALUATION_LAST_TIME: self._last_time_points,
            **{name: partial(self._windows.points, field) for name, field in _WINDOW_FIELDS.items()},
        }
        if captures:
            self._add(semconv.TRACES, 0, {semconv.DECISION: "sampled"})  # so that the first increase is seen

    def workflow(self, record: RagRecord) -> str:
        """Return a record's workflow as points have it: bounded in length and number."""
        return self.bounded_workflow(record.workflow)

    def bounded_workflow(self, workflow: str) -> str:
        """Return a workflow's name as points have it; "" stays for an unknown one."""
        return self._labels.bounded("workflow", workflow) if workflow else ""

    def series(self, record: RagRecord, result: MetricResult) -> tuple[SeriesKey, AnsweredBy]:
        """Return the key of a result as points have it, and what answered."""
        return measured(result, self._labels, self.workflow(record)), self._answered_by(record)

    def _answered_by(self, record: RagRecord) -> AnsweredBy:
        return self._bounded_by(record.model, record.prompt_name, record.prompt_version)

    def _bounded_by(self, model: str | None, prompt: str | None, version: str | None) -> AnsweredBy:
        bounded = self._labels.bounded
        return AnsweredBy(
            bounded("model", model) if model else None,
            bounded("prompt", prompt) if prompt else None,
            bounded("version", version) if version else None,
        )

    # -- captured runs: called in the application's process --

    def operations(self, captured: FinishedRun) -> None:
        """Count a finished run: pre-create its scores' label sets, and record the conventions' own metrics.

        These are the durations of the run and of its steps, and the tokens of its model calls.
        """
        record = captured.record
        self.precreate(record.workflow, record.model or None, record.prompt_name, record.prompt_version)
        workflow = self.workflow(record)
        about: Attributes = {semconv.GEN_AI_WORKFLOW_NAME: workflow}
        searches = [step for step in captured.steps if isinstance(step, Retrieval) and step.failure is None]
        if searches:
            is_empty = not any(step.passages for step in searches)
            if is_empty or workflow not in self._searched:  # 0 once, so that the first increase is seen
                self._searched.add(workflow)
                self._add(semconv.RETRIEVAL_EMPTY, int(is_empty), about)
        if record.outcome == "error":
            about[semconv.ERROR_TYPE] = clean_value(captured.failure.kind) if captured.failure else "_OTHER"
        seconds = max((captured.ended_ns - captured.started_ns) / _NS, 0.0)
        self._record(semconv.INVOKE_WORKFLOW_DURATION, seconds, about)
        for step in captured.steps:
            self._record_step(step)

    def _record_step(self, step: Step) -> None:
        about: Attributes = {semconv.ERROR_TYPE: step.failure.kind} if step.failure else {}
        seconds = max((step.ended_ns - step.started_ns) / _NS, 0.0)
        if isinstance(step, Generation):
            self._record_generation(step, seconds, about)
        elif not seconds:
            return  # a step that was reported without times has none: 0 s would be a false latency
        elif isinstance(step, Retrieval):
            about[semconv.GEN_AI_OPERATION_NAME] = semconv.OPERATION_RETRIEVAL
            if step.source:
                about[semconv.GEN_AI_DATA_SOURCE_ID] = self._labels.bounded("source", step.source)
            self._record(semconv.CLIENT_OPERATION_DURATION, seconds, about)
        elif isinstance(step, Rerank):
            if step.model:
                about[semconv.GEN_AI_REQUEST_MODEL] = self._labels.bounded("model", step.model)
            self._record(semconv.RERANK_DURATION, seconds, about)

    def _record_generation(self, step: Generation, seconds: float, failure: Attributes) -> None:
        usage, is_embedding = step.usage or _NO_USAGE, step.operation == "embeddings"
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
        self._record(semconv.CLIENT_OPERATION_DURATION, seconds, about | failure)
        self._record(today, seconds, about | failure)
        for kind, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            if tokens is not None and tokens >= 0:
                self._record(semconv.CLIENT_TOKEN_USAGE, tokens, about | {semconv.GEN_AI_TOKEN_TYPE: kind})
        if is_embedding:
            return
        if step.first_chunk_s is not None:
            self._record(semconv.CLIENT_FIRST_CHUNK, step.first_chunk_s, about)
            if step.chunks is not None and step.chunks > 1:
                # One mean a call: a value for each chunk takes 4 us, of hundreds a reply.
                rest_s = max(seconds - step.first_chunk_s, 0.0)
                self._record(semconv.CLIENT_OUTPUT_CHUNK, rest_s / (step.chunks - 1), about)
        # A call without usage counts 0, by convention.
        sent, written = max(usage.input_tokens or 0, 0), max(usage.output_tokens or 0, 0)
        self._record(semconv.CLIENT_CALL_INPUT_TOKENS, sent, about | failure)
        self._record(semconv.CLIENT_CALL_OUTPUT_TOKENS, written, about | failure)
        about[semconv.GEN_AI_TOKEN_MODALITY] = semconv.MODALITY_UNKNOWN
        for name, tokens in (
            (semconv.CLIENT_INPUT_TOKENS, sent),
            (semconv.CLIENT_OUTPUT_TOKENS, written),
            (semconv.CLIENT_CACHE_READ_TOKENS, usage.cache_read_tokens),
            (semconv.CLIENT_CACHE_WRITE_TOKENS, usage.cache_write_tokens),
            (semconv.CLIENT_REASONING_TOKENS, usage.reasoning_tokens),
        ):
            if tokens is not None:
                self._add(name, max(tokens, 0), about)

    def precreate(
        self, workflow: str, model: str | None, prompt: str | None = None, prompt_version: str | None = None
    ) -> None:
        """Create with add(0) the label sets of scores of a workflow, and of the model and prompt that answer in it.

        ``increase()`` loses the first increment of a series that was never seen at 0.
        """
        source = (
            self._labels.bounded("workflow", workflow),
            *self._bounded_by(model, prompt, prompt_version),
        )
        if source not in self._sources:
            self._sources.add(source)
            for key in list(self._scales):
                self._create(key, source)

    def precreate_metric(self, result: MetricResult, scale: Scale) -> None:
        """Create the label sets of a metric, by any result of it (``na`` will do): see `precreate`."""
        self._know(measured(result, self._labels), scale)

    def known_series(self) -> set[Source]:
        """Return workflows with the model and the prompt that answer in them, as seen so far."""
        return set(self._sources)

    def traces(self, decision: str, reason: str | None, count: int = 1) -> None:
        """Count captured or received traces by their decision: ``sampled``, ``skipped`` or ``dropped``."""
        attributes = {semconv.DECISION: decision}
        if reason:
            attributes[semconv.REASON] = reason
        self._add(semconv.TRACES, count, attributes)

    def run(self, record: RagRecord) -> None:
        """Count a run that was read, and once under each of its signs; called in the pipeline's thread."""
        workflow = self.workflow(record)
        about: Attributes = {semconv.GEN_AI_WORKFLOW_NAME: workflow}
        if workflow not in self._ran:  # 0 once, so that the first increase is seen
            self._ran.add(workflow)
            for name in (*SIGNS, ANY_SIGN):
                self._add(semconv.RUNS_SIGNED, 0, about | {semconv.SIGN: name})
        self._add(semconv.RUNS, 1, about)
        for name in () if record.reading is None else record.reading.counted_as:
            self._add(semconv.RUNS_SIGNED, 1, about | {semconv.SIGN: name})

    def assembly(self, reason: str, count: int) -> None:
        """Count received spans or traces that were out of the ordinary."""
        self._add(semconv.ASSEMBLY, count, {semconv.REASON: reason})

    # -- scores: called in the scorer's thread --

    def scored(
        self,
        record: RagRecord,
        scores: Sequence[Score],
        scales: Mapping[str, Scale],
        *,
        is_recorded: bool,
        has_other: Callable[[Score], bool] | None = None,
        missed: Mapping[str, Missed] = _NOTHING_MISSED,
    ) -> None:
        """Record the scores of one trace: outcomes, histograms, weighted sums and windows.

        Sums and windows take the random stratum with a known weight alone. The histogram takes metrics in [0, 1]
        and 1-5 forms, and the sums those that are never negative, as counters only rise. Sums of squares are over
        clusters, see `ragtrace.telemetry.metrics.clusters`.

        Args:
            record: the scored record.
            scores: its scores, of any state, and whether they passed.
            scales: of the metrics by name.
            is_recorded: whether the root was exported, so that an exemplar may point at it.
            has_other: tells the scores of a first judge that stand beside another judge's. The counts of verdicts
                and of missing scores, which name no judge, leave them to that one.
            missed: what was counted as missing while the trace waited, by output (`waits`).
        """
        workflow = self.workflow(record)
        by = self._answered_by(record)
        context = remote_context(record.trace_id, record.span_id, is_sampled=True) if is_recorded else None
        cluster = cluster_of(record)
        for score in scores:
            result = score.result
            scale = scales.get(result.name, _ANY_SCALE)
            key = measured(result, self._labels, workflow)
            if (any_workflow := structs.replace(key, workflow="")) not in self._scales:
                self._know(any_workflow, scale)
            outcome = _outcome(result.name, workflow, result.state, key.judge)
            if result.reason:
                outcome[semconv.REASON] = result.reason
            self._add(semconv.EVALUATIONS, 1, outcome)
            if has_other is None or not has_other(score):
                if (waited := missed.get(result.name)) is not None:
                    self._shares.settle(score, workflow, cluster, waited)
                else:
                    self._shares.count(score, workflow, cluster)
            if result.value is None:
                continue
            self._scored_at = score.scored_at or time.time()
            value = scale.exported(result.value)
            attributes = score_attributes(key, by, score.stratum)
            if scale.is_unit:
                value = min(max(value, 0.0), 1.0)
                self._record(semconv.EVALUATION_SCORE, value, attributes, context or _NO_TRACE)
            if score.stratum != "random" or (w := score.weight) is None:
                continue
            is_counted = scale.is_unit or scale.low >= 0.0
            if is_counted and value < 0.0:  # off its scale: counters cannot fall
                squares = Squares(w * w, w * w * value, w * w * value * value)
            else:
                squares = self._clusters.join((key, by), cluster, value, w)
                if is_counted:
                    self._count(attributes, (1.0, w, w * value, *squares), w, is_pass=result.passed)
            self._windows.add(key, by, scale, value, w, squares, is_pass=result.passed)

    def waits(
        self,
        record: RagRecord,
        scores: Sequence[Score],
        reason: str,
        has_other: Callable[[Score], bool] | None = None,
    ) -> dict[str, Missed]:
        """Count the scores of a trace that is to be tried again as missing; return what was counted, by output.

        Args:
            record: the trace.
            scores: what is known of them, of any state.
            reason: of the failure.
            has_other: as of `scored`.
        """
        workflow, cluster, found = self.workflow(record), cluster_of(record), {}
        for score in scores:
            if has_other is None or not has_other(score):
                missed = self._shares.wait(score, workflow, cluster, reason)
                if missed is not None:
                    found[score.result.name] = missed
        return found

    def lost(self, record: RagRecord, scores: Sequence[Score], *, runs: int = 1) -> None:
        """Count the scores of a trace that gets none any more as missing.

        Args:
            record: the trace.
            scores: without a value.
            runs: traces that were lost alike.
        """
        workflow, cluster = self.workflow(record), cluster_of(record)
        for score in scores:
            self._shares.count(score, workflow, cluster, runs=runs)

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
        about = {semconv.GEN_AI_WORKFLOW_NAME: self.workflow(record), semconv.EVALUATOR: EVALUATOR}
        if duration_s is not None:
            self._record(semconv.EVALUATION_DURATION, max(duration_s, 0.0), about)
        if lag_s is not None:
            self._record(semconv.EVALUATION_LAG, max(lag_s, 0.0), about)
        if cost_usd is not None:
            self._add(semconv.EVALUATION_COST_METRIC, cost_usd, about)
        for result in [score.result for score in scores]:
            if not (result.llm_calls or result.input_tokens or result.output_tokens):
                continue
            about = {semconv.EVALUATOR: EVALUATOR}
            if result.judge is not None:
                about[semconv.JUDGE_MODEL] = result.judge.model
            outcome = {**about, semconv.OUTCOME: "error" if result.state == "error" else "ok"}
            # A judge of the application's own may count anything.
            self._add(semconv.JUDGE_CALLS, min(max(result.llm_calls, 0), _MOST_COUNT), outcome)
            for kind, tokens in (("input", result.input_tokens), ("output", result.output_tokens)):
                used = {**about, semconv.GEN_AI_TOKEN_TYPE: kind}
                self._add(semconv.JUDGE_TOKENS, min(max(tokens, 0), _MOST_COUNT), used)

    def weight_capped(self, record: RagRecord) -> None:
        """Count one score whose weight hit the cap."""
        self._add(semconv.WEIGHT_CAPPED, 1, {semconv.GEN_AI_WORKFLOW_NAME: self.workflow(record)})

    def feedback(self, workflow: str, metric: str, *, is_good: bool) -> None:
        """Count one rating by a person; `workflow` as points have it."""
        about: Attributes = {
            semconv.GEN_AI_EVALUATION_NAME: self._labels.bounded("rating", metric),
            semconv.GEN_AI_WORKFLOW_NAME: workflow,
        }
        for label, count in (
            ("good", int(is_good)),
            ("bad", int(not is_good)),
        ):  # 0: the other one is seen to begin
            self._add(semconv.FEEDBACK, count, about | {semconv.FEEDBACK_LABEL: label})

    # -- gauges: read when metrics are collected --

    def observe(self, readers: Mapping[str, Reader]) -> None:
        """Set the functions that return the points of observable instruments, by name."""
        self._readers.update(readers)

    def take_gauges(self) -> None:
        """Show the gauges from now on, in place of earlier `Instruments` on the same meters."""
        for meter in self._meters:
            meter.readers = self._readers

    def close(self) -> None:
        """Stop observing; counters keep their values, and later `Instruments` have readers of their own."""
        self._readers.clear()

    # -- inside --

    def _add(self, name: str, amount: float, attributes: Mapping[str, AttributeValue]) -> None:
        for meter in self._meters:
            meter.counters[name].add(amount, dict(attributes))  # a copy: the SDK keeps it

    def _record(
        self, name: str, value: float, attributes: Mapping[str, AttributeValue], context: Context | None = None
    ) -> None:
        for meter in self._meters:
            meter.histograms[name].record(value, dict(attributes), context)

    def _know(self, key: SeriesKey, scale: Scale) -> None:
        self._scales[key] = scale
        for source in list(self._sources):
            self._create(key, source)

    def _create(self, key: SeriesKey, source: Source) -> None:
        workflow, by, scale = source[0], AnsweredBy(*source[1:]), self._scales[key]
        key = structs.replace(key, workflow=workflow)
        if (key, by) in self._created or len(self._created) >= _MOST_PRECREATED:
            return
        self._created.add((key, by))  # no lock: adding 0 twice changes nothing
        self._shares.precreate(key.metric, workflow)
        attributes = score_attributes(key, by)
        if scale.is_unit or scale.low >= 0.0:
            for name in _SUMS:
                self._add(name, 0.0, attributes)
            if scale.threshold is not None:
                self._add(semconv.SCORE_LOW_W, 0.0, attributes)
        self._add(semconv.EVALUATIONS, 0, _outcome(key.metric, workflow, "ok", key.judge))

    def _count(self, attributes: Attributes, parts: tuple[float, ...], w: float, *, is_pass: bool | None) -> None:
        for name, part in zip(_SUMS, parts, strict=True):
            self._add(name, part, attributes)
        if is_pass is not None:
            self._add(semconv.SCORE_LOW_W, 0.0 if is_pass else w, attributes)

    def _last_time_points(self) -> Points:
        return [] if self._scored_at is None else [(self._scored_at, {})]


def _outcome(metric: str, workflow: str, outcome: str, judge_model: str | None) -> Attributes:
    about: Attributes = {
        semconv.EVALUATOR: EVALUATOR,
        semconv.GEN_AI_EVALUATION_NAME: metric,
        semconv.GEN_AI_WORKFLOW_NAME: workflow,
        semconv.OUTCOME: outcome,
    }
    if judge_model is not None:
        about[semconv.JUDGE_MODEL] = judge_model
    return about


def _loss_points() -> Points:
    return [(float(count), {semconv.SITE: site}) for site, count in internal_errors().items()]
