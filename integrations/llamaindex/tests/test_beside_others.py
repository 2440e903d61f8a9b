"""Another instrumentation on the same dispatcher: the application's results and its runs stay the same."""

from __future__ import annotations

from contextvars import copy_context

import pytest
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.chat_engine import CondenseQuestionChatEngine, ContextChatEngine
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler
from llama_index.core.query_engine import CustomQueryEngine
from llama_index_instrumentation import get_dispatcher

from integrations.llamaindex.tests.parts import Best, Faq, Llm, checked, engine
from ragtrace_llamaindex import instrument, uninstrument
from tests.kept import ANSWER


class StreamProxy:
    """Stands in for a stream of either kind with the methods of both, in a context of its own."""

    def __init__(self, stream):
        self.stream = stream
        self.context = copy_context()

    def __iter__(self):
        return self

    def __next__(self):
        return self.context.run(self.stream.__next__)

    def __aiter__(self):
        return self

    def __anext__(self):
        return self.stream.__anext__()

    def close(self):
        self.context.run(self.stream.close)

    def aclose(self):
        return self.stream.aclose()


class ProxyHandler(BaseSpanHandler):
    """Replaces the streams of responses, as OpenInference's instrumentation does."""

    def new_span(self, *args, **kwargs):
        return None

    def prepare_to_drop_span(self, *args, **kwargs):
        return None

    def prepare_to_exit_span(self, id_, bound_args, instance=None, result=None, **kwargs):
        if isinstance(result, StreamingResponse | AsyncStreamingResponse):
            result.response_gen = StreamProxy(result.response_gen)


@pytest.fixture(params=["before", "behind"])
def _proxied(request, recorder):
    """Install the other instrumentation before or behind ours."""
    uninstrument()
    root = get_dispatcher()
    handlers = list(root.span_handlers)
    if request.param == "before":
        root.add_span_handler(ProxyHandler())
    instrument(recorder)
    if request.param == "behind":
        root.add_span_handler(ProxyHandler())
    yield
    uninstrument()
    root.span_handlers = handlers


def query():
    return "".join(engine(streaming=True).query("Where?").response_gen)


async def aquery():
    answer = await engine(streaming=True).aquery("Where?")
    return "".join([piece async for piece in answer.async_response_gen()])


def context_chat():
    made = ContextChatEngine.from_defaults(retriever=Faq(), llm=Llm(), node_postprocessors=[Best()])
    return "".join(made.stream_chat("Where?").response_gen)


def condensing_chat():
    made = CondenseQuestionChatEngine.from_defaults(query_engine=engine(streaming=True), llm=Llm())
    return "".join(made.stream_chat("Where?").response_gen)


@pytest.mark.usefixtures("_proxied")
class TestStreamProxy:
    @pytest.mark.parametrize("ask", [query, context_chat, condensing_chat])
    def test_sync(self, keeper, ask):
        assert ask() == ANSWER
        checked(keeper.only)

    async def test_async(self, keeper):
        assert await aquery() == ANSWER
        checked(keeper.only)

    def test_half_read_and_closed(self, keeper):
        pieces = engine(streaming=True).query("Where?").response_gen
        assert [next(pieces), next(pieces)] == ["The", " lab"]
        pieces.close()
        assert (keeper.only.record.outcome, keeper.only.record.answer) == ("partial", "The lab")


class Listing(CustomQueryEngine):
    """Answers with a list of pieces, which a reader may walk twice."""

    def custom_query(self, query_str):
        return StreamingResponse(response_gen=ANSWER.split(" "))


def test_pieces_that_are_no_iterator_stay_as_they_are(keeper):
    answer = Listing().query("Where?")
    assert (list(answer.response_gen), list(answer.response_gen)) == (ANSWER.split(" "), ANSWER.split(" "))
    assert (keeper.only.record.outcome, keeper.only.record.query) == ("answered", "Where?")
