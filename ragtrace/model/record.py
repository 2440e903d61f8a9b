"""The record: everything one RAG run leaves behind for the spans and the scorer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct

from ragtrace.model.passage import Passage, Pool, Stage
from ragtrace.model.reading import Reading, Sign
from ragtrace.usage import Usage

Outcome = Literal["answered", "partial", "cancelled", "interrupted", "error"]
LabelScope = Literal["gold", "cache", "pool", "shadow", "stratified", "sample"]
LabelScale = Literal["direct5", "umbrela_mapped", "umbrela_mapped_strict"]
CONTEXTS_TRUNCATED = "contexts_truncated"
"""What `RagRecord.lossy` calls delivered contexts that are not whole, and the reason of scores that need them."""

EMPTY_RESPONSE = "Empty Response"
"""LlamaIndex's text where nothing was retrieved, or the model said nothing."""

ANSWER_LOST = "answer"
"""What `RagRecord.lossy` calls an answer that was never reported, came too late, or could not be read."""

SEVERAL_ANSWERS = "several_answers"
"""What `RagRecord.lossy` calls answers of branches that ran side by side, and the reason of scores over them."""


class Call(Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """A call of a tool that a message asks for.

    Attributes:
        name: of the tool.
        arguments: as text, usually JSON.
        id: that the model gave the call.
    """

    name: str
    arguments: str = ""
    id: str | None = None


class Message(Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """One message of a conversation or a prompt.

    Attributes:
        role: user, assistant, system or tool.
        content: its text, without its calls.
        calls: of tools that it asks for.
        call_id: of the call whose result it is.

    Example:
        >>> Message(role="assistant", content="", calls=(Call(name="search", arguments='{"q": "lab"}'),)).shown
        'search({"q": "lab"})'
    """

    role: str
    content: str
    calls: tuple[Call, ...] = ()
    call_id: str | None = None

    @property
    def shown(self) -> str:
        """Its text as a prompt shows it, with its calls behind it, one a line."""
        if not self.calls:
            return self.content
        calls = [f"{call.name}({call.arguments})" for call in self.calls]
        return "\n".join([self.content, *calls] if self.content else calls)


class AnswerPart(Struct, frozen=True, kw_only=True):
    """A sentence of the answer with the passage ids it cites."""

    text: str
    citations: tuple[str, ...] = ()


class LabelStratum(Struct, frozen=True, kw_only=True):
    """A part of a corpus, for example a band of ranks, of which some passages drawn at random were graded.

    Attributes:
        size: passages in it.
        labelled: how many of them were graded; all of them in a part that was graded wholly.
        counts: how many of these have each grade; grades 1 and 2 may be left out.

    Raises:
        ValueError: counts that do not fit.

    Example:
        >>> LabelStratum(size=900, labelled=30, counts={5: 1, 4: 2}).counts[4]
        2
    """

    size: int
    labelled: int
    counts: Mapping[int, int]

    def __post_init__(self) -> None:
        if not {*self.counts} <= {1, 2, 3, 4, 5} or any(n < 0 for n in self.counts.values()):
            raise ValueError(f"counts of a stratum are by grade, 1 to 5, got {dict(self.counts)}")
        if not sum(self.counts.values()) <= self.labelled <= self.size:
            raise ValueError(
                f"a stratum of {self.size} with {self.labelled} graded cannot have {dict(self.counts)}: "
                "counts <= labelled <= size"
            )
        if self.size and not self.labelled:
            raise ValueError(f"a stratum of {self.size} passages needs at least one that was graded")


class Labels(Struct, frozen=True, kw_only=True):
    """Relevance grades of passages for this query.

    Attributes:
        grades: passage id -> grade, integers 1 to 5 (5 holds the key elements, 1 is irrelevant).
        label_scope: which set was labelled. RA-nWG and PROC are defined on ``gold``, ``cache`` and ``stratified``
            alone; ``sample`` is a uniform random sample of the corpus, which tells nothing of what is rare.
        scale: how the grades came to be; scales are never mixed in one aggregate.
        version: version of the label set, so that a changed set starts a new series.
        strata: the parts of the corpus behind ``stratified``; `grades` then holds at least the delivered passages.
        query: the query that the grades are of, where it may be another than the record's: they are not used then.
    """

    grades: Mapping[str, int]
    label_scope: LabelScope = "gold"
    scale: LabelScale = "direct5"
    version: str | None = None
    strata: tuple[LabelStratum, ...] = ()
    query: str | None = None


class Feedback(Struct, frozen=True, kw_only=True):
    """A person's rating of the answer: a value in [0, 1] (1 = good), with an optional comment."""

    value: float
    comment: str | None = None
    source: str = "human"


class RagRecord(Struct, frozen=True, kw_only=True):
    """One RAG run, complete in itself: what was asked, retrieved, chosen, shown to the model and answered.

    Times are Unix seconds. Text is already clamped and redacted. Every field but `id` may be missing:
    a metric that needs it is then ``na missing_input:<field>``.

    Attributes:
        id: the caller's id, else the trace id and root span id.
        trace_id: 32 lower-case hex digits, "" for a record that never was a trace (a file).
        span_id: 16 lower-case hex digits of the root span.
        pools: the stages that were seen, in the order retrieved, reranked, used.
        unranked_contexts: texts of tools that the model was given. They stand in no pool: their rank is the place
            of their appearance and means nothing, and their source is the tool's name.
        selection_source: how the selection was found: explicit, framework, retriever, chain, prompt.
        is_answer_given: False where a record file has no ``answer``; a blank one that is given is of an application
            that answered nothing.
        is_answer_expected: False for a run in which no model spoke, such as a retrieval alone; metrics over an
            answer are then ``na no_answer_expected``.
        is_refused: the provider declined to answer, or its filter stopped the answer; `answer` is what came.
        answer_parts: sentences of the answer with citations, as the application gave them or as its markers say.
        prompt_name: name of the prompt template behind the answer.
        prompt_version: its version.
        k: the cut-off of this record's @K metrics; None means the number of ranked contexts delivered.
        head_probability: probability with which the trace reached us; None = unknown (outside weighted series).
        interrupt: what an ``interrupted`` run waits for, as text; None otherwise.
        metadata: what the request said of itself, as far as the setting `span_metadata` names it.
        revision: counts late changes of the same trace.
        lossy: what was cut or lost on the way, by kind. ``contexts_truncated`` are delivered contexts that are not
            whole; ``answer`` is an answer that was never reported, or could not be read.
        reading: where capture read the question, the answer and the evidence, and what is unsure of them; None of
            a record that was not captured.

    Example:
        >>> from ragtrace import Passage, RagRecord
        >>> from ragtrace.model import Pool
        >>> pool = Pool(stage="retrieved", passages=(Passage(id="a", text="Oslo.", rank=1),))
        >>> RagRecord(id="1", query="Where?", answer="Oslo.", pools=(pool,)).contexts[0].id
        'a'
    """

    id: str
    trace_id: str = ""
    span_id: str = ""
    workflow: str = "rag"
    session: str | None = None
    user: str | None = None
    environment: str | None = None
    corpus: str | None = None
    corpus_version: str | None = None
    query: str = ""
    history: tuple[Message, ...] = ()
    pools: tuple[Pool, ...] = ()
    unranked_contexts: tuple[Passage, ...] = ()
    selection_source: str | None = None
    answer: str = ""
    is_answer_given: bool = True
    is_answer_expected: bool = True
    is_refused: bool = False
    answer_parts: tuple[AnswerPart, ...] = ()
    reference: str | None = None
    labels: Labels | None = None
    k: int | None = None
    usage: Usage | None = None
    feedback: tuple[Feedback, ...] = ()
    started: float = 0.0
    ended: float = 0.0
    outcome: Outcome = "answered"
    interrupt: str | None = None
    head_probability: float | None = 1.0
    model: str | None = None
    prompt_name: str | None = None
    prompt_version: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, object] = {}
    revision: int = 0
    lossy: Mapping[str, int] = {}
    reading: Reading | None = None

    @property
    def signs(self) -> tuple[Sign, ...]:
        """Signs of this run; () where capture is sure, and of a record that was not captured."""
        return () if self.reading is None else self.reading.signs

    @property
    def prompt(self) -> str | None:
        """Name and version of the prompt in one text, ``name:version``; None without a name.

        Example:
            >>> RagRecord(id="1", prompt_name="support", prompt_version="3").prompt
            'support:3'
        """
        if self.prompt_name is None or self.prompt_version is None:
            return self.prompt_name
        return f"{self.prompt_name}:{self.prompt_version}"

    def pool(self, stage: Stage) -> tuple[Passage, ...]:
        """Return the passages of one stage, best first; empty when that stage was not seen."""
        for pool in self.pools:
            if pool.stage == stage:
                return pool.passages
        return ()

    @property
    def contexts(self) -> tuple[Passage, ...]:
        """All that the model was shown: `ranked_contexts`, and `unranked_contexts` behind them.

        Example:
            >>> from ragtrace.model import Passage, Pool
            >>> found, told = Passage(id="a", text="Oslo.", rank=1), Passage(id="b", text="Open.", rank=1)
            >>> pool = Pool(stage="retrieved", passages=(found,))
            >>> record = RagRecord(id="1", pools=(pool,), unranked_contexts=(told,))
            >>> [passage.id for passage in record.contexts], [passage.id for passage in record.ranked_contexts]
            (['a', 'b'], ['a'])
        """
        return self.ranked_contexts + self.unranked_contexts

    @property
    def ranked_contexts(self) -> tuple[Passage, ...]:
        """The contexts that have a rank: the passages of the last stage seen."""
        return self.pools[-1].passages if self.pools else ()

    @property
    def has_no_ranking(self) -> bool:
        """Whether there are contexts, and none of them has a rank, since no stage was seen."""
        return bool(self.unranked_contexts) and not self.pools

    @property
    def truncated_contexts(self) -> int:
        """Delivered contexts that size cut or left out, so that nobody can read all that the model was shown.

        A passage of which the prompt itself held the beginning alone is whole: the model was shown no more.

        Example:
            >>> from ragtrace.model import Passage, Pool
            >>> cut = Pool(stage="used", passages=(Passage(id="a", text="Os", rank=1, truncated=5),))
            >>> RagRecord(id="1", pools=(cut,)).truncated_contexts
            1
            >>> found = Pool(stage="retrieved", passages=(Passage(id="a", text="Oslo.", rank=1),))
            >>> RagRecord(id="1", pools=(found, cut)).truncated_contexts
            0
        """
        return self.lossy.get(CONTEXTS_TRUNCATED, 0) or self._cut(self.contexts)

    @property
    def truncated_ranked_contexts(self) -> int:
        """The number of `truncated_contexts` that have a rank."""
        if counted := self.lossy.get(CONTEXTS_TRUNCATED, 0):
            cut = sum(passage.truncated > 0 or not passage.text for passage in self.unranked_contexts)
            return max(counted - cut, 0)
        return self._cut(self.ranked_contexts)

    def _cut(self, contexts: Iterable[Passage]) -> int:
        """Return how many contexts are cut where an earlier stage has them whole, or none has them."""
        cut = [passage for passage in contexts if passage.truncated]
        if not cut:
            return 0
        known: dict[str, set[str]] = {}
        for passage in (passage for pool in self.pools[:-1] for passage in pool.passages):
            known.setdefault(passage.id, set()).add(passage.text)
        return sum(passage.text in known.get(passage.id, (passage.text,)) for passage in cut)
