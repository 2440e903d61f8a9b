"""What a model's reply says: thoughts, structured output, streams that break."""

from __future__ import annotations

import json

import pytest
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from pydantic import BaseModel

from integrations.llamaindex.tests.parts import Faq, Llm, ToolCaller, engine
from ragtrace.capture import Generation, ToolCall
from ragtrace_llamaindex.messages import answer_in
from tests.kept import ANSWER
from tests.kept import step as step_of

THOUGHT = "Did the lab move? Perhaps to Bergen, as passage d2 says."
FORMS = [
    f"<think>\n{THOUGHT}\n</think>\n\n{ANSWER}",
    f"{THOUGHT}\n</think>\n\n{ANSWER}",
    f"[THINK]{THOUGHT}[/THINK]{ANSWER}",
]
JSON = json.dumps({"answer": ANSWER, "sources": ["d0"]})


class Down(RuntimeError):
    """Not a ValueError: LlamaIndex's refining synthesizer swallows those."""


# -- thoughts --


@pytest.mark.parametrize("text", FORMS)
async def test_thoughts_are_no_part_of_an_answer(keeper, text):
    assert str(engine(llm=Llm(says=text), postprocessors=[]).query("Where?")) == text
    await engine(llm=Llm(says=text), postprocessors=[]).aquery("Where?")
    assert [run.record.answer for run in keeper.runs] == [ANSWER] * 2
    assert step_of(keeper.runs[0], Generation).outputs[0].content == text, "the span keeps what was said"


@pytest.mark.parametrize("text", FORMS)
async def test_in_streams(keeper, text):
    list(engine(llm=Llm(says=text), streaming=True).query("Where?").response_gen)
    response = await engine(llm=Llm(says=text), streaming=True).aquery("Where?")
    [piece async for piece in response.async_response_gen()]
    list(ContextChatEngine.from_defaults(Faq(), llm=Llm(says=text)).stream_chat("Where?").response_gen)
    list(Llm(says=text).stream_complete("Where?"))
    assert [run.record.answer for run in keeper.runs] == [ANSWER] * 4


def test_of_a_chat_engine_and_a_model_alone(keeper):
    ContextChatEngine.from_defaults(Faq(), llm=Llm(says=FORMS[0])).chat("Where?")
    Llm(says=FORMS[0]).complete("Where?")
    assert [run.record.answer for run in keeper.runs] == [ANSWER] * 2


@pytest.mark.parametrize("pieces", [1, 2, 5])
def test_a_stream_that_is_left_among_thoughts_answers_nothing(keeper, pieces):
    stream = engine(llm=Llm(says=FORMS[0]), streaming=True).query("Where?").response_gen
    assert [next(stream) for _ in range(pieces)]
    stream.close()
    assert (keeper.only.record.outcome, keeper.only.record.answer) == ("partial", "")


def test_a_stream_that_is_left_in_the_answer_has_said_so_much(keeper):
    stream = engine(llm=Llm(says="<think>hm</think> In Oslo, Norway."), streaming=True).query("Where?").response_gen
    assert [next(stream) for _ in range(3)]
    stream.close()
    assert (keeper.only.record.outcome, keeper.only.record.answer) == ("partial", "In Oslo,")


def test_in_a_block_of_the_applications_own(keeper, recorder):
    with recorder.start(query="Where?"):
        engine(llm=Llm(says=FORMS[0])).query("Where?")
    assert keeper.only.record.answer == ANSWER


@pytest.mark.parametrize(
    "text", ["It ends with </think>.", "Use `<think>` and `</think>`.", "It says <think>x</think> there."]
)
def test_an_answer_may_quote_a_tag(keeper, text):
    engine(llm=Llm(says=text)).query("Where?")
    assert keeper.only.record.answer == text


# -- structured output --


class Said(BaseModel):
    """An answer."""

    answer: str
    sources: list[str] = []


class Final(BaseModel):
    """An answer behind its reasons."""

    text: str
    final_answer: str


class City(BaseModel):
    """A city."""

    city: str


def structured(said, cls, **more):
    return RetrieverQueryEngine.from_args(Faq(2), llm=Llm(says=said), output_cls=cls, **more)


async def test_the_answer_of_an_engines_object_is_its_field(keeper):
    structured(JSON, Said).query("Where?")
    await structured(JSON, Said).aquery("Where?")
    structured(json.dumps({"text": "Let me see.", "final_answer": ANSWER}), Final).query("Where?")
    assert [run.record.answer for run in keeper.runs] == [ANSWER] * 3
    assert [part.citations for part in keeper.runs[0].record.answer_parts] == [("d0",)]
    assert step_of(keeper.runs[0], Generation).outputs[0].content == JSON


@pytest.mark.parametrize("mode", ["refine", "compact", "tree_summarize"])
def test_in_every_mode(keeper, mode):
    structured(JSON, Said, response_mode=mode).query("Where?")
    list(structured(JSON, Said, response_mode=mode, streaming=True).query("Where?").response_gen)
    assert [run.record.answer for run in keeper.runs] == [ANSWER] * 2


def test_an_object_without_such_a_field_stays_whole(keeper):
    structured('{"city": "Oslo"}', City).query("Where?")
    assert keeper.only.record.answer == '{"city":"Oslo"}'


def test_a_structured_model(keeper):
    model = Llm(says=JSON).as_structured_llm(Said)
    engine(llm=model).query("Where?")
    model.chat([ChatMessage("Where?", role="user")])
    model.complete("Where?")
    assert [run.record.answer for run in keeper.runs] == [ANSWER] * 3


def test_json_mode(keeper):
    class Ollama(Llm):
        json_mode: bool = True

    class OpenAI(Llm):
        additional_kwargs: dict = {"response_format": {"type": "json_object"}}  # noqa: RUF012 - a pydantic field

    engine(llm=Ollama(says=JSON)).query("Where?")
    engine(llm=OpenAI(says=JSON)).query("Where?")
    list(engine(llm=OpenAI(says=JSON), streaming=True).query("Where?").response_gen)
    Llm(says=JSON).complete("Where?", response_format={"type": "json_object"})
    engine(llm=Ollama(says=f"<think>{THOUGHT}</think>{JSON}")).query("Where?")
    assert [run.record.answer for run in keeper.runs] == [ANSWER] * 5


def test_json_in_a_plain_answer_stays(keeper):
    engine(llm=Llm(says=JSON)).query("Where?")
    assert keeper.only.record.answer == JSON


async def test_a_workflow_that_asks_for_an_object(keeper):
    class Ask(Workflow):
        @step
        async def ask(self, event: StartEvent) -> StopEvent:
            found = await Faq(2).aretrieve(event.query)
            prompt = PromptTemplate("{context}\n{question}")
            said = await Llm(says=JSON).astructured_predict(
                Said, prompt, context="\n".join(one.text for one in found), question=event.query
            )
            return StopEvent(result=event.wrap(said))

    for wrap in (
        lambda said: said,
        lambda said: said.answer,
        lambda said: {"answer": said},
        lambda said: said.model_dump(),
    ):
        await Ask().run(query="Where?", wrap=wrap)
    assert [run.record.answer for run in keeper.runs] == [ANSWER] * 4


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        (Said(answer="a"), "a"), (Final(text="b", final_answer="a"), "a"), (City(city="a"), None), ({"final_answer": "a", "docs": []}, "a"),
        ({"output": Said(answer="a")}, "a"), (Said, None), (ChatResponse(message=ChatMessage("a"), raw=Said(answer="b")), "a"),
        (CompletionResponse(text=JSON), JSON),
    ],
)  # fmt: skip
def test_of_results(result, answer):
    assert answer_in(result) == answer


# -- streams that break --


class Breaks(Llm):
    """Streams word by word, and breaks behind two words."""

    error: object = Down("upstream closed")


async def test_a_stream_that_breaks_keeps_what_was_read(keeper):
    with pytest.raises(Down):
        list(engine(llm=Breaks(), streaming=True).query("Where?").response_gen)
    response = await engine(llm=Breaks(), streaming=True).aquery("Where?")
    with pytest.raises(Down):
        [piece async for piece in response.async_response_gen()]
    with pytest.raises(Down):
        list(Breaks().stream_complete("Where?"))
    response = await ContextChatEngine.from_defaults(Faq(), llm=Breaks()).astream_chat("Where?")
    with pytest.raises(Down):
        [piece async for piece in response.async_response_gen()]
    assert [(run.record.outcome, run.record.answer) for run in keeper.runs] == [("error", "The lab")] * 4


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # LlamaIndex raises in its own
def test_a_chat_whose_model_breaks_before_it_is_read_has_failed(keeper):
    response = ContextChatEngine.from_defaults(Faq(), llm=Breaks()).stream_chat("Where?")
    with pytest.raises(Down):
        list(response.response_gen)
    assert (keeper.only.record.outcome, keeper.only.record.answer) == ("error", "The lab")


def test_what_breaks_among_thoughts_has_no_answer(keeper):
    with pytest.raises(Down):
        list(engine(llm=Breaks(says=FORMS[0]), streaming=True).query("Where?").response_gen)
    assert (keeper.only.record.outcome, keeper.only.record.answer) == ("error", "")


async def test_a_whole_reply_before_a_failure_is_no_answer(keeper):
    class Fails(Workflow):
        @step
        async def ask(self, event: StartEvent) -> StopEvent:
            await Faq(2).aretrieve(event.query)
            await Llm().acomplete(event.query)
            raise Down("no")

    with pytest.raises(Down):
        await Fails().run(query="Where?")
    assert (keeper.only.record.outcome, keeper.only.record.answer) == ("error", "")


def test_texts_that_a_synthesizer_refines_with_a_form(keeper):
    said = [("It is not said.", False), (ANSWER, True)]
    model = ToolCaller(
        replies=[
            {"name": "StructuredRefineResponse", "args": {"answer": text, "query_satisfied": is_it}}
            for text, is_it in said
        ]
    )
    texts_given = ["The lab is a place.", "The lab is in Oslo.\nIt moved."]
    refine = get_response_synthesizer(response_mode="refine", llm=model, structured_answer_filtering=True)
    assert refine.get_response("Where is the lab?", texts_given) == ANSWER
    run = keeper.only
    assert (run.record.query, run.record.answer) == ("Where is the lab?", ANSWER)
    assert [one.text for one in run.record.pool("retrieved")] == texts_given
    assert [one.text for one in run.record.pool("used")] == texts_given[1:]
    assert not any(isinstance(one, ToolCall) for one in run.steps)
