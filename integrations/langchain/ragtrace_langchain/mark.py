"""What cannot be inferred: the application says itself which documents it chose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from ragtrace.capture import guarded
from ragtrace_langchain.runs import ambient_run_id, open_events
from ragtrace_langchain.selection import take_marked

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Documents = TypeVar("Documents", bound="Sequence[Any]")


def mark_selected(documents: Documents) -> Documents:
    """Report documents as the selection of the run whose code is executing, and return them as they are.

    For a choice that the events do not show: a filter inside a function that also formats, documents picked by
    hand. What is inferred later in the run leaves it; a later mark replaces it. The order is the order given.

    Outside a captured run it does nothing. In a thread of your own, start it with
    ``contextvars.copy_context().run``, so that it knows the run. Never raises.

    Example:
        >>> from langchain_core.documents import Document
        >>> mark_selected([Document(page_content="a")])
        [Document(metadata={}, page_content='a')]
    """
    _mark(documents)
    return documents


@guarded
def _mark(documents: Iterable[Any]) -> None:
    run_id = ambient_run_id()
    for node in open_events(run_id) if run_id is not None else ():
        take_marked(node, documents)
