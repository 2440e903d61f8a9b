"""Answers that are no plain text: pieces of content blocks, structured output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.output_parsers import PydanticToolsParser
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_core.tools import create_retriever_tool
from pydantic import BaseModel

from integrations.langchain.tests.parts import PROMPT, Faq, chat, shown
from ragtrace.capture import Generation
from ragtrace.capture.turns import answer_in, structured_text
from ragtrace_langchain.values import Values
from tests.kept import ANSWER, step

PROMPT_OF_A_QUESTION = RunnableLambda(lambda said: PROMPT.invoke({"context": "c", "question": said.content}))
ASKED = {"context": "c", "question": "Where?"}


class Blocks(BaseChatModel):
    """Streams content blocks, as the models of several providers do."""

    breaks: bool = False

    @property
    def _llm_type(self):
        return "blocks"

    def _generate(self, *args, **kwargs):
        raise NotImplementedError

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        for piece in ("In ", "Oslo ", "of ", "Norway"):
            if self.breaks and piece == "Norway":
                raise TimeoutError
            block = {"type": "text", "text": piece, "index": 0}
            yield ChatGenerationChunk(message=AIMessageChunk(content=[block]))


class TestPiecesOfBlocks:
    def test_read_to_the_end(self, keeper, config):
        list((PROMPT | Blocks()).stream(ASKED, config))
        assert (keeper.only.record.outcome, keeper.only.record.answer) == ("answered", "In Oslo of Norway")

    def test_abandoned(self, keeper, config):
        stream = (PROMPT | Blocks()).stream(ASKED, config)
        assert [next(stream).content for _ in range(3)]
        stream.close()
        assert (keeper.only.record.outcome, keeper.only.record.answer) == ("partial", "In Oslo of ")

    def test_leaked(self, keeper, recorder, config):
        stream = (PROMPT | Blocks()).stream(ASKED, config)
        assert [next(stream).content for _ in range(3)]
        recorder.sweep(now=1e12)
        assert (keeper.only.record.outcome, keeper.only.record.answer) == ("partial", "In Oslo of ")
        stream.close()

    def test_broken(self, keeper, config):
        with pytest.raises(TimeoutError):
            list((PROMPT | Blocks(breaks=True)).stream(ASKED, config))
        assert keeper.only.record.outcome == "error"
        assert step(keeper.only, Generation).outputs[0].content == "In Oslo of "


class City(BaseModel):
    city: str
    sources: list[str] = []


class CityDict(TypedDict):
    """Where it is."""

    city: str


@dataclass
class CityData:
    city: str


def calling(name, *before, **args):
    """A model that says what stands before, and answers by a tool call, without a word."""
    call = {"name": name, "args": args, "id": "1"}

    class Caller(GenericFakeChatModel):
        def bind_tools(self, tools, **kwargs):
            return self

    return Caller(messages=iter([*before, AIMessage("", tool_calls=[call])]))


class TestStructuredOutput:
    def test_an_object(self, keeper, config):
        model = calling("City", city="Oslo", sources=["d1"])
        assert (PROMPT | model.with_structured_output(City)).invoke(ASKED, config).city == "Oslo"
        assert keeper.only.record.answer == '{"city": "Oslo", "sources": ["d1"]}'
        assert keeper.only.record.outcome == "answered"

    def test_an_object_after_another_call(self, keeper, config):
        model = calling("City", AIMessage("Where is the lab?"), city="Oslo")
        (model | PROMPT_OF_A_QUESTION | model.with_structured_output(City)).invoke("lab?", config)
        assert keeper.only.record.answer == '{"city": "Oslo", "sources": []}'

    def test_a_dict(self, keeper, config):
        model = calling("CityDict", city="Oslo")
        assert (PROMPT | model.with_structured_output(CityDict)).invoke(ASKED, config) == {"city": "Oslo"}
        assert keeper.only.record.answer == '{"city": "Oslo"}'

    def test_beside_the_raw_message(self, keeper, config):
        model = calling("City", city="Oslo")
        (PROMPT | model.with_structured_output(City, include_raw=True)).invoke(ASKED, config)
        assert keeper.only.record.answer == '{"city": "Oslo", "sources": []}'

    def test_a_list_of_objects(self, keeper, config):
        (PROMPT | calling("City", city="Oslo") | PydanticToolsParser(tools=[City])).invoke(ASKED, config)
        assert keeper.only.record.answer == '[{"city": "Oslo", "sources": []}]'

    def test_an_agent(self, keeper, config):
        agents = pytest.importorskip("langchain.agents")
        from langchain.agents.structured_output import ToolStrategy

        search = AIMessage("", tool_calls=[{"name": "search", "args": {"query": "lab"}, "id": "0"}])
        tools = [create_retriever_tool(Faq(), "search", "Searches.")]
        agent = agents.create_agent(calling("City", search, city="Oslo"), tools, response_format=ToolStrategy(City))
        agent.invoke({"messages": [("user", "Where?")]}, config)
        assert keeper.only.record.answer == '{"city": "Oslo", "sources": []}'

    def test_under_the_key_of_the_answer(self):
        text = '{"city": "Oslo"}'
        of = Values().given
        assert answer_in(of({"answer": CityData("Oslo")})) == answer_in({"answer": {"city": "Oslo"}}) == text
        assert answer_in(of(CityData("Oslo"))) == text
        assert answer_in(of({"output": {"messages": [AIMessage(ANSWER)]}})) == ANSWER

    def test_a_field_that_is_the_answer_comes_first(self, keeper, config):
        class Cited(BaseModel):
            answer: str
            sources: list[str]

        model = calling("Cited", answer=ANSWER, sources=["d1"])
        (PROMPT | model.with_structured_output(Cited)).invoke(ASKED, config)
        assert keeper.only.record.answer == ANSWER


class TestStatesAreNoAnswers:
    def test_under_a_key_of_its_own_beside_documents(self, keeper, config):
        model = calling("City", city="Oslo")
        said = {"context": RunnableLambda(lambda x: shown(x["docs"])), "question": lambda x: x["question"]} | PROMPT
        chain = RunnableParallel(docs=Faq(size=2), question=RunnablePassthrough())
        chain.assign(found=said | model.with_structured_output(City)).invoke("Where?", config)
        assert (keeper.only.record.answer, keeper.only.prompt_ids) == (
            '{"city": "Oslo", "sources": []}',
            ("d0", "d1"),
        )

    def test_a_grade_that_no_key_holds(self, keeper, config):
        grader = calling("City", city="Oslo").with_structured_output(City)
        asked = RunnableLambda(lambda docs: [doc for doc in docs if grader.invoke("Fits?").city])
        (RunnableParallel(docs=Faq(size=1) | asked, question=RunnablePassthrough())).invoke("Where?", config)
        assert not keeper.only.record.answer

    def test_of_a_chain_that_called_no_model(self, keeper, config):
        RunnableParallel(context=lambda q: "c", question=RunnablePassthrough()).invoke("Where?", config)
        assert keeper.runs == []

    def test_of_a_chain_whose_model_spoke(self, keeper, config):
        written = RunnableLambda(lambda said: {"reply": said.content, "language": "en"})
        (PROMPT | chat() | written).invoke(ASKED, config)
        assert keeper.only.record.answer == ANSWER

    @pytest.mark.parametrize(
        "value",
        [
            {"docs": [Document(page_content="a")], "city": "Oslo"},
            {"said": AIMessage("a")},
            {("a", "b"): 1},
            {},
            [],
            5,
            Document(page_content="a"),
        ],
    )
    def test_of_langchains_own_objects_and_of_nothing(self, value):
        assert structured_text(Values().given(value)) is None

    def test_that_hold_themselves(self):
        endless = {}
        endless["self"] = endless
        assert structured_text(Values().given(endless)) is None
