"""Helpers for what cannot be seen: the application names what it found, and what it chose."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from llama_index.core.instrumentation.span import active_span_id

from ragtrace.capture import guarded_call
from ragtrace.capture.decorated import StepPlace, find_places_with
from ragtrace.capture.events import Event, Marked
from ragtrace.capture.passages import MOST_PASSAGES
from ragtrace.capture.values import read_once
from ragtrace_llamaindex.instrumentation import tracer
from ragtrace_llamaindex.request import holder
from ragtrace_llamaindex.streams import reading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llama_index.core.schema import NodeWithScore

    from ragtrace_llamaindex.open_runs import OpenSpan

Documents = TypeVar("Documents", bound="Sequence[object]")
Nodes = TypeVar("Nodes", bound="Sequence[NodeWithScore]")


def mark_selected(nodes: Nodes) -> Nodes:
    """Report these nodes as the selection of the run they are called in, and return them unchanged.

    For a choice that leaves no trace LlamaIndex reports: a few lines of an engine's or a workflow's own. It comes
    before whatever is inferred. Outside a captured run it does nothing.

    Several calls in a run add up, in their order.

    Args:
        nodes: what was chosen, best first; a score that differs from the retriever's is the choice's own.

    Example:
        >>> mark_selected([])
        []
    """
    found, left = read_once(nodes, MOST_PASSAGES + 1)
    _mark_selected(found)
    return left  # type: ignore[return-value]


def mark_retrieved(documents: Documents, source: str | None = None) -> Documents:
    """Report what the run they are called in has found, and return it unchanged.

    For a search that no retriever of LlamaIndex's made: a database, a web search, a file. Several calls in a run
    add up. Outside a captured run it does nothing.

    Args:
        documents: nodes, texts, or mappings with a text and perhaps an id, a score and metadata; best first.
        source: name of the index or data source.

    Example:
        >>> mark_retrieved([{"id": "faq-7", "text": "Cancel in settings."}], source="faq")
        [{'id': 'faq-7', 'text': 'Cancel in settings.'}]
    """
    found, left = read_once(documents, MOST_PASSAGES + 1)
    _mark_retrieved(found, source)
    return left  # type: ignore[return-value]


@guarded_call("mark_retrieved")
def _mark_retrieved(documents: object, source: str | None) -> None:
    _mark(documents, source, is_choice=False)


@guarded_call("mark_selected")
def _mark_selected(nodes: object) -> None:
    _mark(nodes, None, is_choice=True)


def _mark(items: object, source: str | None, *, is_choice: bool) -> None:
    span = _current_span()
    if span is None or span.state.run is None:
        return
    _add(span, Marked(span.state.values.marked(items), is_choice=is_choice, source=source))


def _add(span: OpenSpan, marked: Marked) -> None:
    now_ns = time.time_ns()
    span.state.add(Event("mark", parent=span.id, started_ns=now_ns, ended_ns=now_ns, data=marked))


def _places() -> list[StepPlace]:
    span = _current_span()
    if span is None or span.state.run is None:
        return []
    return [StepPlace(span.state.run, span.state.values.marked, partial(_add, span))]


find_places_with("llamaindex", _places)


def _current_span() -> OpenSpan | None:
    id_ = active_span_id.get()
    span = tracer.spans.get(id_) if id_ is not None else None
    read = reading.get()
    if span is None and read is not None:
        span = read.span
    outer = tracer.joined.root(holder.current())
    return outer if outer is not None and (span is None or span.state is not outer.state) else span
