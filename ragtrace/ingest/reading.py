"""Read the spans of one complete trace into records."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec import structs

from ragtrace.capture import record_internal_error
from ragtrace.ingest.dialects.base import merged
from ragtrace.ingest.dialects.registry import all_dialects
from ragtrace.ingest.replay import replayed
from ragtrace.ingest.spans import received_spans
from ragtrace.ingest.tree import Node, runs_of, walk
from ragtrace.model import Reading, Sign
from ragtrace.model.record import CONTEXTS_TRUNCATED
from ragtrace.text import length_before_cut

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ragtrace.capture import FinishedRun
    from ragtrace.ingest.base import RawSpan
    from ragtrace.ingest.dialects.base import SpanFacts
    from ragtrace.ingest.spans import ReceivedSpan
    from ragtrace.ingest.tree import RunNodes
    from ragtrace.model import RagRecord, SignName
    from ragtrace.model.passage import IdKey

_ENVIRONMENTS = ("deployment.environment.name", "deployment.environment")
_LEAST_LIMIT = 64  # a shorter one leaves no text that a judge could read
_PLACE = re.compile(r"\d+")
_THRESHOLD = re.compile(r"(?:^|;)th:([0-9a-f]{1,14})(?:;|$)")
LACKS: Mapping[str, str] = {
    "question": "No span carries the question, so metrics that read it are na missing_input:query.",
    "answer": "No span carries the answer, so metrics that read it are na missing_input:answer.",
    "documents": "A retrieval's span carries no documents, so metrics over contexts are na no_contexts.",
    "document_text": "Documents carry no texts, so a judge cannot read them; metrics over ids and ranks remain.",
    "document_id": "Documents carry no ids, so each gets an id made of its text.",
    "document_score": "Documents carry no scores of the retriever.",
    "retrieval": "No span tells of a search, so there are no contexts, and the question may be the whole prompt.",
    "model_call": "No span tells of a model call, so the run counts as a search without an answer.",
    "prompt": "No model call carries its prompt, so the passages that it showed are not known.",
}
"""What the spans of a run may lack, as `read_trace` sees it in any dialect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRun:
    """One RAG run of a received trace.

    Attributes:
        finished: record, steps and times, as our own capture hands them on.
        dialects: names of the dialects of its spans, sorted.
        lacks: what its spans did not carry, each with one sentence of a reason.
        decision: draw of the ragtrace that captured it: ``random`` or ``forced`` is scored there too. None for a
            run of another instrumentation.
    """

    finished: FinishedRun
    dialects: tuple[str, ...] = ()
    lacks: Mapping[str, str] = field(default_factory=dict)
    decision: str | None = None

    @property
    def record(self) -> RagRecord:
        """The record that metrics are computed on."""
        return self.finished.record


def read_trace(
    spans: Sequence[RawSpan],
    *,
    redact: Callable[[str], str] | None = None,
    id_key: IdKey | None = None,
    head_probability: float | None = 1.0,
    workflow: str = "rag",
    environment: str | None = None,
    span_metadata: Sequence[str] = (),
    revision: int = 0,
) -> list[ReadRun]:
    """Return the RAG runs of one complete trace; never raises for what an application can send.

    A run is the topmost span of a chain, a workflow or an agent that searched. Steps beside each other below a span
    of no dialect, such as that of an HTTP server, are one run with that span as its root. Evaluations, and what
    stands below them, are no runs. A trace with runs of ragtrace's own callbacks has no others.

    Args:
        spans: of one trace, in any order; of two with the same id the later one counts.
        redact: applied to every text.
        id_key: key of the ids that are made of texts; None makes plain hashes.
        head_probability: probability with which the sender kept the trace, where its spans do not say. None or 0
            is unknown, and keeps the run out of weighted means.
        workflow: name of runs whose spans and service have none.
        environment: name of the deployment where the resource has none.
        span_metadata: names of request metadata to keep.
        revision: which reading of this trace it is, from 0.

    Example:
        >>> from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
        >>> from opentelemetry.proto.resource.v1.resource_pb2 import Resource
        >>> from opentelemetry.proto.trace.v1.trace_pb2 import Span
        >>> from ragtrace.ingest.base import RawSpan
        >>> given = {
        ...     "gen_ai.operation.name": "retrieval",
        ...     "gen_ai.retrieval.query.text": "Where?",
        ...     "gen_ai.retrieval.documents": '[{"id": "a", "score": 0.5}]',
        ... }
        >>> pairs = [KeyValue(key=key, value=AnyValue(string_value=text)) for key, text in given.items()]
        >>> span = Span(trace_id=bytes(range(16)), span_id=b"12345678", attributes=pairs)
        >>> run, = read_trace([RawSpan(span, Resource())])
        >>> run.record.query, run.record.contexts[0].id, sorted(run.lacks)
        ('Where?', 'a', ['document_text', 'model_call'])
    """
    received = list({(span.trace_id, span.span_id): span for span in received_spans(spans)}.values())
    found = []
    limit_chars = limit_in(received)
    for nodes in runs_of(list(map(_node, received))):
        resource = nodes.root.resource
        finished = replayed(
            nodes,
            redact=redact,
            id_key=id_key,
            workflow=_named(resource.get("service.name")) or workflow,
            environment=next((name for key in _ENVIRONMENTS if (name := _text(resource.get(key)))), environment),
            span_metadata=tuple(span_metadata),
        )
        if finished is not None:
            probability = probability_in(nodes.root.trace_state)
            known = (head_probability or None) if probability is None else probability
            found.append(_run(nodes, _changed(finished, head_probability=known, revision=revision), limit_chars))
    return found


def limit_in(spans: Sequence[ReceivedSpan]) -> int | None:
    """Return the length at which the sender's SDK cut texts (``OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT``).

    The SDK leaves no note, but two texts under different names are then both the longest of the trace, to the
    character. None where they are not: of passages alone, a splitter may make each as long as the next.

    Example:
        >>> from ragtrace.ingest.spans import ReceivedSpan
        >>> def told(**given):
        ...     return ReceivedSpan(trace_id="", span_id="", attributes=given)
        >>> limit_in([told(a="x" * 64, b="y" * 64)]), limit_in([told(a="x" * 64, b="y" * 63)])
        (64, None)
    """
    texts = [
        (name, value)
        for span in spans
        for name, value in span.attributes.items()
        if isinstance(value, str) and len(value) >= _LEAST_LIMIT
    ]
    longest = max((len(text) for _, text in texts), default=0)
    cut = {_PLACE.sub("#", name): text for name, text in texts if len(text) == longest}
    return longest if len(set(cut.values())) > 1 else None


def probability_in(trace_state: str) -> float | None:
    """Return the probability of consistent sampling in a tracestate (``ot=th:...``); None where it has none.

    Example:
        >>> probability_in("vendor=1,ot=th:8"), probability_in("ot=th:0;rv:1234"), probability_in("ot=p:8")
        (0.5, 1.0, None)
    """
    for member in trace_state.split(","):
        key, _, value = member.strip().partition("=")
        if key == "ot" and (threshold := _THRESHOLD.search(value)) is not None:
            digits = threshold[1]
            return 1.0 - int(digits, 16) / float(16 ** len(digits))
    return None


def _node(span: ReceivedSpan) -> Node:
    found: dict[str, SpanFacts] = {}
    for name, dialect in all_dialects().items():
        try:
            if dialect.reads(span):
                found[name] = dialect.facts(span)
        except Exception as error:  # of a dialect, which must not cost the trace
            record_internal_error(f"ragtrace.ingest.dialects.{name}", error)
        if "ragtrace" in found:  # ours has read both of the others
            break
    return Node(span, merged(list(found.values())) if found else None, tuple(found))


def _run(nodes: RunNodes, finished: FinishedRun, limit_chars: int | None) -> ReadRun:
    told = [node for node, _ in walk(nodes.tops) if node.facts is not None]
    facts = [node.facts for node in told if node.facts is not None]
    dialects = tuple(sorted({name for node in told for name in node.dialects}))
    summary = next((one.summary for one in facts if one.summary is not None), None)
    lossy = dict(finished.record.lossy)
    if malformed := sum(one.malformed for one in facts):
        lossy["documents_malformed"] = malformed
    changes: dict[str, object] = {"lossy": lossy}
    if summary is not None:
        lossy |= summary.truncated
        changes["reading"] = _as_signed(finished.record.reading, summary.signs)
        changes["is_refused"] = summary.is_refused or finished.record.is_refused
        if summary.k != len(finished.record.ranked_contexts):
            changes["k"] = summary.k
    if lost := _lost_contexts(finished.record, facts, limit_chars):
        lossy[CONTEXTS_TRUNCATED] = max(lost, lossy.get(CONTEXTS_TRUNCATED, 0))
    return ReadRun(
        finished=_changed(finished, **changes),
        dialects=dialects,
        lacks=_lacks(finished.record, facts, dialects),
        decision=summary.decision if summary is not None else None,
    )


def _as_signed(reading: Reading | None, names: Sequence[SignName]) -> Reading | None:
    """Return a reading of spans with the signs that the sender names; what it found itself tells their places."""
    if not names:
        return None if reading is None else structs.replace(reading, signs=())
    found = reading or Reading()
    told = {sign.name for sign in found.signs}
    kept = [sign for sign in found.signs if sign.name in names]
    return structs.replace(found, signs=(*kept, *(Sign(name) for name in names if name not in told)))


def _lost_contexts(record: RagRecord, facts: Sequence[SpanFacts], limit_chars: int | None) -> int:
    """Return how many contexts came cut, in a list that is broken, or without a text where others have theirs."""
    searches = [one for one in facts if one.role in {"retrieval", "rerank"}]
    blank = {document.id for one in searches for document in one.documents or () if document.text == ""}
    textless = [passage for passage in record.contexts if not passage.text and passage.id not in blank]
    is_wanted = len(textless) < len(record.contexts) or any(one.cut for one in searches)
    pooled = (passage for pool in record.pools for passage in pool.passages)
    cut = {
        passage.id
        for passage in (*pooled, *record.unranked_contexts)
        if len(passage.text) == limit_chars or length_before_cut(passage.text)
    }
    lost = (len(textless) if is_wanted else 0) + sum(one.malformed for one in searches)
    lost += sum(passage.id in cut for passage in record.contexts)
    if any(len(turn.content) == limit_chars for one in facts for turn in one.messages):  # a prompt shows no more
        shown = {passage.id for passage in record.contexts}
        lost += sum(passage.id not in shown for pool in record.pools[-2:-1] for passage in pool.passages)
    return lost


def _changed(finished: FinishedRun, **changes: object) -> FinishedRun:
    """Return a run whose record has other fields."""
    return structs.replace(finished, record=structs.replace(finished.record, **changes))


def _lacks(record: RagRecord, facts: Sequence[SpanFacts], dialects: Sequence[str]) -> dict[str, str]:
    searches = [one for one in facts if one.role in {"retrieval", "rerank"}]
    handed = [one for one in facts if one.role in {"root", "tool"} and one.documents]
    documents = [document for one in searches or handed for document in one.documents or ()]
    calls = [one for one in facts if one.role == "generation"]
    seen = {
        "question": not record.query,
        "answer": not record.is_answer_given,
        "documents": bool(searches) and not any(one.documents is not None for one in searches),
        "document_text": bool(record.contexts) and not any(passage.text for passage in record.contexts),
        "document_id": bool(documents) and all(document.id is None for document in documents),
        "document_score": bool(documents) and all(document.score is None for document in documents),
        "retrieval": not searches and not record.pools and not record.unranked_contexts,
        "model_call": not calls and not record.answer,
        "prompt": bool(calls) and not any(one.messages for one in calls),
    }
    names = [name for name, is_lacking in seen.items() if is_lacking]
    names += [name for one in facts for name in one.lacks if name not in names]
    reasons = {**LACKS, **{name: text for key in dialects for name, text in all_dialects()[key].lacks.items()}}
    return {name: reasons.get(name, "") for name in dict.fromkeys(names)}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _named(service: object) -> str:
    """Return a service's name, "" for the SDK's own default."""
    return "" if _text(service).startswith("unknown_service") else _text(service)
