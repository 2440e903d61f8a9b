"""A wrapper that reports what a compressor does; LangChain itself fires no event for one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from langchain_core.documents import BaseDocumentCompressor, Document

from ragtrace.capture import guarded
from ragtrace_langchain.run_state import current_call, open_events
from ragtrace_langchain.selection import record_compressed, record_failed_compression

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.callbacks import Callbacks

    from ragtrace_langchain.run_state import OpenSpan

_MODEL_FIELDS = ("model", "model_name", "model_id")


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
        started_ns, spans = time.time_ns(), _enclosing(callbacks)
        try:
            chosen = self.base.compress_documents(documents, query, callbacks)
        except BaseException as error:
            _failed(spans, self.base, error, started_ns)
            raise
        _took(spans, self.base, documents, chosen, started_ns)
        return chosen

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """Return what `base` returns."""
        started_ns, spans = time.time_ns(), _enclosing(callbacks)
        try:
            chosen = await self.base.acompress_documents(documents, query, callbacks)
        except BaseException as error:
            _failed(spans, self.base, error, started_ns)
            raise
        _took(spans, self.base, documents, chosen, started_ns)
        return chosen


@guarded
def _enclosing(callbacks: object) -> list[OpenSpan]:
    """Return the event it is called in: the retriever that passes its callbacks on, else the running chain."""
    for run_id in (getattr(callbacks, "parent_run_id", None), current_call()[0]):
        spans = open_events(run_id) if run_id is not None else []
        if spans:
            return spans
    return []


@guarded
def _took(
    spans: list[OpenSpan] | None,
    base: object,
    given: Sequence[Document],
    chosen: Sequence[Document],
    started_ns: int,
) -> None:
    now_ns = time.time_ns()
    for span in spans or ():
        documents = list(span.state.run.reader.first(chosen))
        span.state.record_documents(
            record_compressed,
            span,
            list(given),
            documents,
            _name(base),
            _top_n(base),
            started_ns,
            now_ns,
            documents=[*given, *documents],
        )


@guarded
def _failed(spans: list[OpenSpan] | None, base: object, error: BaseException, started_ns: int) -> None:
    now_ns = time.time_ns()
    for span in spans or ():
        failure = span.state.run.failure_of(error)
        span.state.record(record_failed_compression, span, _name(base), _top_n(base), started_ns, now_ns, failure)


def _name(base: object) -> str:
    fields = (getattr(base, field, None) for field in _MODEL_FIELDS)
    return next((name for name in fields if isinstance(name, str) and name), type(base).__name__)


def _top_n(base: object) -> int | None:
    top_n = getattr(base, "top_n", None)
    return top_n if isinstance(top_n, int) and not isinstance(top_n, bool) else None
