"""One application for every framework's conformance suite."""

from __future__ import annotations

import asyncio
import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from msgspec.structs import replace

from ragtrace.model import Labels, Message, Passage, Pool, RagRecord, Usage, content_id

if TYPE_CHECKING:
    from collections.abc import Iterator

Stage = Literal["retriever", "reranker", "model"]

QUESTION = "Where is the lab?"
ANSWER = "The lab is in Oslo since the spring."
LABELS = Labels(grades={"d5": 5, "d0": 2}, label_scope="gold", scale="direct5", version="7")


class PlannedFailure(Exception):
    """Error of a part of the application that the plan lets fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One document of the application's index. Without `id` the framework gets none."""

    id: str | None
    text: str
    score: float
    page: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Facts about a request; None and () are left out."""

    workflow: str = "conformance"
    session: str | None = None
    user: str | None = None
    corpus: str | None = None
    corpus_version: str | None = None
    reference: str | None = None
    labels: Labels | None = None
    k: int | None = None
    tags: tuple[str, ...] = ()


class Barrier:
    """Point at which a model waits until a test cancels it."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()

    async def wait(self) -> None:
        """Say that it is reached, and wait to be cancelled."""
        self.reached.set()
        await asyncio.Event().wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One request to the application, and the behaviour of its parts.

    The parts of an application call `found`, `chosen`, `shown` and `said` (`asaid`, `pieces`), which raise where
    the plan says so; everything else they take from the attributes.

    Attributes:
        question: the request's question; no two plans of one batch share it.
        documents: the retriever's result, best first, with its scores.
        choice: the reranker's result: places among the documents from 0, each with the reranker's own score;
            None for an application without a reranker.
        answer: the model's answer.
        model: the model's name.
        usage: tokens of the model's call.
        shown_chars: how much of each passage the prompt shows; None shows the whole.
        history: turns before the question.
        fails: the part that raises `PlannedFailure`; a model that streams does so after two pieces.
        request: facts that the request gives.
        gate: where the model waits, when it is called asynchronously.
        source: name of the index.

    Example:
        >>> plan = plan_of(3, choice=((2, 0.9),))
        >>> [document.id for document in plan.found()], plan.chosen()
        (['d0', 'd1', 'd2'], ((2, 0.9),))
    """

    question: str = QUESTION
    documents: tuple[Document, ...] = ()
    choice: tuple[tuple[int, float], ...] | None = None
    answer: str = ANSWER
    model: str = "model-1"
    usage: Usage = field(default_factory=lambda: Usage(input_tokens=70, output_tokens=9))
    shown_chars: int | None = None
    history: tuple[Message, ...] = ()
    fails: Stage | None = None
    failure: str = "as planned"
    request: Request = field(default_factory=Request)
    gate: Barrier | None = None
    source: str = "faq"

    def found(self) -> tuple[Document, ...]:
        """Return the retriever's documents."""
        self._may_fail("retriever")
        return self.documents

    def chosen(self) -> tuple[tuple[int, float], ...]:
        """Return the reranker's places from 0 with scores, best first."""
        self._may_fail("reranker")
        return self.choice or ()

    def shown(self, text: str) -> str:
        """Return the part of a passage that the prompt shows."""
        return text if self.shown_chars is None else text[: self.shown_chars]

    def said(self) -> str:
        """Return the model's answer."""
        self._may_fail("model")
        return self.answer

    async def asaid(self) -> str:
        """Return the model's answer, or wait at the gate."""
        if self.gate is not None:
            await self.gate.wait()
        await asyncio.sleep(0)  # three at once take turns here
        return self.said()

    def pieces(self) -> Iterator[str]:
        """Yield the answer word by word."""
        for number, word in enumerate(self.answer.split(" ")):
            if number == 2:
                self._may_fail("model")
            yield f" {word}" if number else word

    def _may_fail(self, stage: Stage) -> None:
        if self.fails == stage:
            raise PlannedFailure(self.failure)


def plan_of(size: int, prefix: str = "d", **facts: Any) -> Plan:
    """Return a plan over documents d0, d1, ... with falling scores.

    Each text is of its own from its first characters on, and has no blank behind its 40th, so that a prompt which
    cuts it there or later leaves exactly what it shows.

    Example:
        >>> plan_of(2).documents[1].id
        'd1'
    """
    documents = tuple(
        Document(
            id=f"{prefix}{place}",
            text=f"{prefix}{place}: where the lab is, now: " + f"oslo-{prefix}{place}-" * 12,
            score=round(1 - place / 2000, 4),
            page=place,
        )
        for place in range(size)
    )
    return Plan(**{"documents": documents, **facts})


def difficult(plan: Plan) -> Plan:
    r"""Return the plan with characters that are hard to carry.

    These are newlines, quotes, backslashes, tabs and non-ASCII in question, answer, ids and texts. Each text has
    a newline in its first 40 characters, and none where a prompt of the suite cuts it.

    Example:
        >>> plan = difficult(plan_of(1))
        >>> "\n" in plan.documents[0].text[:40], plan.documents[0].id
        (True, 'd0/ä "b", #c:\\d')
    """
    documents = tuple(
        dataclasses.replace(
            one,
            id=None if one.id is None else f'{one.id}/ä "b", #c:\\d',
            text=f"{_name(one)}:\nDas \"Labor\"\tist in C:\\new\\x41 — 'Größe' 東京, "
            + f"oslo-{_name(one)}-" * 12
            + '\n\t"Ende" & <b>Schluß</b>: \\u00e9',
        )
        for one in plan.documents
    )
    question = 'Where is\nthe "lab" — in C:\\new, 東京?' if plan.question == QUESTION else plan.question
    answer = 'The "lab" is in\nOslo — C:\\new, since März; 東京.' if plan.answer == ANSWER else plan.answer
    return dataclasses.replace(plan, documents=documents, question=question, answer=answer)


def _name(document: Document) -> str:
    return document.text.partition(":")[0]


def without_ids(plan: Plan) -> Plan:
    """Return the plan with documents that have no ids.

    Example:
        >>> without_ids(plan_of(1)).documents[0].id is None
        True
    """
    return dataclasses.replace(
        plan, documents=tuple(dataclasses.replace(document, id=None) for document in plan.documents)
    )


def expected_record(plan: Plan, selection_source: str) -> RagRecord:
    """Return the record of a run of this plan without failures.

    Identity and times are left out. A passage that the prompt cuts stands under ``used`` as shown, with its full
    length in `truncated`.

    Args:
        plan: the application's plan.
        selection_source: how the integration says that a reranker's choice became known.

    Example:
        >>> [pool.stage for pool in expected_record(plan_of(3, choice=((2, 0.9),)), "chain").pools]
        ['retrieved', 'reranked', 'used']
    """
    pool = tuple(_passage(plan, document, rank) for rank, document in enumerate(plan.documents, start=1))
    pools = [Pool(stage="retrieved", passages=pool)]
    delivered = pool
    if plan.choice is not None:
        delivered = tuple(
            replace(pool[place], rank=rank, score=score) for rank, (place, score) in enumerate(plan.choice, start=1)
        )
        pools.append(Pool(stage="reranked", passages=delivered))
    pools.append(Pool(stage="used", passages=tuple(_used(plan, passage) for passage in delivered)))
    request = plan.request
    return RagRecord(
        id="",
        workflow=request.workflow,
        session=request.session,
        user=request.user,
        corpus=request.corpus,
        corpus_version=request.corpus_version,
        query=plan.question,
        history=plan.history,
        pools=tuple(pools),
        selection_source="retriever" if plan.choice is None else selection_source,
        answer=plan.answer,
        reference=request.reference,
        labels=request.labels,
        k=request.k,
        usage=plan.usage,
        model=plan.model,
        tags=request.tags,
    )


def _passage(plan: Plan, document: Document, rank: int) -> Passage:
    return Passage(
        id=content_id(document.text) if document.id is None else document.id,
        text=document.text,
        rank=rank,
        score=document.score,
        source=plan.source,
        metadata={"page": document.page},
    )


def _used(plan: Plan, passage: Passage) -> Passage:
    shown = plan.shown(passage.text)
    return passage if shown == passage.text else replace(passage, text=shown, truncated=len(passage.text))
