"""A check, a grader or a router outside a block is no run, and a chain that translates, shortens or improves is one."""

from __future__ import annotations

from typing import TypedDict

import pytest
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from pydantic import BaseModel, Field

from integrations.langchain.tests.parts import PROMPT, Scripted, chat
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


class Stars(BaseModel):
    stars: int
    comment: str


class Faithful(BaseModel):
    is_faithful: bool
    missing: list[str] = []


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
    "self-RAG support": lambda: (CHECK | structured(Support, response="Fully supported")).invoke(GIVEN),
    "partial support": lambda: (CHECK | structured(Support, response="Partially supported")).invoke(GIVEN),
    "no support": lambda: (CHECK | structured(Support, response="No support")).invoke(GIVEN),
    "support in a sentence": lambda: (
        CHECK | structured(Support, response="All that it says is in the context, word for word and in full.")
    ).invoke(GIVEN),
    "another name": lambda: (CHECK | structured(Backing, backing="all of it")).invoke(GIVEN),
    "a dict": lambda: (CHECK | structured(VerdictDict, outcome="all of it is there")).invoke(GIVEN),
    "stars and a comment": lambda: (
        PromptTemplate.from_template(TEXT) | structured(Stars, stars=4, comment="Names the city, not the street.")
    ).invoke(ALL),
    "a boolean": lambda: (PromptTemplate.from_template(TEXT) | structured(Faithful, is_faithful=True)).invoke(ALL),
    "JSON": lambda: (
        PromptTemplate.from_template(TEXT) | chat('{"faithful": 1, "why": "it is there"}') | JsonOutputParser()
    ).invoke(ALL),
    "beside the raw message": lambda: (
        CHECK
        | Scripted(
            replies=[AIMessage("", tool_calls=[{"name": "Backing", "args": {"backing": "all of it"}, "id": "1"}])]
        ).with_structured_output(Backing, include_raw=True)
    ).invoke(GIVEN),
    "yes": lambda: text(TEXT, "yes").invoke(ALL),
    "Yes, and why": lambda: text(TEXT, "Yes, the answer is grounded in the document.").invoke(ALL),
    "a score": lambda: text(TEXT, "score: 4").invoke(ALL),
    "a score of many": lambda: text(TEXT, "Score: 4/5\nReason: it names the city.").invoke(ALL),
    "out of": lambda: text(TEXT, "4 out of 5").invoke(ALL),
    "bold": lambda: text(TEXT, "**Supported**").invoke(ALL),
    "pass": lambda: text(TEXT, "PASS").invoke(ALL),
    "a message": lambda: (ChatPromptTemplate.from_template(TEXT) | chat("no")).invoke(ALL),
    "a function behind it": lambda: (
        ChatPromptTemplate.from_template(TEXT) | chat("It holds.") | (lambda m: m.content == "It holds.")
    ).invoke(ALL),
    "a relevance grade": lambda: text("{question} {document}", "Relevant").invoke(
        {"question": "Where?", "document": "Oslo."}
    ),
    "a router": lambda: (PromptTemplate.from_template("{question}") | structured(Next, next="billing")).invoke(
        {"question": "Where is my bill?"}
    ),
    "Llama Guard": lambda: text(TEXT, "unsafe\nS2").invoke(ALL),
    "safe": lambda: chat("safe").invoke("Check if there is unsafe content: Where?"),
    "a reason, then the verdict": lambda: text(TEXT, "It names the city.\n\nVerdict: yes").invoke(ALL),
    "a reason, then a letter": lambda: text(TEXT, "It names the city.\n\nY").invoke(ALL),
    "a reason, then a result": lambda: text(TEXT, "Feedback: It names the city. [RESULT] 5").invoke(ALL),
    "statements with verdicts": lambda: chat(
        '{"statements": [{"statement": "It is in Oslo.", "reason": "The page says so.", "verdict": 1}]}'
    ).invoke("Judge."),
    "a grade by a prompt in one text": lambda: chat("Not supported.").invoke(f"Is {ANSWER} supported?"),
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


@pytest.mark.parametrize("form", CHECKS)
def test_a_check_is_no_run(keeper, recorder, form):
    (PROMPT | chat() | StrOutputParser()).invoke(ASKED)
    CHECKS[form]()
    assert [(run.record.query, run.record.answer) for run in keeper.runs] == [("Where?", ANSWER)]
    assert recorder.open_runs == 0


async def test_a_check_in_a_stream_and_async(keeper, recorder):
    await (CHECK | structured(Backing, backing="all of it")).ainvoke(GIVEN)
    list((CHECK | chat("Fully supported") | StrOutputParser()).stream(GIVEN))
    assert (keeper.runs, recorder.open_runs) == ([], 0)


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
