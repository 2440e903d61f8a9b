"""Label scopes: the cache of a query, the shadow pool, strata; and the directions of the estimators."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from ragtrace.judges import ConsensusPanel, GradeFile, LLMJudge, ScriptedChat
from ragtrace.metrics import DeepRetriever, KnownGrades, MetricOptions, SetParams, census_scores, select, set_scores
from ragtrace.metrics.deep_retrieval import MAX_CALLS
from ragtrace.metrics.selection.census import intervals
from ragtrace.model import Labels, LabelStratum, Passage, RagRecord
from ragtrace.queues import Unit
from ragtrace.scoring import Scorer
from tests import make
from tests.unit.metrics import cases

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from ragtrace.judges import ChatReply, Judge
    from ragtrace.model import MetricResult

FROZEN = SetParams(is_frozen=True)


class Grading(ScriptedChat):
    """Grades a passage by the digit it ends with."""

    async def complete(self, **asked: Any) -> ChatReply:
        body = asked["user"]
        data = json.loads(body[body.index("{") : body.rindex("}") + 1])
        rows = [{"id": int(n), "grade": int(text[-1])} for n, text in data["passages"].items()]
        self._replies = [{"grades": rows}]
        return await super().complete(**asked)


def passage(text: str, rank: int = 1) -> Passage:
    return Passage(id=text, text=text, rank=rank)


def record(pool: Sequence[str], used: Sequence[str], **more: Any) -> RagRecord:
    pools = (make.pool(*pool, ids=pool, stage="retrieved"), make.pool(*used, ids=used))
    return make.record(**{"query": "Where?", "pools": pools} | more)


async def run(
    names: list[str],
    made: RagRecord,
    judge: Judge | None = None,
    shadow: DeepRetriever | None = None,
    **options: Any,
) -> dict[str, MetricResult]:
    return await cases.run(names, made, judge=judge, deep_retriever=shadow, **options)


async def shadowed(
    shadow: DeepRetriever | None, made: RagRecord | None = None, judge: Judge | None = None
) -> MetricResult:
    made = made or record(["a 4"], ["a 4"])
    return (await run(["proc_shadow"], made, judge or LLMJudge(Grading()), shadow))["proc_shadow_at_k"]


# -- the cache of a query --


async def test_ra_nwg_over_the_labels_gathered_for_a_query(tmp_path: Path) -> None:
    cache = GradeFile(tmp_path / "grades.sqlite")
    judge = LLMJudge(Grading(), grade_cache=cache)
    first = await run(["ra_nwg"], record(["a 4", "b 1"], ["a 4"]), judge)
    assert {result.reason for result in first.values()} == {"no_labels"}  # the cache is this pool, no universe
    assert "pool is no universe" in first["proc_at_k"].details["hint"]
    again = await run(["ra_nwg"], record(["c 5", "d 3"], ["d 3"]), judge)
    found = again["ra_nwg_at_k"]
    assert (found.state, found.label_scope, found.value) == ("ok", "cache", pytest.approx(0.1))
    assert again["proc_at_k"].value == 1.0
    assert (found.details["universe_size"], found.details["weighting"]) == (4, "frozen")
    assert found.details["labels_version"] == "4"
    assert abs(found.details["labels_grown_at"] - time.time()) < 60
    back = await run(["ra_nwg"], record(["a 4", "b 1"], ["a 4"]), judge)
    assert back["ra_nwg_at_k"].value == 0.5  # a cache that grows lets values fall
    assert back["ra_nwg_at_k"].llm_calls == 0
    assert back["ra_nwg_at_k"].details["grades_cached"] == 2
    await judge.aclose()


async def test_a_frozen_cache_is_a_series_of_its_own_that_does_not_move(tmp_path: Path) -> None:
    path = tmp_path / "grades.sqlite"
    cache = GradeFile(path)
    judge = LLMJudge(Grading(), grade_cache=cache)
    await judge.grades(record(["a 4", "b 1", "c 3"], []))
    frozen = LLMJudge(Grading(), grade_cache=GradeFile(path, frozen=cache.facts().version))
    made = record(["a 4", "b 1"], ["b 1", "a 4"])
    before = (await run(["ra_nwg"], made, frozen))["ra_nwg_at_k"]
    await judge.grades(record(["e 5", "f 5"], []))
    after = (await run(["ra_nwg"], made, frozen))["ra_nwg_at_k"]
    growing = (await run(["ra_nwg"], made, judge))["ra_nwg_at_k"]
    assert before.value == after.value == pytest.approx(0.5 / 0.6)
    assert growing.value == pytest.approx(0.5 / 2.0)
    assert before.version == after.version != growing.version
    assert before.details["labels_frozen"] == 3
    late = (await run(["ra_nwg"], record(["e 5"], ["e 5"]), frozen))["ra_nwg_at_k"]
    assert (late.state, late.reason) == ("na", "unlabelled_topk")
    await asyncio.gather(judge.aclose(), frozen.aclose())


async def test_labels_of_another_query_are_refused_by_every_metric() -> None:
    labels = Labels(grades={"a 4": 4}, query="Where is it, roughly?")
    results = await run(
        ["ra_nwg", "p_at_k", "harm", "selection_efficiency"], record(["a 4"], ["a 4"], labels=labels)
    )
    assert {(result.state, result.reason) for result in results.values()} == {("na", "no_labels")}
    assert all("another query" in result.details["hint"] for result in results.values())


# -- the shadow pool --


async def test_a_shadow_pool_bounds_proc_from_above_and_grades_only_what_is_new() -> None:
    asked = []

    def retrieve(query: str, top_k: int) -> list[Any]:
        asked.append((query, top_k))
        return ["a 4", {"id": "x", "text": "c 5"}, passage("d 1"), passage("d 1"), " "]

    chat = Grading()
    made = record(["a 4", "b 3"], ["b 3"])
    results = await run(
        ["selection_efficiency", "proc_shadow"],
        made,
        LLMJudge(chat),
        DeepRetriever(retrieve, rate=1.0),
        k_values=(1, 2),
    )
    proc, upper = results["proc_shadow_at_k"], results["ra_nwg_upper_shadow_at_k"]
    assert asked == [("Where?", 100)]
    assert (proc.value, proc.label_scope, proc.details["depth"]) == (0.5, "shadow", 100)
    assert (proc.details["shadow_new"], proc.details["universe_size"], proc.llm_calls) == (2, 4, 1)
    assert "a 4" not in chat.prompts[-1].user
    assert upper.details["ra_nwg_bounds"] == [0.1, 0.1]
    assert results["ra_nwg_upper_shadow_at_k@2"].value == pytest.approx(0.1 / 1.5)
    assert results["ra_nwg_upper_at_k@2"].value == pytest.approx(0.1 / 0.6)  # looser without it
    assert proc.details["is_oracle_exact"] is True
    assert results["proc_shadow_at_k@2"].details["is_oracle_exact"] is False


async def test_nothing_is_graded_once_k_fives_are_known() -> None:
    chat = Grading()
    shadow = DeepRetriever(lambda _, top_k: [f"s{n} 1" for n in range(top_k)], rate=1.0)
    found = await shadowed(shadow, record(["a 5", "b 5"], ["a 5"]), LLMJudge(chat))
    assert (found.value, found.details["shadow_graded"], chat.calls) == (1.0, 0, 1)
    assert found.details["shadow_new"] == 100


async def test_depth_grows_with_the_pool_and_is_another_series() -> None:
    small, large = record(["a 4"], ["a 4"]), record([f"p{n} 4" for n in range(40)], ["p0 4"])
    shadow = DeepRetriever(lambda _query, _k: ["z 5"], rate=1.0)
    found = [await shadowed(shadow, made) for made in (small, large)]
    assert [one.details["depth"] for one in found] == [100, 160]
    assert found[0].version != found[1].version


async def test_a_shadow_of_coroutines_and_of_generators() -> None:
    async def retrieve(_query: str, _top_k: int) -> Any:
        await asyncio.sleep(0)
        return (text for text in ["c 5"])

    assert (await shadowed(DeepRetriever(retrieve, rate=1.0))).value == 0.5


async def _cancels_itself(_query: str, _top_k: int) -> list[str]:
    raise asyncio.CancelledError


def _raises(_query: str, _top_k: int) -> list[str]:
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("retrieve", "message"),
    [
        (_raises, "SystemExit"),
        (_cancels_itself, "CancelledError"),
        (lambda _query, _k: "one text", "str"),
        (lambda _query, _k: None, "NoneType"),
        (lambda _query: [], "TypeError"),
        (lambda _query, _k: (1 / 0 for _ in range(3)), "ZeroDivisionError"),
    ],
)
async def test_a_shadow_that_fails_is_an_error_of_its_metric_alone(
    retrieve: Callable[..., Any], message: str
) -> None:
    made, shadow = record(["a 4"], ["a 4"]), DeepRetriever(retrieve, rate=1.0)
    results = await run(["proc_shadow", "p_at_k"], made, LLMJudge(Grading()), shadow)
    failed = results["proc_shadow_at_k"]
    assert (failed.state, failed.reason, results["p_at_k"].value) == ("error", "judge_error", 1.0)
    assert message in failed.details["message"]


async def test_a_shadow_that_hangs_is_left_behind_and_cannot_pile_up() -> None:
    released = threading.Event()
    shadow = DeepRetriever(lambda _query, _k: [str(released.wait(60))], rate=1.0, timeout_s=0.05)
    for _ in range(MAX_CALLS):
        result = await shadowed(shadow)
        assert (result.state, result.reason) == ("error", "judge_timeout")
    full = await shadowed(shadow)
    assert (full.state, full.reason) == ("error", "judge_unavailable")
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "ragtrace-shadow")
    released.set()


async def test_a_shadow_is_drawn_for_its_share_and_weighs_for_it() -> None:
    shadow = DeepRetriever(lambda _query, _k: ["z 5"], rate=0.05)
    drawn = [shadow.is_drawn(RagRecord(id=str(n))) for n in range(20_000)]
    assert 0.045 < sum(drawn) / len(drawn) < 0.055
    ids = [str(drawn.index(True)), str(drawn.index(False))]
    scorer = Scorer(
        metrics=tuple(select(["proc_shadow", "p_at_k"])),
        judge=LLMJudge(Grading()),
        embedder=None,
        options=MetricOptions(),
        deep_retriever=shadow,
    )
    found = []
    for name in ids:
        pools = record(["a 4"], ["a 4"]).pools
        scores = await scorer.score(
            Unit(record=RagRecord(id=name, query="Where?", pools=pools), decision="random", probability=0.5)
        )
        found.append({score.result.name: score for score in scores})
    assert (found[0]["proc_shadow_at_k"].weight, found[0]["p_at_k"].weight) == (40.0, 2.0)
    skipped = found[1]["proc_shadow_at_k"].result
    assert (skipped.state, skipped.reason) == ("skipped", "not_sampled")


async def test_without_a_retriever_there_is_a_hint_and_no_call() -> None:
    chat = ScriptedChat()
    found = await shadowed(None, judge=LLMJudge(chat))
    assert (found.state, found.reason, chat.calls) == ("na", "no_labels", 0)
    assert "configure(shadow=" in found.details["hint"]


async def test_a_panel_calls_the_retriever_once_a_record() -> None:
    asked = []
    shadow = DeepRetriever(lambda query, _k: asked.append(query) or ["z 5"], rate=1.0)  # type: ignore[func-returns-value]
    panel = ConsensusPanel([LLMJudge(Grading(name=name)) for name in "ab"], repeats=2)
    found = await shadowed(shadow, judge=panel)
    assert (found.value, len(asked)) == (0.5, 1)


async def test_texts_of_the_shadow_are_redacted_before_they_are_judged() -> None:
    chat = Grading()
    shadow = DeepRetriever(
        lambda _query, _k: ["Ada 5"], rate=1.0, redact=lambda text: text.replace("Ada", "[name]")
    )
    await shadowed(shadow, judge=LLMJudge(chat))
    assert "[name] 5" in chat.prompts[-1].user
    assert all("Ada" not in prompt.user for prompt in chat.prompts)


# -- strata --


def stratified(*strata: LabelStratum, grades: dict[str, int]) -> Labels:
    return Labels(grades=grades, label_scope="stratified", strata=strata)


async def test_a_stratified_census_scales_its_counts_and_tells_its_interval() -> None:
    pool = LabelStratum(size=2, labelled=2, counts={5: 1, 3: 1})
    deep = LabelStratum(size=100, labelled=50, counts={5: 1, 4: 2})
    labels = stratified(pool, deep, grades={"a 5": 5, "b 3": 3})
    found = await run(["ra_nwg"], record(["a 5", "b 3"], ["a 5"], labels=labels), k_values=(4,))
    ra = found["ra_nwg_at_k"]
    assert (ra.label_scope, ra.details["census"]) == ("stratified", {"5": 3.0, "4": 4.0, "3": 1.0})
    assert ra.value == pytest.approx(1.0 / 3.5)
    assert found["proc_at_k"].value == pytest.approx(1.1 / 3.5)
    assert found["n_recall5_at_k"].value == pytest.approx(1 / 3)
    low, high = ra.details["ci95"]["ra_nwg_at_k"]
    assert low < ra.value < high


async def test_strata_graded_wholly_are_exact_and_equal_gold_with_frozen_weights() -> None:
    grades = {"a 5": 5, "b 4": 4, "c 3": 3, "d 1": 1}
    whole = LabelStratum(size=4, labelled=4, counts={5: 1, 4: 1, 3: 1, 1: 1})
    made = record(["a 5", "d 1"], ["d 1", "a 5"], labels=stratified(whole, grades=grades))
    found = await run(["ra_nwg"], made)
    scores = set_scores(grades, ["d 1", "a 5"], ["a 5", "d 1"], 2, FROZEN)
    assert found["ra_nwg_at_k"].value == scores.ra_nwg
    assert found["proc_at_k"].value == scores.proc
    assert found["ra_nwg_at_k"].details["ci95"]["ra_nwg_at_k"] == pytest.approx([scores.ra_nwg] * 2)
    assert found["ra_nwg_at_k"].details["unseen_fives_up_to"] == 0.0


async def test_one_partial_stratum_is_a_uniform_sample_and_refused() -> None:
    labels = stratified(LabelStratum(size=100_000, labelled=50, counts={}), grades={"a 5": 5})
    found = (await run(["ra_nwg"], record(["a 5"], ["a 5"], labels=labels)))["ra_nwg_at_k"]
    assert (found.state, found.reason) == ("na", "no_labels")
    assert "uniform random sample" in found.details["hint"]


def test_the_interval_over_strata_covers_what_it_estimates() -> None:
    rng = random.Random(7)
    covered = 0
    for _ in range(40):
        corpus = [5] * 12 + [4] * 30 + [1] * 358
        rng.shuffle(corpus)
        sample = corpus[:120]
        counts = {grade: sample.count(grade) for grade in (5, 4, 3)}
        strata = [
            LabelStratum(size=2, labelled=2, counts={5: 1}),
            LabelStratum(size=400, labelled=120, counts=counts),
        ]
        known = KnownGrades(selected=(1, 0, 0), pooled=(1, 0, 0), known=(1, 0, 0))
        low, high = intervals(strata, known, 30, FROZEN)["ra_nwg"]
        truth = census_scores((13, 30, 0), known, 30, FROZEN).ra_nwg
        assert truth is not None
        covered += low - 1e-12 <= truth <= high + 1e-12
    assert covered >= 35


# -- the directions of the table of estimators in docs/reference/metrics.md --


def test_directions_of_the_estimators_online() -> None:
    rng = random.Random(3)
    naive_bias, efficiency_errors, shadow_bias = [], [], []
    for _ in range(200):
        grades = _corpus(rng)
        ranked = sorted(grades, key=lambda name: -(grades[name] + rng.gauss(0.0, 1.6)))
        pool, k = ranked[:20], 10
        selected = sorted(pool, key=lambda name: -(grades[name] + rng.gauss(0.0, 0.5)))[:k]
        truth = set_scores(grades, selected, pool, k)
        frozen = set_scores(grades, selected, pool, k, FROZEN)
        inside = set_scores({name: grades[name] for name in pool}, selected, pool, k)
        deeper = {name: grades[name] for name in ranked[:100]}
        shadow = set_scores(deeper, selected, pool, k, FROZEN)
        if truth.ra_nwg is None or inside.ra_nwg is None or truth.pct_proc is None:
            continue
        assert inside.proc == 1.0  # by construction: no PROC at all
        assert shadow.proc is not None
        assert frozen.proc is not None
        assert frozen.ra_nwg is not None
        assert shadow.ra_nwg is not None
        assert shadow.proc >= frozen.proc  # an upper bound in every draw
        assert frozen.g_obs / k <= frozen.ra_nwg <= shadow.ra_nwg
        naive_bias.append(inside.ra_nwg - truth.ra_nwg)
        efficiency_errors.append(abs(inside.ra_nwg - truth.pct_proc))
        shadow_bias.append(shadow.proc - frozen.proc)
    n = len(naive_bias)
    assert n > 150
    assert sum(naive_bias) / n > 0.15  # useless as RA-nWG
    assert sum(efficiency_errors) / n <= 0.02  # nearly exact as %PROC
    assert 0.0 < sum(shadow_bias) / n < sum(naive_bias) / n


def _corpus(rng: random.Random) -> dict[str, int]:
    n5, n4, n3 = (max(1, round(rng.lognormvariate(1.4, 0.6))) for _ in range(3))
    grades = [5] * n5 + [4] * n4 + [3] * (3 * n3) + [2] * 60
    grades += [1] * (1000 - len(grades))
    return {f"d{n}": grade for n, grade in enumerate(grades)}
