"""Every metric of TELEMETRY.md section 3: what is counted, summed and observed of captured and scored runs."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.context import Context

from ragtrace import semconv
from ragtrace.capture import Retrieval, internal_errors, record_internal_error
from ragtrace.telemetry.metrics.client_metrics import record_operations
from ragtrace.telemetry.metrics.multi_meter import Fan
from ragtrace.telemetry.metrics.readings import QUEUE_GAUGES, coverage, ledger_points
from ragtrace.telemetry.metrics.series import OTHER, Measure, Names, bounded_text
from ragtrace.telemetry.metrics.window import Window
from ragtrace.telemetry.root import remote_context

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from opentelemetry.metrics import Meter

    from ragtrace.capture import FinishedRun
    from ragtrace.model import MetricResult, RagRecord, Scale, Score
    from ragtrace.telemetry.metrics.readings import LedgerReading, Observed, QueueReading
    from ragtrace.telemetry.metrics.window import WindowMean

    Reader = Callable[[], Iterable[tuple[float, Mapping[str, Any]]]]

_SUMS = (
    semconv.SCORE_N, semconv.SCORE_W, semconv.SCORE_WX, semconv.SCORE_W2, semconv.SCORE_W2X, semconv.SCORE_W2X2,
)  # fmt: skip
_WINDOW_GAUGES = (semconv.WINDOW_MEAN, semconv.WINDOW_LOW, semconv.WINDOW_HIGH, semconv.PASS_RATIO)
_MOST_MODELS = 100
_MOST_SOURCES = 100
_MOST_CUTOFFS = 100  # of which each is at most
_MOST_K = 1_000
_MOST_PRECREATED = 1_000  # label sets; the SDK folds what lies beyond 2,000 an instrument into one
_MOST_WINDOWS = 2_000
_MOST_COUNT = 10**12  # of one score: sums beyond 2^63 would end the export of every metric
# Not the empty context: the SDK would then take whatever span is current in the scorer's thread.
_NO_TRACE = trace.set_span_in_context(trace.INVALID_SPAN, Context())


class Instruments:
    """Writes ragtrace's metrics to one or several meters. Thread-safe; no method waits.

    Args:
        meters: each gets every instrument; a scrape-only meter may stand beside the application's own. A later
            `Instruments` on the same meter takes its gauges over.
        window_s: seconds of the window of mean gauges.
        evaluator: who scores.
        max_workflows: names kept apart; further ones become ``other``.
        has_client_metrics: whether the conventions' ``gen_ai.*`` metrics are recorded too.
        is_owner: whether the gauges are its own at once, and not from `own` on.
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
        evaluator: str = "ragtrace",
        max_workflows: int = 100,
        has_client_metrics: bool = True,
        is_owner: bool = True,
        captures: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fan = Fan(meters)
        self._window_s = window_s
        self._evaluator = evaluator
        self._has_client_metrics = has_client_metrics
        self._clock = clock
        self._workflows = Names(max_workflows)
        self._models = Names(_MOST_MODELS)
        self._sources = Names(_MOST_SOURCES)
        self._cutoffs = Names(_MOST_CUTOFFS)
        self._lock = threading.Lock()
        self._seen: set[tuple[str, str | None]] = set()
        self._searched: set[str] = set()
        self._measures: set[Measure] = set()
        self._created: set[tuple[Any, ...]] = set()
        self._windows: dict[tuple[Any, ...], tuple[Window, dict[str, Any]]] = {}
        self._scored_at: float | None = None
        self._readers: dict[str, Reader] = {semconv.INTERNAL_LOSSES: _losses}
        for name in _WINDOW_GAUGES:
            self._readers[name] = self._window_reader(name)
        self._readers[semconv.EVALUATION_LAST_TIME] = self._last_time
        if is_owner:
            self.own()
        if captures:
            self._fan.add(semconv.TRACES, 0, {semconv.DECISION: "sampled"})  # so that the first increase is seen

    def workflow(self, record: RagRecord) -> str:
        """Return a record's workflow as points have it: bounded in length and number."""
        return self._workflows.bounded(bounded_text(record.workflow))

    # -- captured runs: called in the application's thread --

    def operations(self, captured: FinishedRun) -> None:
        """Count a finished run: pre-create its scores' label sets, and record the conventions' metrics."""
        record = captured.record
        self.eligible(record)
        workflow = self.workflow(record)
        searches = [step for step in captured.steps if isinstance(step, Retrieval) and step.failure is None]
        if searches:
            is_empty = not any(step.passages for step in searches)
            if is_empty or workflow not in self._searched:  # 0 once, so that the first increase is seen
                self._searched.add(workflow)
                self._fan.add(semconv.RETRIEVAL_EMPTY, int(is_empty), {semconv.GEN_AI_WORKFLOW_NAME: workflow})
        if self._has_client_metrics:
            record_operations(self._fan, captured, workflow, model_name=self._model, source_name=self._source)

    def eligible(self, record: RagRecord) -> None:
        """Create with add(0) the label sets that a score of this record would have, at first sight of its like.

        ``increase()`` loses the first increment of a series that was never seen at 0.
        """
        self.announce(record.workflow, record.model or None)

    def announce(self, workflow: str, model: str | None) -> None:
        """Do the same for a workflow and the model that answered in it."""
        like = (self._workflows.bounded(bounded_text(workflow)), self._model(model) if model else None)
        if like in self._seen:
            return
        with self._lock:
            self._seen.add(like)
            measures = list(self._measures)
        for measure in measures:
            self._create(measure, like)

    def likes(self) -> set[tuple[str, str | None]]:
        """Return the (workflow, model) pairs seen so far."""
        with self._lock:
            return set(self._seen)

    def expect(self, result: MetricResult, scale: Scale) -> None:
        """Announce a metric before its first score, by any result of it (``na`` will do): see `eligible`."""
        self._know(Measure.of(result, scale, self._cutoff(result.k)))

    def traces(self, decision: str, reason: str | None) -> None:
        """Count one captured trace as what was decided of it, once: ``sampled``, ``skipped`` or ``dropped``."""
        attributes = {semconv.DECISION: decision}
        if reason:
            attributes[semconv.REASON] = reason
        self._fan.add(semconv.TRACES, 1, attributes)

    # -- scores: called in the scorer's thread --

    def scored(self, record: RagRecord, score: Score, scale: Scale, *, is_recorded: bool) -> None:
        """Enter one score: outcome, histogram, weighted sums and window.

        Sums and window take the random stratum with a known weight alone; a metric outside [0, 1] that is no
        1-5 form has the window alone (TELEMETRY.md 3).

        Args:
            record: what was scored.
            score: the score, of any state, and whether it passed.
            scale: of the metric.
            is_recorded: whether the root was exported, so that an exemplar may point at it.
        """
        result = score.result
        measure = Measure.of(result, scale, self._cutoff(result.k))
        self._know(measure)
        self._fan.add(semconv.EVALUATIONS, 1, self._outcome(record, result))
        if result.value is None:
            return
        self._scored_at = score.scored_at or time.time()
        value = scale.exported(result.value)
        attributes = measure.attributes(self._about(record), score.stratum)
        if scale.is_unit:
            value = min(max(value, 0.0), 1.0)
            context = remote_context(record.trace_id, record.span_id, is_sampled=True) if is_recorded else None
            self._fan.record(semconv.EVALUATION_SCORE, value, attributes, context or _NO_TRACE)
        if score.stratum != "random" or score.weight is None:
            return
        if scale.is_unit:
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
        about = {semconv.GEN_AI_WORKFLOW_NAME: self.workflow(record), semconv.EVALUATOR: self._evaluator}
        if duration_s is not None:
            self._fan.record(semconv.EVALUATION_DURATION, max(duration_s, 0.0), about)
        if lag_s is not None:
            self._fan.record(semconv.EVALUATION_LAG, max(lag_s, 0.0), about)
        if cost_usd is not None:
            self._fan.add(semconv.EVALUATION_COST_METRIC, cost_usd, about)
        for score in scores:
            self._judged(score.result)

    def weight_capped(self, record: RagRecord) -> None:
        """Count one score whose weight hit the cap."""
        self._fan.add(semconv.WEIGHT_CAPPED, 1, {semconv.GEN_AI_WORKFLOW_NAME: self.workflow(record)})

    def count_drift_alarms(self, attributes: Mapping[str, Any], count: int) -> None:
        """Count alarms of a drift detector; 0 lets the series exist, so that the first alarm is an increase."""
        self._fan.add(semconv.DRIFT_ALARMS, count, attributes)

    # -- gauges: read when metrics are collected --

    def observe(self, name: str, read: Reader) -> None:
        """Let `read` give the points of an observable instrument (value, attributes); it replaces an earlier one.

        Raises:
            KeyError: `name` is no observable instrument of `ragtrace.semconv.METRICS`.
        """
        if not any(it.name == name and it.kind.startswith("observable") for it in semconv.METRICS):
            raise KeyError(name)
        self._readers[name] = read

    def observe_queue(self, read: Callable[[], Iterable[QueueReading]]) -> None:
        """Let `read` tell the state of the scorer's queue: what waits here, and in a spool."""
        for name in QUEUE_GAUGES:
            self.observe(name, _queue_reader(name, read))

    def observe_ledger(self, read: Callable[[], Sequence[LedgerReading]], *, has_coverage: bool = True) -> None:
        """Let the accounts be read; who hands its traces to another process cannot tell how many were scored."""

        def covered() -> list[Observed]:
            share = coverage(read()) if has_coverage else None
            return [] if share is None else [(share, {})]

        self.observe(semconv.LEDGER, lambda: ledger_points(read()))
        self.observe(semconv.COVERAGE_RATIO, covered)

    def own(self) -> None:
        """Take the gauges over from whoever has them."""
        self._fan.own(self._read)

    def close(self) -> None:
        """Observe nothing any more; what was counted stays counted."""
        self._fan.disown()

    def reset_after_fork(self) -> None:
        """Take a fresh lock and empty windows, in a forked child: the parent exports what it had."""
        self._lock = threading.Lock()
        self._windows = {}

    # -- inside --

    def _model(self, name: str) -> str:
        return self._models.bounded(bounded_text(name))

    def _source(self, name: str) -> str:
        return self._sources.bounded(bounded_text(name))

    def _cutoff(self, k: int | None) -> int | str | None:
        """Return a cut-off, or ``other``: an application names it, or its retriever returns so many."""
        if k is None or (0 <= k <= _MOST_K and self._cutoffs.bounded(str(k)) != OTHER):
            return k
        return OTHER

    def _about(self, record: RagRecord) -> dict[str, Any]:
        return {
            semconv.GEN_AI_WORKFLOW_NAME: self.workflow(record),
            semconv.GEN_AI_REQUEST_MODEL: self._model(record.model) if record.model else None,
            semconv.EVALUATOR: self._evaluator,
        }

    def _know(self, measure: Measure) -> None:
        if measure in self._measures:
            return
        with self._lock:
            self._measures.add(measure)
            likes = list(self._seen)
        for like in likes:
            self._create(measure, like)

    def _create(self, measure: Measure, like: tuple[str, str | None]) -> None:
        workflow, model = like
        about = {
            semconv.GEN_AI_WORKFLOW_NAME: workflow,
            semconv.GEN_AI_REQUEST_MODEL: model,
            semconv.EVALUATOR: self._evaluator,
        }
        attributes = measure.attributes(about, "random")
        key = tuple(sorted(attributes.items()))
        with self._lock:
            if key in self._created or len(self._created) >= _MOST_PRECREATED:
                return
            self._created.add(key)
        if measure.scale.is_unit:
            for name in _SUMS:
                self._fan.add(name, 0.0, attributes)
            if measure.scale.threshold is not None:
                self._fan.add(semconv.SCORE_LOW_W, 0.0, attributes)
        outcome = {semconv.GEN_AI_EVALUATION_NAME: measure.name, semconv.GEN_AI_WORKFLOW_NAME: workflow}
        self._fan.add(semconv.EVALUATIONS, 0, self._judge(outcome, measure.judge_model) | {semconv.OUTCOME: "ok"})

    def _outcome(self, record: RagRecord, result: MetricResult) -> dict[str, Any]:
        attributes: dict[str, Any] = {
            semconv.GEN_AI_EVALUATION_NAME: result.name,
            semconv.GEN_AI_WORKFLOW_NAME: self.workflow(record),
            semconv.OUTCOME: result.state,
        }
        if result.reason:
            attributes[semconv.REASON] = result.reason
        return self._judge(attributes, result.judge.model if result.judge else None)

    def _judge(self, attributes: dict[str, Any], model: str | None) -> dict[str, Any]:
        attributes[semconv.EVALUATOR] = self._evaluator
        if model is not None:
            attributes[semconv.JUDGE_MODEL] = model
        return attributes

    def _judged(self, result: MetricResult) -> None:
        if not (result.llm_calls or result.input_tokens or result.output_tokens):
            return
        about = self._judge({}, result.judge.model if result.judge else None)
        outcome = "error" if result.state == "error" else "ok"
        self._fan.add(semconv.JUDGE_CALLS, _count(result.llm_calls), about | {semconv.OUTCOME: outcome})
        for kind, tokens in (("input", result.input_tokens), ("output", result.output_tokens)):
            self._fan.add(semconv.JUDGE_TOKENS, _count(tokens), about | {semconv.GEN_AI_TOKEN_TYPE: kind})

    def _sum(self, attributes: dict[str, Any], x: float, w: float, *, is_pass: bool | None) -> None:
        parts = (1.0, w, w * x, w * w, w * w * x, w * w * x * x)
        for name, part in zip(_SUMS, parts, strict=True):
            self._fan.add(name, part, attributes)
        if is_pass is not None:
            self._fan.add(semconv.SCORE_LOW_W, 0.0 if is_pass else w, attributes)

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

    def _read(self, name: str) -> Iterable[tuple[float, Mapping[str, Any]]]:
        reader = self._readers.get(name)
        return () if reader is None else reader()

    def _window_reader(self, name: str) -> Reader:
        field = {semconv.WINDOW_MEAN: "mean", semconv.WINDOW_LOW: "low", semconv.WINDOW_HIGH: "high"}.get(
            name, "passed"
        )

        def read() -> list[Observed]:
            points = []
            for window, attributes in self._current_windows():
                value: float | None = getattr(window, field)
                if value is not None:
                    points.append((value, attributes))
            return points

        return read

    def _current_windows(self) -> list[tuple[WindowMean, dict[str, Any]]]:
        now = self._clock()
        with self._lock:
            current = []
            for key, (window, attributes) in list(self._windows.items()):
                mean = window.read(now)
                if mean is None:
                    del self._windows[key]
                else:
                    current.append((mean, attributes))
        return current

    def _last_time(self) -> list[Observed]:
        return [] if self._scored_at is None else [(self._scored_at, {})]


def _count(number: int) -> int:
    """Return what a judge of the application's own counted, as a counter can take it."""
    return min(max(number, 0), _MOST_COUNT)


def _losses() -> list[Observed]:
    return [(float(count), {semconv.SITE: site}) for site, count in internal_errors().items()]


def _queue_reader(name: str, read: Callable[[], Iterable[QueueReading]]) -> Reader:
    def observe() -> list[Observed]:
        return [(reading.value(name), reading.attributes) for reading in read()]

    return observe
