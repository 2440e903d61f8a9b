"""The pure readers, on values as LlamaIndex and its model packages make them."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from llama_index.core.agent.workflow import AgentOutput
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse
from llama_index.core.base.response.schema import PydanticResponse, Response, StreamingResponse
from llama_index.core.bridge.pydantic import BaseModel, Field
from llama_index.core.chat_engine.types import AgentChatResponse, StreamingAgentChatResponse
from llama_index.core.llms import MockLLM
from llama_index.core.schema import QueryBundle
from llama_index.core.workflow import StartEvent, StopEvent

from integrations.llamaindex.tests.parts import Llm, ToolCaller, engine
from ragtrace.capture import Generation
from ragtrace.model import Call, Message, Usage
from ragtrace_llamaindex.messages import (
    answer_in,
    facts_in,
    history_in,
    is_in_process,
    messages_in,
    model_of,
    question_in,
    turn_of,
    usage_in,
    with_pictures,
)
from tests.kept import step


class Place(BaseModel):
    city: str


@dataclass
class Spot:
    city: str


ASKED = [
    ({"str_or_query_bundle": "Where?"}, "Where?"),
    ({"str_or_query_bundle": QueryBundle("Where?")}, "Where?"),
    ({"message": "Where?", "chat_history": []}, "Where?"),
    ({"messages": [ChatMessage("Hi"), ChatMessage("Yes", role="assistant"), ChatMessage("Where?")]}, "Where?"),
    ({"user_msg": ChatMessage("Where?"), "memory": None}, "Where?"),
    ({"kwargs": {"query": "Where?"}}, "Where?"),
    ({"start_event": StartEvent(question="Where?")}, "Where?"),  # type: ignore[call-arg]
    ({"init_state": 1, "start_event": StartEvent(topic="labs")}, ""),  # type: ignore[call-arg]
    ({"question": 7}, ""),
    ({}, ""),
]


@pytest.mark.parametrize(("arguments", "question"), ASKED)
def test_question(arguments, question):
    assert question_in(arguments) == question


def test_arguments_inside_themselves():
    arguments = {}
    arguments["kwargs"] = arguments
    assert question_in(arguments) == ""


def test_history():
    turns = [ChatMessage("Be kind.", role="system"), ChatMessage("Hi"), ChatMessage("Yes?", role="assistant")]
    expected = (Message(role="user", content="Hi"), Message(role="assistant", content="Yes?"))
    assert history_in({"message": "Where?", "chat_history": turns}) == expected
    assert history_in({"messages": [*turns, ChatMessage("Where?")]}) == expected
    assert history_in({"start_event": StartEvent(user_msg="Where?", chat_history=turns)}) == expected
    assert history_in({"chat_history": "none"}) == ()


OUTPUT = AgentOutput(
    response=ChatMessage("Oslo.", role="assistant"), tool_calls=[], raw=None, current_agent_name="a"
)
EMPTY = {"response": ChatMessage("", role="assistant"), "current_agent_name": "a"}
ANSWERED = [
    (Response("Oslo."), "Oslo."),
    (Response(None), None),
    (PydanticResponse(Place(city="Oslo")), '{"city":"Oslo"}'),
    (AgentChatResponse("Oslo."), "Oslo."),
    (StreamingAgentChatResponse("Oslo."), None),
    (StreamingResponse(piece for piece in ()), None),
    (ChatResponse(message=ChatMessage("Oslo.")), "Oslo."),
    (CompletionResponse(text="Oslo."), "Oslo."),
    (StopEvent(result=Response("Oslo.")), "Oslo."),
    (StopEvent(result={"answer": "Oslo.", "docs": []}), "Oslo."),
    (OUTPUT, "Oslo."),
    (AgentOutput(**{**EMPTY, "structured_response": {"city": "Oslo"}}), '{"city": "Oslo"}'),
    (AgentOutput(**EMPTY), ""),
    (StopEvent(result={"answer": Place(city="Oslo")}), '{"city":"Oslo"}'),
    ({"answer": Spot(city="Ålesund")}, '{"city": "Ålesund"}'),
    ({"result": {"city": "Oslo"}}, '{"city": "Oslo"}'),
    ({"response": StreamingResponse(piece for piece in ())}, None),
    ({"docs": []}, None),
    ("Oslo.", "Oslo."),
    ([], None),
    (None, None),
    (object(), None),
]


@pytest.mark.parametrize(("result", "answer"), ANSWERED)
def test_answer(result, answer):
    assert answer_in(result) == answer


def test_a_generator_is_never_read():
    pieces = iter("abc")
    assert answer_in(StreamingResponse(pieces)) is None
    assert list(pieces) == ["a", "b", "c"]


USAGES = [
    ({"usage": {"prompt_tokens": 3, "completion_tokens": 1}}, Usage(input_tokens=3, output_tokens=1)),
    ({"usage": {"input_tokens": 3, "output_tokens": 1}}, Usage(input_tokens=3, output_tokens=1)),
    (
        SimpleNamespace(usage=SimpleNamespace(prompt_tokens=3, completion_tokens=1)),
        Usage(input_tokens=3, output_tokens=1),
    ),
    (
        {"usage_metadata": {"prompt_token_count": 3, "candidates_token_count": 1}},
        Usage(input_tokens=3, output_tokens=1),
    ),
    ({"prompt_eval_count": 3, "eval_count": 1}, Usage(input_tokens=3, output_tokens=1)),
    ({"usage": {"prompt_tokens": "3"}}, None),
    ({"usage": None}, None),
    (None, None),
]


@pytest.mark.parametrize(("raw", "usage"), USAGES)
def test_usage(raw, usage):
    assert usage_in(CompletionResponse(text="", raw=raw)) == usage


def test_usage_of_additional_kwargs():
    response = ChatResponse(message=ChatMessage(""), additional_kwargs={"prompt_tokens": 3, "completion_tokens": 1})
    assert usage_in(response) == Usage(input_tokens=3, output_tokens=1)


def test_facts_of_a_raw_response():
    choice = SimpleNamespace(finish_reason="stop")
    raw = SimpleNamespace(model="m-1-b", id="r-7", choices=[choice])
    assert facts_in(CompletionResponse(text="", raw=raw)) == ("m-1-b", "r-7", ("stop",))
    assert facts_in(CompletionResponse(text="")) == (None, None, ())


def test_names_of_models():
    assert (model_of(MockLLM()), is_in_process(MockLLM)) == ("MockLLM", True)
    assert (model_of(ToolCaller()), is_in_process(ToolCaller)) == ("caller-1", False)
    assert model_of(Llm()) == "Llm"
    assert model_of(SimpleNamespace(model="m-1")) == "m-1"


def test_messages_of_odd_prompts():
    assert messages_in(None) == messages_in(7) == messages_in("Hi") == []
    assert [*map(with_pictures, messages_in((ChatMessage("Hi"),)))] == [Message(role="user", content="Hi")]


def test_a_message_with_a_tool_call():
    call = {"function": {"name": "search", "arguments": '{"q": 1}'}}
    message = ChatMessage("", role="assistant", additional_kwargs={"tool_calls": [call]})
    said = turn_of(message)
    assert said == Message(role="assistant", content="", calls=(Call(name="search", arguments='{"q": 1}'),))
    assert said.shown == 'search({"q": 1})'


class Hosted(Llm):
    temperature: float = 0.2
    max_tokens: int = 64
    api_base: str = "https://me:secret@llm.example.com/v1"
    additional_kwargs: dict = Field(default_factory=lambda: {"seed": 7, "stop": ["END"]})


def test_parameters_and_server_of_a_model(keeper):
    engine(llm=Hosted()).query("Where?")
    call = step(keeper.only, Generation)
    assert dict(call.request) == {"temperature": 0.2, "max_tokens": 64, "seed": 7, "stop_sequences": ("END",)}
    assert (call.server_address, call.server_port) == ("llm.example.com", 443)
