"""The answer of structured output is its answer field, whoever reports it; of a conversation, what was said last."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.base.response.schema import PydanticResponse
from openai.types.chat import ParsedChatCompletion
from pydantic import BaseModel

from ragtrace.capture import Recorder, answer_field, internal_errors, is_json_asked
from ragtrace.metrics import answer_lacking
from tests.kept import Keeper

SAID = "28 days."
JSON = '{"answer": "28 days.", "sources": [1]}'


class Said(BaseModel):
    """An answer."""

    answer: str
    sources: list[int] = []


class Final(BaseModel):
    text: str
    final_answer: str


class City(BaseModel):
    city: str


class Nested(BaseModel):
    response: Said


@dataclass
class SaidData:
    answer: str


class SaidStruct(msgspec.Struct):
    answer: str


def parsed(value: Any) -> ParsedChatCompletion[Any]:
    """A reply that openai's own package has read as an object of the application's."""
    message = {"role": "assistant", "content": value.model_dump_json(), "parsed": value}
    choice = {"index": 0, "finish_reason": "stop", "message": message, "logprobs": None}
    facts = {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
    return ParsedChatCompletion[type(value)].model_validate(facts)  # type: ignore[misc]


OUTPUTS = {
    "an object": Said(answer=SAID),
    "a dataclass": SaidData(SAID),
    "a struct": SaidStruct(SAID),
    "another object": SimpleNamespace(answer=SAID, sources=[1]),
    "a mapping": {"answer": SAID, "sources": [1]},
    "a final answer": Final(text="Let me see.", final_answer=SAID),
    "a final answer in a mapping": {"thoughts": "Let me see.", "final_answer": SAID},
    "a response in a mapping": {"confidence": 0.5, "response": SAID},
    "an object in an object": Nested(response=Said(answer=SAID)),
    "an object in a mapping": {"output": Said(answer=SAID)},
    "a mapping in a mapping": {"answer": {"text": SAID, "confidence": 0.5}},
    "with the raw message": {"raw": AIMessage(JSON), "parsed": Said(answer=SAID), "parsing_error": None},
    "an agent's state": {"messages": [HumanMessage("Q")], "structured_response": Said(answer=SAID)},
    "LlamaIndex": PydanticResponse(Said(answer=SAID), source_nodes=[]),
    "OpenAI": parsed(Said(answer=SAID)),
    "OpenAI as dict": parsed(Said(answer=SAID)).model_dump(),
    "OpenAI's message": parsed(Said(answer=SAID)).choices[0].message,
    "OpenAI's responses": SimpleNamespace(output_text=JSON, output_parsed=Said(answer=SAID)),
    "LangChain's message": AIMessage(JSON, additional_kwargs={"parsed": Said(answer=SAID)}),
    "Gemini": SimpleNamespace(parsed=Said(answer=SAID), text=JSON, candidates=[]),
}


def answered(value: Any) -> Any:
    keeper = Keeper()
    with Recorder(keeper).start(query="How long?") as run:
        run.retrieved(["Books may be kept for 28 days."])
        run.answered(value)
    return keeper.only.record


@pytest.mark.parametrize("name", OUTPUTS)
def test_the_answer_is_its_field(name: str) -> None:
    before = internal_errors()
    assert (answered(OUTPUTS[name]).answer, internal_errors()) == (SAID, before)


@pytest.mark.parametrize(
    "text", [JSON, '{"city": "Oslo"}', "[1, 2]", f"```json\n{JSON}\n```", '{"answer": "cut', "The answer is {x}."]
)
def test_a_text_stays_as_the_user_reads_it(text: str) -> None:
    for value in (text, AIMessage(text), {"role": "assistant", "content": text}, {"answer": text}):
        assert answered(value).answer == text


def test_json_without_such_a_field_stays_whole() -> None:
    assert answered(parsed(City(city="Oslo"))).answer == '{"city":"Oslo"}'


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        (JSON, SAID), (f"\n {JSON}\n", SAID), ('{"final_answer": "a", "text": "b"}', "a"), ('{"result": {"text": "a"}}', "a"),
        ('{"city": "Oslo"}', None), ('{"answer": null}', None), ('{"answer": ["a"]}', None), ("[]", None), ("28 days.", None),
        ('{"answer": "cut', None), ('{"answer": 28}', "28"), ('{"answer": true}', None), ("{" * 100_000, None), (None, None), (7, None), ([Said(answer="a")], None), (City(city="a"), None),
        ({"answer": ""}, ""),
    ],
)  # fmt: skip
def test_the_field_of_json_and_of_anything(value: Any, answer: str | None) -> None:
    assert answer_field(value) == answer


def test_the_field_of_what_holds_itself() -> None:
    endless: dict[str, Any] = {}
    endless["answer"] = endless
    assert answer_field(endless) is None


@pytest.mark.parametrize(
    "parameters",
    [
        {"response_format": {"type": "json_object"}}, {"response_format": {"type": "json_schema", "json_schema": {}}},
        {"response_format": Said}, {"format": "json"}, {"format": {"type": "object", "properties": {}}}, {"json_mode": True},
        {"text": {"format": {"type": "json_schema", "name": "said"}}}, {"extra_body": {"guided_json": {"type": "object"}}},
        {"generation_config": {"response_mime_type": "application/json"}}, {"response_mime_type": "application/json"},
        {"model_kwargs": {"response_format": {"type": "json_object"}}}, {"response_schema": Said},
        {"ls_structured_output_format": {"kwargs": {"method": "json_mode"}, "schema": {}}},
    ],
)  # fmt: skip
def test_parameters_that_ask_for_json(parameters: dict[str, Any]) -> None:
    assert is_json_asked(parameters)


@pytest.mark.parametrize(
    "parameters",
    [
        None, {}, {"temperature": 0}, {"response_format": {"type": "text"}}, {"response_format": None}, {"format": ""},
        {"text": {"format": {"type": "text"}, "verbosity": "low"}}, {"text": {"verbosity": "low"}}, {"json_mode": False},
        {"response_mime_type": "text/plain"}, {"extra_body": None}, {"format": "markdown"}, {"text": "a prompt"},
    ],
)  # fmt: skip
def test_parameters_that_ask_for_none(parameters: dict[str, Any] | None) -> None:
    assert not is_json_asked(parameters)


# -- of a conversation, what stands behind the last question --

ASKED = [HumanMessage("Where?"), AIMessage("In Oslo."), HumanMessage("How long?")]
TURNS = [
    (ASKED, None),
    ({"messages": ASKED}, None),
    ([*ASKED, ToolMessage("28", tool_call_id="1")], None),
    ([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}], None),
    ([ChatMessage("a", role="user"), ChatMessage("b", role="assistant"), ChatMessage("c", role="user")], None),
    ([HumanMessage("Where?")], None),
    ([*ASKED, AIMessage(SAID)], SAID),
    ([*ASKED, AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "1"}]), ToolMessage("28", tool_call_id="1"), AIMessage(SAID)], SAID),
    ([*ASKED, AIMessage(SAID), SystemMessage("Be brief.")], SAID),
    ([*ASKED, AIMessage(SAID), ToolMessage("kept", tool_call_id="1")], SAID),
    ([AIMessage(SAID)], SAID),
    ([SystemMessage("Be brief."), AIMessage(SAID)], SAID),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(TURNS)))
def test_nothing_that_an_earlier_turn_said_is_the_answer(place: int) -> None:
    value, answer = TURNS[place]
    before = sum(internal_errors().values())
    record = answered(value)
    if answer is not None:
        assert (record.answer, answer_lacking(record)) == (answer, None)
        assert sum(internal_errors().values()) == before
    else:
        assert (record.answer, answer_lacking(record)) == ("", "answer_missing")
        assert sum(internal_errors().values()) == before + 1, "which is told in one line"
