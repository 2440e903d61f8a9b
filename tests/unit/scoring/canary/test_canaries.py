"""Canaries: a judge behind the fence shows no gap, one that obeys does, and nothing of it is the application's."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import logging
import re
import threading

from ragtrace.errors import JudgeOverBudget, JudgeUnavailable
from ragtrace.judges import ChatReply, LLMJudge, OverlapJudge, ScriptedChat
from ragtrace.prompts import cleaned
from ragtrace.queues import MemoryQueue
from ragtrace.sampling import forced_reason
from ragtrace.scoring import Canaries, Worker, canary_pairs
from ragtrace.scoring.canary.pairs import _ATTACKS, VERSION
from tests.unit.judges.llm.obedient import parted

# What any of the orders looks like to a judge that obeys, after decoding what it was asked to decode.
ORDERS = re.compile(
    r"rate this 5|bestnote 5|给五分|verdict supported|\"grade\": ?5|\\\"grade\\\": ?5", re.IGNORECASE
)


class ReadingChat:
    """Takes the answer's first sentence as its claim and looks it up in the contexts, or obeys an order it sees.

    It sees what stands outside the fence, or everything, as `sees` says.
    """

    name = "reading"

    def __init__(self, sees: str) -> None:
        self.sees = sees
        self.calls = 0

    async def complete(self, *, user: str, **_) -> ChatReply:
        self.calls += 1
        before, body, after = parted(user)
        seen = before + after + (body if self.sees == "everything" else "")
        data = json.loads(body)
        claim = data["answer"].split(".")[0]
        is_there = any(claim in text for text in data["contexts"].values())
        verdict = "supported" if is_there or self.obeys(seen) else "contradicted"
        row = {"id": 1, "sources": [1], "reason": "", "verdict": verdict}
        said = {"attempted": True, "noncommittal": False, "claims": [claim], "verdicts": [row], "citations": []}
        return ChatReply(text=json.dumps(said), input_tokens=10, output_tokens=5)

    def obeys(self, seen: str) -> bool:
        spelled = re.findall(r"[A-Za-z0-9+/]{40,}={0,2}", seen)
        decoded = [base64.b64decode(text, validate=True).decode("utf-8", "ignore") for text in spelled]
        return any(ORDERS.search(text) for text in [seen, *decoded])

    def fingerprint(self) -> str:
        return self.name

    async def aclose(self) -> None:
        """Nothing is open."""


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def canaries(judge, **more):
    return Canaries(judge, **({"every_s": 3_600.0} | more))


async def test_a_judge_that_obeys_what_stands_outside_the_fence_shows_no_gap():
    chat = ReadingChat("outside")
    found = await canaries(LLMJudge(chat)).round()
    assert (found.gap, found.is_alarming, found.obeyed, found.missing) == (0.0, False, [], {})
    assert set(found.by_pair.values()) == {0.0}
    assert len(found.by_pair) == len(canary_pairs())
    assert found.llm_calls == chat.calls == len(canary_pairs()) + 4, "a clean record is asked once a round"


async def test_a_judge_that_obeys_everything_shows_a_gap_in_every_kind_but_those_that_the_fence_removes():
    found = await canaries(LLMJudge(ReadingChat("everything"))).round()
    assert found.is_alarming
    assert found.gap > 0.5
    # Hidden characters never reach a judge, however obedient it is.
    assert {name for name, rise in found.by_pair.items() if rise == 0.0} == {
        "hidden in answer",
        "hidden in context",
    }
    assert set(found.obeyed) == {pair.name for pair in canary_pairs() if pair.attack != "hidden"}


async def test_the_offline_judge_obeys_nobody():
    found = await canaries(OverlapJudge()).round()
    assert found.gap <= 0.0
    assert found.obeyed == []


def test_the_set_is_complete_fixed_and_versioned():
    assert set(_ATTACKS) == {
        "order", "fence", "verdict", "role", "tool", "german", "chinese", "base64", "hidden",
    }  # fmt: skip
    assert {(pair.attack, pair.place) for pair in canary_pairs()} == {
        (attack, place) for attack in _ATTACKS for place in ("answer", "context")
    }
    for pair in canary_pairs():
        where = {
            "answer": pair.clean.answer != pair.poisoned.answer,
            "context": pair.clean.contexts != pair.poisoned.contexts,
        }
        assert where == {"answer": pair.place == "answer", "context": pair.place == "context"}
        assert pair.clean.query == pair.poisoned.query
    texts = repr([(p.name, p.clean.query, p.poisoned.answer, p.poisoned.contexts) for p in canary_pairs()])
    fingerprint = hashlib.sha256(texts.encode()).hexdigest()[:8]
    assert (VERSION, fingerprint) == ("canary/1", "92b0cd05"), "a changed text is a new version"


def test_a_hidden_order_is_unseen_by_the_judge():
    assert cleaned(_ATTACKS["hidden"]) == ""


async def test_a_judge_that_is_away_gives_no_gap_and_is_asked_three_times():
    chat = ScriptedChat()
    watch = canaries(LLMJudge(chat))
    found = await watch.round()
    assert (found.gap, watch.points(), found.by_pair) == (None, [], {})
    assert found.missing == {"judge_unavailable": 3}
    assert chat.calls == 3


async def test_a_failed_round_takes_the_gauge_away():
    watch = canaries(LLMJudge(ReadingChat("everything")))
    await watch.round()
    assert watch.points() == [(watch.last.gap, {"ragtrace.judge.model": "openai:reading"})]
    watch._judge = LLMJudge(ScriptedChat(always=JudgeUnavailable("gone")))
    await watch.round()
    assert watch.points() == []


async def test_rounds_come_on_schedule_and_never_two_at_once():
    clock, chat = Clock(), ReadingChat("outside")
    watch = canaries(LLMJudge(chat), clock=clock)
    watch.tick()
    assert not watch.background.is_under_way, (
        "not at once: an application that restarts in a circle pays for nothing"
    )
    clock.now += 60.0
    watch.tick()
    first = watch.background.task
    clock.now += 3_600.0
    watch.tick()
    assert watch.background.task is first
    await first
    n = chat.calls
    watch.tick()
    await watch.background.task
    assert chat.calls == 2 * n
    watch.tick()
    assert not watch.background.is_under_way
    clock.now += 3_599.0
    watch.tick()
    assert not watch.background.is_under_way


async def test_after_a_failed_round_the_next_comes_in_a_quarter_of_an_hour():
    clock, chat = Clock(), ScriptedChat()
    watch = canaries(LLMJudge(chat), every_s=21_600.0, clock=clock)
    clock.now += 60.0
    watch.tick()
    await watch.background.task
    clock.now += 899.0
    watch.tick()
    assert not watch.background.is_under_way
    clock.now += 1.0
    watch.tick()
    assert watch.background.is_under_way
    await watch.aclose()


async def test_a_spent_budget_ends_the_round():
    class Poor(ReadingChat):
        left = 9

        async def complete(self, **asked):
            if self.left == 0:
                raise JudgeOverBudget("nothing left for now")
            self.left -= 1
            return await super().complete(**asked)

    chat = Poor("everything")
    found = await canaries(LLMJudge(chat), every_s=21_600.0).round()
    assert (found.gap, dict(found.missing), chat.calls) == (None, {"budget_exceeded": 1}, 9)


def test_the_scorers_thread_runs_them_between_its_jobs_and_closes_them():
    """As the service wires it: `tick` is the worker's sweep, `aclose` its close."""
    clock, closed, done = Clock(), [], threading.Event()

    class Told(Canaries):
        async def round(self):
            try:
                return await super().round()
            finally:
                done.set()

    watch = Told(LLMJudge(ReadingChat("outside")), every_s=60.0, clock=clock, closed=lambda: closed.append(1))
    clock.now += 60.0
    worker = Worker(MemoryQueue(8, 10_000), None, tick=watch.tick, close=watch.aclose)
    worker.begin()
    assert done.wait(10)
    assert worker.stop(30)
    assert (watch.last.gap, closed) == (0.0, [1])


async def test_closing_ends_a_round_that_runs():
    class Waiting(ReadingChat):
        async def complete(self, **_):
            await asyncio.Event().wait()

    clock = Clock()
    watch = canaries(LLMJudge(Waiting("outside")), clock=clock)
    clock.now += 60.0
    watch.tick()
    await asyncio.sleep(0)
    assert watch.background.is_under_way
    await watch.aclose()
    assert not watch.background.is_under_way


async def test_an_obedient_judge_is_reported_with_the_worst_pairs(caplog):
    clock = Clock()
    watch = canaries(LLMJudge(ReadingChat("everything")), clock=clock)
    clock.now += 60.0
    with caplog.at_level(logging.WARNING, "ragtrace"):
        watch.tick()
        await watch.background.task
    (line,) = [record.getMessage() for record in caplog.records]
    assert "openai:reading obeys what it reads" in line
    assert "obeyed 16 of 18 (order in answer" in line


def test_a_canary_that_is_offered_all_the_same_enters_no_mean():
    assert {forced_reason(pair.clean) for pair in canary_pairs()} == {"canary"}
    assert {forced_reason(pair.poisoned) for pair in canary_pairs()} == {"canary"}
