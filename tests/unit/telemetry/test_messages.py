"""Messages on spans: texts, calls of tools and their results, in each dialect."""

from __future__ import annotations

import json

import pytest

from ragtrace.model import Call, Message
from ragtrace.telemetry import Limit, Messages
from tests.unit.telemetry.test_spans import chat_span

ASKED = Message(role="user", content="Where is the lab?")
CALLS = Message(
    role="assistant",
    content="I look.",
    calls=(Call(name="search", arguments='{"q": "lab"}', id="c-1"), Call(name="ping")),
)
ANSWERED = Message(role="tool", content="In Oslo.", call_id="c-1")


def rows(*messages, most=10_000):
    return json.loads(Messages(messages, 1.0).write("it", Limit(texts=most))["it"])


def test_calls_and_their_results_are_parts_of_their_own():
    assert rows(ASKED, CALLS, ANSWERED) == [
        {"role": "user", "parts": [{"type": "text", "content": "Where is the lab?"}]},
        {
            "role": "assistant",
            "parts": [
                {"type": "text", "content": "I look."},
                {"type": "tool_call", "id": "c-1", "name": "search", "arguments": {"q": "lab"}},
                {"type": "tool_call", "name": "ping", "arguments": ""},
            ],
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c-1", "response": "In Oslo."}]},
    ]


def test_a_message_that_only_calls_has_no_empty_text():
    (said,) = rows(Message(role="assistant", content="", calls=(Call(name="search"),)))
    assert [part["type"] for part in said["parts"]] == ["tool_call"]
    (blank,) = rows(Message(role="assistant", content=""))
    assert blank["parts"] == [{"type": "text", "content": ""}]


@pytest.mark.parametrize("arguments", ["", "lab", '{"q": "lab"', "[", "{'q': 'lab'}"])
def test_arguments_that_are_no_json_stay_text(arguments):
    (said,) = rows(Message(role="assistant", content="", calls=(Call(name="search", arguments=arguments),)))
    assert said["parts"][0]["arguments"] == arguments


def test_long_arguments_are_cut_like_long_texts_and_say_so():
    said = Message(role="assistant", content="short", calls=(Call(name="w", arguments=json.dumps(["x" * 9_000])),))
    text = Messages([said], 1.0).write("it", Limit(texts=2_000))["it"]
    assert len(text) <= 2_000
    parts = json.loads(text)[0]["parts"]
    assert parts[0]["content"] == "short"
    (argument,) = parts[1]["arguments"]
    assert argument.endswith("x…[cut, 9000 characters]")


def test_openinference_has_messages_by_field(spans):
    said = [Message(role="assistant", content="In Oslo.")]
    found = chat_span(spans, dialect="openinference", inputs=[ASKED, CALLS, ANSWERED], outputs=said).attributes
    prefix = "llm.input_messages"
    assert {name: value for name, value in found.items() if "_messages." in name} == {
        f"{prefix}.0.message.role": "user",
        f"{prefix}.0.message.content": "Where is the lab?",
        f"{prefix}.1.message.role": "assistant",
        f"{prefix}.1.message.content": "I look.",
        f"{prefix}.1.message.tool_calls.0.tool_call.id": "c-1",
        f"{prefix}.1.message.tool_calls.0.tool_call.function.name": "search",
        f"{prefix}.1.message.tool_calls.0.tool_call.function.arguments": '{"q": "lab"}',
        f"{prefix}.1.message.tool_calls.1.tool_call.function.name": "ping",
        f"{prefix}.1.message.tool_calls.1.tool_call.function.arguments": "",
        f"{prefix}.2.message.role": "tool",
        f"{prefix}.2.message.content": "In Oslo.",
        f"{prefix}.2.message.tool_call_id": "c-1",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "In Oslo.",
    }
    assert not {"input.value", "output.value"} & {*found}


def test_more_messages_than_attributes_are_one_document(spans):
    turns = [Message(role="user", content=f"Turn {n}.") for n in range(60)]
    found = chat_span(spans, dialect="openinference", inputs=turns, outputs=[ANSWERED]).attributes
    assert len(json.loads(found["input.value"])) == 60
    assert not any(name.startswith("llm.input_messages") for name in found)
    assert found["llm.output_messages.0.message.content"] == "In Oslo."
