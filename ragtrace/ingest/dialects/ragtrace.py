"""Spans of ragtrace's own callbacks, in each setting of ``dialect`` and ``content``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast, get_args

from ragtrace import semconv
from ragtrace.ingest.dialects import genai, openinference
from ragtrace.ingest.dialects.base import RunSummary, SpanDocument, merged
from ragtrace.ingest.dialects.values import count_in, documents_in, loaded, mapping_in, text_in, texts_in
from ragtrace.model import SIGNS, Outcome
from ragtrace.text import length_before_cut

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace.ingest.dialects.base import SpanDialect, SpanFacts
    from ragtrace.ingest.spans import ReceivedSpan

_FROM_THE_FRAMEWORK = frozenset({None, "retriever", "prompt"})


class Ragtrace:
    """Reads spans of scope ``ragtrace``; the pool, selection and prompt of its root need no inference.

    Example:
        >>> from ragtrace.ingest.spans import ReceivedSpan
        >>> given = {"gen_ai.operation.name": "invoke_workflow", "input.value": "Where?"}
        >>> DIALECT.facts(ReceivedSpan(trace_id="", span_id="", scope="ragtrace", attributes=given)).query
        'Where?'
    """

    name = "ragtrace"
    lacks: Mapping[str, str] = {
        "labels": "Relevance grades, the reference answer and feedback stay in the process that captured them.",
        "history": "Earlier turns are on no span; those of the answering prompt are read.",
    }

    def reads(self, span: ReceivedSpan) -> bool:
        """Say whether ragtrace wrote the span."""
        return span.scope == semconv.SCOPE

    def facts(self, span: ReceivedSpan) -> SpanFacts:
        """Return the facts of one span."""
        given = span.attributes
        facts = merged([genai.DIALECT.facts(span), openinference.DIALECT.facts(span)])
        facts = replace(facts, cut=count_in(given.get(semconv.RETRIEVAL_DOCUMENT_TRUNCATED)) or 0)
        if given.get(semconv.GEN_AI_OPERATION_NAME) == semconv.OPERATION_AGENT:
            return replace(facts, role="other")  # of others it may be a run; our own run has a root of its own
        if facts.role == "rerank":
            chosen, malformed = documents_in(given.get(semconv.RERANK_DOCUMENTS))
            documents = facts.documents if facts.documents is not None else chosen
            top_n = count_in(given.get(semconv.RERANK_TOP_N))
            return replace(facts, documents=documents, malformed=facts.malformed + malformed, top_k=top_n)
        if facts.role != "root":
            return facts
        prefix = semconv.RUN_METADATA_PREFIX
        return replace(
            facts,
            query=text_in(given.get(semconv.INPUT_VALUE)),
            output=text_in(given.get(semconv.OUTPUT_VALUE)),
            workflow=text_in(given.get(semconv.GEN_AI_WORKFLOW_NAME)),
            tags=texts_in(given.get(semconv.RUN_TAGS)) or facts.tags,
            metadata={name[len(prefix) :]: value for name, value in given.items() if name.startswith(prefix)},
            summary=_summary(given),
        )


def _summary(given: Mapping[str, object]) -> RunSummary:
    source = text_in(given.get(semconv.SELECTION_SOURCE))
    outcome = given.get(semconv.RUN_OUTCOME)
    pool = _scored(given, semconv.POOL_IDS, semconv.POOL_SCORES)
    selected = _scored(given, semconv.SELECTED_IDS, semconv.SELECTED_SCORES)
    unranked = _listed(given.get(semconv.CONTEXTS_UNRANKED_IDS)) or ()
    without_rank = {one.id for one in unranked} - {one.id for one in (*(pool or ()), *(selected or ()))}
    used = tuple(one for one in _listed(given.get(semconv.PROMPT_IDS)) or () if one.id not in without_rank)
    return RunSummary(
        pool=pool,
        selected=None if source in _FROM_THE_FRAMEWORK else selected,
        used=used or None,
        unranked=unranked,
        selection_source=source,
        k=count_in(given.get(semconv.K)),
        corpus=text_in(given.get(semconv.CORPUS_NAME)),
        corpus_version=text_in(given.get(semconv.CORPUS_VERSION)),
        outcome=cast("Outcome", outcome) if outcome in get_args(Outcome) else None,
        interrupt=text_in(given.get(semconv.RUN_INTERRUPT)),
        truncated=_truncated(given),
        is_refused=given.get(semconv.RUN_REFUSED) is True,
        signs=tuple(name for name in SIGNS if name in texts_in(given.get(semconv.RUN_SIGNS))),
        decision=text_in(given.get(semconv.SAMPLING_DECISION)),
    )


def _truncated(given: Mapping[str, object]) -> dict[str, int]:
    """Return what capture cut, and the question and the answer where the span had no room for all of them."""
    noted = mapping_in(given.get(semconv.RUN_LOSSY))
    found = {name: count for name, value in noted.items() if (count := count_in(value)) is not None}
    for name, key in (("query_chars", semconv.INPUT_VALUE), ("answer_chars", semconv.OUTPUT_VALUE)):
        if length := length_before_cut(text_in(given.get(key)) or ""):
            found.setdefault(name, length)
    return found


def _scored(given: Mapping[str, object], ids: str, scored: str) -> tuple[SpanDocument, ...] | None:
    documents, scores = _listed(given.get(ids)), loaded(given.get(scored))
    if documents is None or not isinstance(scores, list) or len(scores) != len(documents):
        return documents
    return tuple(
        replace(document, score=score) if type(score) is float else document
        for document, score in zip(documents, scores, strict=True)
    )


def _listed(value: object) -> tuple[SpanDocument, ...] | None:
    return None if value is None else tuple(SpanDocument(id=name) for name in texts_in(value))


DIALECT: SpanDialect = Ragtrace()
