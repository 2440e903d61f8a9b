"""Forms that a model fills in by a call are answers, whatever other models noted; what else a state holds is none."""

import operator
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel

from integrations.langchain.tests.parts import Scripted, calls

pytest.importorskip("langgraph")

from langgraph.graph import END, START, StateGraph

TEXTS = {
    "Gründung": "Die Käserei Grau entstand 1871 im Tal, gegründet von Resi Thaler.",
    "Ware": "Verkauft werden Bergkäse und Ziger, im Laden an der Brücke.",
    "Leute": "Im Winter arbeiten 12 Menschen in der Käserei, im Sommer 30.",
}
WHOLE = {"seit": 1871, "waren": ["Bergkäse", "Ziger"]}


def pages(*names):
    return [{"title": name, "url": f"https://{name.lower()}.example", "content": TEXTS[name]} for name in names]


class State(TypedDict):
    firma: str
    vorlage: dict[str, Any]
    treffer: list[dict]
    notizen: Annotated[list[str], operator.add]
    steckbrief: dict[str, Any]


class Output(TypedDict):
    steckbrief: dict[str, Any]
    treffer: list[dict]


class Form(BaseModel):
    """What is known of a firm."""

    seit: int
    waren: list[str]


def researched(replies, *hops, form=Form):
    """A graph that notes pages of each hop, and fills in a form; its state keeps the pages of the last one."""
    model = Scripted(replies=replies)
    built = StateGraph(State, output_schema=Output)
    built.add_edge(START, "suchen 0")
    for number, names in enumerate(hops):

        def search(state, names=names):
            found = pages(*names)
            said = model.invoke("Mache Notizen:\n" + "\n".join(one["content"] for one in found))
            return {"notizen": [said.text], "treffer": found}

        built.add_node(f"suchen {number}", search)
        built.add_edge(f"suchen {number}", f"suchen {number + 1}" if number + 1 < len(hops) else "ausfüllen")

    def fill(state):
        called = model.invoke("Fülle aus:\n" + "\n".join(state["notizen"])).tool_calls
        return {"steckbrief": form(**called[0]["args"]).model_dump()}

    built.add_node("ausfüllen", fill)
    built.add_edge("ausfüllen", END)
    return built.compile()


GIVEN = {
    "firma": "Käserei Grau",
    "vorlage": {"title": "Steckbrief", "description": "Was von der Firma bekannt ist"},
}


def test_a_form_is_the_answer_and_a_note_is_not(keeper, config):
    replies = ["gegründet 1871 von Resi Thaler; Bergkäse, Ziger", calls("Form", **WHOLE)]
    researched(replies, ["Gründung", "Ware"]).invoke(GIVEN, config)
    record = keeper.only.record
    assert (record.query, record.answer) == ("", '{"seit": 1871, "waren": ["Bergkäse", "Ziger"]}')
    assert [sign.name for sign in record.signs][:2] == ["question_guessed", "answer_guessed"]
    assert [one.text for one in record.contexts] == [TEXTS["Gründung"], TEXTS["Ware"]]


def test_pages_of_a_second_search_are_found_though_the_step_takes_notes_of_them(keeper, config):
    replies = ["gegründet 1871", "12 Menschen arbeiten dort im Winter", calls("Form", **WHOLE)]
    researched(replies, ["Gründung", "Ware"], ["Leute"]).invoke(GIVEN, config)
    record = keeper.only.record
    assert [one.text for one in record.pool("retrieved")] == list(TEXTS.values())
    assert not record.pool("reranked")
    assert len(keeper.only.prompt_ids or ()) == 3


def test_a_mapping_that_holds_more_than_the_call_is_no_form(keeper, config):
    class Asked(TypedDict):
        question: str
        web: dict[str, Any]
        spoken: str

    class Told(TypedDict):
        web: dict[str, Any]

    model = Scripted(replies=["In Oslo, am Hafen.", calls("search", query="lab")])

    def search(state):
        first = model.invoke(state["question"]).text
        query = model.invoke("Which query?").tool_calls[0]["args"]["query"]
        return {"web": {"query": query, "results": []}, "spoken": first}

    built = StateGraph(Asked, output_schema=Told)
    built.add_node("search", search)
    built.add_edge(START, "search")
    built.compile().invoke({"question": "Where is the lab?"}, config)
    assert "results" not in keeper.only.record.answer


class Sampling(Scripted):
    """Gives out a call and a text as candidates of one reply."""

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        made = [calls("search", query="lab"), AIMessage("In Oslo, seit 1911.")]
        return ChatResult(generations=[ChatGeneration(message=one) for one in made])


class Attempt:
    """An object that says nothing of itself to who looks for texts."""

    def __init__(self, messages):
        self.messages = messages


def test_the_candidate_that_says_something_is_the_answer_and_no_state_is(keeper, config):
    class Tree(TypedDict):
        root: Any
        input: str

    def attempt(state, config: RunnableConfig):
        asked = [HumanMessage(state["input"])]
        return {
            **state,
            "root": Attempt(Sampling(replies=[""]).generate([asked], callbacks=config["callbacks"])),
        }

    built = StateGraph(Tree)
    built.add_node("attempt", attempt)
    built.add_edge(START, "attempt")
    assert list(built.compile().stream({"input": "Wo steht das Labor?"}, config))
    record = keeper.only.record
    assert (record.query, record.answer) == ("Wo steht das Labor?", "In Oslo, seit 1911.")


def test_a_state_whose_object_says_nothing_is_no_answer(keeper, config):
    class Tree(TypedDict):
        root: Any
        input: str

    def attempt(state):
        return {**state, "root": Attempt(Scripted(replies=[calls("search", query="lab")]).invoke(state["input"]))}

    built = StateGraph(Tree)
    built.add_node("attempt", attempt)
    built.add_edge(START, "attempt")
    built.compile().invoke({"input": "Wo steht das Labor?"}, config)
    assert all(run.record.answer == "" for run in keeper.runs)


def answering(call, **state):
    """A graph of one model, which ends where that calls `Final`."""
    model = Scripted(replies=[call])
    built = StateGraph(Said)
    built.add_node("say", lambda given: {"messages": [model.invoke(given["messages"])], **state})
    built.add_edge(START, "say")
    built.add_edge("say", END)
    return built.compile()


class Said(TypedDict, total=False):
    messages: Annotated[list, operator.add]
    response: str


def test_a_call_that_holds_an_answer_and_that_no_tool_runs_is_the_answer(keeper, config):
    final = calls("Final", reason="So the page says.", answer="Seit 1871.")
    answering(final).invoke({"messages": [HumanMessage("Seit wann?")]}, config)
    assert (keeper.only.record.query, keeper.only.record.answer) == ("Seit wann?", "Seit 1871.")


def test_such_a_call_is_the_answer_beside_words_too(keeper, config):
    final = calls("Final", missing="Wer?", answer="Seit 1871.")
    final.content = "Ich überlege noch einmal."
    answering(final).invoke({"messages": [HumanMessage("Seit wann?")]}, config)
    assert keeper.only.record.answer == "Seit 1871."


def test_words_beside_a_call_without_an_answer_stay(keeper, config):
    search = calls("search", query="Käserei")
    search.content = "Ich suche noch."
    answering(search).invoke({"messages": [HumanMessage("Seit wann?")]}, config)
    assert keeper.only.record.answer == "Ich suche noch."


def test_the_path_of_a_file_is_a_guess(keeper, config):
    answering(AIMessage("Seit 1871."), response="/data/a report.md").invoke(
        {"messages": [HumanMessage("Seit wann?")]}, config
    )
    assert keeper.only.record.answer == "/data/a report.md"
    assert [sign.name for sign in keeper.only.record.signs] == ["answer_guessed"]


@pytest.mark.parametrize("text", ["Seit 1871.", "and/or", "Siehe /tmp/a.md.", "https://a.example/b.html"])
def test_other_texts_under_an_answer_s_name_are(keeper, config, text):
    answering(AIMessage("Ich weiß nicht."), response=text).invoke(
        {"messages": [HumanMessage("Seit wann?")]}, config
    )
    assert keeper.only.record.answer == text


def test_a_reply_that_an_agent_hands_on_as_a_person_s_message_is_the_answer(keeper, config):
    model = Scripted(replies=["Das Jahr ist 1871."])

    def speak(state):
        return {"messages": [HumanMessage(model.invoke(state["messages"]).text, name="historian")]}

    built = StateGraph(Said)
    built.add_node("speak", speak)
    built.add_edge(START, "speak")
    built.add_edge("speak", END)
    built.compile().invoke({"messages": [HumanMessage("Seit wann?")]}, config)
    assert (keeper.only.record.query, keeper.only.record.answer) == ("Seit wann?", "Das Jahr ist 1871.")
