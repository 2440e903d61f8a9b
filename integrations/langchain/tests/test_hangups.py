"""Clients that leave a stream: the run ends as partial or cancelled, never as answered with half an answer."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
from typing import Any, TypedDict

import anyio
import pytest
import uvicorn
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.runnables import RunnableGenerator, RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_core.runnables import chain as chained
from langgraph.graph import END, START, StateGraph

from integrations.langchain.tests.parts import PROMPT, Faq, chat, lcel, shown
from tests.kept import ANSWER, ids

JSON = '{"answer": "The lab is in Oslo.", "sources": ["d1"]}'


class State(TypedDict, total=False):
    question: str
    documents: list
    answer: str


def pieces(chunks):
    yield from chunks


def asked(model):
    given = RunnableLambda(lambda x: {"context": shown(x["docs"]), "question": x["question"]})
    return given | PROMPT | model | StrOutputParser()


def assigned(model):
    return RunnablePassthrough.assign(docs=(lambda x: x["question"]) | Faq()).assign(answer=asked(model))


def parallel(model):
    return RunnablePassthrough.assign(docs=(lambda x: x["question"]) | Faq()) | RunnableParallel(
        answer=asked(model), docs=lambda x: x["docs"]
    )


def decorated(model):
    @chained
    def ask(given):
        docs = Faq().invoke(given["question"])
        yield from asked(model).stream({"docs": docs, "question": given["question"]})

    return ask


def graph(model):
    built = StateGraph(State)
    built.add_node("retrieve", lambda state: {"documents": Faq().invoke(state["question"])})
    built.add_node("generate", lambda state: {"answer": asked(model).invoke({"docs": state["documents"], **state})})
    built.add_edge(START, "retrieve").add_edge("retrieve", "generate").add_edge("generate", END)
    return built.compile()


@pytest.fixture(scope="module", autouse=True)
def small_heap():
    """Freeze whatever earlier tests left: each test here collects several times."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def ordered_collector():
    """No collection but the test's own: it closes generators in the order of their creation, the outermost first."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


question = RunnableLambda(lambda x: x["question"])
FORMS = {
    "parsed": lambda model: question | lcel(model=model),
    "messages": lambda model: (
        question | {"context": Faq() | shown, "question": RunnablePassthrough()} | PROMPT | model
    ),
    "a generator last": lambda model: question | lcel(model=model) | RunnableGenerator(pieces),
    "assigned": assigned,
    "parallel": parallel,
    "answer picked": lambda model: assigned(model).pick("answer"),
    "decorated": decorated,
    "with fallbacks": lambda model: question | lcel(model=model).with_fallbacks([lcel(model=model)]),
    "bound": lambda model: (question | lcel(model=model)).with_config(tags=["vip"]),
}


def closed(stream):
    stream.close()


def dropped(stream):
    del stream


def dropped_in_a_cycle(stream):
    loop = [stream]
    loop.append(loop)
    del stream, loop
    gc.collect()


def cycle_of_all(stream):
    """As a traceback or a cancelled task does: the frames of all inner generators stand in cycles."""
    error = ValueError()
    error.held = [error, stream]
    del stream, error
    gc.collect()


def read(stream, number):
    """Read pieces of an answer, and return what of it came."""
    said = ""
    for piece in stream:
        text = piece.get("answer", "") if isinstance(piece, dict) else getattr(piece, "content", piece)
        said += text
        if len(said) >= number:
            break
    return said


# Parallel steps have threads: LangChain itself may wait for ever where the collector ends them (core 1.7.2).
IN_CYCLES = ("parsed", "messages", "a generator last", "decorated", "bound")
LEFT = [
    *((form, leave) for form in FORMS for leave in (closed, dropped)),
    *((form, leave) for form in IN_CYCLES for leave in (dropped_in_a_cycle, cycle_of_all)),
]


@pytest.mark.parametrize("number", [1, len(ANSWER) - 1])
@pytest.mark.parametrize(("form", "leave"), LEFT)
def test_a_stream_that_is_left(keeper, recorder, config, form, number, leave):
    stream = FORMS[form](chat()).stream({"question": "Where?"}, config)
    said = read(stream, number)
    held = [stream]
    del stream
    leave(held.pop())
    record = keeper.only.record
    assert (record.outcome, record.query) == ("partial", "Where?")
    assert record.answer.startswith(said[:-1])
    assert ids(keeper.only, "retrieved") == [f"d{i}" for i in range(6)]


class AgeTheRoot(BaseCallbackHandler):
    """Makes the root's generators older than the inner ones by a generation, so that the collector reaches them last."""

    def on_chain_start(self, *args, parent_run_id=None, **kwargs):
        if parent_run_id is None:
            gc.collect(0)


def test_the_collector_closes_an_inner_generator_first(keeper, recorder, config):
    """LangChain then reads the model's stream to its end before the root is told, so the answer is whole."""
    config["callbacks"].append(AgeTheRoot())
    stream = FORMS["a generator last"](chat()).stream({"question": "Where?"}, config)
    read(stream, 1)
    held = [stream]
    del stream
    cycle_of_all(held.pop())
    assert (keeper.only.record.outcome, keeper.only.record.answer) == ("answered", ANSWER)


@pytest.mark.parametrize("form", FORMS)
def test_a_stream_that_is_read_to_the_end(keeper, config, form):
    said = read(FORMS[form](chat()).stream({"question": "Where?"}, config), 1_000)
    assert (said, keeper.only.record.answer, keeper.only.record.outcome) == (ANSWER, ANSWER, "answered")


def test_an_answer_that_a_step_cuts_is_whole(keeper, config):
    chain = question | lcel() | RunnableLambda(lambda text: text.partition(" in")[0])
    assert list(chain.stream({"question": "Where?"}, config)) == ["The lab is"]
    assert (keeper.only.record.outcome, keeper.only.record.answer) == ("answered", "The lab is")


class Reached(FakeListChatModel):
    """Tells when it is asked, which is after all of the prompt's input was read."""

    reached: Any

    def _stream(self, *args, **kwargs):
        self.reached.set()
        yield from super()._stream(*args, **kwargs)


@pytest.mark.parametrize("leave", [closed, dropped])
def test_before_the_first_piece_of_the_answer(keeper, recorder, config, leave):
    model = Reached(responses=[ANSWER], reached=threading.Event())
    stream = assigned(model).stream({"question": "Where?"}, config)
    assert [next(stream).keys() for _ in range(2)]
    # A stream that is closed while LangChain's own thread still reads its input fails inside LangChain
    # ("cannot re-enter the tee iterator", core 1.7.2).
    assert model.reached.wait(30)
    held = [stream]
    del stream
    leave(held.pop())
    assert (keeper.only.record.outcome, len(keeper.only.record.answer) <= 1) == ("partial", True)


@pytest.mark.parametrize("leave", [closed, dropped, dropped_in_a_cycle])
def test_structured_output_that_grows(keeper, recorder, config, leave):
    chain = question | {"context": Faq() | shown, "question": RunnablePassthrough()} | PROMPT | chat(JSON)
    stream = (chain | JsonOutputParser()).stream({"question": "Where?"}, config)
    for piece in stream:
        if len(piece.get("answer", "")) > 5:
            break
    held = [stream]
    del stream
    leave(held.pop())
    assert keeper.only.record.outcome == "partial"


@pytest.mark.parametrize("mode", ["messages", "updates", "values"])
def test_a_graph_that_is_left(keeper, recorder, config, mode):
    stream = graph(chat()).stream({"question": "Where?"}, config, stream_mode=mode)
    for _ in range(2 if mode == "values" else 1):  # the first value is the state that was given
        next(stream)
    stream.close()
    assert keeper.only.record.outcome in {"partial", "cancelled"}


class Held(FakeListChatModel):
    """Streams, and waits behind the fifth piece until the client has left."""

    left: Any

    def _stream(self, *args, **kwargs):
        for number, piece in enumerate(super()._stream(*args, **kwargs)):
            if number == 5:
                assert self.left.wait(30)
            yield piece


class App:
    """Streams a chain as Starlette's ``StreamingResponse`` does: each piece of a generator in a thread."""

    def __init__(self, chain, config, left):
        self.chain, self.config, self.left = chain, config, left
        self.is_done = threading.Event()

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return
        await receive()
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self.listen, receive, group.cancel_scope)
                await self.stream(send)
                group.cancel_scope.cancel()
        finally:
            self.is_done.set()

    async def listen(self, receive, scope):
        while (await receive())["type"] != "http.disconnect":
            pass
        self.left.set()
        scope.cancel()

    async def stream(self, send):
        stream = iter(self.chain.stream({"question": "Where?"}, self.config))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while (piece := await anyio.to_thread.run_sync(next, stream, None)) is not None:
            text = piece.get("answer", "") if isinstance(piece, dict) else getattr(piece, "content", piece)
            await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
        await send({"type": "http.response.body", "body": b""})


@pytest.mark.parametrize("form", FORMS)
def test_a_client_that_leaves_a_server(keeper, recorder, config, form):
    left = threading.Event()
    app = App(FORMS[form](Held(responses=[ANSWER], left=left)), config, left)
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])))
        thread.start()
        with socket.create_connection(listener.getsockname()) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            received = b""
            while b"The l" not in received.replace(b"\r\n", b"").replace(b"1", b""):
                received += client.recv(4096)
        assert app.is_done.wait(30)
        server.should_exit = True
        thread.join(30)
    gc.collect()
    record = keeper.only.record
    assert (record.outcome, record.query) == ("partial", "Where?") or record.outcome == "cancelled"
    assert ANSWER.startswith(record.answer)
