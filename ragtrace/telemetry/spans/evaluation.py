"""Write scores as an evaluation span and as result events."""

from __future__ import annotations

import hashlib
import json
import time
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.trace import Link, SpanKind

from ragtrace import semconv
from ragtrace._version import __version__
from ragtrace.model.diagnosis import verdict_of
from ragtrace.telemetry.setup.receipts import ScoreEvent
from ragtrace.telemetry.spans.budget import UNLIMITED, Budget, Limit, Value
from ragtrace.telemetry.spans.limits import event_limits, log_limits, span_limits
from ragtrace.telemetry.wire import (
    AttributeLimits,
    clean_attributes,
    clean_value,
    cut_value,
    remote_context,
    span_context,
    to_json,
    within,
)
from ragtrace.text import size_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opentelemetry._logs import Logger
    from opentelemetry.trace import Tracer
    from opentelemetry.util.types import AnyValue

    from ragtrace.model import MetricResult, RagRecord, Score, ScoreKey
    from ragtrace.model.passage import IdKey
    from ragtrace.modes import ContentMode
    from ragtrace.telemetry.spans.writer import Root

MOST_EXPLANATION_BYTES = 4_096
MAX_SCORE_ATTRIBUTES = 80  # 100 a span, less what is not a score
_NS = 1e9
_NO_MARKS: Mapping[ScoreKey, tuple[int, int, int]] = MappingProxyType({})
_MOST_KEY_CHARS = 256
_DETAILS_SHARE = 0.5  # of the span's bytes
_EVENTS_SHARE = 4  # explanations on its events take a quarter of as much beside


class EvaluationWriter:
    """Writes one evaluation span and its events for each scored record. Thread-safe; never waits.

    The span begins and ends where the evaluated root ends, so that a score which comes a minute later does not
    lengthen the trace. The times of scoring stand in attributes. Log events keep their own time.

    Args:
        tracer: of scope ``ragtrace``.
        logger: takes one log event per score; None writes none.
        content: ``full`` writes claims and explanations, ``none`` numbers alone.
        attach: ``child`` puts the span under the evaluated root, ``link`` in a trace of its own.
        id_key: of the digest of what was evaluated; None makes a plain one.
        max_span_bytes: budget of the evaluation span.
    """

    def __init__(
        self,
        tracer: Tracer,
        logger: Logger | None,
        *,
        content: ContentMode = "none",
        attach: Literal["child", "link"] = "child",
        id_key: IdKey | None = None,
        max_span_bytes: int = 262_144,
    ) -> None:
        self._tracer = tracer
        self._logger = logger
        self._log_limits = log_limits(logger)
        self._has_content = content == "full"
        self._is_linked = attach == "link"
        self._id_key = id_key
        self._span_bytes = max_span_bytes

    def write(
        self,
        record: RagRecord,
        scores: Sequence[Score],
        *,
        is_root_sampled: bool,
        decision: str,
        probability: float,
        started_ns: int,
        ended_ns: int,
        root: Root | None = None,
        reason: str | None = None,
        cost_usd: float | None = None,
        marks: Mapping[ScoreKey, tuple[int, int, int]] = _NO_MARKS,
    ) -> None:
        """Write the scores of one record.

        A root that was not sampled gets no evaluation span; log events are written for it too.

        Args:
            record: the evaluated record; a record that never was a trace gives events without a context.
            scores: its scores, in order; those beyond `MAX_SCORE_ATTRIBUTES` are in the details alone.
            is_root_sampled: whether the evaluated root was sampled for export.
            decision: ``random`` or ``forced``.
            probability: inclusion probability of the draw.
            started_ns: Unix ns at which scoring began.
            ended_ns: Unix ns at which it ended.
            root: the process's own handle of the root, for links and copies; None for a record from elsewhere.
            reason: why it was forced.
            cost_usd: cost of judging, where the price is known.
            marks: identify log events to a listener of `ragtrace.telemetry.setup.receipts`.
        """
        if is_root_sampled:
            sampling: dict[str, object] = {
                semconv.SAMPLING_DECISION: decision,
                semconv.SAMPLING_REASON: reason,
                semconv.SAMPLING_PROBABILITY: probability,
                semconv.EVALUATION_COST: cost_usd,
            }
            times: dict[str, object] = {
                semconv.EVALUATION_START_TIME: started_ns / _NS,
                semconv.EVALUATION_END_TIME: ended_ns / _NS,
            }
            # A spool keeps seconds, exact to a quarter of a microsecond; cut off, they never pass the root's end.
            run_end_ns = (root.ended_ns if root else None) or int(record.ended * 1e6) * 1_000
            self._write_span(record, scores, sampling | times, root, run_end_ns or ended_ns)
        self._write_logs(record, scores, root, ended_ns, marks, is_sampled=is_root_sampled)

    def resend(
        self,
        record: RagRecord,
        scores: Sequence[Score],
        *,
        ended_ns: int,
        marks: Mapping[ScoreKey, tuple[int, int, int]],
    ) -> None:
        """Write the log events of scores again that did not arrive, and nothing else."""
        self._write_logs(record, scores, None, ended_ns, marks, is_sampled=True)

    def write_feedback(
        self, trace_id: str, span_id: str, metric: str, value: float, comment: str | None, *, is_good: bool
    ) -> None:
        """Write a person's rating as a log event, in the context of its root span where that is known."""
        if self._logger is None:
            return
        attributes = {
            semconv.GEN_AI_EVALUATION_NAME: metric,
            semconv.GEN_AI_EVALUATION_SCORE_VALUE: value,
            semconv.GEN_AI_EVALUATION_SCORE_LABEL: "pass" if is_good else "fail",
            semconv.GEN_AI_EVALUATION_EXPLANATION: comment if self._has_content else None,
            semconv.EVALUATOR: "human",
            semconv.EVALUATION_KEY: None if span_id else f"{trace_id}::{metric}:human"[:_MOST_KEY_CHARS],
        }
        self._logger.emit(
            LogRecord(
                timestamp=time.time_ns(),
                context=remote_context(trace_id, span_id, is_sampled=True),
                severity_number=SeverityNumber.INFO,
                event_name=semconv.EVENT_EVALUATION_RESULT,
                attributes=within(clean_attributes(attributes), self._log_limits),
            )
        )

    def _write_span(
        self,
        record: RagRecord,
        scores: Sequence[Score],
        job: dict[str, object],
        root: Root | None,
        time_ns: int,
    ) -> None:
        parent = span_context(record.trace_id, record.span_id, is_sampled=True)
        links = list(root.linked) if root else []
        context = Context()
        if self._is_linked and parent is not None:
            links.insert(0, parent)
        elif not self._is_linked:
            context = remote_context(record.trace_id, record.span_id, is_sampled=True)
        source = root.data_source if root else None
        name = clean_value(record.workflow)
        opening = {
            semconv.GEN_AI_OPERATION_NAME: semconv.OPERATION_EVALUATION,
            semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_EVALUATOR,
        }
        span = self._tracer.start_span(
            f"{semconv.SPAN_EVALUATION} {name}",
            context=context,
            kind=SpanKind.INTERNAL,
            attributes={**opening, semconv.GEN_AI_WORKFLOW_NAME: name},
            links=[Link(found) for found in links],
            start_time=time_ns,
        )
        if not span.is_recording():
            return
        attributes = {
            **opening,
            # Copies of the root's, for backends that store a late span in another block.
            semconv.GEN_AI_WORKFLOW_NAME: record.workflow,
            semconv.EVALUATION_REQUEST_MODEL: record.model,
            semconv.GEN_AI_PROMPT_NAME: record.prompt_name,
            semconv.GEN_AI_PROMPT_VERSION: record.prompt_version,
            semconv.GEN_AI_DATA_SOURCE_ID: source
            or next((p.source for p in record.ranked_contexts if p.source), None),
            semconv.GEN_AI_CONVERSATION_ID: record.session,
            semconv.EVALUATION_EVALUATOR: "ragtrace",
            semconv.EVALUATION_VERSION: __version__,
            **_totals([score.result for score in scores]),
            **job,
            semconv.EVALUATION_INPUT_DIGEST: input_digest(record, self._id_key),
            **score_attributes(one_a_key(scores)),
            semconv.EVALUATION_DETAILS: _Details(one_a_key(scores), has_content=self._has_content),
        }
        span.set_attributes(Budget(self._span_bytes, limits=span_limits(span)).fit(attributes))
        most = min(MOST_EXPLANATION_BYTES, self._span_bytes // _EVENTS_SHARE // max(len(scores), 1))
        limits = event_limits(span)
        for score in scores:
            event = self._event(record, score, root, limits, most)
            span.add_event(semconv.EVENT_EVALUATION_RESULT, event, timestamp=time_ns)
        span.end(time_ns)

    def _write_logs(
        self,
        record: RagRecord,
        scores: Sequence[Score],
        root: Root | None,
        ended_ns: int,
        marks: Mapping[ScoreKey, tuple[int, int, int]],
        *,
        is_sampled: bool,
    ) -> None:
        if self._logger is None:
            return
        context = remote_context(record.trace_id, record.span_id, is_sampled=is_sampled)
        for score in scores:
            entry = ScoreEvent(
                timestamp=ended_ns,
                context=context,
                severity_number=SeverityNumber.INFO,
                event_name=semconv.EVENT_EVALUATION_RESULT,
                attributes=self._event(record, score, root, self._log_limits),
            )
            entry.mark = marks.get(score.key)
            self._logger.emit(entry)

    def _event(
        self,
        record: RagRecord,
        score: Score,
        root: Root | None,
        limits: AttributeLimits,
        most_bytes: int = MOST_EXPLANATION_BYTES,
    ) -> dict[str, AnyValue]:
        result = score.result
        passed = None if result.passed is None else "pass" if result.passed else "fail"
        is_ok = result.state == "ok"
        said = explanation(result, most_bytes) if self._has_content else None
        event = clean_attributes(
            {
                semconv.GEN_AI_EVALUATION_NAME: result.key,
                semconv.GEN_AI_EVALUATION_SCORE_VALUE: result.value,
                semconv.GEN_AI_EVALUATION_SCORE_LABEL: verdict_of(result) or passed,
                semconv.GEN_AI_EVALUATION_EXPLANATION: said,
                semconv.GEN_AI_RESPONSE_ID: root.response_id if root else None,
                semconv.EVALUATION_JUDGE_MODEL: result.judge.model if result.judge else None,
                semconv.ERROR_TYPE: result.reason if result.state == "error" else None,
                semconv.EVALUATION_KEY: event_key(record, score.key),
                semconv.OUTCOME: None if is_ok else result.state,
                semconv.REASON: None if is_ok else result.reason,
            }
        )
        return within(event, limits)


def event_key(record: RagRecord, key: ScoreKey) -> str:
    """Return the identity of a score's event, the same as in the store: an event that is sent again has the same.

    Example:
        >>> from ragtrace.model import RagRecord, ScoreKey
        >>> event_key(RagRecord(id="1"), ScoreKey(trace_id="t", span_id="s", metric="mrr", version="v"))
        't:s:mrr:v'
    """
    text = f"{key.trace_id or record.id}:{key.span_id}:{key.metric}:{key.version}"
    # An id or a name of somebody else's may be long.
    return text if len(text) <= _MOST_KEY_CHARS else hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def one_a_key(scores: Iterable[Score]) -> list[Score]:
    """Return one score of each metric: where two judges gave one, the later value stands for both.

    Each has its event.

    Example:
        >>> from ragtrace.model import MetricResult, Score, ScoreKey
        >>> fine = MetricResult(name="mrr", state="ok", value=0.5, version="a")
        >>> gone = MetricResult(name="mrr", state="error", reason="judge_timeout", version="b")
        >>> key = ScoreKey(trace_id="", span_id="", metric="mrr", version="")
        >>> [score.result.version for score in one_a_key([Score(key=key, result=one) for one in (fine, gone)])]
        ['a']
    """
    kept: dict[str, Score] = {}
    for score in scores:
        before = kept.get(score.result.key)
        if before is None or before.result.value is None or score.result.value is not None:
            kept[score.result.key] = score
    return list(kept.values())


def score_attributes(scores: Iterable[Score]) -> dict[str, object]:
    """Return ``ragtrace.score.<key>`` of each score, or its ``.state`` and ``.reason``: at most 80 attributes.

    Example:
        >>> from ragtrace.model import MetricResult, Score, ScoreKey
        >>> result = MetricResult(name="mrr", state="na", reason="no_labels")
        >>> key = ScoreKey(trace_id="", span_id="", metric="mrr", version="")
        >>> score_attributes([Score(key=key, result=result)])
        {'ragtrace.score.mrr.state': 'na', 'ragtrace.score.mrr.reason': 'no_labels'}
    """
    attributes: dict[str, object] = {}
    for score in scores:
        result = score.result
        if len(attributes) + 2 > MAX_SCORE_ATTRIBUTES:
            break
        name = semconv.score_attribute(result.key)
        if result.value is not None:
            attributes[name] = float(result.value)
        else:
            attributes[name + semconv.SCORE_STATE_SUFFIX] = result.state
            attributes[name + semconv.SCORE_REASON_SUFFIX] = result.reason
    return attributes


def input_digest(record: RagRecord, key: IdKey | None = None) -> str:
    """Return 16 hex digits over question, answer, reference and contexts: the same input gives the same digest.

    With a key nobody without it can try texts out.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> input_digest(RagRecord(id="1", query="a")) == input_digest(RagRecord(id="2", query="a"))
        True
    """
    digest = hashlib.sha256()
    for text in (record.query, record.answer, record.reference or "", *(p.text for p in record.contexts)):
        part = text.encode("utf-8", "surrogatepass")
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:16] if key is None else key.digest(digest.digest())


def _totals(results: Sequence[MetricResult]) -> dict[str, object]:
    judges = [result.judge for result in results if result.judge is not None]
    # Labels, embedders and pair models stand with their metrics in the details; here is who judged.
    beside = ("labels", "embedder:", "pairs:")
    models = {judge.model for judge in judges if judge.model}
    asked = {model for model in models if not model.startswith(beside)}
    scales = {judge.label_scale for judge in judges if judge.label_scale}
    cuts = {result.k for result in results if result.k is not None}
    return {
        semconv.EVALUATION_JUDGE_MODEL: ",".join(sorted(asked or models)) or None,
        semconv.EVALUATION_LABEL_SCALE: ",".join(sorted(scales)) or None,
        # Several cut-offs stand with their metrics in the details.
        semconv.EVALUATION_K: cuts.pop() if len(cuts) == 1 else None,
        semconv.EVALUATION_LLM_CALLS: sum(result.llm_calls for result in results),
    }


class _Details(Value):
    def __init__(self, scores: Sequence[Score], *, has_content: bool) -> None:
        self.scores, self.has_content = scores, has_content

    def most(self, left: int, reserve: int) -> int:  # noqa: ARG002
        return int(left * _DETAILS_SHARE)

    def write(self, name: str, limit: Limit) -> dict[str, AnyValue]:
        room = min(limit.texts, limit.whole - len(name))
        whole = details_json(self.scores, UNLIMITED, has_content=self.has_content)
        text = whole if size_bytes(whole) <= room and len(whole) <= limit.attribute else ""
        self.is_cut = not text
        text = text or details_json(self.scores, min(room, limit.attribute), has_content=self.has_content)
        return {name: text}


def details_json(scores: Sequence[Score], budget_bytes: int, *, has_content: bool) -> str:
    """Return ``{metric: {version, judge, label_scale, k, universe, details}}``, valid JSON within the budget.

    Without content the details are numbers, truth values and the words of a verdict
    (`MetricResult.shown_details`). Over budget those of the last metrics go first, one of
    which is cut to what is left, and then whole metrics.

    Example:
        >>> from ragtrace.model import MetricResult, Score, ScoreKey
        >>> result = MetricResult(name="mrr", state="ok", value=1.0, version="0a1b2c3d", k=3, details={"rank": 1})
        >>> score = Score(key=ScoreKey(trace_id="", span_id="", metric="mrr", version="0a1b2c3d"), result=result)
        >>> details_json([score], 1_000, has_content=False)
        '{"mrr":{"version":"0a1b2c3d","k":3,"details":{"rank":1}}}'
    """
    rows: dict[str, dict[str, object]] = {}
    for result in [score.result for score in scores]:
        judge = result.judge
        known = {
            "version": result.version or None,
            "judge": judge.model if judge else None,
            "prompt": (judge.prompt_hash or None) if judge else None,
            "label_scale": judge.label_scale if judge else None,
            "k": result.k,
            "universe": result.label_scope,
            "details": result.shown_details(has_content=has_content) or None,
        }
        rows[result.key] = {name: value for name, value in known.items() if value is not None}
    text = to_json(rows)
    for key in reversed(list(rows)):
        if size_bytes(text) <= budget_bytes:
            return text
        details = rows[key].pop("details", None)
        text = to_json(rows)
        room = budget_bytes - size_bytes(text) - len(',"details":')
        if details is not None and (shorter := cut_value(to_json(details), room)) not in {None, "{}"}:
            rows[key]["details"] = json.loads(str(shorter))
            return to_json(rows)
    while rows and size_bytes(text) > budget_bytes:
        rows.popitem()
        text = to_json(rows)
    return text


def explanation(result: MetricResult, most_bytes: int = MOST_EXPLANATION_BYTES) -> str | None:
    """Return a score's explanation in words: its own, the unsupported claims, or the judge's message.

    Example:
        >>> from ragtrace.model import MetricResult
        >>> explanation(MetricResult(name="x", state="ok", value=0.5, details={"unsupported": ["It rains."]}))
        'unsupported: ["It rains."]'
    """
    for name in ("explanation", "message"):
        text = result.details.get(name)
        if isinstance(text, str) and text:
            return str(cut_value(clean_value(text), most_bytes) or "")
    unsupported = result.details.get("unsupported")
    if unsupported:
        return str(cut_value(f"unsupported: {to_json(unsupported)}", most_bytes))
    return None
