"""Canaries from settings: how often, and never more than their own budget."""

from __future__ import annotations

import pytest

from ragtrace.service import build_canaries, canary_period_s
from ragtrace.settings import Settings
from tests.guards.judge_server import Answer, completion

AUDIT = {
    "attempted": True,
    "noncommittal": False,
    "claims": ["It is so."],
    "verdicts": [{"id": 1, "sources": [], "reason": "no", "verdict": "contradicted"}],
    "citations": [],
}


def settings(**given):
    return Settings.resolve(given, environ={})


@pytest.fixture
def judge_server(judge_server):
    judge_server.always = lambda _: Answer(200, completion(AUDIT))
    return judge_server


@pytest.mark.parametrize(
    ("given", "every_s"),
    [
        ({}, None),
        ({"judge": "openai:m"}, 21_600.0),
        ({"judge": "openai:m,openai:n"}, 21_600.0),
        ({"judge": "somebodys:m"}, 21_600.0),
        ({"judge": " overlap "}, None),
        ({"judge": "openai:m", "canary_every_s": 0}, None),
        ({"canary_every_s": 600}, 600.0),
    ],
)
def test_the_period(given, every_s):
    assert canary_period_s(settings(**given)) == every_s


@pytest.mark.slow
async def test_a_round_over_a_real_server(judge_server, tmp_path):
    given = {"judge": "openai:m", "judge_base_url": judge_server.url, "spool": str(tmp_path / "spool")}
    watch = build_canaries(settings(**given, canary_tokens_per_day=0))  # a slice at midnight is small
    found = await watch.round()
    assert (found.gap, found.llm_calls, len(judge_server.requests)) == (0.0, 22, 22)
    await watch.aclose()


async def test_the_budget_is_their_own_and_ends_a_round(judge_server, tmp_path):
    given = {"judge": "openai:m", "judge_base_url": judge_server.url, "spool": str(tmp_path / "spool")}
    watch = build_canaries(settings(**given, canary_tokens_per_day=2_000))
    found = await watch.round()
    assert found.gap is None
    assert set(found.missing) == {"budget_exceeded"}
    assert len(judge_server.requests) <= 2
    await watch.aclose()
    # The application's budget is as it was, and a budget of the application's does not bound the canaries.
    other = build_canaries(settings(**given, budget_tokens_per_day=1, canary_tokens_per_day=0))
    assert (await other.round()).llm_calls > 2
    await other.aclose()
