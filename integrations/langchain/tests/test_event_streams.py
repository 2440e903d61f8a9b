"""Event streams of version 3: the reader gets what it gets without a handler, and the run is as whole as an invoked one."""

from __future__ import annotations

import gc
import re

import pytest
from langchain_core.language_models import BaseChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from integrations.langchain.tests.parts import PROMPT, Broken, Faq, rerank, shown
from integrations.langchain.tests.test_graph import State, graph
from ragtrace.capture import Generation
from ragtrace.model import Usage
from tests.kept import ANSWER, ids, kinds, step

pytest.importorskip("langgraph")

from langgraph.graph import START, StateGraph

if not hasattr(BaseChatModel, "stream_events"):
    pytest.skip("this langchain-core has no event streams of version 3", allow_module_level=True)
pytestmark = pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")

QUESTION = {"question": "Where?"}
CHANGING = re.compile(r"(lc_run-)?-?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f-]{17}|'timestamp': \d+|0x[0-9a-f]+")
WHOLE = (["retrieval", "rerank", "chat"], ["d3", "d2"], ("d3", "d2"), "Where?", ANSWER, "answered")


class Counting(BaseChatModel):
    """Streams an answer with its tokens, and may break after the first chunk."""

    is_broken: bool = False

    @property
    def _llm_type(self):
        return "counting"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        raise NotImplementedError

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        yield ChatGenerationChunk(message=AIMessageChunk(content="The lab is "))
        if self.is_broken:
            raise ConnectionError("the model hung up")
        usage = {"input_tokens": 40, "output_tokens": 6, "total_tokens": 46}
        yield ChatGenerationChunk(message=AIMessageChunk(content="in Oslo.", usage_metadata=usage))


def facts(run):
    record = run.record
    return kinds(run), ids(run, "reranked"), run.prompt_ids, record.query, record.answer, record.outcome


def chain(model):
    """A chain whose last step reads the model's events."""
    given = {"context": Faq() | RunnableLambda(rerank) | shown, "question": RunnablePassthrough()}
    return given | PROMPT | RunnableLambda(lambda prompt: "".join(model.stream_events(prompt, version="v3").text))


def messages(stream):
    return ["".join(message.text) for message in stream.messages]


def test_a_graph(keeper, config):
    stream, plain = (graph().stream_events(QUESTION, given, version="v3") for given in (config, None))
    assert messages(stream) == messages(plain) == [ANSWER]
    assert stream.output == plain.output
    assert facts(keeper.only) == WHOLE


async def test_a_graph_async(keeper, config):
    async def values(given):
        stream = await graph().astream_events(QUESTION, given, version="v3")
        return [value async for value in stream.values], await stream.output()

    assert await values(config) == await values(None)
    assert facts(keeper.only) == WHOLE


def test_every_event_is_the_same(keeper, config):
    def events(given):
        return [CHANGING.sub("", repr(event)) for event in graph().stream_events(QUESTION, given, version="v3")]

    assert events(config) == events(None)
    assert facts(keeper.only) == WHOLE


def test_a_model_in_a_chain(keeper, config):
    assert chain(Counting()).invoke("Where?", config) == ANSWER
    run = keeper.only
    assert facts(run) == WHOLE
    assert step(run, Generation).usage == Usage(input_tokens=40, output_tokens=6)
    assert step(run, Generation).first_chunk_s is not None


async def test_a_model_in_a_chain_async(keeper, config):
    async def ask(prompt):
        stream = await Counting().astream_events(prompt, version="v3")
        return "".join([part async for part in stream.text])

    given = {"context": Faq() | RunnableLambda(rerank) | shown, "question": RunnablePassthrough()}
    assert await (given | PROMPT | RunnableLambda(ask)).ainvoke("Where?", config) == ANSWER
    assert facts(keeper.only) == WHOLE
    assert step(keeper.only, Generation).usage == Usage(input_tokens=40, output_tokens=6)


def test_a_model_without_chunks(keeper, config):
    model = GenericFakeChatModel(messages=iter([AIMessage(ANSWER)]))
    assert chain(model).invoke("Where?", config) == ANSWER
    assert facts(keeper.only) == WHOLE


def test_a_stream_that_breaks(keeper, config):
    with pytest.raises(ConnectionError, match="hung up"):
        chain(Counting(is_broken=True)).invoke("Where?", config)
    run = keeper.only
    assert (run.record.outcome, run.record.answer) == ("error", "")
    assert (kinds(run), run.prompt_ids) == (["retrieval", "rerank", "chat"], ("d3", "d2"))


@pytest.mark.parametrize("leave", ["aborts", "drops"])
def test_a_reader_that_leaves(keeper, config, leave):
    stream = graph().stream_events(QUESTION, config, version="v3")
    for event in stream:
        if event["method"] == "messages":
            break
    if leave == "aborts":
        stream.abort()
    del stream
    gc.collect()
    run = keeper.only
    assert (run.record.outcome, run.prompt_ids) == ("partial", ("d3", "d2"))


async def test_a_reader_that_leaves_async(keeper, config):
    stream = await graph().astream_events(QUESTION, config, version="v3")
    async for event in stream:
        if event["method"] == "messages":
            break
    await stream.abort()
    assert keeper.only.record.outcome == "partial"


def test_a_graph_that_fails(keeper, config):
    built = StateGraph(State)
    built.add_node("retrieve", lambda state: {"documents": Broken().invoke(state["question"])})
    built.add_edge(START, "retrieve")
    with pytest.raises(ConnectionError, match="index is down"):
        list(built.compile().stream_events(QUESTION, config, version="v3"))
    assert (keeper.only.record.outcome, kinds(keeper.only)) == ("error", ["retrieval"])
