"""Documents that go to a model as content blocks of their own, of Anthropic, OpenAI, Bedrock and LangChain."""

from __future__ import annotations

import base64

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda

from integrations.langchain.tests.parts import Faq, chat
from ragtrace.capture import Generation
from ragtrace.capture.content_blocks import content_text
from ragtrace.capture.turns import answer_in, question_in
from ragtrace.model import content_id
from ragtrace_langchain.values import Values
from tests.kept import ANSWER, ids, step

TEXT = 'The "lab" is in Oslo,\nat Karl Johans gate 22, på tredje etasje.'
ENCODED = base64.b64encode(TEXT.encode()).decode()

BLOCKS = {
    "Anthropic text document": {
        "type": "document",
        "source": {"type": "text", "media_type": "text/plain", "data": TEXT},
        "title": "Labs",
        "context": "The handbook of 2024.",
        "citations": {"enabled": True},
    },
    "Anthropic content document": {
        "type": "document",
        "source": {"type": "content", "content": [{"type": "text", "text": TEXT}]},
        "title": "Labs",
    },
    "Anthropic search result": {
        "type": "search_result",
        "source": "https://a.example",
        "title": "Labs",
        "content": [{"type": "text", "text": TEXT}],
    },
    "Anthropic tool result": {
        "type": "tool_result",
        "tool_use_id": "1",
        "content": [{"type": "search_result", "title": "Labs", "content": [{"type": "text", "text": TEXT}]}],
    },
    "OpenAI file of text": {
        "type": "file",
        "file": {"filename": "Labs", "file_data": f"data:text/plain;base64,{ENCODED}"},
    },
    "OpenAI input file": {
        "type": "input_file",
        "filename": "Labs",
        "file_data": f"data:text/plain;base64,{ENCODED}",
    },
    "OpenAI input text": {"type": "input_text", "text": TEXT},
    "OpenAI file search": {
        "type": "file_search_call",
        "results": [{"file_id": "f1", "filename": "Labs", "score": 0.9, "text": TEXT}],
    },
    "LangChain plain text": {"type": "text-plain", "mime_type": "text/plain", "text": TEXT, "title": "Labs"},
    "LangChain file": {"type": "file", "mime_type": "text/plain", "base64": ENCODED},
    "LangChain non-standard": {"type": "non_standard", "value": {"type": "document", "source": {"data": TEXT}}},
    "Bedrock document": {"document": {"name": "Labs", "format": "txt", "source": {"bytes": TEXT.encode()}}},
}
WITHOUT_TEXT = {
    "PDF": (
        {
            "type": "document",
            "title": "Labs",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBER"},
        },
        "[document: Labs]\n",
    ),
    "link": ({"type": "document", "source": {"type": "url", "url": "https://a.example"}}, "[document]\n"),
    "uploaded file": ({"type": "file", "file": {"file_id": "f1"}}, "[file]\n"),
    "broken base64": ({"type": "file", "mime_type": "text/plain", "base64": "a"}, "[file]\n"),
    "empty search": ({"type": "file_search_call", "results": None}, "[file_search_call]"),
    "image": ({"type": "image_url", "image_url": {"file_id": "f1"}}, "[image_url]"),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_shows_its_text_to_the_model(name):
    assert TEXT in content_text([BLOCKS[name]], is_prompt=True)


@pytest.mark.parametrize("name", WITHOUT_TEXT)
def test_a_block_without_a_text_is_named(name):
    block, expected = WITHOUT_TEXT[name]
    assert content_text([block], is_prompt=True) == expected


@pytest.mark.parametrize("name", [name for name in BLOCKS if name != "OpenAI input text"])
def test_a_document_is_no_part_of_the_question(name):
    message = HumanMessage([BLOCKS[name], {"type": "text", "text": "Where is the lab?"}])
    assert question_in(Values().of({"messages": [message]})) == "Where is the lab?"


@pytest.mark.parametrize("kind", ["reasoning_content", "executable_code", "code_execution_result", "cachePoint"])
def test_a_provider_s_own_block_is_no_part_of_the_answer(kind):
    assert content_text([{"type": kind, kind: "x"}, {"type": "text", "text": "In Oslo."}]) == "In Oslo."


def test_searches_of_the_provider_are_no_part_of_the_answer():
    said = AIMessage(
        [
            {"type": "server_tool_use", "name": "web_search", "input": {}},
            {"type": "web_search_tool_result", "content": []},
            {"type": "web_search_call", "id": "1"},
            {"type": "output_text", "text": ANSWER, "annotations": [{"type": "file_citation", "file_id": "f1"}]},
        ]
    )
    assert answer_in(Values().of(said)) == ANSWER


def blocks_of(documents):
    content = [{"type": "text", "text": document.page_content} for document in documents]
    return [
        {"type": "search_result", "source": "faq", "title": d.id, "content": [c]}
        for d, c in zip(documents, content, strict=True)
    ]


def test_documents_of_a_retriever_in_blocks(keeper, config):
    def ask(documents):
        message = HumanMessage([*blocks_of(documents[:2]), {"type": "text", "text": "Where is the lab?"}])
        return chat().invoke([message])

    (Faq() | RunnableLambda(ask)).invoke("Where is the lab?", config)
    run = keeper.only
    assert (len(ids(run, "retrieved")), run.prompt_ids, run.record.selection_source) == (6, ("d0", "d1"), "prompt")
    assert step(run, Generation).inputs[0].content.startswith("[search_result: d0]\nPassage d0 says")


@pytest.mark.parametrize("name", ["Anthropic text document", "Anthropic search result", "OpenAI file of text"])
def test_documents_in_blocks_without_a_search(keeper, config, name):
    message = HumanMessage([BLOCKS[name], {"type": "text", "text": "Where is the lab?"}])
    RunnableLambda(lambda question: chat().invoke([message])).invoke("Where is the lab?", config)
    run = keeper.only
    assert (ids(run, "retrieved"), run.prompt_ids) == ([content_id(TEXT)], (content_id(TEXT),))
    assert (run.record.pool("retrieved")[0].metadata["title"], run.record.query) == ("Labs", "Where is the lab?")


class Model(GenericFakeChatModel):
    def bind_tools(self, tools, **_):
        return self


@pytest.mark.parametrize("name", ["Anthropic text document", "Anthropic search result"])
def test_blocks_of_a_tool(keeper, config, name):
    agents = pytest.importorskip("langchain.agents")
    tools = pytest.importorskip("langchain_core.tools")

    @tools.tool("search")
    def search(query: str):
        """Search."""
        return [BLOCKS[name]]

    call = AIMessage("", tool_calls=[{"name": "search", "args": {"query": "lab"}, "id": "1"}])
    model = Model(messages=iter([call, AIMessage(ANSWER)]))
    agents.create_agent(model, [search]).invoke({"messages": [("user", "Where is the lab?")]}, config)
    run = keeper.only
    assert (ids(run, "retrieved"), run.prompt_ids) == ([content_id(TEXT)], (content_id(TEXT),))
    assert "kind" not in run.record.pool("retrieved")[0].metadata


def test_a_tool_message_with_blocks_by_hand(keeper, config):
    call = AIMessage("", tool_calls=[{"name": "search", "args": {"query": "lab"}, "id": "1"}])
    told = ToolMessage([BLOCKS["Anthropic search result"]], tool_call_id="1", name="search")
    RunnableLambda(lambda q: chat().invoke([HumanMessage(q), call, told])).invoke("Where is the lab?", config)
    assert (ids(keeper.only, "retrieved"), keeper.only.prompt_ids) == ([content_id(TEXT)], (content_id(TEXT),))
