"""Rounds of anchors under a real judge server: pace, budget, failures, and a judge that is away."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest
from msgspec.structs import replace

from ragtrace.scoring.anchors.reference import Reference
from ragtrace.service import AnchorMonitor, anchor_settings, build_anchors, build_scorer, judged_metrics
from ragtrace.settings import Settings
from ragtrace.stores import Anchor
from tests import make
from tests.guards.judge_server import Answer, completion, refusal

AUDIT = {
    "attempted": True,
    "noncommittal": False,
    "claims": ["It is so."],
    "verdicts": [{"id": 1, "sources": [1], "reason": "", "verdict": "supported"}],
    "citations": [],
}


GAP_S = 2.0
"""Seconds between two anchors, more than a turn of the rounds lasts: each turn scores one."""


@pytest.fixture
def judge_server(judge_server):
    judge_server.always = lambda _: Answer(200, completion(AUDIT))
    return judge_server


@pytest.fixture
def store(tmp_path):
    made = make.store(tmp_path / "store", has_content=True)
    made.anchors.replace([Anchor(record=record(number)) for number in range(40)], repeats=1)
    yield made
    made.close()


def record(number):
    return make.record("It is so.", n=number, query="Is it?", answer="It is so.")


def settings(judge_server, **given):
    limits = {"judge_rpm": 0, "judge_tpm": 0, "metrics": ["faithfulness", "answer_similarity"]}
    server = {"judge": "openai:m", "judge_base_url": judge_server.url, "judge_api_key": "k"}
    return Settings.resolve(limits | server | given, environ={})


def rounds(judge_server, store, **given):
    chosen = settings(judge_server, **given)
    return build_anchors(chosen, build_scorer(chosen), store.anchors)[0]


def test_only_judged_metrics_are_scored_with_a_budget_of_their_own(judge_server):
    chosen = settings(judge_server, budget_tokens_per_day=7, anchors_tokens_per_day=9)
    scorer = build_scorer(chosen)
    assert judged_metrics(scorer) == ("faithfulness",)
    own = anchor_settings(chosen, scorer)
    assert (own.budget.tokens_per_day, own.grade_cache, own.metrics) == (9, "off", ("faithfulness",))


def test_the_offline_judge_has_no_rounds_unless_asked(store):
    for given, is_on in (({}, False), ({"anchors_every_s": 60}, True)):
        chosen = Settings.resolve(given, environ={})
        found, culprits = build_anchors(chosen, build_scorer(chosen), store.anchors)
        assert (found is not None, culprits is not None) == (is_on, is_on)


async def test_the_whole_set_is_scored_once_a_round_and_then_compared(judge_server, tmp_path):
    now = 1_000_000.0
    store = make.store(tmp_path / "store", has_content=True, wall=lambda: now)
    store.anchors.replace([Anchor(record=record(number)) for number in range(40)], repeats=1)
    every_s = 40 * GAP_S
    watch = rounds(judge_server, store, anchors_every_s=every_s, anchors_tokens_per_day=0, anchors_usd_per_day=0)
    for _ in range(2):
        begun = now
        for _ in range(40):
            now += GAP_S
            assert await watch.score_due() == 1
        assert min(anchor.looked_at for anchor in store.anchors.all()) > begun
    await watch.aclose()
    monitor = AnchorMonitor(store.anchors, every_s=every_s)
    assert monitor.refresh()
    (state,) = monitor.states()
    assert (state.state, state.n, state.mean) == ("ok", 40, 0.0)
    assert dict(monitor.points("n")[0][1])["ragtrace.judge.model"] == "openai:m"
    store.close()


async def test_an_anchor_that_the_judge_could_not_score_is_the_next_again(judge_server, store):
    judge_server.always = lambda _: refusal(400, "no")
    watch = rounds(judge_server, store, anchors_every_s=40.0)
    judge_server.answers = [refusal(503, "away")] * 12
    first = store.anchors.all()[0]
    assert await watch.score_due() == 0
    assert store.anchors.all()[0].looked_at == first.looked_at
    await watch.aclose()


async def test_a_spent_budget_ends_the_round(judge_server, store):
    watch = rounds(judge_server, store, anchors_every_s=0.04, anchors_tokens_per_day=2_000)
    for _ in range(3):
        await watch.score_due()
    assert len(judge_server.requests) <= 3
    await watch.aclose()


async def test_tick_scores_in_the_background_and_no_anchors_cost_nothing(judge_server, store):
    store.anchors.drop()
    watch = rounds(judge_server, store, anchors_every_s=0.05)
    await asyncio.sleep(0.1)
    watch.tick()
    assert watch.background.is_under_way
    while watch.background.is_under_way:  # noqa: ASYNC110 - what a scorer looks at too
        await asyncio.sleep(0.01)
    await watch.aclose()
    assert judge_server.requests == []


def refused_text(request):
    """Refuse one text at any time, as a provider's content filter does."""
    is_refused = "number 1?" in str(request.body["messages"])
    return refusal(400, "filtered") if is_refused else Answer(200, completion(AUDIT))


@pytest.fixture
def with_refused(judge_server, store):
    kept = [replace(record(number), query=f"Is it number {number}?") for number in range(3)]
    judge_server.always = refused_text
    return store.anchors.replace([Anchor(record=one) for one in kept], repeats=1)


@pytest.mark.usefixtures("with_refused")
async def test_a_text_that_the_judge_always_refuses_holds_up_no_other(judge_server, store):
    watch = rounds(judge_server, store, anchors_every_s=0.3, anchors_tokens_per_day=0, anchors_usd_per_day=0)
    scored = 0
    for _ in range(8):
        scored += await watch.score_due()
    await watch.aclose()
    assert scored >= 4, "both others, and both again"
    (series,) = store.anchors.series(fresh_s=60.0)
    assert series.n_reference == 2


@pytest.mark.parametrize("passes", [1, 2])
async def test_a_reference_goes_on_behind_a_text_that_the_judge_refuses(judge_server, store, with_refused, passes):
    chosen = settings(judge_server, metrics=["faithfulness"])
    store.anchors.replace([dataclasses.replace(it, id=0) for it in with_refused], repeats=passes)
    reference = Reference(store.anchors.note, build_scorer(chosen), watched={"faithfulness"}, jobs=1)
    await reference.run(with_refused, passes)
    await reference.aclose()
    assert (reference.n, reference.stopped_by, reference.failed_by) == (2 * passes, "", "judge_unavailable")


async def test_a_reference_tries_again_where_the_judge_failed_once(judge_server, store):
    judge_server.answers = [refusal(400, "no")] * 2
    reference = Reference(
        store.anchors.note, build_scorer(settings(judge_server)), watched={"faithfulness"}, jobs=1
    )
    await reference.run(store.anchors.all(), 1)
    await reference.aclose()
    assert reference.n == 40


async def test_a_reference_ends_where_the_judge_is_away(judge_server, store):
    judge_server.always = lambda _: refusal(400, "no")
    reference = Reference(
        store.anchors.note, build_scorer(settings(judge_server)), watched={"faithfulness"}, jobs=1
    )
    await reference.run(store.anchors.all(), 3)
    await reference.aclose()
    assert (reference.n, reference.stopped_by) == (0, "judge_unavailable")
    assert len(judge_server.requests) < 60
