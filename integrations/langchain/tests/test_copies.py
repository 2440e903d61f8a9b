"""A handler and its copy capture a call once, wherever each of them is given."""

from __future__ import annotations

import copy
import pickle

import pytest
from langchain_core.runnables import RunnableLambda

from integrations.langchain.tests.parts import Faq, Scripted, calls, chat, lcel
from ragtrace_langchain import RagtraceHandler, instrument, uninstrument
from tests.kept import ANSWER, kinds

COPIES = {
    "itself": lambda handler: handler,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda handler: pickle.loads(pickle.dumps(handler)),  # noqa: S301 - our own
    "another of the recorder": lambda handler: RagtraceHandler(handler._defaults.recorder),
    "in a copied config": lambda handler: copy.deepcopy({"callbacks": [handler]})["callbacks"][0],
}


class Pieces(Scripted):
    """Streams its pieces, and breaks off after two that are alike."""

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        from langchain_core.messages import AIMessageChunk
        from langchain_core.outputs import ChatGenerationChunk

        for piece in ("ha ", "ha "):
            yield ChatGenerationChunk(message=AIMessageChunk(piece))
        raise TimeoutError


@pytest.mark.parametrize("form", COPIES)
class TestTwice:
    def test_in_one_list(self, keeper, handler, form):
        lcel().invoke("Where?", {"callbacks": [handler, COPIES[form](handler)]})
        assert (keeper.only.record.answer, kinds(keeper.only)) == (ANSWER, ["retrieval", "rerank", "chat"])

    def test_in_the_chain_and_in_the_call(self, keeper, handler, form):
        chain = lcel().with_config(callbacks=[handler])
        assert list(chain.stream("Where?", {"callbacks": [COPIES[form](handler)]}))
        assert (keeper.only.record.answer, kinds(keeper.only)) == (ANSWER, ["retrieval", "rerank", "chat"])

    async def test_in_the_constructors_and_in_the_call(self, keeper, handler, form):
        other = COPIES[form](handler)
        model, faq = chat(), Faq(callbacks=[other])
        model.callbacks = [other]
        chain = lcel(retriever=faq, model=model)
        assert await chain.ainvoke("Where?", {"callbacks": [handler]}) == ANSWER
        assert (keeper.only.record.answer, kinds(keeper.only)) == (ANSWER, ["retrieval", "rerank", "chat"])

    def test_in_a_step_inside(self, keeper, handler, form):
        def ask(question):
            return lcel().invoke(question, {"callbacks": [COPIES[form](handler)]})

        RunnableLambda(ask).invoke("Where?", {"callbacks": [handler]})
        assert kinds(keeper.only) == ["retrieval", "rerank", "chat"]

    def test_a_stream_that_breaks_has_its_pieces_once(self, keeper, handler, form):
        with pytest.raises(TimeoutError):
            list(Pieces(replies=[]).stream("Where?", {"callbacks": [handler, COPIES[form](handler)]}))
        assert [one.outputs[0].content for one in keeper.only.steps] == ["ha ha "]

    def test_an_agent(self, keeper, handler, form):
        agents = pytest.importorskip("langchain.agents")
        from langchain_core.tools import create_retriever_tool

        model = Scripted(replies=[calls("search", query="lab"), ANSWER])
        agent = agents.create_agent(model, [create_retriever_tool(Faq(size=1), "search", "Searches.")])
        agent.invoke({"messages": [("user", "Where?")]}, {"callbacks": [handler, COPIES[form](handler)]})
        assert kinds(keeper.only) == ["chat", "retrieval", "tool", "chat", "agent"]

    def test_under_instrument(self, keeper, recorder, handler, form):
        instrument(recorder)
        try:
            lcel().invoke("Where?", {"callbacks": [COPIES[form](handler)]})
        finally:
            uninstrument()
        assert kinds(keeper.only) == ["retrieval", "rerank", "chat"]


def test_a_copy_keeps_its_defaults_and_what_an_application_set(recorder):
    class Own(RagtraceHandler):
        pass

    handler = RagtraceHandler(recorder, workflow="support", k=3, tags=["beta"])
    handler.run_inline = False
    for made in (copy.copy(handler), copy.deepcopy(handler), COPIES["pickle"](handler)):
        assert (made._defaults, made._runs, made.run_inline) == (handler._defaults, handler._runs, False)
        assert made._defaults.recorder is recorder
    assert type(copy.copy(Own(recorder))) is Own


def test_a_handler_from_another_process_reports_to_this_ones_recorder(recorder):
    from ragtrace_langchain import handler as module

    made = module._again(RagtraceHandler, "0" * 32, {"workflow": "support"})
    assert (made._defaults.workflow, made._defaults.recorder) == ("support", None)
    assert made._runs is RagtraceHandler()._runs
