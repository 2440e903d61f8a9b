"""An application's own names and its own language: its question, its answer, its messages, its notes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, TypedDict

import pytest
from langchain import agents
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from integrations.langchain.tests.parts import Faq, Scripted, calls, chat, shown
from tests.kept import ids

ASKED, NEXT = "Wie lange darf ich ein Buch behalten?", "Und DVDs?"
SAID = "Bücher darf man 28 Tage behalten."


def built(kind, *nodes, **how):
    made = StateGraph(kind)
    made.add_sequence([(f"{at}-{node.__name__}", node) for at, node in enumerate(nodes)])
    made.add_edge(START, f"0-{nodes[0].__name__}")
    return made.compile(**how)


def at(config, thread="t"):
    return {**config, "configurable": {"thread_id": thread}}


def told(run):
    return run.record.query, run.record.answer, run.record.outcome


# -- the question --


def signs(run):
    return {sign.name for sign in run.record.signs}


@pytest.mark.parametrize(
    ("given", "question", "is_guessed"),
    [
        (
            {"pairs": [("a", "b")], "turns": [HumanMessage("Hi"), AIMessage("Hello"), HumanMessage("And?")]},
            "And?",
            False,
        ),
        ({"frage": "Öffnungszeiten der Filiale", "k": 4}, "Öffnungszeiten der Filiale", True),
        ({"質問": "本の貸出期間を教えてください", "k": 4}, "本の貸出期間を教えてください", True),
        ({"prompt": "Be brief.", "customer_message": "How long?"}, "", True),
        ({"brief": {"betreff": "Buch weg?", "inhalt": "Was kostet mich das?"}}, "", True),
    ],
    ids=str,
)
def test_a_question_under_a_name_of_ones_own_is_a_guess(keeper, config, given, question, is_guessed):
    (RunnableLambda(lambda x: f"Answer. {x}") | chat()).invoke(given, config)
    assert keeper.only.record.query == question
    assert ("question_guessed" in signs(keeper.only)) == is_guessed


class Talk(TypedDict, total=False):
    conversation: Annotated[list, add_messages]
    lang: str
    docs: list


@dataclass
class Data:
    conversation: Annotated[list, add_messages] = field(default_factory=list)
    lang: str = "de"
    docs: list = field(default_factory=list)


class Model(BaseModel):
    conversation: Annotated[list, add_messages] = []
    lang: str = "de"
    docs: list = []


def value(state, name):
    return state.get(name, []) if isinstance(state, dict) else getattr(state, name)


def find(state):
    return {"docs": Faq(size=1).invoke("a rewritten query")}


def replying(*replies):
    model = Scripted(replies=list(replies))

    def generate(state):
        prompt = [SystemMessage(shown(value(state, "docs"))), *value(state, "conversation")]
        try:
            return {"conversation": [model.invoke(prompt)]}
        except RuntimeError:
            return {}

    return generate


@pytest.mark.parametrize("kind", [Talk, Data, Model])
def test_messages_under_another_name(keeper, config, kind):
    made = built(
        kind, find, replying(SAID, "Sieben."), checkpointer=InMemorySaver(), interrupt_before=["1-generate"]
    )
    for question in (ASKED, NEXT):
        made.invoke({"conversation": [HumanMessage(question)], "lang": "de"}, at(config))
        made.invoke(None, at(config))
    assert [told(run) for run in keeper.runs] == [
        (ASKED, "", "interrupted"), (ASKED, SAID, "answered"), (NEXT, "", "interrupted"), (NEXT, "Sieben.", "answered"),
    ]  # fmt: skip


@pytest.mark.parametrize("given", [[("user", ASKED)], [{"role": "user", "content": ASKED}], [HumanMessage(ASKED)]])
def test_forms_of_messages_under_another_name(keeper, config, given):
    built(Talk, find, replying(SAID)).invoke({"conversation": given, "lang": "de"}, config)
    assert told(keeper.only) == (ASKED, SAID, "answered")


def test_a_turn_without_an_answer_under_another_name(keeper, config):
    app = built(Talk, find, replying(SAID, RuntimeError("429"), "Zehn."), checkpointer=InMemorySaver())
    for question in (ASKED, NEXT, "Und CDs?"):
        app.invoke({"conversation": [HumanMessage(question)]}, at(config))
    assert [run.record.answer for run in keeper.runs] == [SAID, "", "Zehn."]
    assert [turn.content for turn in keeper.runs[1].record.history] == [ASKED, SAID]


def test_a_function_that_answers_in_messages_under_another_name(keeper, config):
    def rewrite(state):
        return {"docs": Faq(size=1).invoke(chat("loan time").invoke("Rewrite").content)}

    def sorry(state):
        return {"conversation": [AIMessage("Leider nichts gefunden.")]}

    built(Talk, rewrite, sorry).invoke({"conversation": [HumanMessage(ASKED)]}, config)
    assert told(keeper.only) == (ASKED, "Leider nichts gefunden.", "answered")


# -- the answer --


class German(TypedDict, total=False):
    frage: str
    suchanfrage: str
    dokumente: list
    bewertung: str
    antwort: str


def ask(key, text, *given):
    def node(state):
        return {key: Scripted(replies=[text]).invoke(" ".join(str(state[name]) for name in given)).content}

    node.__name__ = key
    return node


def hole(state):
    return {"dokumente": Faq(size=2).invoke(state.get("suchanfrage", state["frage"]))}


REWRITE, GRADE = ask("suchanfrage", "Leihfrist Buch", "frage"), ask("bewertung", "ja", "dokumente")
ANSWER = ask("antwort", SAID, "dokumente", "frage")


def test_a_state_in_german(keeper, config):
    built(German, REWRITE, hole, GRADE, ANSWER).invoke({"frage": ASKED}, config)
    assert (told(keeper.only), keeper.only.record.lossy) == ((ASKED, SAID, "answered"), {})


def test_a_state_in_german_that_is_resumed(keeper, config):
    def free(state):
        interrupt("Darf ich?")
        return {}

    app = built(German, REWRITE, hole, free, ANSWER, checkpointer=InMemorySaver())
    app.invoke({"frage": ASKED}, at(config))
    app.invoke(Command(resume=True), at(config))
    assert [told(run) for run in keeper.runs] == [(ASKED, "", "interrupted"), ("", SAID, "answered")]
    assert "question_guessed" in signs(keeper.runs[1])


class Own(TypedDict, total=False):
    problem: str
    plan: str
    dokumente: list
    draft: str
    kritik: str
    reply: str
    other: str


def pages(state):
    return {"dokumente": Faq(size=1).invoke("loans")}


STEPS = {
    "a plan before it": [ask("plan", "First look it up.", "problem"), pages, ask("reply", SAID, "dokumente")],
    "a draft and its critique": [
        pages, ask("draft", "28 Tage.", "dokumente"), ask("kritik", "Zu kurz.", "draft"), ask("reply", SAID, "dokumente"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("form", STEPS)
def test_the_text_of_the_last_step_is_the_answer(keeper, config, form):
    built(Own, *STEPS[form]).invoke({"problem": ASKED}, config)
    assert (told(keeper.only), keeper.only.record.lossy) == ((ASKED, SAID, "answered"), {})


def test_two_steps_side_by_side_behind_a_plan_answer_both(keeper, config):
    made = StateGraph(Own)
    made.add_node("plans", ask("plan", "First look it up.", "problem"))
    made.add_edge(START, "plans")
    for key, text in (("reply", "In Oslo, sagt er."), ("other", "In Bergen, sagt sie.")):
        made.add_node(f"{key}s", ask(key, text, "problem"))
        made.add_edge("plans", f"{key}s")
        made.add_edge(f"{key}s", END)
    made.compile().invoke({"problem": ASKED}, config)
    assert keeper.only.record.answer == "In Bergen, sagt sie.\n\nIn Oslo, sagt er."
    assert keeper.only.record.lossy == {"several_answers": 2}


def test_a_plan_before_a_subgraph_that_answers(keeper, config):
    inner = built(Own, pages, ask("reply", SAID, "dokumente"))
    inner.__name__ = "inner"
    app = built(Own, ask("plan", "First look it up.", "problem"), inner)
    app.invoke({"problem": ASKED}, config)
    (RunnableLambda(lambda text: {"problem": text}) | app).invoke(ASKED, config)
    assert [told(run) for run in keeper.runs] == [(ASKED, SAID, "answered")] * 2


@tool(return_direct=True)
def auskunft(frage: str) -> str:
    """Antwortet."""
    return SAID


def test_a_direct_tools_result_under_another_name(keeper, config):
    agent = agents.create_agent(Scripted(replies=[calls("auskunft", frage="x")]), [auskunft])
    chain = RunnableLambda(lambda q: {"messages": [("user", q)]}) | agent
    (chain | (lambda state: {"reply": state["messages"][-1].content})).invoke(ASKED, config)
    assert told(keeper.only) == (ASKED, SAID, "answered")


# -- what is a run --


def test_a_translation_of_an_answer_is_a_run(keeper, config):
    (PromptTemplate.from_template("{antwort}") | chat(SAID)).invoke({"antwort": "28 days for a book."}, config)
    assert keeper.only.record.answer == SAID


@tool
def count(table: str) -> str:
    """Count."""
    return "There are 12 rows in the table."


class Database(TypedDict, total=False):
    question: str
    query: str
    result: str
    answer: str


@pytest.mark.parametrize("reply", ["12", "Yes.", "Nein."])
def test_a_short_answer_to_what_was_looked_up_is_a_run(keeper, config, reply):
    agent = agents.create_agent(Scripted(replies=[calls("count", table="rooms"), reply]), [count])
    agent.invoke({"messages": [("user", ASKED)]}, config)

    def execute(state):
        return {"result": "[(12,)]"}

    nodes = ask("query", "SELECT count(*) FROM rooms", "question"), execute, ask("answer", reply, "result")
    built(Database, *nodes).invoke({"question": ASKED}, config)
    assert [told(run) for run in keeper.runs] == [(ASKED, reply, "answered")] * 2
    assert [run.record.contexts for run in keeper.runs[1:]] == [()]
    assert keeper.runs[0].record.contexts[0].text == "There are 12 rows in the table."


def test_a_short_answer_in_a_conversation_is_a_run(keeper, config):
    model = Scripted(replies=["In Oslo it is.", "4"])
    app = built(
        MessagesState, lambda state: {"messages": [model.invoke(state["messages"])]}, checkpointer=InMemorySaver()
    )
    for question in (ASKED, NEXT):
        app.invoke({"messages": [("user", question)]}, at(config))
    assert [told(run)[:2] for run in keeper.runs] == [(ASKED, "In Oslo it is."), (NEXT, "4")]


# -- evidence --


@tool
def search(query: str) -> str:
    """Search."""
    return shown(Faq(size=1).invoke(query))


NOTES = [
    "Note enregistrée.",
    "メモを保存しました。",
]


@pytest.mark.parametrize("line", NOTES)
def test_a_few_words_that_no_reply_says_are_no_evidence_in_any_language(keeper, config, line):
    @tool
    def merke(text: str) -> str:
        """Merkt sich etwas."""
        return line

    model = Scripted(
        replies=[calls("search", query="x"), calls("merke", "c2", text="Bücher behält man 365 Tage."), SAID]
    )
    agents.create_agent(model, [search, merke]).invoke({"messages": [("user", ASKED)]}, config)
    assert [one.text for one in keeper.only.record.contexts] == ["Passage d0 says that the lab moved 0 times."]
    assert ids(keeper.only, "retrieved") == ["d0"]
