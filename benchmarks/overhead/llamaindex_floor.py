"""Handlers that note for `floor` what the one application of LlamaIndex does."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events.llm import (
    LLMCompletionEndEvent,
    LLMCompletionInProgressEvent,
    LLMCompletionStartEvent,
)
from llama_index.core.postprocessor.types import BaseNodePostprocessor

from benchmarks.overhead.floor import Floor, Run, now
from benchmarks.overhead.llamaindex_minimal import EmptySpans

KINDS = (BaseQueryEngine, BaseRetriever, BaseNodePostprocessor)

_spans: dict[str, tuple[Run, Any, int]] = {}  # with the instance of its outermost span of a kind, and when it began
_asked: dict[str, tuple[Run, int]] = {}


class FloorSpans(EmptySpans):
    """Notes query, search and choice; it overrides enter, exit and drop whole, as ours does."""

    floor: Any = None
    unread: Any = None  # the run whose answer is read next: its model begins below no span

    def span_enter(
        self, id_: str, bound_args: Any, instance: Any = None, parent_id: Any = None, tags: Any = None, **_: Any
    ) -> None:
        above = _spans.get(parent_id) if parent_id else None
        is_outer = isinstance(instance, KINDS) and (above is None or above[1] is not instance)
        if above is not None:
            run = above[0]
        elif is_outer:
            run = Run(question=bound_args.args[0])
        else:
            run = self.unread
        _spans[id_] = run, instance if is_outer or above is None else above[1], now() if is_outer else 0

    def span_exit(self, id_: str, bound_args: Any, instance: Any = None, result: Any = None, **_: Any) -> None:
        run, _instance, began = _spans.pop(id_)
        if not began:
            return
        if isinstance(instance, BaseRetriever):
            run.search, run.found = (began, now()), _rows(result)
        elif isinstance(instance, BaseNodePostprocessor):
            run.choice, run.chosen = (began, now()), _rows(result)
        elif run.model[1]:
            self.floor.take(run)
        else:  # nobody has read its answer so far
            self.unread, run.ended = run, now()

    def span_drop(self, id_: str, *_: Any, **__: Any) -> None:
        _spans.pop(id_, None)


class FloorEvents(BaseEventHandler):
    """Notes the model's call."""

    floor: Any = None

    def handle(self, event: Any, **_: Any) -> None:
        kind = type(event)
        if kind is LLMCompletionInProgressEvent:
            run = _asked[event.span_id][0]
            run.first_chunk = run.first_chunk or now()
        elif kind is LLMCompletionStartEvent:
            run = _spans[event.span_id][0]
            run.prompt = event.prompt
            _asked[event.span_id] = run, now()
        elif kind is LLMCompletionEndEvent:
            run, began = _asked.pop(event.span_id)
            run.model, run.reply = (began, now()), event.response.text
            if event.response.raw:
                usage = event.response.raw["usage"]
                run.tokens = usage["prompt_tokens"], usage["completion_tokens"]
            if run.ended:
                self.floor.take(run)


def install(floor: Floor) -> None:
    spans, events = FloorSpans(), FloorEvents()
    spans.floor = events.floor = floor
    get_dispatcher().add_span_handler(spans)
    get_dispatcher().add_event_handler(events)


def _rows(nodes: Any) -> list[tuple[str, str, float]]:
    return [(one.node.id_, one.node.text, one.score) for one in nodes]
