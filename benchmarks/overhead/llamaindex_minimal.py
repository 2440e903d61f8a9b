"""The measure of LlamaIndex handlers: three spans, every node written once; half an hour's work."""

from __future__ import annotations

import json
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler
from llama_index.core.llms import LLM
from opentelemetry.trace import set_span_in_context

# The public call of each kind; LlamaIndex wraps the private ones beneath in spans too.
KINDS = (
    (BaseQueryEngine, "chain", {"query", "aquery"}),
    (BaseRetriever, "retriever", {"retrieve", "aretrieve"}),
    (LLM, "chat", {"predict", "apredict", "stream", "astream"}),
)


class Held:
    """The OpenTelemetry span of a run and that of this call, if it has one; a pydantic model would be slower."""

    __slots__ = ("root", "span")

    def __init__(self, root: Any, span: Any = None) -> None:
        self.root, self.span = root, span


class MinimalSpans(BaseSpanHandler[Any]):
    """Spans for query, retriever and model; of a stream they end before its first chunk."""

    tracer: Any = None

    def new_span(
        self,
        id_: str,
        bound_args: Any,
        instance: Any = None,
        parent_span_id: Any = None,
        tags: Any = None,
        **_: Any,
    ) -> Held:
        parent = self.open_spans.get(parent_span_id) if parent_span_id else None
        root = parent.root if parent else None
        method = id_.partition("-")[0].rpartition(".")[2]
        for kind, name, methods in KINDS:
            if isinstance(instance, kind) and method in methods:
                context = set_span_in_context(root) if root is not None else None
                span = self.tracer.start_span(name, context=context)
                if root is None:
                    span.set_attribute("input", str(bound_args.args[0]))
                return Held(root or span, span)
        return Held(root)

    def prepare_to_exit_span(
        self, id_: str, bound_args: Any, instance: Any = None, result: Any = None, **_: Any
    ) -> Held | None:
        held = self.open_spans.get(id_)
        if held is None or held.span is None:
            return held
        if isinstance(instance, BaseRetriever):
            rows = [{"id": one.node.node_id, "score": one.score, "content": one.node.text} for one in result]
            held.span.set_attribute("documents", json.dumps(rows))
        elif not (hasattr(result, "response_gen") or hasattr(result, "__next__")):  # a stream is not ours to read
            held.span.set_attribute("output", str(result))
        held.span.end()
        return held

    def prepare_to_drop_span(
        self, id_: str, bound_args: Any, instance: Any = None, err: Any = None, **_: Any
    ) -> Held | None:
        held = self.open_spans.get(id_)
        if held is not None and held.span is not None:
            if err is not None:
                held.span.record_exception(err)
            held.span.end()
        return held


class EmptySpans(BaseSpanHandler[Any]):
    """What being called costs."""

    def new_span(self, *_: Any, **__: Any) -> None:
        return None

    def prepare_to_exit_span(self, *_: Any, **__: Any) -> None:
        return None

    def prepare_to_drop_span(self, *_: Any, **__: Any) -> None:
        return None


class EmptyEvents(BaseEventHandler):
    def handle(self, event: Any, **_: Any) -> None:
        """Nothing."""


def install_empty() -> None:
    get_dispatcher().add_span_handler(EmptySpans())
    get_dispatcher().add_event_handler(EmptyEvents())


def install(tracer: Any) -> None:
    spans = MinimalSpans()
    spans.tracer = tracer
    get_dispatcher().add_span_handler(spans)
