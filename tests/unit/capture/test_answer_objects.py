"""`answered` and `retrieved` read the objects of frameworks, or refuse them once and plainly."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult, Generation, LLMResult
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse, TextBlock, ThinkingBlock
from llama_index.core.base.response.schema import PydanticResponse, Response, StreamingResponse
from llama_index.core.chat_engine.types import AgentChatResponse
from llama_index.core.schema import Document as LlamaDocument
from llama_index.core.schema import NodeWithScore, TextNode
from openai.types import Completion
from openai.types.chat import ChatCompletion
from openai.types.responses import Response as OpenAIResponse
from pydantic import BaseModel

from ragtrace.capture import Recorder, internal_errors
from ragtrace.metrics import answer_lacking
from ragtrace.model import Message
from tests.kept import Keeper

SAID = "In Oslo."


def completion(content: str | None = SAID, *, refusal: str | None = None, reason: str = "stop") -> ChatCompletion:
    message = {"role": "assistant", "content": content, "refusal": refusal}
    choice = {"index": 0, "finish_reason": reason, "message": message, "logprobs": None}
    return ChatCompletion.model_validate(
        {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
    )


def response(*parts: dict[str, Any], **facts: Any) -> OpenAIResponse:
    message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [*parts]}
    thoughts = {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "It may be in Oslo."}]}
    return OpenAIResponse.model_validate(
        {
            "id": "r", "object": "response", "created_at": 0, "model": "m", "output": [thoughts, message],
            "parallel_tool_calls": False, "tool_choice": "auto", "tools": [], **facts,
        }
    )  # fmt: skip


TEXT_PART = {"type": "output_text", "text": SAID, "annotations": []}
REFUSAL_PART = {"type": "refusal", "refusal": "I cannot help with that."}
CALL = {"name": "search", "args": {"q": "lab"}, "id": "1"}
BLOCKS = [
    {"type": "thinking", "thinking": "Hm."},
    {"type": "text", "text": "In "},
    {"type": "text", "text": "Oslo."},
    {"type": "tool_use", "id": "1", "name": "search", "input": {}},
]
BEDROCK = {"output": {"message": {"role": "assistant", "content": [{"text": SAID}]}}, "stopReason": "end_turn"}
GEMINI = SimpleNamespace(
    candidates=[SimpleNamespace(content=SimpleNamespace(parts=[SimpleNamespace(text=SAID)]), finish_reason="STOP")]
)
LLAMA_MESSAGE = ChatMessage(role="assistant", blocks=[ThinkingBlock(content="Hm."), TextBlock(text=SAID)])

ANSWERS = {
    "text": SAID,
    "bytes": SAID.encode(),
    "AIMessage": AIMessage(SAID),
    "AIMessage of blocks": AIMessage(BLOCKS),
    "AIMessageChunk": AIMessageChunk(SAID),
    "ChatResult": ChatResult(generations=[ChatGeneration(message=AIMessage(SAID))]),
    "LLMResult": LLMResult(generations=[[Generation(text=SAID)]]),
    "state of messages": {"messages": [HumanMessage("Where?"), ToolMessage("x", tool_call_id="1"), AIMessage(SAID)]},
    "chain's output": {"input": "Where?", "context": [Document("x")], "answer": SAID},
    "list of messages": [HumanMessage("Where?"), AIMessage(SAID)],
    "pieces of a stream": [AIMessageChunk(SAID[:4]), AIMessageChunk(SAID[4:])],
    "list of blocks": BLOCKS,
    "Response": Response(SAID, source_nodes=[]),
    "AgentChatResponse": AgentChatResponse(SAID),
    "ChatResponse": ChatResponse(message=LLAMA_MESSAGE),
    "CompletionResponse": CompletionResponse(text=SAID),
    "ChatMessage": LLAMA_MESSAGE,
    "stream that was read": StreamingResponse(response_gen=iter(()), response_txt=SAID),
    "ChatCompletion": completion(),
    "ChatCompletion as dict": completion().model_dump(),
    "its message": completion().choices[0].message,
    "Completion": Completion.model_validate(
        {
            "id": "c", "object": "text_completion", "created": 0, "model": "m",
            "choices": [{"index": 0, "text": SAID, "finish_reason": "stop", "logprobs": None}],
        }
    ),
    "Responses API": response(TEXT_PART),
    "Responses API as dict": response(TEXT_PART).model_dump(),
    "Anthropic": SimpleNamespace(
        role="assistant", stop_reason="end_turn",
        content=[SimpleNamespace(type="thinking", thinking="Hm."), SimpleNamespace(type="text", text=SAID)],
    ),
    "Bedrock": BEDROCK,
    "Gemini": GEMINI,
    "dict of role and content": {"role": "assistant", "content": SAID},
    "dict of role and blocks": {"role": "assistant", "content": BLOCKS},
    "Message": Message(role="assistant", content=SAID),
}  # fmt: skip


def answered(value: Any, **facts: Any) -> Any:
    keeper = Keeper()
    with Recorder(keeper).start(query="Where?") as run:
        run.retrieved(["The lab is in Oslo."])
        run.answered(value, **facts)
    return keeper.only.record


@pytest.mark.parametrize("kind", ANSWERS)
def test_an_object_of_a_framework_is_read(kind: str) -> None:
    before = internal_errors()
    record = answered(ANSWERS[kind])
    assert (record.answer, answer_lacking(record), internal_errors()) == (SAID, None, before)


class Structured(BaseModel):
    city: str


class Own:
    def __repr__(self) -> str:
        return "<Own at 0x7f>"


def pieces() -> Any:
    yield SAID


UNREAD = {
    "object": Own(),
    "structured output": Structured(city="Oslo"),
    "PydanticResponse": PydanticResponse(response=Structured(city="Oslo")),
    "stream": StreamingResponse(response_gen=pieces()),
    "generator": pieces(),
    "number": 42,
    "mapping": {"city": "Oslo"},
    "documents": [Document("x")],
    "a question": HumanMessage("Where?"),
    "exception": ValueError("no"),
    "class": Own,
}


@pytest.mark.parametrize("kind", UNREAD)
def test_what_is_no_text_is_refused_once_and_never_its_repr(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "ragtrace")
    before = sum(internal_errors().values())
    record = answered(UNREAD[kind])
    assert (record.answer, answer_lacking(record)) == ("", "answer_missing")
    assert sum(internal_errors().values()) == before + 1
    answered(UNREAD[kind])
    told = [one.getMessage() for one in caplog.records if "answered" in one.getMessage()]
    assert len(told) <= 1


def test_a_stream_is_left_to_the_application() -> None:
    stream = StreamingResponse(response_gen=pieces())
    answered(stream)
    assert str(stream) == SAID


@pytest.mark.parametrize("blank", ["", "  ", None, AIMessage(""), completion(None), Response(None)])
def test_a_blank_answer_is_no_answer(blank: Any) -> None:
    assert answer_lacking(answered(blank)) == "no_answer"


def test_a_call_of_a_tool_alone_is_a_blank_answer() -> None:
    assert answer_lacking(answered(AIMessage("", tool_calls=[CALL]))) == "no_answer"


REFUSED = {
    "refusal of OpenAI": completion(None, refusal="I cannot help with that."),
    "refusal as dict": completion(None, refusal="I cannot help with that.").model_dump(),
    "content_filter": completion("In O", reason="content_filter"),
    "content_filter, blank": completion(None, reason="content_filter"),
    "refusal of the Responses API": response(REFUSAL_PART),
    "filter of the Responses API": response(
        TEXT_PART, status="incomplete", incomplete_details={"reason": "content_filter"}
    ),
    "LangChain, OpenAI": AIMessage("", additional_kwargs={"refusal": "I cannot help with that."}),
    "LangChain, refusal block": AIMessage([{"type": "refusal", "refusal": "I cannot help with that."}]),
    "LangChain, finish_reason": AIMessage("", response_metadata={"finish_reason": "content_filter"}),
    "LangChain, Anthropic": AIMessage("", response_metadata={"stop_reason": "refusal"}),
    "LangChain, Gemini": AIMessage("", response_metadata={"finish_reason": "SAFETY"}),
    "LangChain, Bedrock": AIMessage("Blocked.", response_metadata={"stopReason": "guardrail_intervened"}),
    "LangChain, result": ChatResult(
        generations=[ChatGeneration(message=AIMessage(""), generation_info={"finish_reason": "content_filter"})]
    ),
    "LlamaIndex, raw": ChatResponse(message=ChatMessage(content=""), raw=completion(None, reason="content_filter")),
    "LlamaIndex, raw refusal": ChatResponse(message=ChatMessage(content=""), raw=completion(None, refusal="No.")),
    "LlamaIndex, raw dict": CompletionResponse(text="", raw={"stop_reason": "refusal"}),
    "Anthropic": SimpleNamespace(role="assistant", stop_reason="refusal", content=[]),
    "Bedrock": {**BEDROCK, "stopReason": "content_filtered"},
    "Gemini": SimpleNamespace(candidates=[SimpleNamespace(content=None, finish_reason="FinishReason.RECITATION")]),
    "Gemini, prompt": {"candidates": [], "prompt_feedback": {"block_reason": "PROHIBITED_CONTENT"}},
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_providers_refusal_is_abstained(kind: str) -> None:
    record = answered(REFUSED[kind])
    assert (record.is_refused, answer_lacking(record)) == (True, "abstained")


def test_a_refusal_that_the_application_names() -> None:
    record = answered("Sorry.", is_refused=True)
    assert (record.answer, record.is_refused, answer_lacking(record)) == ("Sorry.", True, "abstained")


def test_a_reported_call_that_a_filter_stopped_is_a_refusal() -> None:
    keeper = Keeper()
    with Recorder(keeper).start(query="Where?") as run:
        run.generated(inputs=[Message(role="user", content="Where?")], finish_reasons=["content_filter"])
        run.answered("")
    assert answer_lacking(keeper.only.record) == "abstained"


def test_a_grader_that_was_filtered_leaves_the_answer_as_it_is() -> None:
    keeper = Keeper()
    with Recorder(keeper).start(query="Where?") as run:
        said = [Message(role="assistant", content=SAID)]
        run.generated(outputs=said, finish_reasons=["stop"])
        run.answered(SAID)
        run.generated(finish_reasons=["content_filter"])
    assert answer_lacking(keeper.only.record) is None


def test_a_later_answer_replaces_a_refusal() -> None:
    keeper = Keeper()
    with Recorder(keeper).start(query="Where?") as run:
        run.answered(completion(None, refusal="No."))
        run.answered(SAID)
    assert (keeper.only.record.answer, keeper.only.record.is_refused) == (SAID, False)


NODE = NodeWithScore(node=TextNode(text="The lab is in Oslo.", id_="n1"), score=0.4)
DOCUMENT = Document("The lab is in Oslo.", id="n1")
FOUND = {
    "Document": [DOCUMENT],
    "one Document": DOCUMENT,
    "pairs with a score": [(DOCUMENT, 0.4)],
    "NodeWithScore": [NODE],
    "TextNode": [NODE.node],
    "LlamaIndex Document": [LlamaDocument(text="The lab is in Oslo.", id_="n1")],
    "Response": Response(SAID, source_nodes=[NODE]),
    "chain's output": {"input": "Where?", "context": [DOCUMENT], "answer": SAID},
    "state of documents": {"question": "Where?", "documents": [DOCUMENT]},
    "Qdrant": SimpleNamespace(
        points=[SimpleNamespace(id="n1", score=0.4, payload={"text": "The lab is in Oslo."})]
    ),
    "Pinecone": {"matches": [{"id": "n1", "score": 0.4, "metadata": {"text": "The lab is in Oslo."}}]},
    "Elasticsearch": {"hits": {"hits": [{"_id": "n1", "_score": 0.4, "_source": {"text": "The lab is in Oslo."}}]}},
}


def retrieved(value: Any) -> Any:
    keeper = Keeper()
    with Recorder(keeper).start(query="Where?") as run:
        run.retrieved(value)
        run.answered(SAID)
    return keeper.only.record


@pytest.mark.parametrize("kind", FOUND)
def test_passages_of_a_framework_are_read(kind: str) -> None:
    before = internal_errors()
    record = retrieved(FOUND[kind])
    assert [p.text for p in record.contexts] == ["The lab is in Oslo."]
    assert internal_errors() == before
    assert [p.id for p in record.contexts] == ["n1"]


UNFOUND = [
    Own(), 7, [Own()], [7], [Structured(city="x")], ValueError("no"), {"city": "Oslo"}, [{"city": "Oslo"}],
    {"ids": [["n1"]], "documents": [["Columns, as Chroma returns them."]]}, [("Oslo", "Bergen")], Own, {"text": Own()},
]  # fmt: skip


@pytest.mark.parametrize("value", UNFOUND)
def test_what_is_no_passage_is_refused_and_is_no_empty_pool(value: Any) -> None:
    before = sum(internal_errors().values())
    record = retrieved(value)
    assert (record.pools, sum(internal_errors().values())) == ((), before + 1)
    assert "Own" not in repr(record)


def test_one_item_of_many_that_is_no_passage_makes_the_rest_no_evidence() -> None:
    record = retrieved([DOCUMENT, Own()])
    assert [p.id for p in record.contexts] == ["n1"]
    assert record.lossy["contexts_truncated"] == 1


def test_nothing_found_is_an_empty_pool() -> None:
    assert [retrieved(value).pool("retrieved") for value in (None, [], ())] == [(), (), ()]
    assert all(len(retrieved(value).pools) == 1 for value in (None, []))
