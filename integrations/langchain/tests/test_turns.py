"""A turn of a conversation: its question, its answer and its outcome are none of another turn's, nor an inner step's."""

from __future__ import annotations

import operator
import time
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Annotated, Any, TypedDict

import pytest
from langchain import agents
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from langgraph.types import Command, Send, interrupt
from pydantic import BaseModel

from integrations.langchain.tests.parts import Faq, Scripted, calls, chat, shown
from tests.kept import ids

LANGGRAPH = tuple(map(int, version("langgraph").split(".")[:2]))
FIRST, SECOND = "How long may I keep it?", "Do you ship to Norway?"
OLD, NEW = "You have thirty days.", "Shipping takes five days."


class State(MessagesState, total=False):
    docs: list
    answer: str


class Plain(TypedDict, total=False):
    customer_message: str
    lang: str
    docs: list
    query: str
    answer: str


def built(kind, *nodes, **how):
    made = StateGraph(kind)
    made.add_sequence([(node.__name__, node) for node in nodes])
    made.add_edge(START, nodes[0].__name__)
    return made.compile(**how)


def at(config, thread="t"):
    return {**config, "configurable": {"thread_id": thread}}


def told(run):
    return run.record.query, run.record.answer, run.record.outcome


def asked(state):
    return [one for one in state["messages"] if one.type == "human"][-1].content


def retrieve(state):
    return {"docs": Faq(size=2).invoke(asked(state))}


def replying(*replies):
    """A node that answers in the messages; where the model fails it goes on."""
    model = Scripted(replies=list(replies))

    def generate(state):
        try:
            return {
                "messages": [model.invoke([SystemMessage(shown(state.get("docs", []))), state["messages"][-1]])]
            }
        except RuntimeError:
            return {}

    return generate


DOWN = RuntimeError("429")


def answering(*replies):
    """A node that answers under a key; where the model fails it goes on."""
    model = Scripted(replies=list(replies))

    def generate(state):
        try:
            return {"answer": model.invoke(shown(state["docs"])).content}
        except RuntimeError:
            return {}

    return generate


# -- the question of a resumed run --


@tool
def refund(order: str) -> str:
    """Refund an order."""
    return "refunded" if interrupt({"order": order}) else "refused"


@tool
def search(query: str) -> str:
    """Search."""
    return shown(Faq(size=2).invoke(query))


async def drive(how, app, given, config):
    if how == "invoke":
        app.invoke(given, config)
    elif how == "ainvoke":
        await app.ainvoke(given, config)
    elif how == "stream":
        list(app.stream(given, config, stream_mode="updates"))
    elif how == "messages":
        list(app.stream(given, config, stream_mode=["messages", "values"], subgraphs=True))
    elif how == "astream":
        [part async for part in app.astream(given, config)]
    else:
        [event async for event in app.astream_events(given, config, version="v2")]


HOWS = ("invoke", "ainvoke", "stream", "messages", "astream", "events")


@pytest.mark.parametrize("how", HOWS)
async def test_an_agent_that_asks_in_a_tool(keeper, config, how):
    model = Scripted(replies=[calls("refund", order="A1"), "Refunded."])
    app = agents.create_agent(model, [refund], checkpointer=InMemorySaver())
    await drive(how, app, {"messages": [("user", FIRST)]}, at(config))
    await drive(how, app, Command(resume=True), at(config))
    assert [told(run) for run in keeper.runs] == [(FIRST, "", "interrupted"), (FIRST, "Refunded.", "answered")]


@pytest.mark.parametrize("how", HOWS)
async def test_an_agent_that_stops_at_a_breakpoint(keeper, config, how):
    model = Scripted(replies=[calls("search", query="window"), OLD])
    app = agents.create_agent(model, [search], checkpointer=InMemorySaver(), interrupt_before=["tools"])
    await drive(how, app, {"messages": [("user", FIRST)]}, at(config))
    await drive(how, app, None, at(config))
    assert [told(run) for run in keeper.runs] == [(FIRST, "", "interrupted"), (FIRST, OLD, "answered")]


class Report(TypedDict, total=False):
    topic: str
    found: Annotated[list, operator.add]
    report: str


@pytest.mark.parametrize("slow", [0, 1])
def test_a_breakpoint_before_parts_that_are_sent(keeper, config, slow):
    """What waits was told to nobody, what is sent is no question, and passages stand in the order of the tasks."""

    class Topics(BaseModel):
        names: list[str]

    def part(given):
        if given["number"] == slow:
            time.sleep(0.05)
        found = Faq(size=1, prefix=given["messages"][0].content[0]).invoke("lab")
        said = chat(f"Of {given['number']}: it moved about a lot.").invoke(shown(found)).content
        return {"found": [said]}

    def send(state):
        return [
            Send("part", {"number": n, "messages": [HumanMessage(f"{name}, tell me about {state['topic']}")]})
            for n, name in enumerate("ab")
        ]

    def plan(state):
        model = Scripted(replies=[calls("Topics", names=["a", "b"])])
        model.with_structured_output(Topics).invoke(state["topic"])
        return {}

    made = StateGraph(Report)
    made.add_node("plan", plan)
    made.add_node("wait", lambda state: None)
    made.add_node("part", part)
    made.add_node("write", lambda state: {"report": chat("It moved.").invoke("\n".join(state["found"])).content})
    made.add_edge(START, "plan")
    made.add_edge("plan", "wait")
    made.add_conditional_edges("wait", send, ["part"])
    made.add_edge("part", "write")
    made.add_edge("write", END)
    app = made.compile(checkpointer=InMemorySaver(), interrupt_before=["wait"])
    list(app.stream({"topic": FIRST}, at(config)))
    app.update_state(at(config), {}, as_node="wait")
    list(app.stream(None, at(config)))
    assert [told(run) for run in keeper.runs] == [(FIRST, "", "interrupted"), (FIRST, "It moved.", "answered")]
    assert [name[0] for name in ids(keeper.runs[1], "retrieved")] == ["a", "b"]
    assert [name[0] for name in keeper.runs[1].prompt_ids] == ["a", "b"]


@pytest.mark.parametrize("how", HOWS)
async def test_a_breakpoint_under_instrument(keeper, recorder, how):
    from ragtrace_langchain import instrument, uninstrument

    instrument(recorder)
    try:
        app = built(State, retrieve, replying(OLD), checkpointer=InMemorySaver(), interrupt_after=["retrieve"])
        await drive(how, app, {"messages": [("user", FIRST)]}, at({}))
        await drive(how, app, None, at({}))
    finally:
        uninstrument()
    assert [told(run) for run in keeper.runs] == [(FIRST, "", "interrupted"), (FIRST, OLD, "answered")]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_breakpoints_of_the_call(keeper, config, durability):
    app = built(State, retrieve, replying(OLD), checkpointer=InMemorySaver())
    given = {"messages": [("user", FIRST)]}
    app.invoke(given, at(config), interrupt_before=["generate"], durability=durability)
    app.invoke(None, at(config), durability=durability)
    assert [told(run) for run in keeper.runs] == [(FIRST, "", "interrupted"), (FIRST, OLD, "answered")]


def test_a_middleware_that_asks_a_person(keeper, config):
    model = Scripted(replies=[calls("search", query="window"), OLD])
    asks = HumanInTheLoopMiddleware(interrupt_on={"search": True})
    app = agents.create_agent(model, [search], checkpointer=InMemorySaver(), middleware=[asks])
    app.invoke({"messages": [("user", FIRST)]}, at(config))
    app.invoke(Command(resume={"decisions": [{"type": "approve"}]}), at(config))
    assert [told(run) for run in keeper.runs] == [(FIRST, "", "interrupted"), (FIRST, OLD, "answered")]


def test_a_breakpoint_in_a_subgraph(keeper, config):
    inner = built(State, retrieve, replying(OLD), interrupt_before=["generate"])
    inner.__name__ = "inner"
    app = built(State, inner, checkpointer=InMemorySaver())
    app.invoke({"messages": [("user", FIRST)]}, at(config))
    app.invoke(None, at(config))
    assert [told(run) for run in keeper.runs] == [(FIRST, "", "interrupted"), (FIRST, OLD, "answered")]


def test_a_graph_with_a_breakpoint_in_a_chain(keeper, config):
    app = built(State, retrieve, replying(OLD), checkpointer=InMemorySaver(), interrupt_before=["generate"])
    (app | RunnableLambda(lambda state: {"docs": len(state["docs"])})).invoke(
        {"messages": [("user", FIRST)]}, at(config)
    )
    assert told(keeper.only) == (FIRST, "", "interrupted")


def test_a_program_that_goes_on_itself_is_answered(keeper, config):
    app = built(State, retrieve, replying(OLD), checkpointer=InMemorySaver(), interrupt_before=["generate"])

    def ask(question):
        app.invoke({"messages": [("user", question)]}, {"configurable": {"thread_id": "t"}})
        return app.invoke(None, {"configurable": {"thread_id": "t"}})["messages"][-1].content

    RunnableLambda(ask).invoke(FIRST, config)
    assert told(keeper.only) == (FIRST, OLD, "answered")


@pytest.mark.skipif(LANGGRAPH < (1, 1), reason="the loop of langgraph 1.0 has tasks behind its last node too")
def test_a_breakpoint_behind_the_last_node_waits_for_nobody(keeper, config):
    app = built(State, retrieve, replying(OLD), checkpointer=InMemorySaver(), interrupt_after=["generate"])
    app.invoke({"messages": [("user", FIRST)]}, at(config))
    app.invoke(None, at(config))
    assert told(keeper.only) == (FIRST, OLD, "answered")


RESUMED = {
    "a message of the update": (Command(update={"messages": [("user", SECOND)]}, goto="retrieve"), SECOND),
    "a step": (Command(goto="generate"), FIRST),
    "nothing": (None, FIRST),
    "a reply": (Command(resume="What about Norway?"), FIRST),
    "a reply beside an update": (Command(resume="yes", update={"answer": "No."}), FIRST),
}


@pytest.mark.parametrize("form", RESUMED)
def test_ways_to_resume(keeper, config, form):
    given, question = RESUMED[form]
    app = built(State, retrieve, replying(NEW), checkpointer=InMemorySaver(), interrupt_before=["generate"])
    app.invoke({"messages": [("user", FIRST)]}, at(config))
    app.invoke(given, at(config))
    assert keeper.runs[1].record.query == question


def test_time_travel_has_the_question_of_that_time(keeper, config):
    app = built(State, retrieve, replying(OLD, NEW, NEW), checkpointer=InMemorySaver())
    for question in (FIRST, SECOND):
        app.invoke({"messages": [("user", question)]}, at(config))
    past = [one for one in app.get_state_history(at(config)) if one.next == ("generate",)][-1]
    app.invoke(None, {**config, **past.config})
    assert told(keeper.runs[2]) == (FIRST, NEW, "answered")


@pytest.mark.parametrize("given", [Command(resume="yes"), None])
def test_a_draft_among_the_messages_that_a_person_approves_is_the_answer(keeper, config, given):
    def send(state):
        if given is not None:
            interrupt("Send this?")
        return {}

    breaks = {"interrupt_before": ["send"]} if given is None else {}
    app = built(State, replying(NEW), send, checkpointer=InMemorySaver(), **breaks)
    app.invoke({"messages": [("user", FIRST)]}, at(config))
    app.invoke(given, at(config))
    assert [told(run) for run in keeper.runs] == [(FIRST, "", "interrupted"), (FIRST, NEW, "answered")]


@dataclass
class Data:
    customer_message: str = ""
    lang: str = "de"
    docs: list = field(default_factory=list)
    query: str = ""
    answer: str = ""


class Model(BaseModel):
    customer_message: str = ""
    lang: str = "de"
    docs: list[Any] = []
    query: str = ""
    answer: str = ""


@pytest.mark.parametrize("kind", [Plain, Data, Model])
def test_the_question_of_a_state_with_names_of_its_own_is_a_guess(keeper, config, kind):
    def value(state, name):
        return state[name] if isinstance(state, dict) else getattr(state, name)

    def rewrite(state):
        return {"query": Scripted(replies=["shipping norway"]).invoke(value(state, "customer_message")).content}

    def find(state):
        return {"docs": Faq(size=2).invoke(value(state, "query"))}

    def generate(state):
        return {"answer": Scripted(replies=[NEW]).invoke(shown(value(state, "docs"))).content}

    app = built(kind, rewrite, find, generate, checkpointer=InMemorySaver(), interrupt_before=["generate"])
    app.invoke({"customer_message": SECOND}, at(config))
    app.invoke(None, at(config))
    assert [told(run) for run in keeper.runs] == [(SECOND, "", "interrupted"), ("", NEW, "answered")]
    assert all("question_guessed" in {sign.name for sign in run.record.signs} for run in keeper.runs)


@pytest.mark.parametrize("given", [SECOND, {"note": SECOND, "lang": "de"}, [HumanMessage(SECOND)]], ids=str)
def test_an_entrypoint(keeper, config, given):
    @entrypoint(checkpointer=InMemorySaver())
    def flow(asked):
        found = shown(Faq(size=1).invoke(str(asked)))
        interrupt("May I?")
        return chat(NEW).invoke(found).content

    flow.invoke(given, at(config))
    flow.invoke(Command(resume=True), at(config))
    assert [told(run) for run in keeper.runs] == [(SECOND, "", "interrupted"), (SECOND, NEW, "answered")]


def test_agents_that_write_under_a_persons_role(keeper, config):
    def research(state):
        return {"messages": [HumanMessage(chat("Found it.").invoke("x").content, name="researcher")]}

    def ask(state):
        interrupt("May I?")
        return {}

    app = built(State, research, ask, replying(OLD), checkpointer=InMemorySaver())
    app.invoke({"messages": [("user", FIRST)]}, at(config))
    app.invoke(Command(resume=True), at(config))
    assert [told(run) for run in keeper.runs] == [(FIRST, "", "interrupted"), (FIRST, OLD, "answered")]


# -- the question of an input with names of its own --


def test_the_text_that_a_retriever_is_asked_with(keeper, config):
    style = RunnableLambda(lambda x: {"lang": x["lang"]}) | PromptTemplate.from_template("Answer in {lang}.")
    chain = (
        RunnablePassthrough.assign(style=style | RunnableLambda(lambda prompt: prompt.text))
        | RunnablePassthrough.assign(context=RunnableLambda(lambda x: x["note"]) | Faq(size=1) | shown)
        | ChatPromptTemplate.from_template("{style}\n{context}\n{note}")
        | chat()
        | StrOutputParser()
    )
    for how in (chain.invoke, lambda *given: list(chain.stream(*given))):
        how({"note": "returns", "lang": "de", "tone": "brief"}, config)
    assert [run.record.query for run in keeper.runs] == ["returns"] * 2


def test_a_rewritten_query_stands_in_as_a_guess(keeper, config):
    rewrite = ChatPromptTemplate.from_template("Rewrite {text}") | chat("return window") | StrOutputParser()
    chain = RunnableLambda(lambda x: shown(Faq(size=1).invoke(rewrite.invoke({"text": x["note"]})))) | chat()
    chain.invoke({"note": "I want to give it back", "lang": "en"}, config)
    assert keeper.only.record.query == "return window"
    assert "question_guessed" in {sign.name for sign in keeper.only.record.signs}


def test_the_retrievers_question_stands_in_for_a_nameless_one(keeper, config):
    chain = RunnableLambda(lambda number: shown(Faq(size=1).invoke(f"ticket {number}"))) | chat()
    chain.invoke(7, config)
    assert keeper.only.record.query == "ticket 7"


def test_an_inner_chains_question_stands_in_where_the_input_has_no_text(keeper, config):
    inner = ChatPromptTemplate.from_template("{question}") | chat()
    RunnableLambda(lambda number: inner.invoke({"question": f"{FIRST} ({number})"})).invoke(7, config)
    assert keeper.only.record.query == f"{FIRST} (7)"


# -- the answer --


def second(app, given, config):
    """Run a first turn and a second one."""
    app.invoke({"messages": [("user", FIRST)]}, at(config))
    app.invoke(given, at(config))


NEXT = {"messages": [("user", SECOND)]}


def copying(state):
    """Copies what the state has."""
    return {"answer": state.get("answer", ""), "messages": [AIMessage(state.get("answer") or "None yet.")]}


def trimmed(state):
    return {"messages": [RemoveMessage(id=one.id) for one in state["messages"][:-3]]}


def summed_up(state):
    last = state["messages"][-1]
    return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), SystemMessage("They spoke of returns."), last]}


def graded(state):
    return {} if Scripted(replies=["yes"]).invoke("Fits?").content == "yes" else {"docs": []}


UNANSWERED = {
    "the model fails": lambda: [retrieve, replying(OLD, DOWN)],
    "the model fails, and the node wrote a key": lambda: [retrieve, answering(OLD, DOWN)],
    "a node copies the old answer": lambda: [retrieve, answering(OLD, DOWN), copying],
    "after a trimmed history": lambda: [trimmed, retrieve, replying(OLD, DOWN)],
    "after a summary": lambda: [summed_up, retrieve, replying(OLD, DOWN)],
    "after a grade": lambda: [retrieve, graded, replying(OLD, DOWN)],
}


@pytest.mark.parametrize("form", UNANSWERED)
def test_a_turn_without_an_answer_has_none(keeper, config, form):
    second(built(State, *UNANSWERED[form](), checkpointer=InMemorySaver()), NEXT, config)
    first, last = keeper.runs
    expected = "None yet." if "copies" in form else ""
    assert first.record.answer == OLD
    assert last.record.query == SECOND
    assert last.record.answer in {"", expected}
    assert OLD not in last.record.answer


def stating(state):
    return {"messages": [AIMessage(OLD)]}


@pytest.mark.parametrize("node", [replying(OLD), stating], ids=["model", "function"])
def test_the_same_words_again_are_an_answer(keeper, config, node):
    second(built(State, retrieve, node, checkpointer=InMemorySaver()), NEXT, config)
    assert [run.record.answer for run in keeper.runs] == [OLD, OLD]


def test_the_same_words_again_where_the_client_sends_the_history(keeper, config):
    given = {"messages": [("user", FIRST), ("assistant", OLD), ("user", FIRST)]}
    built(State, retrieve, replying(OLD)).invoke(given, config)
    assert told(keeper.only) == (FIRST, OLD, "answered")


def test_the_same_words_again_under_a_key(keeper, config):
    second(built(State, retrieve, answering(OLD), checkpointer=InMemorySaver()), NEXT, config)
    assert [run.record.answer for run in keeper.runs] == [OLD, OLD]


def test_a_wrapper_gives_out_the_last_message(keeper, config):
    app = built(State, retrieve, replying(OLD, DOWN), checkpointer=InMemorySaver())
    where = {"configurable": {"thread_id": "t"}}
    chain = RunnableLambda(lambda q: app.invoke({"messages": [("user", q)]}, where)["messages"][-1].content)
    for question in (FIRST, SECOND):
        chain.invoke(question, config)
    assert [told(run)[:2] for run in keeper.runs] == [(FIRST, OLD), (SECOND, "")]


class Added(TypedDict, total=False):
    messages: Annotated[list, operator.add]
    docs: list


class Kept(TypedDict, total=False):
    messages: Annotated[list, lambda old, new: add_messages(old, new)[-3:]]
    docs: list


@pytest.mark.parametrize("kind", [Added, Kept])
def test_reducers(keeper, config, kind):
    app = built(kind, retrieve, replying(OLD, NEW, DOWN), checkpointer=InMemorySaver())
    for question in (FIRST, SECOND, "And to Sweden?"):
        app.invoke({"messages": [HumanMessage(question)]}, at(config))
    assert [run.record.answer for run in keeper.runs] == [OLD, NEW, ""]


@pytest.mark.parametrize("kind", [Data, Model])
def test_states_of_attributes(keeper, config, kind):
    model = Scripted(replies=[OLD, DOWN])

    def find(state):
        return {"docs": Faq(size=1).invoke(state.customer_message)}

    def generate(state):
        try:
            return {"answer": model.invoke(shown(state.docs)).content}
        except RuntimeError:
            return {"answer": state.answer}

    app = built(kind, find, generate, checkpointer=InMemorySaver())
    for question in (FIRST, SECOND):
        app.invoke({"customer_message": question}, at(config))
    assert [told(run)[:2] for run in keeper.runs] == [(FIRST, OLD), (SECOND, "")]


@pytest.mark.parametrize("how", HOWS)
async def test_a_new_message_beside_an_old_answer(keeper, config, how):
    def generate(state):
        found = Faq(size=1).invoke(asked(state))
        if "Norway" in asked(state):
            return {"messages": [chat(NEW).invoke(shown(found))]}
        text = chat(OLD).invoke(shown(found)).content
        return {"answer": text, "messages": [AIMessage(text)]}

    app = built(State, generate, checkpointer=InMemorySaver())
    await drive(how, app, {"messages": [("user", FIRST)]}, at(config))
    await drive(how, app, NEXT, at(config))
    assert [told(run) for run in keeper.runs] == [(FIRST, OLD, "answered"), (SECOND, NEW, "answered")]


def test_a_draft_that_a_person_approves_is_the_answer(keeper, config):
    def approve(state):
        interrupt("May I send it?")
        return {}

    app = built(State, retrieve, answering(OLD), approve, checkpointer=InMemorySaver())
    app.invoke({"messages": [("user", FIRST)]}, at(config))
    app.invoke(Command(resume=True), at(config))
    assert [told(run)[::2] for run in keeper.runs] == [(FIRST, "interrupted"), (FIRST, "answered")]
    assert keeper.runs[1].record.answer == OLD


def test_a_resumed_turn_whose_model_fails_has_no_answer(keeper, config):
    app = built(State, retrieve, answering(OLD, DOWN), checkpointer=InMemorySaver())
    app.invoke({"messages": [("user", FIRST)]}, at(config))
    app.invoke(NEXT, at(config), interrupt_before=["generate"])
    app.invoke(None, at(config))
    assert [told(run) for run in keeper.runs] == [
        (FIRST, OLD, "answered"), (SECOND, "", "interrupted"), (SECOND, "", "answered"),
    ]  # fmt: skip


def test_an_agent_with_a_history(keeper, config):
    model = Scripted(replies=[OLD, calls("search", query="Norway"), DOWN])

    class Quiet(agents.middleware.AgentMiddleware):
        def wrap_model_call(self, request, handler):
            try:
                return handler(request)
            except RuntimeError:
                return AIMessage("")

    app = agents.create_agent(model, [search], checkpointer=InMemorySaver(), middleware=[Quiet()])
    second(app, NEXT, config)
    assert [told(run) for run in keeper.runs] == [(FIRST, OLD, "answered"), (SECOND, "", "answered")]


# -- tools that answer for the agent --


@tool(return_direct=True)
def desk(query: str) -> str:
    """Answer."""
    return "You have thirty days, says the desk."


@tool(return_direct=True, response_format="content_and_artifact")
def page(query: str):
    """Answer from the pages."""
    found = Faq(size=1).invoke(query)
    return found[0].page_content, found


@tool(return_direct=True)
async def slow_desk(query: str) -> str:
    """Answer slowly."""
    return "You have thirty days, says the desk."


PAGE = "Passage d0 says that the lab moved 0 times."
DESK = "You have thirty days, says the desk."


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize(("one", "answer"), [(desk, DESK), (page, PAGE)])
async def test_a_direct_tool(keeper, config, how, one, answer):
    app = agents.create_agent(Scripted(replies=[calls(one.name, query="returns")]), [one])
    await drive(how, app, {"messages": [("user", FIRST)]}, config)
    assert told(keeper.only) == (FIRST, answer, "answered")
    assert keeper.only.record.is_answer_expected


async def test_a_direct_tool_that_is_async(keeper, config):
    app = agents.create_agent(Scripted(replies=[calls("slow_desk", query="returns")]), [slow_desk])
    await app.ainvoke({"messages": [("user", FIRST)]}, config)
    assert told(keeper.only) == (FIRST, DESK, "answered")


def test_two_direct_tools(keeper, config):
    both = AIMessage(
        "", tool_calls=[*calls("desk", "c1", query="a").tool_calls, *calls("page", "c2", query="b").tool_calls]
    )
    agents.create_agent(Scripted(replies=[both]), [desk, page]).invoke({"messages": [("user", FIRST)]}, config)
    assert told(keeper.only) == (FIRST, f"{DESK}\n\n{PAGE}", "answered")


def test_a_direct_tool_after_a_search_and_in_a_second_turn(keeper, config):
    model = Scripted(replies=[OLD, calls("search", query="returns"), calls("desk", "c2", query="returns")])
    second(agents.create_agent(model, [search, desk], checkpointer=InMemorySaver()), NEXT, config)
    assert [told(run)[:2] for run in keeper.runs] == [(FIRST, OLD), (SECOND, DESK)]


def test_a_direct_tool_that_a_person_approves(keeper, config):
    model = Scripted(replies=[calls("desk", query="returns")])
    app = agents.create_agent(model, [desk], checkpointer=InMemorySaver(), interrupt_before=["tools"])
    app.invoke({"messages": [("user", FIRST)]}, at(config))
    app.invoke(None, at(config))
    assert [told(run) for run in keeper.runs] == [(FIRST, "", "interrupted"), (FIRST, DESK, "answered")]


def test_a_direct_tool_that_fails_gives_no_answer(keeper, config):
    @tool(return_direct=True)
    def broken(query: str) -> str:
        """Fail."""
        raise ValueError("no such page")

    broken.handle_tool_error = True
    app = agents.create_agent(Scripted(replies=[calls("broken", query="a"), NEW]), [broken])
    with pytest.raises(ValueError, match="no such page"):
        app.invoke({"messages": [("user", FIRST)]}, config)
    assert told(keeper.only) == (FIRST, "", "error")


def test_a_classic_agent(keeper, config):
    classic = pytest.importorskip("langchain_classic.agents")
    prompt = ChatPromptTemplate.from_messages([("human", "{input}"), ("placeholder", "{agent_scratchpad}")])
    for one, answer in ((desk, DESK), (page, PAGE)):
        model = Scripted(replies=[calls(one.name, query="returns")])
        agent = classic.create_tool_calling_agent(model, [one], prompt)
        classic.AgentExecutor(agent=agent, tools=[one]).invoke({"input": FIRST}, config)
        assert told(keeper.runs.pop()) == (FIRST, answer, "answered")


def test_a_search_that_ends_a_graph_is_no_answer(keeper, config):
    @tool(response_format="content_and_artifact")
    def find(query: str):
        """Search."""
        found = Faq(size=2).invoke(query)
        return shown(found), found

    def ask(state):
        return {
            "messages": [Scripted(replies=[calls("find", query="a")]).bind_tools([find]).invoke(state["messages"])]
        }

    def act(state):
        call = state["messages"][-1].tool_calls[0]
        return {"messages": [find.invoke({**call, "type": "tool_call"})]}

    built(State, ask, act).invoke({"messages": [("user", FIRST)]}, config)
    assert (told(keeper.only)[:2], ids(keeper.only, "retrieved")) == ((FIRST, ""), ["d0", "d1"])


# -- answers of branches --


def branch(text, size=1, prefix="d"):
    found = {"context": Faq(size=size, prefix=prefix) | shown, "question": RunnablePassthrough()}
    return found | ChatPromptTemplate.from_template("{context}\n{question}") | chat(text) | StrOutputParser()


def scores_of(run):
    import asyncio

    from ragtrace.metrics import EvalContext, evaluate, select

    metrics = select(["faithfulness", "no_answer", "answer_relevancy"])
    return {(one.state, one.reason) for one in asyncio.run(evaluate(metrics, EvalContext(run.record)))}


SEVERAL = {("na", "several_answers")}
PAIR = "In Bergen.\n\nIn Oslo."


@pytest.mark.parametrize("names", [("short", "long"), ("long", "short"), ("response", "result")])
def test_branches_under_names_of_their_own(keeper, config, names):
    one, other = names
    RunnableParallel({one: branch("In Oslo."), other: branch("In Bergen.", prefix="e")}).invoke(FIRST, config)
    assert (told(keeper.only), scores_of(keeper.only)) == ((FIRST, PAIR, "answered"), SEVERAL)
    assert keeper.only.record.lossy == {"several_answers": 2}


def test_a_branch_that_quotes_a_passage_is_an_answer_too(keeper, config):
    quoted = Faq()._get_relevant_documents("", run_manager=None)[0].page_content
    RunnableParallel(a=branch(quoted), b=branch("In Bergen, they say.")).invoke(FIRST, config)
    assert keeper.only.record.lossy == {"several_answers": 2}


@pytest.mark.parametrize("how", ["stream", "invoke"])
def test_branches_that_give_messages(keeper, config, how):
    asks = ChatPromptTemplate.from_template("{question}")
    both = RunnableParallel(a=asks | chat("In Oslo."), b=asks | chat("In Bergen."))
    list(getattr(both, how)({"question": FIRST}, config))
    assert (keeper.only.record.answer, scores_of(keeper.only)) == (PAIR, SEVERAL)


def test_branches_in_a_list_and_with_their_contexts(keeper, config):
    (RunnableParallel(a=branch("In Oslo."), b=branch("In Bergen.")) | (lambda x: [x["b"], x["a"]])).invoke(
        FIRST, config
    )
    kept = {"docs": Faq(size=1), "answer": branch("In Oslo.")}
    other = {"docs": Faq(size=1), "answer": branch("In Bergen.")}
    RunnableParallel(a=RunnableParallel(kept), b=RunnableParallel(other)).invoke(FIRST, config)
    assert [(run.record.answer, scores_of(run)) for run in keeper.runs] == [(PAIR, SEVERAL)] * 2


def test_two_notes_beside_the_last_message_are_no_branches(keeper, config):
    class Noted(MessagesState, total=False):
        title: str
        topic: str

    def note(state):
        return {"title": chat("Returns").invoke("t").content, "topic": chat("Shop").invoke("t").content}

    built(Noted, replying(OLD), note).invoke({"messages": [("user", FIRST)]}, config)
    assert (keeper.only.record.answer, keeper.only.record.lossy) == (OLD, {})


@pytest.mark.parametrize("names", [("answer", "follow_up"), ("follow_up", "answer")])
def test_a_branch_that_is_named_the_answer(keeper, config, names):
    parts = {"answer": branch("In Oslo."), "follow_up": branch("When did it move?", prefix="e")}
    RunnableParallel({name: parts[name] for name in names}).invoke(FIRST, config)
    assert (keeper.only.record.answer, keeper.only.record.lossy) == ("In Oslo.", {})
    assert keeper.only.prompt_ids == ("d0",)


def test_branches_that_agree_are_one_answer(keeper, config):
    RunnableParallel(a=branch("In Oslo."), b=branch("In Oslo.")).invoke(FIRST, config)
    assert (keeper.only.record.answer, keeper.only.record.lossy) == ("In Oslo.", {})


def test_branches_that_another_step_joins(keeper, config):
    joined = ChatPromptTemplate.from_template("Join: {a} {b}") | chat("In Oslo, then in Bergen.")
    chain = RunnableParallel(a=branch("In Oslo."), b=branch("In Bergen.")) | RunnablePassthrough.assign(both=joined)
    chain.invoke(FIRST, config)
    assert (keeper.only.record.answer, keeper.only.record.lossy) == ("In Oslo, then in Bergen.", {})


def test_sections_that_a_function_joins(keeper, config):
    chain = RunnableParallel(a=branch("In Oslo."), b=branch("In Bergen.")) | RunnablePassthrough.assign(
        report=lambda x: f"# Where\n{x['a']}\n{x['b']}"
    )
    chain.invoke(FIRST, config)
    assert (keeper.only.record.answer, keeper.only.record.lossy) == ("# Where\nIn Oslo.\nIn Bergen.", {})


def test_a_report_that_leaves_out_the_heading_of_a_section(keeper, config):
    chain = RunnableParallel(a=branch("## Where\nIn Oslo."), b=branch("In Bergen.")) | RunnablePassthrough.assign(
        report=lambda x: "\n---\n".join((x["a"].removeprefix("## Where\n"), x["b"]))
    )
    chain.invoke(FIRST, config)
    assert (keeper.only.record.answer, keeper.only.record.lossy) == ("In Oslo.\n---\nIn Bergen.", {})


class Branches(TypedDict, total=False):
    question: str
    messages: Annotated[list, add_messages]
    answers: Annotated[list, operator.add]
    one: str
    two: str


def writing(key, text):
    def node(state):
        said = chat(text).invoke(shown(Faq(size=1, prefix=text[3]).invoke(state["question"])))
        return {key: [said] if key == "messages" else [said.content] if key == "answers" else said.content}

    return node


@pytest.mark.parametrize("keys", [("messages", "messages"), ("answers", "answers"), ("one", "two"), ("two", "one")])
def test_nodes_side_by_side(keeper, config, keys):
    made = StateGraph(Branches)
    for name, key, text in zip("ab", keys, ("In Oslo.", "In Bergen."), strict=True):
        made.add_node(name, writing(key, text))
        made.add_edge(START, name)
        made.add_edge(name, END)
    made.compile().invoke({"question": FIRST}, config)
    assert (told(keeper.only), scores_of(keeper.only)) == ((FIRST, PAIR, "answered"), SEVERAL)


def test_nodes_side_by_side_before_one_that_answers(keeper, config):
    made = StateGraph(Branches)
    for name, text in (("a", "In Oslo."), ("b", "In Bergen.")):
        made.add_node(name, writing("messages", text))
        made.add_edge(START, name)
        made.add_edge(name, "join")
    made.add_node("join", lambda state: {"messages": [chat("In both.").invoke(state["messages"])]})
    made.compile().invoke({"question": FIRST}, config)
    assert (keeper.only.record.answer, keeper.only.record.lossy) == ("In both.", {})


def test_nodes_in_turn_are_no_branches(keeper, config):
    def talk(text):
        return lambda state: {"messages": [chat(text).invoke(state["messages"])]}

    one, two = talk("Let me look."), talk("In Oslo.")
    one.__name__, two.__name__ = "one", "two"
    built(State, one, two).invoke({"messages": [("user", FIRST)]}, config)
    assert (keeper.only.record.answer, keeper.only.record.lossy) == ("In Oslo.", {})


def test_branches_in_a_block(keeper, recorder, config):
    with recorder.start(query=FIRST):
        RunnableParallel(a=branch("In Oslo."), b=branch("In Bergen.")).invoke(FIRST, config)
    assert (keeper.only.record.answer, scores_of(keeper.only)) == (PAIR, SEVERAL)


def test_an_application_that_chooses_among_branches(keeper, recorder, config):
    with recorder.start(query=FIRST) as run:
        found = RunnableParallel(a=branch("In Oslo."), b=branch("In Bergen.")).invoke(FIRST, config)
        run.answered(found["a"])
    assert (keeper.only.record.answer, keeper.only.record.lossy) == ("In Oslo.", {})
