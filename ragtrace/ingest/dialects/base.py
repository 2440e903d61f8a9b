"""Neutral facts of one span, and the protocol of a dialect."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ragtrace.ingest.spans import ReceivedSpan
    from ragtrace.model import Call, Message, Outcome, SignName, Usage

SpanRole = Literal["root", "retrieval", "rerank", "generation", "embedding", "tool", "evaluation", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanDocument:
    """One passage as a span tells it; a missing id or text is None."""

    id: str | None = None
    text: str | None = None
    score: float | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """Facts of a whole run that ragtrace's own root span carries.

    Attributes:
        pool: the candidates, None where nothing was searched and nothing handed over.
        selected: the selection, None where the run had none beside its pool.
        used: the passages in the prompt, None where no prompt was seen.
        unranked: the texts of tools that the model was shown, which stand in none of these.
        selection_source: how the selection became known.
        k: cut-off of the @K metrics as the span has it, also where it is the number of contexts.
        truncated: sizes before capture or the span cut them, by kind.
        is_refused: whether the provider declined to answer.
        signs: names of what capture was unsure of.
        decision: of the draw in the sending process: ``random`` and ``forced`` are scored there.
    """

    pool: tuple[SpanDocument, ...] | None = None
    selected: tuple[SpanDocument, ...] | None = None
    used: tuple[SpanDocument, ...] | None = None
    unranked: tuple[SpanDocument, ...] = ()
    selection_source: str | None = None
    k: int | None = None
    corpus: str | None = None
    corpus_version: str | None = None
    outcome: Outcome | None = None
    interrupt: str | None = None
    truncated: Mapping[str, int] = field(default_factory=dict)
    decision: str | None = None
    is_refused: bool = False
    signs: tuple[SignName, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanFacts:
    """Facts that a dialect found in one span. A fact that the span has not is None or empty.

    Attributes:
        role: what the span did in a RAG run. ``root`` is a chain, workflow or agent around others.
        query: of a retrieval, the search text; of a root, the question.
        documents: of a retrieval, its results, best first; of a rerank, its output; of a root or a tool, what it
            gave out. None where the span has none.
        candidates: of a rerank, its input.
        messages: of a generation, its prompt.
        output: of a generation or a root, the answer as text.
        calls: of a generation, the calls of tools in its reply.
        tool_output: of a tool, its result as text.
        malformed: documents, and lists of documents, that could not be read.
        cut: documents whose text was wanted, and is cut or left out for size.
        summary: of a run that ragtrace itself captured.
        lacks: names of facts that this span cannot carry, beside those that the reader sees by itself.
    """

    role: SpanRole
    query: str | None = None
    documents: tuple[SpanDocument, ...] | None = None
    candidates: tuple[SpanDocument, ...] | None = None
    top_k: int | None = None
    data_source: str | None = None
    messages: tuple[Message, ...] = ()
    output: str | None = None
    calls: tuple[Call, ...] = ()
    tool_name: str | None = None
    tool_output: str | None = None
    request_model: str | None = None
    response_model: str | None = None
    provider: str | None = None
    usage: Usage | None = None
    finish_reasons: tuple[str, ...] = ()
    workflow: str | None = None
    session: str | None = None
    user: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)
    malformed: int = 0
    cut: int = 0
    summary: RunSummary | None = None
    lacks: tuple[str, ...] = ()


def merged(found: Sequence[SpanFacts]) -> SpanFacts:
    """Return the facts of one span that is written in several dialects: the richest, filled from the others.

    Example:
        >>> bare, full = SpanDocument(id="a", score=0.5), SpanDocument(id="a", text="Oslo.")
        >>> one = SpanFacts(role="retrieval", query="Where?", documents=(bare,))
        >>> both = merged([one, SpanFacts(role="retrieval", documents=(full,))])
        >>> both.query, both.documents[0].text
        ('Where?', 'Oslo.')
    """
    first, *others = sorted(found, key=_richness, reverse=True)
    for other in others:
        missing = {
            item.name: value
            for item in fields(SpanFacts)
            if item.name != "documents"
            and _is_missing(getattr(first, item.name))
            and not _is_missing(value := getattr(other, item.name))
        }
        if first.role == "other":
            missing["role"] = other.role
        first = replace(first, documents=_joined(first.documents, other.documents), **missing)
    return first


def _joined(
    first: tuple[SpanDocument, ...] | None, other: tuple[SpanDocument, ...] | None
) -> tuple[SpanDocument, ...] | None:
    """Return the longer of two lists of the same documents, with the texts of both."""
    if not first or not other:
        return other if first is None or other else first
    longer, shorter = (other, first) if len(other) > len(first) else (first, other)
    texts = {document.id: document.text for document in shorter}
    return tuple(d if d.text is not None else replace(d, text=texts.get(d.id)) for d in longer)


def _is_missing(value: object) -> bool:
    return value is None or value in ((), {}, 0)


def _richness(facts: SpanFacts) -> tuple[bool, int, int]:
    """Order facts by their role, the texts of their documents, and the number of facts."""
    texts = sum(document.text is not None for document in facts.documents or ())
    known = sum(not _is_missing(getattr(facts, item.name)) for item in fields(SpanFacts))
    return facts.role != "other", texts, known


class SpanDialect(Protocol):
    """Reads the spans of one instrumentation; ``DIALECT`` of the module ``ragtrace/ingest/dialects/<name>.py``.

    Attributes:
        name: of the module.
        lacks: what no trace of this dialect has, each with one sentence of a reason for the documentation.
    """

    name: str
    lacks: Mapping[str, str]

    def reads(self, span: ReceivedSpan) -> bool:
        """Say whether the span was written in this dialect."""
        ...

    def facts(self, span: ReceivedSpan) -> SpanFacts:
        """Return the facts of one span; never raises for what an application can send."""
        ...
