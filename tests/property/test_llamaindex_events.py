"""Random spans and events at LlamaIndex's handlers: they never raise, leave nothing open, and mix no two runs."""

from __future__ import annotations

import inspect

from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse
from llama_index.core.base.response.schema import Response
from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.instrumentation.events.llm import (
    LLMChatEndEvent,
    LLMCompletionEndEvent,
    LLMCompletionInProgressEvent,
)
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from integrations.llamaindex.tests.parts import Best, Faq, Llm, engine
from ragtrace.capture import internal_errors
from ragtrace.testing.recording import Recording
from ragtrace_llamaindex import instrumented
from ragtrace_llamaindex.instrumentation import RagtraceEventHandler, RagtraceSpanHandler, tracer

MODEL, RERANKER, RETRIEVER, ENGINE = Llm(), Best(), Faq(), engine()
METHODS = {
    "query": (ENGINE, "RetrieverQueryEngine.query", ENGINE.query),
    "retrieve": (RETRIEVER, "Faq.retrieve", RETRIEVER.retrieve),
    "rerank": (RERANKER, "Best._postprocess_nodes", RERANKER._postprocess_nodes),
    "complete": (MODEL, "Llm.complete", MODEL.complete),
    "other": (None, "helper", lambda **_: None),
}
events = st.tuples(
    st.sampled_from(("enter", "enter", "enter", "exit", "exit", "drop", "event", "stranger", "orphan", "sweep")),
    st.integers(0, 15),
    st.sampled_from(tuple(METHODS)),
    st.integers(0, 3),
)


def nodes(name):
    return [NodeWithScore(node=TextNode(id_=f"{name}{i}", text=f"{name} passage {i}"), score=0.5) for i in range(3)]


def texts(name):
    return " ".join(node.node.text for node in nodes(name))


def bound(kind, name):
    method = METHODS[kind][2]
    given = {
        "query": {"str_or_query_bundle": name},
        "retrieve": {"str_or_query_bundle": QueryBundle(name)},
        "rerank": {"nodes": nodes(name)},
        "complete": {"prompt": f"{name} {texts(name)}"},
        "other": {},
    }[kind]
    return inspect.signature(method).bind(**given)


def result(kind, name):
    return {
        "query": Response(response=name, source_nodes=nodes(name)),
        "retrieve": nodes(name),
        "rerank": nodes(name)[1:],
        "complete": CompletionResponse(text=name),
        "other": None,
    }[kind]


class Application:
    """Plays events; each outermost span and all that is below it speaks of itself by one name."""

    def __init__(self, recorder):
        self.recorder = recorder
        self.spans, self.events = RagtraceSpanHandler(), RagtraceEventHandler()
        self.known: list[tuple[str, str, str]] = []
        self.roots = 0

    def play(self, event):
        what, which, kind, detail = event
        known = self.known[which % len(self.known)] if self.known else None
        if what == "sweep":
            self.recorder.sweep(now=1e12)
        elif what == "enter":
            self.enter(kind, known if detail and known else None)
        elif what == "orphan":
            self.enter(kind, ("helper-" + "9" * 36, "nobody", "other"))
        elif what == "stranger":
            self.exit("helper-" + "8" * 36, kind, "nobody")
        elif known and what == "exit":
            self.exit(known[0], known[2] if detail else kind, known[1])
        elif known and what == "drop":
            error = (ValueError("x"), GeneratorExit(), ConnectionError("down"), None)[detail]
            self.spans.span_drop(
                id_=known[0], bound_args=bound(kind, known[1]), instance=METHODS[kind][0], err=error
            )
        elif known:
            self.tell(known[0], known[1], detail)

    def enter(self, kind, parent):
        if parent is None or parent[1] == "nobody":
            self.roots += 1
            name = f"r{self.roots}."
        else:
            name = parent[1]
        instance, method, _ = METHODS[kind]
        id_ = f"{method}-{len(self.known):036d}"
        self.known.append((id_, name, kind))
        self.spans.span_enter(
            id_=id_, bound_args=bound(kind, name), instance=instance, parent_id=parent[0] if parent else None
        )

    def exit(self, id_, kind, name):
        self.spans.span_exit(
            id_=id_, bound_args=bound(kind, name), instance=METHODS[kind][0], result=result(kind, name)
        )

    def tell(self, span_id, name, detail):
        message = ChatMessage(role="assistant", content=name)
        happened = (
            LLMCompletionInProgressEvent(prompt=name, response=CompletionResponse(text=name, delta=name)),
            LLMCompletionEndEvent(prompt=name, response=CompletionResponse(text=name)),
            LLMChatEndEvent(messages=[message], response=ChatResponse(message=message)),
            ExceptionEvent(exception=ValueError("x")),
        )[detail]
        happened.span_id = span_id
        self.events.handle(happened)


def names_in(record):
    """Whose questions, passages and answers a record holds."""
    spoken = [record.query, record.answer, *(p.id for pool in record.pools for p in pool.passages)]
    return {text.split(".")[0] for text in spoken if text}


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(events, max_size=40))
def test_any_sequence_of_spans_and_events(sequence):
    kept = Recording()
    recorder = kept.recorder
    before = internal_errors()
    with instrumented(recorder):
        application = Application(recorder)
        for event in sequence:
            application.play(event)
        recorder.sweep(now=1e12)
    assert internal_errors() == before
    assert recorder.open_runs == 0
    assert len(kept.runs) <= len(kept.begun)  # a run that asked nothing is discarded
    assert all(run.record.query or run.steps for run in kept.runs)
    for record in kept.records:
        assert len(names_in(record)) <= 1, record
    # Spans that hold no run are few and bounded; the next example begins with none.
    for tree in list(tracer._unstarted.values()):
        tracer._forget(tree)
    assert len(tracer) == 0
