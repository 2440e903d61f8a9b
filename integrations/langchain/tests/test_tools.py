"""Tool calls as spans: name, arguments, result, call id, and what ran inside."""

from __future__ import annotations

import json

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import create_retriever_tool, tool

from integrations.langchain.tests.parts import Faq, chat, shown
from ragtrace.testing.recording import Recording
from ragtrace_langchain import RagtraceHandler
from tests.kept import ANSWER


@pytest.fixture
def kept():
    return Recording()


@pytest.fixture
def config(kept):
    return {"callbacks": [RagtraceHandler(kept.recorder)]}


class Model(GenericFakeChatModel):
    def bind_tools(self, tools, **_):
        return self


def call(name, **args):
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"call-{name}"}])


def agent(tools, *calls):
    return create_agent(Model(messages=iter([*calls, AIMessage(ANSWER)])), tools)


def only(kept):
    (span,) = kept.spans_of("execute_tool")
    return span


def test_an_agents_tool_with_a_retriever(kept, config):
    tools = [create_retriever_tool(Faq(size=2), "search", "Searches the handbook.")]
    agent(tools, call("search", query="lab")).invoke({"messages": [("user", "Where?")]}, config)
    span, (caller,) = only(kept), kept.spans_of("invoke_agent")
    assert (span.name, span.parent.span_id) == ("execute_tool search", caller.context.span_id)
    facts = span.attributes
    assert (facts["gen_ai.tool.name"], facts["gen_ai.tool.call.id"]) == ("search", "call-search")
    assert facts["gen_ai.tool.description"] == "Searches the handbook."
    assert json.loads(facts["gen_ai.tool.call.arguments"]) == {"query": "lab"}
    assert "Passage d0" in facts["gen_ai.tool.call.result"]
    (retrieval,) = kept.spans_of("retrieval")
    assert retrieval.parent.span_id == span.context.span_id
    assert [p.id for p in kept.only.record.pool("retrieved")] == ["d0", "d1"]
    assert kept.only.record.answer == ANSWER


async def test_in_a_task(kept, config):
    tools = [create_retriever_tool(Faq(size=2), "search", "Searches.")]
    await agent(tools, call("search", query="lab")).ainvoke({"messages": [("user", "Where?")]}, config)
    (retrieval,) = kept.spans_of("retrieval")
    assert retrieval.parent.span_id == only(kept).context.span_id


def test_documents_of_a_tool_stand_below_it(kept, config):
    @tool(response_format="content_and_artifact")
    def search(query: str):
        """Searches."""
        found = Faq(size=2)._get_relevant_documents(query, run_manager=None)
        return shown(found), found

    agent([search], call("search", query="lab")).invoke({"messages": [("user", "Where?")]}, config)
    (retrieval,) = kept.spans_of("retrieval")
    assert retrieval.parent.span_id == only(kept).context.span_id
    assert [p.id for p in kept.only.record.pool("retrieved")] == ["d0", "d1"]


def test_a_model_inside_a_tool(kept, config):
    @tool
    def translate(text: str) -> str:
        """Translates."""
        return chat("Hvor?").invoke(text).content

    agent([translate], call("translate", text="Where?")).invoke({"messages": [("user", "Where?")]}, config)
    inner = [span for span in kept.spans_of("chat") if span.parent.span_id == only(kept).context.span_id]
    assert (len(inner), only(kept).attributes["gen_ai.tool.call.result"]) == (1, "Hvor?")


def test_a_tool_that_fails(kept, config):
    @tool
    def lookup(query: str) -> str:
        """Looks up."""
        raise LookupError("no entry")

    @RunnableLambda
    def ask(question):
        try:
            lookup.invoke({"query": question})
        except LookupError:
            return chat().invoke(question).content

    ask.invoke("Where?", config)
    span = only(kept)
    assert (span.attributes["error.type"], span.status.is_ok) == ("LookupError", False)
    assert (kept.only.record.outcome, kept.only.record.answer) == ("answered", ANSWER)


def test_no_texts_without_content():
    kept = Recording(content="none")
    config = {"callbacks": [RagtraceHandler(kept.recorder)]}
    tools = [create_retriever_tool(Faq(size=2), "search", "Searches.")]
    agent(tools, call("search", query="lab")).invoke({"messages": [("user", "Where?")]}, config)
    assert not [name for name in only(kept).attributes if "arguments" in name or "result" in name]
