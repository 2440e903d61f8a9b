"""Random events at the LangChain handler: it never raises, leaves nothing open, and never mixes two runs."""

from __future__ import annotations

from contextvars import copy_context
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from ragtrace.capture import internal_errors
from ragtrace.testing.recording import Recording
from ragtrace_langchain import RagtraceHandler

KINDS = ("chain", "tool", "retriever", "chat", "text")
# An event: what happens, which of the ids begun so far it concerns, and of what kind it is.
events = st.tuples(
    st.sampled_from(("start", "start", "start", "end", "end", "error", "token", "stranger", "orphan", "sweep")),
    st.integers(0, 15),
    st.sampled_from(KINDS),
    st.integers(0, 3),
)
errors = (ValueError("x"), KeyboardInterrupt(), GeneratorExit(), ConnectionError("down"))


class Application:
    """Plays events; each root and all that is below it speaks of itself by one name, in a context of its own."""

    def __init__(self, handler, recorder):
        self.handler, self.recorder = handler, recorder
        self.ids: list[tuple[UUID, str, str]] = []
        self.roots = 0
        self.contexts = {"nobody": copy_context()}

    def new_id(self) -> UUID:
        return UUID(int=len(self.ids) + 1_000)

    def play(self, event):
        what, which, kind, detail = event
        known = self.ids[which % len(self.ids)] if self.ids else None
        if what == "sweep":
            self.recorder.sweep(now=1e12)
        elif what == "start":
            # detail 0 begins a root, else a child of one that is known, whether it is open or has ended
            self.start(kind, known if detail and known else None)
        elif what == "orphan":
            self.start(kind, (UUID(int=7), "nobody", "chain"))
        elif what == "stranger":
            self.end(UUID(int=9), kind, "nobody")
        elif known and what == "end":
            self.inside(known[1], self.end, known[0], known[2] if detail else kind, known[1])
        elif known and what == "token":
            self.handler.on_llm_new_token(known[1], run_id=known[0])
        elif known:
            self.inside(known[1], self.fail, known[0], known[2] if detail else kind, errors[detail])

    def inside(self, name, call, *args):
        self.contexts.setdefault(name, copy_context()).run(call, *args)

    def start(self, kind, parent):
        if parent is None or parent[1] == "nobody":
            self.roots += 1
            name = f"r{self.roots}."
        else:
            name = parent[1]
        run_id, above = self.new_id(), parent[0] if parent else None
        self.ids.append((run_id, name, kind))
        self.inside(name, self.begin, kind, name, {"run_id": run_id, "parent_run_id": above, "name": kind})

    def begin(self, kind, name, given):
        if kind == "chain":
            self.handler.on_chain_start(None, {"question": name, "docs": documents(name)}, **given)
        elif kind == "tool":
            self.handler.on_tool_start({}, name, **given)
        elif kind == "retriever":
            self.handler.on_retriever_start(None, name, **given)
        elif kind == "chat":
            self.handler.on_chat_model_start({}, [[HumanMessage(f"{name} {texts(name)}")]], **given)
        else:
            self.handler.on_llm_start({}, [f"{name} {texts(name)}"], **given)

    def end(self, run_id, kind, name):
        if kind == "chain":
            self.handler.on_chain_end({"docs": documents(name)[:1]}, run_id=run_id)
        elif kind == "tool":
            self.handler.on_tool_end(documents(name), run_id=run_id)
        elif kind == "retriever":
            self.handler.on_retriever_end(documents(name), run_id=run_id)
        else:
            reply = LLMResult(generations=[[ChatGeneration(message=AIMessage(name))]])
            self.handler.on_llm_end(reply, run_id=run_id)

    def fail(self, run_id, kind, error):
        on_error = {
            "chain": self.handler.on_chain_error,
            "tool": self.handler.on_tool_error,
            "retriever": self.handler.on_retriever_error,
        }.get(kind, self.handler.on_llm_error)
        on_error(error, run_id=run_id)


def documents(name):
    return [
        Document(id=f"{name}{i}", page_content=f"{name} passage {i}", metadata={"score": 0.5}) for i in range(3)
    ]


def texts(name):
    return " ".join(document.page_content for document in documents(name))


def names_in(record):
    """Whose questions, passages and answers a record holds."""
    spoken = [record.query, record.answer, *(p.id for pool in record.pools for p in pool.passages)]
    return {text.split(".")[0] for text in spoken if text}


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.lists(events, max_size=40))
def test_any_sequence_of_events(sequence):
    kept = Recording()
    recorder = kept.recorder
    handler = RagtraceHandler(recorder)
    before = internal_errors()
    application = Application(handler, recorder)
    for event in sequence:
        application.play(event)
    recorder.sweep(now=1e12)
    assert internal_errors() == before
    assert recorder.open_runs == 0
    assert len(handler._runs) == 0
    assert len(kept.runs) <= len(kept.begun)
    for record in kept.records:
        assert len(names_in(record)) <= 1, record
