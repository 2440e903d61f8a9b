"""The pure rules on recorded values."""

from __future__ import annotations

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, Generation, LLMResult
from langchain_core.prompt_values import ChatPromptValue

from ragtrace.capture import PassageReader, is_equal
from ragtrace.capture.content_blocks import content_text
from ragtrace.capture.documents import documents_in, new_documents
from ragtrace.capture.known import KnownDocuments, read_documents, rerank_score_of, score_of
from ragtrace.capture.turns import answer_in, history_in, question_in, turn_of
from ragtrace.model import Call, Message, Usage
from ragtrace_langchain.calls import asked_of, said_of
from ragtrace_langchain.values import Values


def of(value):
    """Return a value of LangChain's as an event holds it."""
    return Values().given(value)


@pytest.mark.parametrize(
    ("inputs", "question"),
    [
        ("Where?", "Where?"),
        ({"question": "Where?"}, "Where?"),
        ({"query": "Where?", "k": 4}, "Where?"),
        ({"input": "Where?", "chat_history": [HumanMessage("Hi")]}, "Where?"),
        ({"input": HumanMessage("Where?")}, "Where?"),
        ({"messages": [HumanMessage("Hi"), AIMessage("Hello"), HumanMessage("Where?")]}, "Where?"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "Where?"}]}]}, "Where?"),
        ({"messages": [("user", "Where?")]}, "Where?"),
        ([SystemMessage("Be brief."), HumanMessage("Where?")], "Where?"),
        (HumanMessage("Where?"), "Where?"),
        (ChatPromptValue(messages=[HumanMessage("Where?")]), "Where?"),
        ({"anything": "Where?", "n": 3}, "Where?"),
        ({"a": "Where?", "b": "How?"}, ""),
        ({"input": ""}, ""),
        ({"question": {"nested": "x"}}, "x"),
        (None, ""),
        (7, ""),
        ([], ""),
        ({}, ""),
    ],
)
def test_question(inputs, question):
    assert question_in(of(inputs)) == question


def test_history():
    turns = [SystemMessage("Be brief."), HumanMessage("Hi"), AIMessage("Hello"), HumanMessage("Where?")]
    spoken = (Message(role="user", content="Hi"), Message(role="assistant", content="Hello"))
    assert history_in(of({"messages": turns})) == history_in(of(turns)) == spoken
    assert history_in(of({"input": "Where?", "chat_history": turns[1:3]})) == spoken
    assert history_in("Where?") == ()


@pytest.mark.parametrize(
    ("outputs", "answer"),
    [
        ("In Oslo.", "In Oslo."),
        (AIMessage("In Oslo."), "In Oslo."),
        (AIMessageChunk("In Oslo."), "In Oslo."),
        ({"answer": "In Oslo.", "context": []}, "In Oslo."),
        ({"result": "In Oslo.", "query": "Where?"}, "In Oslo."),
        ({"output": AIMessage("In Oslo.")}, "In Oslo."),
        ({"response": {"answer": "In Oslo."}}, "In Oslo."),
        ({"messages": [HumanMessage("Where?"), AIMessage("In Oslo.")]}, "In Oslo."),
        ([HumanMessage("Where?"), AIMessage("In Oslo.")], "In Oslo."),
        (AIMessage([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "In Oslo."}]), "In Oslo."),
        (Generation(text="In Oslo."), "In Oslo."),
        ("", ""),
        ({"context": [Document(page_content="a")]}, None),
        ([Document(page_content="a")], None),
        (None, None),
        (7, None),
    ],
)
def test_answer(outputs, answer):
    assert answer_in(of(outputs)) == answer


def test_answer_of_a_loop_ends():
    looped = {}
    looped["answer"] = looped
    assert answer_in(of(looped)) is None


def test_turns():
    assert turn_of(of(ToolMessage("42", tool_call_id="1"))) == Message(role="tool", content="42", call_id="1")
    assert turn_of(of(SystemMessage("a"))).role == "system"
    assert turn_of(of(AIMessageChunk("a"))).role == "assistant"
    assert turn_of(5) is None
    assert content_text(["a", {"type": "image_url"}, {"type": "tool_use"}, 5]) == "a[image_url]"


def test_documents_in_values():
    docs = of([Document(page_content="a"), Document(page_content="b")])
    assert documents_in(docs) == documents_in(tuple(docs)) == documents_in({"x": docs, "n": 1}) == docs
    assert documents_in({"a": docs[:1], "b": docs[1:]}) == docs
    assert documents_in([]) is documents_in("a") is documents_in(["a"]) is documents_in(None) is None
    assert new_documents({"d": docs}, {"d": docs}) is None
    assert new_documents({"d": docs[:1]}, {"d": docs}) == docs[:1]
    assert new_documents({"d": []}, {"d": docs}) == []
    assert new_documents({"errors": []}, {"d": docs}) is None
    assert new_documents([], "question") is None


@pytest.mark.parametrize(
    ("metadata", "score"),
    [
        ({"score": 0.5}, 0.5),
        ({"relevance_score": 1}, 1.0),
        ({"_score": 0.2}, 0.2),
        ({"similarity": 0.3}, 0.3),
        ({"score": None, "relevance_score": 0.4}, 0.4),
        ({"score": "0.5"}, None),
        ({"score": True}, None),
        ({"distance": 0.1}, None),
        ({}, None),
    ],
)
def test_score(metadata, score):
    assert score_of(metadata) == score


def test_reranker_score_is_never_the_retrievers():
    assert rerank_score_of({"score": 0.5, "relevance_score": 0.9}, {"score": 0.5}) == 0.9
    assert rerank_score_of({"score": 0.9}, {"score": 0.5}) == 0.9
    assert rerank_score_of({"score": 0.5}, {"score": 0.5}) is None
    assert rerank_score_of({"score": 0.5, "relevance_score": 0.5}, {"score": 0.5}) == 0.5


def read(*documents):
    return read_documents(of(list(documents)), KnownDocuments(), PassageReader(None, 100), "faq")


def test_what_cannot_be_compared_is_not_the_same():
    assert is_equal({"page": 1}, {"page": 1})
    assert not is_equal({"page": 1}, {"page": 2})
    assert not is_equal({"vector": np.arange(2.0)}, {"vector": np.arange(2.0)})


def test_a_rerankers_score_is_found_beside_metadata_that_cannot_be_compared():
    before = {"vector": np.arange(2.0), "score": 0.5}
    assert rerank_score_of({"vector": np.arange(2.0), "score": 0.5}, before) is None
    assert rerank_score_of({"vector": np.arange(2.0), "score": 0.9}, before) == 0.9
    assert rerank_score_of({"score": 0.9}, {"score": np.arange(2.0)}) == 0.9


@pytest.mark.parametrize("key", ["id", "doc_id", "_id", "chunk_id"])
def test_id_out_of_the_metadata(key):
    assert read(Document(page_content="a", metadata={key: 7})).passages[0].id == "7"


def test_own_id_comes_first():
    assert read(Document(id="own", page_content="a", metadata={"id": "other"})).passages[0].id == "own"


def test_metadata_is_kept_as_it_was():
    document = Document(id="a", page_content="a", metadata={"score": 0.5, "page": 3})
    hits = read(document)
    document.metadata["score"] = 0.1
    assert hits.facts == [{"score": 0.5, "page": 3}]
    assert (hits.passages[0].score, hits.passages[0].metadata["page"]) == (0.5, 3)


def test_a_document_without_an_id_takes_that_of_the_same_text_met_before():
    known, reader = KnownDocuments(), PassageReader(None, 100)
    first = of([Document(id="a", page_content="Oslo."), Document(id="b", page_content="Rome.")])
    read_documents(first, known, reader)
    then = of([Document(page_content="Rome."), Document(page_content="Paris.")])
    again = read_documents(then, known, reader)
    assert again.keys == ["b", "Paris."]
    assert again.passages[0].id == "b"


def test_doubled_documents_stand_once_by_key():
    hits = read(Document(id="a", page_content="x"), Document(id="a", page_content="x", metadata={"score": 0.1}))
    assert len(hits.passages) == 2
    assert [passage.score for passage, _ in hits.by_key().values()] == [None]


@pytest.mark.parametrize(
    ("serialized", "metadata", "invocation", "name", "model", "provider"),
    [
        (None, {"ls_model_name": "gpt-4o", "ls_provider": "openai"}, {}, "ChatOpenAI", "gpt-4o", "openai"),
        (None, {"ls_provider": "amazon_bedrock"}, {"model_id": "claude"}, "ChatBedrock", "claude", "aws.bedrock"),
        (None, {"ls_provider": "azure"}, {"model": "gpt"}, "AzureChatOpenAI", "gpt", "azure.ai.openai"),
        ({"kwargs": {"model_name": "m"}}, None, None, "Custom", "m", None),
        (None, None, None, "Custom", "Custom", None),
        ({"kwargs": None}, {}, {"model": ""}, "Custom", "Custom", None),
    ],
)
def test_model(serialized, metadata, invocation, name, model, provider):
    facts = asked_of(name, [], "chat", serialized, metadata, {"invocation_params": invocation})
    assert (facts.model, facts.provider, facts.is_in_process) == (model, provider, False)


def test_reply():
    message = AIMessage(
        "In Oslo.",
        id="msg_1",
        usage_metadata={"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
        response_metadata={"model": "m-1", "stop_reason": "end_turn"},
    )
    reply = said_of(LLMResult(generations=[[ChatGeneration(message=message)]]), Values())
    assert (reply.choices[0].content, reply.response_model, reply.response_id) == ("In Oslo.", "m-1", "msg_1")
    assert (reply.usage, reply.finish_reasons) == (Usage(input_tokens=3, output_tokens=2), ("end_turn",))


def test_reply_with_usage_beside_the_text():
    output = {"token_usage": {"prompt_tokens": 3, "completion_tokens": 2}, "model_name": "m-2"}
    choice = Generation(text="In Oslo.", generation_info={"finish_reason": "length"})
    reply = said_of(LLMResult(generations=[[choice]], llm_output=output), Values())
    assert (reply.usage, reply.response_model) == (Usage(input_tokens=3, output_tokens=2), "m-2")
    assert reply.finish_reasons == ("length",)


def test_reply_of_nothing():
    assert said_of(None, Values()).choices == said_of(LLMResult(generations=[[]]), Values()).choices == []


def test_tool_calls_are_in_the_output_and_not_in_the_answer():
    message = AIMessage("Let me see.", tool_calls=[{"name": "search", "args": {"q": "lab"}, "id": "1"}])
    reply = said_of(LLMResult(generations=[[ChatGeneration(message=message)]]), Values())
    (said,) = map(turn_of, reply.choices)
    assert (said.content, said.calls) == ("Let me see.", (Call(name="search", arguments='{"q": "lab"}', id="1"),))
    assert said.shown == 'Let me see.\nsearch({"q": "lab"})'


def test_parameters_and_server_of_a_call_are_read_from_what_langchain_tells():
    facts = asked_of(
        "ChatOpenAI",
        [],
        "chat",
        {"kwargs": {"openai_api_base": "https://me:secret@llm.example.com/v1"}},
        {"ls_temperature": 0.7, "ls_max_tokens": 64, "ls_stop": ["END"]},
        {"invocation_params": {"temperature": 0.2, "n": 2, "model": "m"}},
    )
    assert facts.request == {
        "temperature": 0.2, "max_tokens": 64, "choice_count": 2, "stop_sequences": ("END",)
    }  # fmt: skip
    assert (facts.server_address, facts.server_port) == ("llm.example.com", 443)
