"""Helpers for what no event shows: the application names what it found and what it chose."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from ragtrace.capture import (
    RERANK_SCORE_KEYS,
    current_run,
    guarded,
    guarded_call,
    ranked,
    score_in,
)
from ragtrace_langchain.documents import KnownDocuments, as_documents, read_documents
from ragtrace_langchain.run_state import OpenSpan, current_call, open_events
from ragtrace_langchain.selection import record_marked, record_retrieved

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from langchain_core.documents import Document

    from ragtrace.capture import IntegrationRun
    from ragtrace_langchain.documents import Hits

Documents = TypeVar("Documents", bound="Sequence[object]")


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
    _mark_retrieved(documents, source)
    return documents


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
    _mark_selected(documents)
    return documents


@guarded_call("mark_retrieved")
def _mark_retrieved(documents: Iterable[object], source: str | None) -> None:
    found = as_documents(documents)
    spans = _open_spans()
    for span in spans:
        span.state.record_documents(_record_found, span, found, source, time.time_ns(), documents=found)
    run = None if spans else current_run()
    if run is not None:
        known = {(passage.id, passage.text) for passage in run.candidates()}
        read = _read_for(run, found, source).passages
        new = [passage for passage in read if (passage.id, passage.text) not in known]
        if new or not read:
            run.retrieved(ranked(new), source=source)


@guarded_call("mark_selected")
def _mark_selected(documents: Iterable[object]) -> None:
    chosen = as_documents(documents)
    spans = _open_spans()
    for span in spans:
        span.state.record_documents(record_marked, span, chosen, documents=chosen)
    run = None if spans else current_run()
    if run is not None:
        hits = _read_for(run, chosen, None)
        scores = [score_in(facts, RERANK_SCORE_KEYS) for facts in hits.facts]
        places = enumerate(zip(hits.passages, scores, strict=True), start=1)
        run.add_selected(ranked([replace(passage, rank=rank, score=score) for rank, (passage, score) in places]))


def _open_spans() -> list[OpenSpan]:
    run_id, _ = current_call()
    return open_events(run_id) if run_id is not None else []


@guarded
def _record_found(span: OpenSpan, documents: list[Document], source: str | None, now_ns: int) -> None:
    state = span.state
    keys = state.known.keys(documents)
    new = [document for key, document in zip(keys, documents, strict=True) if key not in state.pool]
    if documents and not new:
        return
    search = OpenSpan(state, span, "retriever", source or span.name, now_ns)
    state.has_retriever = True
    search.query = state.run.attributes.get("query", "")
    record_retrieved(search, new, now_ns)


def _read_for(run: IntegrationRun, documents: list[Document], source: str | None) -> Hits:
    """Read documents for a run without events; one without an id takes that of the same text in the pool."""
    known = KnownDocuments()
    pool = run.candidates()
    known.note([passage.text for passage in pool], [passage.id for passage in pool])
    return read_documents(run.reader.first(documents), known, run.reader, source)
