"""Texts of values that hold commands, messages, documents and objects: whichever way they are read, none is ours."""

from __future__ import annotations

import inspect
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.prompt_values import ChatPromptValue
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import StructuredTool
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, Send
from msgspec import Struct, to_builtins

import ragtrace
from integrations.langchain.tests.parts import PROMPT, calls, chat
from ragtrace.capture import values
from ragtrace_langchain import RagtraceHandler
from tests.kept import Declaring

SAID = "Found one page: the lab is in Oslo."
FILE = "# The lab is in Oslo, at the harbour."


@pytest.fixture
def keeper():
    return Declaring()


@dataclass
class Held:
    """An object of an application's."""

    said: object


class Money:
    def __str__(self):
        return "12 crowns"


def command(*more):
    return Command(update={"files": {"lab.md": FILE}, "messages": [*more, ToolMessage(SAID, tool_call_id="c1")]})


ONE = {
    "command": command,
    "command without a message": lambda: Command(update={"files": {"lab.md": FILE}}),
    "command with pairs": lambda: Command(update=[("files", FILE)]),
    "command that steers": lambda: Command(goto=Send("next", {"said": HumanMessage(SAID)}), update={"page": FILE}),
    "send": lambda: Send("next", {"said": HumanMessage(SAID), "page": Document(page_content=FILE)}),
    "message": lambda: AIMessage(SAID),
    "document": lambda: Document(page_content=FILE),
    "prompt": lambda: ChatPromptValue(messages=[HumanMessage(SAID)]),
    "object": Money,
}
AROUND = {
    "alone": lambda one: one,
    "second in a list": lambda one: [Document(page_content="A page."), one],
    "tuple": lambda one: (one, "a note"),
    "text of a mapping": lambda one: {"id": "p1", "text": one},
    "mappings": lambda one: {"rows": [{"id": "p1", "said": Held(one)}]},
}
VALUES = {
    f"{name}, {around}": (lambda make=make, put=put: put(make()))
    for name, make in ONE.items()
    for around, put in AROUND.items()
}


class State(TypedDict, total=False):
    question: str
    held: Any
    answer: Any
    messages: list[Any]


def tool_of(made):
    def look(town: str) -> Any:
        """Look a town up."""
        return made

    return StructuredTool.from_function(look)


def by_tool(made, config):
    def asked(question):
        tool_of(made).invoke({"town": "Oslo"}, config)
        return {"context": "", "question": question}

    (RunnableLambda(asked) | PROMPT | chat()).invoke("Where?", config)


def by_node_of_tools(made, config):
    graph = StateGraph(State)
    graph.add_node("tools", ToolNode([tool_of(made)], handle_tool_errors=True))
    graph.add_node("say", lambda state: {"answer": chat().invoke("Where?").content})
    graph.add_edge(START, "tools")
    graph.add_edge("tools", "say")
    graph.compile().invoke({"question": "Where?", "messages": [calls("look", town="Oslo")]}, config)


def by_function(made, config):
    look = RunnableLambda(lambda _: made, name="look")
    (look | (lambda _: {"context": "", "question": "?"}) | PROMPT | chat()).invoke("Where?", config)


def by_decorated(made, config):
    @ragtrace.evidence
    def found(question):
        return made

    def asked(question):
        found(question)
        return {"context": "", "question": question}

    (RunnableLambda(asked) | PROMPT | chat()).invoke("Where?", config)


def by_state(made, config):
    graph = StateGraph(State)
    graph.add_node("load", lambda state: {"held": made})
    graph.add_node("say", lambda state: {"answer": chat().invoke("Where?").content})
    graph.add_edge(START, "load")
    graph.add_edge("load", "say")
    graph.compile().invoke({"question": "Where?"}, config)


def by_answer(made, config):
    (PROMPT | chat() | (lambda _: {"answer": made, "held": made})).invoke({"context": "", "question": "?"}, config)


def by_whole_answer(made, config):
    (PROMPT | chat() | (lambda _: made)).invoke({"context": "", "question": "?"}, config)


def by_input(made, config):
    (RunnableLambda(lambda _: {"context": "", "question": "?"}) | PROMPT | chat()).invoke({"held": made}, config)


WAYS = {
    "tool": (by_tool, {}),
    "tool that is declared": (by_tool, {"evidence": {"look": True}}),
    "tool with a place": (by_tool, {"evidence": {"look": "output"}}),
    "tool with a place for each": (by_tool, {"evidence": {"look": "output[*]"}}),
    "tool that is none": (by_tool, {"evidence": {"look": False}}),
    "tool in a graph": (by_node_of_tools, {}),
    "tool in a graph that is declared": (by_node_of_tools, {"evidence": {"look": True}}),
    "function": (by_function, {}),
    "function that is declared": (by_function, {"evidence": {"look": True}}),
    "function with a place": (by_function, {"evidence": {"look": "output[*]"}}),
    "decorated": (by_decorated, {}),
    "field of a state": (by_state, {"evidence": {"state.held": True}}),
    "parts of a field": (by_state, {"evidence": {"state.held": "state.held[*]"}}),
    "chosen": (by_state, {"selected": "state.held"}),
    "question in a state": (by_state, {"question": "state.held"}),
    "answer": (by_answer, {}),
    "answer at a place": (by_answer, {"answer": "output.held"}),
    "whole answer": (by_whole_answer, {}),
    "whole answer at a place": (by_whole_answer, {"answer": "output"}),
    "input": (by_input, {}),
    "question at a place": (by_input, {"question": "input.held"}),
}
OURS = {
    name for name, one in vars(values).items() if inspect.isclass(one) and issubclass(one, (Struct, values.Fields))
}
WRITTEN = re.compile(rf"\b(?:{'|'.join(sorted(OURS))})\(")


def texts_in(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from texts_in(name)
            yield from texts_in(part)
    elif isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from texts_in(part)


def texts_of(run):
    """Yield all texts of a run: of its record and of its steps."""
    yield from texts_in(to_builtins(run.record, enc_hook=str))
    for step in run.steps:
        yield from texts_in(to_builtins(step, enc_hook=str))


def test_the_classes_of_values_are_known():
    assert {"Doc", "Turn", "Prompt", "Steer", "Opaque"} <= OURS


@pytest.mark.parametrize("way", WAYS)
def test_no_text_has_a_class_of_ours(way, recorder, keeper):
    ask, declared = WAYS[way]
    shown = {}
    for name, make in VALUES.items():
        handler = RagtraceHandler(recorder, **declared)
        with suppress(TypeError, ValueError):  # a framework takes no such value there; its run is read all the same
            ask(make(), {"callbacks": [handler]})
        written = [text for run in keeper.runs for text in texts_of(run) if WRITTEN.search(text)]
        shown |= {name: written} if written else {}
        keeper.runs.clear()
    assert shown == {}


def test_a_command_says_the_message_of_its_own_call(recorder, keeper):
    handler = RagtraceHandler(recorder, evidence=["look"])
    other = ToolMessage("Of another call.", tool_call_id="c0")
    by_node_of_tools(command(other), {"callbacks": [handler]})
    assert [one.text for one in keeper.only.record.contexts] == [SAID]
    assert not any(sign.name == "declared_missing" for sign in keeper.only.record.signs)


def test_a_command_without_a_message_says_nothing_and_has_the_sign(recorder, keeper):
    handler = RagtraceHandler(recorder, evidence=["look"])
    by_tool(Command(update={"files": {"lab.md": FILE}}), {"callbacks": [handler]})
    assert keeper.only.record.contexts == ()
    signs = [(sign.name, sign.about) for sign in keeper.only.record.signs if sign.name == "declared_missing"]
    assert signs == [("declared_missing", "evidence: look: output")]


def test_what_a_command_writes_is_read_at_its_place(recorder, keeper):
    handler = RagtraceHandler(recorder, evidence={"look": 'output.files["lab.md"]'})
    by_node_of_tools(command(), {"callbacks": [handler]})
    assert [one.text for one in keeper.only.record.contexts] == [FILE]


def test_a_declared_node_that_writes_by_a_command_is_read_as_one_that_returns(recorder, keeper):
    for made in ({"held": FILE}, Command(update={"held": FILE})):
        graph = StateGraph(State)
        graph.add_node("look", lambda state, made=made: made)
        graph.add_node("say", lambda state: {"answer": chat().invoke("Where?").content})
        graph.add_edge(START, "look")
        graph.add_edge("look", "say")
        handler = RagtraceHandler(recorder, evidence=["look"])
        graph.compile().invoke({"question": "Where?"}, {"callbacks": [handler]})
    one, other = ([text.text for text in run.record.contexts] for run in keeper.runs)
    assert one == other == [f'{{"held": "{FILE}"}}']
