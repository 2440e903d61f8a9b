"""One vocabulary: the same application, written in every framework and by hand, leaves the same record."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from ragtrace.capture import Generation, Rerank, Retrieval
from ragtrace.model import Message
from ragtrace.testing.comparing import differences
from ragtrace.testing.conformance import CHOICE
from ragtrace.testing.plan import LABELS, Request, difficult, plan_of
from ragtrace.testing.recording import Recording
from ragtrace_llamaindex import uninstrument
from tests.conformance.langchain import CompressionApplication, LcelApplication
from tests.conformance.llamaindex import QueryEngineApplication
from tests.conformance.manual import ManualApplication

# All that may differ between frameworks, and why. Scores that LangChain keeps in a document's metadata, since it has no
# other place for them, are left out of the metadata on both sides (`metadata_keys` of the applications).
MAY_DIFFER = {"selection_source": "it says how the choice became known, and that is the framework's doing"}
SOURCES = {
    ManualApplication: "explicit",
    LcelApplication: "chain",
    CompressionApplication: "retriever",
    QueryEngineApplication: "framework",
}

EVERYTHING = Request(
    session="s-42",
    user="u-7",
    corpus="faq",
    corpus_version="2026-11",
    reference="In Oslo.",
    labels=LABELS,
    k=2,
    tags=("beta", "paid"),
)
PLANS = {
    "plain": plan_of(6, choice=CHOICE),
    "all the request may say": plan_of(6, choice=CHOICE, request=EVERYTHING),
    "no reranker": plan_of(4),
    "a hundred": plan_of(100, choice=tuple((place, round(place / 1000, 3)) for place in range(99, 91, -1))),
    "a cut prompt": plan_of(6, choice=CHOICE, shown_chars=70),
    "a conversation": plan_of(
        6, choice=CHOICE, history=(Message(role="user", content="Hi."), Message(role="assistant", content="Hello."))
    ),
}
PLANS |= {f"{name}, difficult texts": difficult(plan) for name, plan in PLANS.items()}


@pytest.fixture(autouse=True)
def _llamaindex_is_let_go():
    yield
    uninstrument()


def recorded(kind, plan, way):
    application = kind()
    kept = Recording()
    if way == "stream":
        answer = "".join(application.stream(plan, kept.recorder))
    elif way == "async":
        answer = asyncio.run(application.aask(plan, kept.recorder))
    else:
        answer = application.ask(plan, kept.recorder)
    assert answer == plan.answer
    return application.plain(kept.only.record), kept.only


@pytest.mark.parametrize("way", ["sync", "async", "stream"])
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_the_record_is_the_same_everywhere(plan, way):
    if way != "sync" and plan.history:
        pytest.skip("one conversation is enough")
    first, _ = recorded(ManualApplication, plan, way)
    for kind in SOURCES:
        record, _ = recorded(kind, plan, way)
        assert differences(record, first, MAY_DIFFER) == [], kind.__name__


@pytest.mark.parametrize("fails", ["retriever", "reranker", "model"])
def test_a_failed_record_is_the_same_everywhere(fails):
    plan = plan_of(6, choice=CHOICE, fails=fails)
    records = {}
    for kind in SOURCES:
        kept, application = Recording(), kind()
        with pytest.raises(Exception, match="as planned"):
            application.ask(plan, kept.recorder)
        # Which model would have answered is known once it is called.
        records[kind] = replace(application.plain(kept.only.record), model=None)
    first = records.pop(ManualApplication)
    for kind, record in records.items():
        assert differences(record, first, MAY_DIFFER) == [], kind.__name__


def test_each_says_how_it_knows():
    said = {kind: recorded(kind, PLANS["plain"], "sync")[0].selection_source for kind in SOURCES}
    assert said == SOURCES
    unchosen = {recorded(kind, PLANS["no reranker"], "sync")[0].selection_source for kind in SOURCES}
    assert unchosen == {"retriever"}


def test_the_steps_are_the_same_everywhere():
    """Queries, candidates, both scores and ranks of each step; the compression retriever has one step around it."""
    steps = {}
    for kind in SOURCES:
        _, captured = recorded(kind, PLANS["plain"], "sync")
        found = [step for step in captured.steps if isinstance(step, Retrieval)]
        (choice,) = [step for step in captured.steps if isinstance(step, Rerank)]
        (call,) = [step for step in captured.steps if isinstance(step, Generation)]
        steps[kind] = (
            (found[0].query, found[0].source, [(p.id, p.rank, p.score) for p in found[0].passages]),
            [(p.id, p.rank, p.score) for p in choice.candidates],
            [(p.id, p.rank, p.score) for p in choice.passages],
            (call.model, call.usage),
        )
        assert len(found) == (2 if kind is CompressionApplication else 1)
    first = steps.pop(ManualApplication)
    for kind, seen in steps.items():
        assert seen == first, kind.__name__
