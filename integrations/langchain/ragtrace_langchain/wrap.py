"""Ways to tell what no event of LangChain's shows: documents that are marked, and compressors that are wrapped."""

from __future__ import annotations

import time
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from langchain_core.documents import BaseDocumentCompressor, Document
from msgspec.structs import replace

from ragtrace.capture import (
    MOST_PASSAGES,
    RERANK_SCORE_KEYS,
    current_run,
    guarded,
    guarded_call,
    ranked,
    score_in,
)
from ragtrace.capture.decorated import StepPlace, find_places_with
from ragtrace.capture.documents import as_documents
from ragtrace.capture.events import Chosen, Event, Marked
from ragtrace.capture.known import KnownDocuments, read_documents
from ragtrace.capture.values import read_once
from ragtrace_langchain.open_runs import current_call, entered_retrievers, open_steps
from ragtrace_langchain.values import Values

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from langchain_core.callbacks import Callbacks

    from ragtrace.capture import Failure
    from ragtrace.capture.values import Doc
    from ragtrace_langchain.open_runs import OpenStep

Documents = TypeVar("Documents", bound="Sequence[object]")
_MODEL_FIELDS = ("model", "model_name", "model_id")


def mark_retrieved(documents: Documents, source: str | None = None) -> Documents:
    """Report documents as found by the run whose code is executing, and return them as they are.

    For a search that no event shows: ``similarity_search`` in a middleware, a prompt function or a node that
    returns text. Several marks add up; documents that the run knows already are not counted twice. It works in
    chains, nodes, tools and middleware, and inside ``with ragtrace.query(...)``. Outside a captured run it does
    nothing. Never raises.

    Args:
        documents: documents, pairs of a document and its score, mappings or texts, best first.
        source: name of the index; default the name of the step.

    Example:
        >>> from langchain_core.documents import Document
        >>> mark_retrieved([Document(page_content="a")], source="faq")
        [Document(metadata={}, page_content='a')]
    """
    found, left = read_once(documents, MOST_PASSAGES + 1)
    _mark_retrieved(found, source)
    return left  # type: ignore[return-value]


def mark_selected(documents: Documents) -> Documents:
    """Report documents as the selection of the run whose code is executing, and return them as they are.

    For a choice that the events do not show: a filter inside a function that also formats, documents picked by
    hand. What is inferred later in the run leaves it; several marks add up. The order is the order given.

    Outside a captured run it does nothing. In a thread of your own, start it with
    ``contextvars.copy_context().run``, so that it knows the run. Never raises.

    Example:
        >>> from langchain_core.documents import Document
        >>> mark_selected([Document(page_content="a")])
        [Document(metadata={}, page_content='a')]
    """
    found, left = read_once(documents, MOST_PASSAGES + 1)
    _mark_selected(found)
    return left  # type: ignore[return-value]


@guarded_call("mark_retrieved")
def _mark_retrieved(documents: Iterable[object], source: str | None) -> None:
    some, steps = list(islice(documents, MOST_PASSAGES + 1)), _open_steps()
    for step in steps:
        _mark(step, Marked(_documents(step, some), is_choice=False, source=source))
    if not steps:
        _mark_in_block(some, source, is_choice=False)


@guarded_call("mark_selected")
def _mark_selected(documents: Iterable[object]) -> None:
    some, steps = list(islice(documents, MOST_PASSAGES + 1)), _open_steps()
    for step in steps:
        _mark(step, Marked(_documents(step, some), is_choice=True))
    if not steps:
        _mark_in_block(some, None, is_choice=True)


def _open_steps() -> list[OpenStep]:
    """Return the steps that the current code runs in, one for each recorder; a retriever stands for its chain."""
    run_id, _ = current_call()
    steps = open_steps(run_id) if run_id is not None else []
    # LangChain sets no call of its own around a retriever's code.
    inside = [step for runs, number in entered_retrievers() if (step := runs.steps.get(number)) is not None]
    if not steps:
        return list({id(step.of): step for step in reversed(inside)}.values())
    return [next((one for one in inside if one.of is step.of and one.is_in(step)), step) for step in steps]


def _documents(step: OpenStep, items: Iterable[object]) -> list[Doc]:
    return as_documents(step.of.values.items(items))


def _mark(step: OpenStep, marked: Marked) -> None:
    now_ns = time.time_ns()
    step.of.add(Event("mark", parent=step.id, started_ns=now_ns, ended_ns=now_ns, data=marked))


def _place(step: OpenStep) -> StepPlace:
    return StepPlace(step.of.run, partial(_documents, step), partial(_mark, step))


find_places_with("langchain", lambda: map(_place, _open_steps()))


def _mark_in_block(items: list[object], source: str | None, *, is_choice: bool) -> None:
    """Report documents in the block of a run by hand, where no step runs."""
    run = current_run()
    if run is None:
        return
    documents: Sequence[Doc] = run.reader.first(as_documents(Values().items(items)))
    hits = read_documents(documents, KnownDocuments(), run.reader, source)
    passages = hits.passages
    if is_choice:
        scores = [score_in(facts, RERANK_SCORE_KEYS) for facts in hits.facts]
        passages = ranked([replace(one, score=score) for one, score in zip(passages, scores, strict=True)])
    run.mark(passages, has_own_id=[bool(one.id) for one in documents], source=source, is_choice=is_choice)


class TracedCompressor(BaseDocumentCompressor):
    """Compresses as `base` does, and reports it as a reranker step: its own name, time, scores and top_n.

    Without it a compressor inside a ``ContextualCompressionRetriever`` is inferred from what goes in and comes out,
    under the retriever's name; called by hand it is not seen unless a chain's step hands on its result.

    Results and errors are those of `base`. Thread-safe and safe in asyncio if `base` is.

    Args:
        base: the compressor that does the work.

    Example:
        >>> class First(BaseDocumentCompressor):
        ...     def compress_documents(self, documents, query, callbacks=None):
        ...         return documents[:1]
        >>> docs = [Document(page_content="a"), Document(page_content="b")]
        >>> TracedCompressor(base=First()).compress_documents(docs, "?")
        [Document(metadata={}, page_content='a')]
    """

    base: BaseDocumentCompressor

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """Return what `base` returns."""
        started_ns, steps = time.time_ns(), _enclosing(callbacks)
        try:
            chosen = self.base.compress_documents(documents, query, callbacks)
        except BaseException as error:
            _failed(steps, self.base, error, started_ns)
            raise
        _took(steps, self.base, documents, chosen, started_ns)
        return chosen

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """Return what `base` returns."""
        started_ns, steps = time.time_ns(), _enclosing(callbacks)
        try:
            chosen = await self.base.acompress_documents(documents, query, callbacks)
        except BaseException as error:
            _failed(steps, self.base, error, started_ns)
            raise
        _took(steps, self.base, documents, chosen, started_ns)
        return chosen


@guarded
def _enclosing(callbacks: object) -> list[OpenStep]:
    """Return the step it is called in: the retriever that passes its callbacks on, else the running chain."""
    for run_id in (getattr(callbacks, "parent_run_id", None), current_call()[0]):
        steps = open_steps(run_id) if run_id is not None else []
        if steps:
            return steps
    return []


@guarded
def _took(
    steps: list[OpenStep] | None,
    base: object,
    given: Sequence[Document],
    chosen: Sequence[Document],
    started_ns: int,
) -> None:
    now_ns = time.time_ns()
    for step in steps or ():
        values = step.of.values
        _chose(step, base, values.documents(given), values.documents(chosen), started_ns, now_ns)


@guarded
def _failed(steps: list[OpenStep] | None, base: object, error: BaseException, started_ns: int) -> None:
    now_ns = time.time_ns()
    for step in steps or ():
        _chose(step, base, [], [], started_ns, now_ns, step.of.run.failure_of(error))


def _chose(
    step: OpenStep,
    base: object,
    given: list[Doc],
    out: list[Doc],
    started_ns: int,
    now_ns: int,
    failure: Failure | None = None,
) -> None:
    chosen = Chosen(given, out, _name(base), _top_n(base))
    step.of.add(Event("choice", "", step.id, chosen.model, started_ns, now_ns, chosen, failure))


def _name(base: object) -> str:
    fields = (getattr(base, field, None) for field in _MODEL_FIELDS)
    return next((name for name in fields if isinstance(name, str) and name), type(base).__name__)


def _top_n(base: object) -> int | None:
    top_n = getattr(base, "top_n", None)
    return top_n if isinstance(top_n, int) and not isinstance(top_n, bool) else None
