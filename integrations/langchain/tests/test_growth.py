"""Each value is read once: the work of a turn does not grow with the turns before it."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool

from integrations.langchain.tests.parts import Scripted, calls, chat
from ragtrace.capture import Recorder
from ragtrace.capture.events import Redactor
from ragtrace_langchain import RagtraceHandler
from ragtrace_langchain.values import Values
from tests.kept import ANSWER, Waiting


class Growing(BaseRetriever):
    """Finds other passages at each search."""

    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(f"Passage {query} of part {i}.", id=f"{query}-{i}") for i in range(3)]


@tool
def search(query: str) -> str:
    """Search the manual."""
    return f"The manual says {query}."


def agent(turns, config):
    agents = pytest.importorskip("langchain.agents")
    replies = [calls("search", query=f"v{turn}") for turn in range(turns)]
    made = agents.create_agent(Scripted(replies=[*replies, ANSWER]), [search])
    made.invoke({"messages": [("user", "Where?")]}, {"recursion_limit": 10_000, **config})


def loop(turns, config):
    index = Growing()

    def look(state):
        found = state["documents"] + index.invoke(str(state["turn"]))
        said = [*state["messages"], HumanMessage(found[-1].page_content)]
        return {"turn": state["turn"] + 1, "documents": found, "messages": [*said, chat().invoke(said)]}

    def repeated(_question):
        state = {"turn": 0, "documents": [], "messages": []}
        for _ in range(turns):
            state = RunnableLambda(look).invoke(state)
        return state["messages"][-1].content

    RunnableLambda(repeated).invoke("Where?", config)


@pytest.mark.parametrize("asks", [agent, loop])
@pytest.mark.parametrize("redact", [None, str.upper], ids=["plain", "redacted"])
def test_the_work_of_a_turn_does_not_grow(monkeypatch, asks, redact):
    read = []
    for kind, name in ((Values, "_part"), (Redactor, "_of")):
        inner = getattr(kind, name)
        monkeypatch.setattr(kind, name, lambda *given, inner=inner: read.append(1) or inner(*given))

    def values_of_a_turn(turns):
        read.clear()
        asks(turns, {"callbacks": [RagtraceHandler(Recorder(Waiting(), redact=redact))]})
        return len(read) / turns

    assert values_of_a_turn(100) <= 1.1 * values_of_a_turn(25)


def scored(documents):
    return [document.metadata.get("score") for document in documents]


def test_scores_that_are_written_into_all_documents_of_a_long_list():
    values, documents = Values(), [Document(f"Passage {i}.") for i in range(200)]
    values.of({"documents": documents})
    for i, document in enumerate(documents):
        document.metadata["score"] = i
    assert scored(values.of({"documents": [*documents]})["documents"]) == [*range(200)]


def test_one_old_message_that_is_changed_before_a_prompt_or_the_end_of_the_run():
    values, messages = Values(), [AIMessage(f"Reply {i}.") for i in range(200)]
    values.turns(messages)
    messages[7].content = "Forgotten."
    assert values.turns([*messages])[7].content == "Forgotten."
    messages[8].content = "Forgotten too."
    assert values.given({"messages": [*messages]}, is_last=True)["messages"][8].content == "Forgotten too."


def test_parts_of_two_lists_that_begin_alike_are_the_same_ones():
    values, documents = Values(), [Document(f"Passage {i}.") for i in range(400)]
    found = values.of(documents)
    chosen, more = values.of(documents[:100]), values.of([*documents, Document("New.")])
    assert all(one is other for one, other in zip(found, chosen, strict=False))
    assert all(one is other for one, other in zip(found, more, strict=False))
    assert (len(chosen), len(more), more[-1].text) == (100, 401, "New.")
