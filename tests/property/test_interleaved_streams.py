"""Random interleavings of real applications: streams read in turns, left, dropped, swept, beside calls and failures."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragtrace.capture import internal_errors
from ragtrace.testing.plan import PlannedFailure, plan_of
from ragtrace.testing.recording import Recording
from ragtrace_llamaindex import uninstrument
from tests.conformance.langchain import CompressionApplication, LcelApplication
from tests.conformance.llamaindex import QueryEngineApplication

ACTS = (
    "open",
    "open",
    "open failing",
    "read",
    "read",
    "read",
    "finish",
    "drop",
    "ask",
    "ask failing",
    "sweep",
    "elsewhere",
)
acts = st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 7)), max_size=14)
CHOICE = ((3, 0.9), (1, 0.8))
LATER = 1e12


class Users:
    """Several readers of one application, each with a question, documents and an answer of its own."""

    def __init__(self, kind, kept, pool):
        self.application, self.kept, self.pool = kind(), kept, pool
        self.plans = {}
        self.streams = []
        self.read = {}
        self.wanted = {}
        self.failures = []
        self.least = {}  # what had been read of a stream when it was first swept or dropped

    def plan(self, fails=None):
        name = f"r{len(self.plans)}."
        answer = f"{name} one two three"
        plan = plan_of(4, name, choice=CHOICE, question=f"{name}?", answer=answer, fails=fails, failure=name)
        self.plans[plan.question] = plan
        return plan

    def act(self, what, which):
        recorder = self.kept.recorder
        if what.startswith("open"):
            plan = self.plan("model" if what == "open failing" else None)
            self.streams.append((plan, self.application.stream(plan, recorder)))
            self.read[plan.question] = ""
        elif what.startswith("ask"):
            plan = self.plan(("retriever", "reranker", "model")[which % 3] if what == "ask failing" else None)
            self.wanted[plan.question] = "error" if plan.fails else "answered"
            try:
                assert self.application.ask(plan, recorder) == plan.answer
            except PlannedFailure as error:
                self.failures.append((plan, error))
        elif what == "sweep":
            recorder.sweep(now=LATER)
            for plan, _ in self.streams:
                self.left(plan)
        elif self.streams:
            self.turn(what, which % len(self.streams))

    def turn(self, what, place):
        plan, stream = self.streams[place]
        if what == "drop":
            self.left(plan)
            self.streams.pop(place)
        elif what == "finish":
            self.streams.pop(place)
            while self.next_of(plan, stream):
                pass
        elif what == "elsewhere":  # in another thread, and so in another context
            self.pool.submit(self.next_of, plan, stream).result()
        else:
            self.next_of(plan, stream)

    def left(self, plan):
        self.least.setdefault(plan.question, self.read[plan.question])

    def next_of(self, plan, stream):
        try:
            self.read[plan.question] += next(stream)
        except StopIteration:
            assert (self.read[plan.question], plan.fails) == (plan.answer, None)
        except PlannedFailure as error:
            self.failures.append((plan, error))
        else:
            return True
        return False


def check(users):
    assert all(plan.fails and str(error) == plan.failure for plan, error in users.failures)
    for record in users.kept.records:
        plan = users.plans[record.query]
        wanted = users.wanted.get(record.query)
        assert wanted in {None, record.outcome}, record
        own = {document.id for document in plan.documents}
        assert {p.id for pool in record.pools for p in pool.passages} <= own
        assert all(p.text in {d.text for d in plan.documents} for pool in record.pools for p in pool.passages)
        assert plan.answer.startswith(record.answer)
        if record.outcome == "partial":
            assert record.answer.startswith(users.least.get(record.query, "")), (record.answer, users.least)
        if record.outcome == "answered":
            assert record.answer == plan.answer
            assert [p.id for p in record.pool("used")] == [plan.documents[place].id for place, _ in CHOICE]
    asked = [record.query for record in users.kept.records]
    assert len(set(asked)) == len(asked)


# A stream of LangChain's that is closed reads on in its model all the same, whose failure then reaches nobody.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", [LcelApplication, CompressionApplication, QueryEngineApplication])
@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(sequence=acts)
def test_readers_in_turns(kind, sequence):
    kept = Recording()
    before = internal_errors()
    try:
        with ThreadPoolExecutor(1) as pool:
            users = Users(kind, kept, pool)
            for what, which in sequence:
                users.act(what, which)
            users.streams.clear()
        gc.collect(1)
        kept.recorder.sweep(now=LATER)
        assert internal_errors() == before
        assert (kept.recorder.open_runs, len(kept.runs)) == (0, len(kept.begun))
        assert users.application.held(kept.recorder) == 0
        check(users)
    finally:
        uninstrument()
