"""The measure of LangChain handlers: three spans, every document written once; half an hour's work."""

from __future__ import annotations

import json
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from opentelemetry.trace import set_span_in_context


class EmptyHandler(BaseCallbackHandler):
    """What being called costs; inline, since async runs send others to an executor's threads for 1.5 ms."""

    run_inline = True


class MinimalHandler(BaseCallbackHandler):
    """Spans for run, retriever and model; parents are right also where runs overlap."""

    run_inline = True

    def __init__(self, tracer: Any) -> None:
        self.tracer, self.spans, self.roots = tracer, {}, {}

    def _start(self, name: str, run_id: Any, parent: Any) -> Any:
        root = self.roots.get(parent)
        context = set_span_in_context(root) if root is not None else None
        self.spans[run_id] = span = self.tracer.start_span(name, context=context)
        return span

    def _fail(self, error: BaseException, run_id: Any) -> None:
        self.roots.pop(run_id, None)
        span = self.spans.pop(run_id, None)
        if span is not None:
            span.record_exception(error)
            span.end()

    def on_chain_start(
        self, serialized: Any, inputs: Any, *, run_id: Any, parent_run_id: Any = None, **_: Any
    ) -> None:
        if parent_run_id is None:
            self.roots[run_id] = root = self._start("chain", run_id, None)
            root.set_attribute("input", str(inputs))
        else:
            self.roots[run_id] = self.roots.get(parent_run_id)

    def on_chain_end(self, outputs: Any, *, run_id: Any, parent_run_id: Any = None, **_: Any) -> None:
        self.roots.pop(run_id, None)
        if parent_run_id is None:
            span = self.spans.pop(run_id)
            span.set_attribute("output", getattr(outputs, "content", ""))
            span.end()

    def on_chain_error(self, error: BaseException, *, run_id: Any, **_: Any) -> None:
        self._fail(error, run_id)

    def on_retriever_start(
        self, serialized: Any, query: str, *, run_id: Any, parent_run_id: Any = None, **_: Any
    ) -> None:
        self._start("retriever", run_id, parent_run_id).set_attribute("query", query)

    def on_retriever_end(self, documents: Any, *, run_id: Any, **_: Any) -> None:
        span = self.spans.pop(run_id)
        rows = [{"id": d.id, "score": d.metadata["score"], "content": d.page_content} for d in documents]
        span.set_attribute("documents", json.dumps(rows))
        span.end()

    def on_retriever_error(self, error: BaseException, *, run_id: Any, **_: Any) -> None:
        self._fail(error, run_id)

    def on_chat_model_start(
        self, serialized: Any, messages: Any, *, run_id: Any, parent_run_id: Any = None, **_: Any
    ) -> None:
        self._start("chat", run_id, parent_run_id)

    def on_llm_end(self, response: Any, *, run_id: Any, **_: Any) -> None:
        span = self.spans.pop(run_id)
        span.set_attribute("output", response.generations[0][0].text)
        span.end()

    def on_llm_error(self, error: BaseException, *, run_id: Any, **_: Any) -> None:
        self._fail(error, run_id)
