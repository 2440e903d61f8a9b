"""Scoring kept records again: once, within a budget, resumable, and with weights that keep means honest."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from contextlib import closing

import pytest

from ragtrace.errors import JudgeUnavailable
from ragtrace.judges import AttemptResult, JudgeRequest, LLMJudge, OverlapEmbedder, ScriptedChat
from ragtrace.metrics import MetricOptions, MetricSpec, Output, select
from ragtrace.model import MetricResult
from ragtrace.scoring import Caps, JudgeLimiter, Rescoring, Scorer
from tests import make
from tests.unit.scoring.limits.clocks import NOON, HandClock

QUESTIONS = {"questions": [{"question": f"Where is Oslo, {n}?", "noncommittal": False} for n in range(3)]}


def record(n):
    return make.record(n=n, query="Where is Oslo?")


def score(r, value, *, name="faithfulness", weight=20.0, stratum="random"):
    return make.score(r, name, value, version="old", passed=value >= 0.5, weight=weight, stratum=stratum)


@pytest.fixture
def store(tmp_path):
    made = make.store(tmp_path / "s", has_content=True, payload_share=0.25)
    yield made
    made.close()


def scorer_of(chat):
    return Scorer(
        metrics=tuple(select(("answer_relevancy",))),
        judge=LLMJudge(chat),
        embedder=OverlapEmbedder(),
        options=MetricOptions(),
    )


async def rescored(store, chat, **more):
    return await Rescoring(store, scorer_of(chat), **more).run(store.records())


def new(store):
    return [row for row in store.rows() if row["source"] == "rescore"]


async def test_a_budget_is_not_exceeded_and_the_next_run_goes_on(store):
    for n in range(1, 8):
        store.emit(record(n), [score(record(n), 0.1)])
    chat = ScriptedChat(always=QUESTIONS)
    for scored, before, is_spent in ((3, 0, True), (3, 3, True), (1, 6, False)):
        calls = chat.calls
        total = await rescored(store, chat, budget_calls=3)
        assert (total.scored, total.done_before, total.is_budget_spent) == (scored, before, is_spent)
        assert total.calls == chat.calls - calls <= 3
    assert len(new(store)) == 7
    assert chat.calls == 7


async def test_a_judge_that_was_down_is_asked_again_and_what_is_scored_is_not(store):
    for n in (1, 2):
        store.emit(record(n), [score(record(n), 0.1)])
    first = ScriptedChat([JudgeUnavailable("down")], always=QUESTIONS)
    total = await rescored(store, first, jobs=1)
    assert (total.scored, total.errors) == (2, 1)
    total = await rescored(store, ScriptedChat(always=QUESTIONS))
    assert (total.scored, total.errors, total.done_before) == (1, 0, 1)
    assert {row["state"] for row in new(store)} == {"ok"}


async def test_an_error_that_would_be_the_same_again_costs_no_second_call(store):
    store.emit(record(1), [score(record(1), 0.1)])
    assert (await rescored(store, ScriptedChat(always="no JSON at all"))).errors == 1
    total = await rescored(store, ScriptedChat(always=QUESTIONS))
    assert (total.scored, total.done_before, total.calls) == (0, 1, 0)


async def test_what_was_finished_before_a_stop_stays(store):
    for n in range(1, 40):
        store.emit(record(n), [score(record(n), 0.1)])
    chat = ScriptedChat(always=QUESTIONS)
    rescoring = Rescoring(store, scorer_of(chat))
    enough = asyncio.Event()
    task = asyncio.create_task(
        rescoring.run(store.records(), step=lambda: enough.set() if rescoring.total.scored >= 10 else None)
    )
    await enough.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert 10 <= len(new(store)) == rescoring.total.scored < 39
    await rescored(store, chat)
    assert len(new(store)) == 39


async def test_strata_and_weights_are_those_of_the_run(store):
    given = {
        1: [score(record(1), 0.1, weight=20.0), score(record(1), 0.9, name="mrr", weight=5.0)],
        2: [score(record(2), 0.1, stratum="forced")],
        3: [score(record(3), 0.1, weight=None)],
    }
    for n, scores in given.items():
        store.emit(record(n), scores)
    await rescored(store, ScriptedChat(always=QUESTIONS))
    found = {int(row["trace_id"], 16): (row["stratum"], row["weight"]) for row in new(store)}
    assert found == {1: ("random", 5.0), 2: ("forced", None), 3: ("random", None)}


class Same:
    """A user's metric that says of a record what it is told."""

    spec = MetricSpec(
        name="same", summary="-", needs=(), outputs=(Output(name="same"),), calls="none", source="a test"
    )

    def __init__(self, values):
        self.values = values

    async def compute(self, case):
        return [MetricResult(name="same", state="ok", value=self.values[case.record.id])]


async def test_the_weighted_mean_of_kept_records_is_that_of_all_of_them(store):
    """8 % of the runs are low and kept for sure, a quarter of the others: unweighted the mean would be far off."""
    draw = random.Random(7)
    values = {}
    with closing(sqlite3.connect(store.path)) as connection, connection:
        for n in range(1, 4_001):
            value = 0.2 if draw.random() < 0.08 else 0.9
            values[str(n)] = value
            store.writer([score(record(n), value, weight=1.0)], record(n))(connection)
    truth = sum(values.values()) / len(values)
    scorer = Scorer(metrics=(Same(values),), judge=None, embedder=None, options=MetricOptions())
    await Rescoring(store, scorer).run(store.records())
    rows = new(store)
    weighted = sum(row["weight"] * row["value"] for row in rows) / sum(row["weight"] for row in rows)
    plain = sum(row["value"] for row in rows) / len(rows)
    assert abs(weighted - truth) < 0.01
    assert abs(plain - truth) > 0.1


class LimitedChat(ScriptedChat):
    """A model of the application's own that asks the limits before each call."""

    def __init__(self, limiter):
        super().__init__(always=QUESTIONS, input_tokens=2_000)
        self.limiter = limiter

    async def complete(self, **asked):
        permit = await self.limiter.acquire(JudgeRequest(model="m", request_bytes=2_400, max_output_tokens=4_096))
        reply = await super().complete(**asked)
        permit.release(AttemptResult(fate="answered", input_tokens=2_000, output_tokens=10))
        return reply


async def test_a_budget_of_the_limits_ends_the_run_and_what_is_done_stays(store):
    for n in range(1, 8):
        store.emit(record(n), [score(record(n), 0.1)])
    clock = HandClock(wall_at=NOON + 43_000.0)  # 200 s before midnight: all of the day's budget is there
    found = []
    for _ in range(2):
        caps = Caps(usd_per_day=None, tokens_per_day=13_000)
        limiter = JudgeLimiter(host="judge", caps=caps, clock=clock, sleep=clock.sleep)
        chat = LimitedChat(limiter)
        rescoring = Rescoring(store, scorer_of(chat), jobs=1, closed=limiter.blocked)
        found.append(await rescoring.run(store.records()))
        assert chat.calls == found[-1].calls == found[-1].scored
    first, second = found
    assert first.stopped_by == "the judge's budget has nothing left for now"
    assert first.is_budget_spent
    assert first.wait_s == 200.0
    assert 0 < first.scored < 7
    assert (second.scored, second.done_before, second.stopped_by) == (7 - first.scored, first.scored, "")
    assert {row["state"] for row in new(store)} == {"ok"}
