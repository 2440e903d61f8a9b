"""Reports that a program makes of what several models said, and what agents looked up for them."""

from __future__ import annotations

import json
import operator
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from integrations.langchain.tests.parts import Scripted, calls

pytest.importorskip("langgraph")
pytest.importorskip("langchain.agents")

from langchain.agents import create_agent
from langgraph.graph import END, START, MessagesState, StateGraph

TOPIC = "Wie kam der Käse ins Tal?"
PAGES = {
    "die graue Herde": "Im Sommer 1871 trieb Resi Thaler achtzig graue Kühe über den Pass.",
    "der kühle Keller": "Der Keller im Tuff hält das ganze Jahr elf Grad.",
}
SAID = {
    "die graue Herde": "Resi Thaler brachte die Kühe, und die Kühe brachten die Milch.",
    "der kühle Keller": "Reifen konnte er, weil der Tuff das ganze Jahr kühl bleibt.",
}


@tool
def web(query: str) -> str:
    """Search the web."""
    return PAGES[query]


@tool
def finish(done: bool = True) -> str:  # noqa: FBT001, FBT002 - as models call it
    """End the report."""
    return "Finished."


class Report(MessagesState):
    parts: Annotated[list[str], operator.add]
    final_report: str


def write_up(model, *, as_json=False, ends=None):
    """A graph that looks two things up, and joins what is said of them into a report."""

    def look_up(state):
        messages = [HumanMessage(TOPIC)]
        parts = []
        for number, name in enumerate(PAGES):
            asked = calls("web", f"c{number}", query=name)
            result = web.invoke(asked.tool_calls[0]["args"])
            content = json.dumps(result) if as_json else result
            messages += [asked, ToolMessage(content, tool_call_id=f"c{number}", name="web")]
            parts.append(model.invoke(messages).content)
        return {"parts": parts}

    def join(state):
        text = "\n\n".join(f"## {name}\n{part}" for name, part in zip(PAGES, state["parts"], strict=True))
        made = {"final_report": f"# {TOPIC}\n\n{text}"}
        if ends is not None:
            made["messages"] = [ends.invoke(f"Is it done? {text}")]
        return made

    builder = StateGraph(Report)
    builder.add_node("look_up", look_up)
    builder.add_node("join", join)
    builder.add_edge(START, "look_up")
    builder.add_edge("look_up", "join")
    builder.add_edge("join", END)
    return builder.compile()


def speaker():
    return Scripted(replies=[AIMessage(text) for text in SAID.values()])


def texts(keeper):
    return [passage.text for passage in keeper.only.record.contexts]


@pytest.mark.parametrize(
    "ends", [None, Scripted(replies=[calls("finish", "c9", done=True)])], ids=["plain", "a call"]
)
def test_a_report_of_several_replies_is_the_answer(keeper, config, ends):
    found = write_up(speaker(), ends=ends).invoke({"messages": [HumanMessage(TOPIC)]}, config)
    record = keeper.only.record
    assert (record.query, record.answer) == (TOPIC, found["final_report"])
    assert texts(keeper) == list(PAGES.values())


def test_what_is_said_of_the_report_stands_before_it(keeper, config):
    ends = Scripted(replies=[AIMessage("Kurz gesagt: erst die Kühe, dann der Keller.")])
    write_up(speaker(), ends=ends).invoke({"messages": [HumanMessage(TOPIC)]}, config)
    assert keeper.only.record.answer == "Kurz gesagt: erst die Kühe, dann der Keller."


def test_ids_of_calls_may_begin_anew_with_each_agent(keeper, config):
    class Talk(TypedDict):
        topic: str
        said: Annotated[list[str], operator.add]
        answer: str

    def agent_of(name):
        model = Scripted(replies=[calls("web", query=name), SAID[name]])
        agent = create_agent(model, [web])
        return lambda _: {"said": [agent.invoke({"messages": [HumanMessage(name)]})["messages"][-1].content]}

    def join(state):
        reply = Scripted(replies=["Erst die Kühe, dann der Keller."]).invoke("\n".join(state["said"]))
        return {"answer": reply.content}

    builder = StateGraph(Talk)
    one, other = PAGES
    builder.add_node("one", agent_of(one))
    builder.add_node("other", agent_of(other))
    builder.add_node("join", join)
    builder.add_edge(START, "one")
    builder.add_edge("one", "other")
    builder.add_edge("other", "join")
    builder.compile().invoke({"topic": TOPIC}, config)
    assert texts(keeper) == list(PAGES.values())


def test_a_result_that_is_written_as_json_counts_once(keeper, config):
    write_up(speaker(), as_json=True).invoke({"messages": [HumanMessage(TOPIC)]}, config)
    assert texts(keeper) == list(PAGES.values())


def test_an_agent_that_looked_something_up_and_said_nothing_is_a_run(keeper, config):
    class Asked(MessagesState):
        found: str

    def look_up(state):
        return {"found": web.invoke({"query": "die graue Herde"})}

    model = Scripted(replies=[calls("finish", done=True)])
    builder = StateGraph(Asked)
    builder.add_node("look_up", look_up)
    builder.add_node(
        "end", lambda state: {"messages": [model.invoke([*state["messages"], HumanMessage(state["found"])])]}
    )
    builder.add_edge(START, "look_up")
    builder.add_edge("look_up", "end")
    builder.compile().invoke({"messages": [HumanMessage(TOPIC)]}, config)
    assert (keeper.only.record.query, keeper.only.record.answer) == (TOPIC, "")


class Notes(TypedDict):
    topic: str
    web_results: Annotated[list[str], operator.add]
    sources: Annotated[list[str], operator.add]
    summary: str


def test_titles_with_addresses_are_no_passages(keeper, config):
    def research(state):
        shown = f"Source: Herde\nURL: https://herde.example\n{PAGES['die graue Herde']}"
        return {"web_results": [shown], "sources": ["* Die Herde : https://herde.example"]}

    def summarise(state):
        said = Scripted(replies=[AIMessage(SAID["die graue Herde"])]).invoke(
            f"{state['web_results'][0]}\n{state['topic']}"
        )
        return {"summary": said.content}

    builder = StateGraph(Notes)
    builder.add_node("web_research", research)
    builder.add_node("summarise", summarise)
    builder.add_node(
        "finalize", lambda state: {"summary": f"## Summary\n{state['summary']}\n\nSources:\n{state['sources'][0]}"}
    )
    builder.add_edge(START, "web_research")
    builder.add_edge("web_research", "summarise")
    builder.add_edge("summarise", "finalize")
    builder.compile().invoke({"topic": TOPIC}, config)
    assert keeper.only.record.answer.startswith(f"## Summary\n{SAID['die graue Herde']}")
    assert texts(keeper) == []


SITES = {f"https://{name.split()[-1].lower()}.example": page for name, page in PAGES.items()}
FRAME = "Antworte knapp, auf Deutsch, und nur aus dem Text, den du hier unten findest."


class Reading(TypedDict):
    thema: str
    adressen: list[str]
    gelesen: Any
    anweisung: str
    bericht: str


def read_on(config, given, read):
    """Run a graph in which a plain function reads pages, and a model writes of them."""

    def write(state):
        held = state.get("gelesen") or ""
        held = "\n".join(held.values() if isinstance(held, dict) else held if isinstance(held, list) else [held])
        asked = f"{state.get('anweisung', '')}\n{held}\nThema: {state['thema']}"
        return {"bericht": Scripted(replies=[SAID["die graue Herde"]]).invoke(asked).content}

    graph = StateGraph(Reading)
    graph.add_sequence([("lies", read), ("schreibe", write)])
    graph.add_edge(START, "lies")
    graph.compile().invoke({"thema": TOPIC, **given}, config)


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(lambda state: {"gelesen": list(SITES.values())}, id="a list"),
        pytest.param(lambda state: {"gelesen": SITES}, id="by address"),
    ],
)
def test_pages_that_a_function_read_are_said_to_be_unread(keeper, config, read):
    read_on(config, {"adressen": list(SITES)}, read)
    assert texts(keeper) == []
    assert "evidence_unread" in {sign.name for sign in keeper.only.record.signs}


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({"adressen": list(SITES)}, {"anweisung": FRAME}),
        ({"adressen": []}, {"gelesen": FRAME}),
        ({"adressen": ["Tal", "Keller"]}, {"gelesen": FRAME}),
        ({"adressen": list(SITES)}, {"gelesen": "\n".join(f"* Käse : {one}" for one in SITES)}),
    ],
    ids=["an instruction", "no address", "names", "addresses"],
)
def test_what_else_a_function_writes_is_no_page(keeper, config, given, made):
    read_on(config, given, lambda state: made)
    assert (texts(keeper), keeper.only.record.answer) == ([], SAID["die graue Herde"])
