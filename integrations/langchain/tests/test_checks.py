"""A check of an answer is a run that says which one it follows; in a block it leaves the answer."""

from __future__ import annotations

from typing import TypedDict

import pytest
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from pydantic import BaseModel, Field

from integrations.langchain.tests.parts import PROMPT, Scripted, chat
from ragtrace.metrics import EvalContext, evaluate, select
from ragtrace_langchain import instrument, uninstrument
from tests.kept import ANSWER

ASKED = {"question": "Where?", "context": "The lab is in Oslo."}
GIVEN = {"response": ANSWER, "context": "The lab is in Oslo."}
CHECK = PromptTemplate.from_template("Is {response} supported by {context}?")
TEXT = "{question} {answer} {documents}"
ALL = {"question": "Where?", "answer": ANSWER, "documents": "The lab is in Oslo."}


@pytest.fixture(autouse=True)
def installed(recorder):
    instrument(recorder)
    yield
    uninstrument()


class Support(BaseModel):
    response: str


class Backing(BaseModel):
    backing: str = Field(description="how far")


class VerdictDict(TypedDict):
    """Verdict."""

    outcome: str


class Next(BaseModel):
    next: str
    reasoning: str = ""


def structured(kind, **values):
    reply = AIMessage("", tool_calls=[{"name": kind.__name__, "args": values, "id": "1"}])
    return Scripted(replies=[reply]).with_structured_output(kind)


def text(template, reply):
    return ChatPromptTemplate.from_template(template) | chat(reply) | StrOutputParser()


CHECKS = {
    "structured": lambda: (CHECK | structured(Support, response="Fully supported")).invoke(GIVEN),
    "a dict": lambda: (CHECK | structured(VerdictDict, outcome="all of it is there")).invoke(GIVEN),
    "JSON": lambda: (
        PromptTemplate.from_template(TEXT) | chat('{"faithful": 1, "why": "it is there"}') | JsonOutputParser()
    ).invoke(ALL),
    "beside the raw message": lambda: (
        CHECK
        | Scripted(
            replies=[AIMessage("", tool_calls=[{"name": "Backing", "args": {"backing": "all of it"}, "id": "1"}])]
        ).with_structured_output(Backing, include_raw=True)
    ).invoke(GIVEN),
    "a text": lambda: text(TEXT, "yes").invoke(ALL),
    "another language": lambda: text(TEXT, "Ja, die Antwort ist belegt.").invoke(ALL),
    "a message": lambda: (ChatPromptTemplate.from_template(TEXT) | chat("no")).invoke(ALL),
    "a function behind it": lambda: (
        ChatPromptTemplate.from_template(TEXT) | chat("It holds.") | (lambda m: m.content == "It holds.")
    ).invoke(ALL),
    "in a stream": lambda: list((CHECK | chat("Fully supported") | StrOutputParser()).stream(GIVEN)),
}
OF_A_PROMPT = {"a prompt in one text": lambda: chat("Not supported.").invoke(f"Is {ANSWER} supported?")}
OTHERS = {
    "a relevance grade": lambda: text("{question} {document}", "Relevant").invoke(
        {"question": "Where?", "document": "Oslo."}
    ),
    "a router": lambda: (PromptTemplate.from_template("{question}") | structured(Next, next="billing")).invoke(
        {"question": "Where is my bill?"}
    ),
    "a new question": lambda: text(TEXT, "At 8.").invoke({**ALL, "question": "When does it open?"}),
}


@pytest.mark.parametrize(
    "answer",
    [
        "It is in Oslo [[1]].",
        "**Is it open on Sundays?**\n\nYes.",
        "Name: Pärlan\nSoup from 11 to 14\nRating: 4",
        "Oslo beat Bergen.\nFinal score: 3",
    ],
)
def test_an_improved_answer_is_a_run(keeper, recorder, answer):
    text("{draft} {context} {question}", answer).invoke({"draft": ANSWER, "context": "Oslo.", "question": "Where?"})
    assert keeper.only.record.answer == answer


@pytest.mark.parametrize(
    "answer",
    [
        '[{"days": 28, "weeks": 12}]',
        '{"products": [{"rating": 4, "note": "waterproof to 10 m"}]}',
        '{"sentences": [{"sentence": "It is in Oslo.", "supported_by": [1]}]}',
        '{"statement": "It is in Oslo.", "supporting_quote": "Oslo"}',
    ],
)
def test_an_answer_in_json_is_a_run(keeper, recorder, answer):
    (PROMPT | chat(answer) | StrOutputParser()).invoke(ASKED)
    assert keeper.only.record.answer == answer


def followed(keeper):
    return [[sign.about for sign in run.record.signs if sign.name == "follows_answer"] for run in keeper.runs]


@pytest.mark.parametrize("form", CHECKS | OF_A_PROMPT)
def test_a_check_follows_the_run_whose_answer_it_was_given(keeper, recorder, form):
    (PROMPT | chat() | StrOutputParser()).invoke(ASKED)
    (CHECKS | OF_A_PROMPT)[form]()
    assert keeper.runs[0].record.answer == ANSWER
    assert followed(keeper) == [[], [keeper.runs[0].record.trace_id]]
    assert recorder.open_runs == 0


NOWHERE = {f"state.nowhere{n}": True for n in range(9)}
NOTES = "The lab moved from Bergen to Oslo in the spring of 2019, and opened again in May of that year."


async def test_no_sign_that_changes_scores_is_cut(keeper, recorder):
    uninstrument()
    instrument(recorder, evidence=NOWHERE)
    text("{notes} {question}", ANSWER).invoke({"notes": NOTES, "question": "Where?"})
    (CHECK | structured(Support, response="Fully supported")).invoke(GIVEN)
    signs = [[sign.name for sign in run.record.signs] for run in keeper.runs]
    assert signs == [["declared_missing"] * 7 + [name] for name in ("evidence_unread", "follows_answer")]
    (scored,) = await evaluate(select(["faithfulness"]), EvalContext(record=keeper.runs[1].record))
    assert scored.reason == "follows_answer"


async def test_an_async_check_follows_too(keeper, recorder):
    await (PROMPT | chat() | StrOutputParser()).ainvoke(ASKED)
    await (CHECK | structured(Backing, backing="all of it")).ainvoke(GIVEN)
    assert (followed(keeper), recorder.open_runs) == ([[], [keeper.runs[0].record.trace_id]], 0)


@pytest.mark.parametrize("form", OTHERS)
def test_a_run_that_was_given_no_answer_or_asks_something_new_follows_none(keeper, recorder, form):
    (PROMPT | chat() | StrOutputParser()).invoke(ASKED)
    OTHERS[form]()
    assert (followed(keeper), recorder.open_runs) == ([[], []], 0)


class Translation(BaseModel):
    translated: str


class Improved(BaseModel):
    answer: str
    changes: list[str] = []


class City(BaseModel):
    city: str


RUNS = {
    "a summary": (
        lambda: text("Summarise {text}", "The lab moved.").invoke({"text": "It moved. " * 9}),
        "The lab moved.",
    ),
    "a translation": (
        lambda: text("{answer} in {language}", "Das Labor ist in Oslo.").invoke(
            {"answer": ANSWER, "language": "de"}
        ),
        "Das Labor ist in Oslo.",
    ),
    "a translation that says yes": (
        lambda: text("{answer} in {language}", "Yes, the answer is Oslo.").invoke(
            {"answer": "Yes, es ist Oslo.", "language": "en"}
        ),
        "Yes, the answer is Oslo.",
    ),
    "a structured translation": (
        lambda: (
            PromptTemplate.from_template("{response} in {language}")
            | structured(Translation, translated="Das Labor ist in Oslo.")
        ).invoke({"response": ANSWER, "language": "de"}),
        '{"translated": "Das Labor ist in Oslo."}',
    ),
    "an improved answer": (
        lambda: (PromptTemplate.from_template(TEXT) | structured(Improved, answer="In Oslo, Norway.")).invoke(ALL),
        "In Oslo, Norway.",
    ),
    "an answer with a style": (
        lambda: (PromptTemplate.from_template("{question} {answer_style}") | structured(City, city="Oslo")).invoke(
            {"question": "Where?", "answer_style": "short"}
        ),
        '{"city": "Oslo"}',
    ),
    "an extraction": (
        lambda: (PromptTemplate.from_template("{text}") | structured(City, city="Oslo")).invoke({"text": ANSWER}),
        '{"city": "Oslo"}',
    ),
}


@pytest.mark.parametrize("form", RUNS)
def test_a_chain_that_gives_a_text_is_a_run(keeper, form):
    call, answer = RUNS[form]
    call()
    assert keeper.only.record.answer == answer


@pytest.mark.parametrize("form", CHECKS)
def test_a_check_in_a_block_leaves_the_answer(keeper, recorder, form):
    with recorder.start(query="Where?"):
        (PROMPT | chat() | StrOutputParser()).invoke(ASKED)
        CHECKS[form]()
    assert (keeper.only.record.answer, keeper.only.record.lossy) == (ANSWER, {})
