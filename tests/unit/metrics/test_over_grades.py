"""Metrics over grades: whose grades, which universe, which K, and every reason for having no number."""

from __future__ import annotations

from typing import Any

import pytest

from ragtrace.judges import LLMJudge, OverlapJudge, ScriptedChat, from_umbrela
from ragtrace.metrics import SetParams, ra_nwg
from ragtrace.metrics.ranking import rank
from ragtrace.metrics.selection.set_family import FROZEN
from ragtrace.model import Labels, RagRecord
from tests import make
from tests.unit.metrics.cases import run

ALL = (
    "p_at_k",
    "ap_at_k_retrieved",
    "mrr",
    "ndcg",
    "precision4",
    "harm",
    "selection_efficiency",
    "ra_nwg",
    "context_precision_graded",
)
ASKING = tuple(name for name in ALL if name != "ra_nwg")


def stage(name, ids, texts=None):
    texts = texts or {}
    return make.pool(*(texts.get(i, f"text {i}") for i in ids), ids=ids, stage=name)


def record(pool="abcd", used="ab", labels=None, universe="gold", texts=None, **more):
    given = None if labels is None else Labels(grades=labels, label_scope=universe)
    pools = (stage("retrieved", pool, texts), stage("used", used, texts))
    return RagRecord(id="1", query="q", pools=pools, labels=given, **more)


async def test_every_output_names_its_k_universe_grader_and_list() -> None:
    results = await run(ALL, record(labels={"a": 5, "b": 2, "c": 4, "d": 1}))
    assert {result.state for result in results.values()} == {"ok"}
    assert all(
        result.judge.model == "labels" and result.judge.label_scale == "direct5" for result in results.values()
    )
    assert all(result.details["list"] == "used" for result in results.values())
    assert {result.k for name, result in results.items() if name.endswith("at_k")} == {2}
    assert results["ra_nwg_at_k"].label_scope == "gold"
    assert results["selection_efficiency_at_k"].label_scope == "pool"
    assert results["ra_nwg_upper_at_k"].label_scope == "gold"
    assert results["harm_at_k"].value == 0.5
    assert results["harm_at_k"].passed is False
    assert results["context_utility_at_k"].passed is None


async def test_a_changed_label_set_is_another_grader() -> None:
    made = [
        RagRecord(id="1", pools=(stage("used", "a"),), labels=Labels(grades={"a": 5}, version=version))
        for version in (None, "v1", "v2")
    ]
    hashes = {(await run(["mrr"], one))["mrr"].judge.prompt_hash for one in made}
    assert len(hashes) == 3


@pytest.mark.parametrize(
    ("universe", "hint"),
    [
        ("pool", "selection_efficiency_at_k"),
        ("shadow", "proc_shadow_at_k"),
        ("sample", "uniform random sample"),
        ("stratified", "needs strata"),
    ],
)
async def test_ra_nwg_is_refused_by_name_over_what_is_no_universe(universe, hint) -> None:
    results = await run(["ra_nwg"], record(labels={"a": 5, "b": 4, "c": 4, "d": 1}, universe=universe))
    assert {(result.state, result.reason) for result in results.values()} == {("na", "no_labels")}
    assert hint in results["proc_at_k"].details["hint"]


async def test_ra_nwg_never_asks_the_judge() -> None:
    chat = ScriptedChat()
    results = await run(["ra_nwg"], record(), judge=LLMJudge(chat))
    assert results["ra_nwg_at_k"].reason == "no_labels"
    assert chat.calls == 0


async def test_a_cache_is_read_with_frozen_weights() -> None:
    labels = {"a": 5, "b": 4, "c": 4, "d": 4}
    gold = await run(["ra_nwg"], record(labels=labels))
    cache = await run(["ra_nwg"], record(labels=labels, universe="cache"))
    assert gold["ra_nwg_at_k"].details["weights"]["4"] == pytest.approx(1 / 6)
    assert cache["ra_nwg_at_k"].details["weights"]["4"] == FROZEN[4]
    assert cache["ra_nwg_at_k"].label_scope == "cache"
    assert cache["ra_nwg_at_k"].details["universe_size"] == 4


async def test_the_pair_of_bounds_holds_frozen_ra_nwg_of_the_whole_universe() -> None:
    universe = {"a": 4, "b": 3, "c": 5, "d": 1, "e": 5, "f": 5}
    seen = {key: universe[key] for key in "abcd"}
    whole = await run(["ra_nwg"], record(labels=universe, universe="cache"))
    pool = await run(["selection_efficiency"], record(labels=seen, universe="pool"))
    bounds: Any = pool["context_utility_at_k"].details["ra_nwg_bounds"]
    low, high = bounds
    assert low <= whole["ra_nwg_at_k"].value <= high
    assert (low, high) == (pool["context_utility_at_k"].value, pool["ra_nwg_upper_at_k"].value)


async def test_selection_efficiency_reads_gold_labels_of_the_pool_only() -> None:
    inside = {"a": 4, "b": 1, "c": 5, "d": 4}
    gold = await run(["selection_efficiency"], record(labels={**inside, "far": 5, "away": 4}))
    pool = await run(["selection_efficiency"], record(labels=inside, universe="pool"))
    name = "selection_efficiency_at_k"
    as_gold = await run(["ra_nwg"], record(labels=inside))
    assert as_gold["proc_at_k"].value == 1.0, "where the labels are the pool's, PROC says nothing"
    assert gold[name].value == pool[name].value == as_gold["pct_proc_at_k"].value < 1.0
    assert gold["pool_recall4_at_k"].value == 0.5


async def test_a_judge_grades_the_pool_once_for_all_metrics() -> None:
    texts = {"a": "only this one is good", "b": "b", "c": "c"}
    grades = {"grades": [{"id": number, "grade": 4} for number in (1, 2, 3)]}
    chat = ScriptedChat([grades])
    results = await run(ASKING, record(pool="abc", used="ab", texts=texts), judge=LLMJudge(chat))
    assert chat.calls == 1
    assert {result.state for result in results.values()} == {"ok"}
    assert {result.label_scope for result in results.values()} == {"pool"}
    assert {result.judge.model for result in results.values()} == {"openai:scripted"}
    assert all(result.judge.prompt_hash and result.judge.label_scale == "direct5" for result in results.values())
    assert sum(result.llm_calls for result in results.values()) == 1


async def test_a_judge_that_cannot_grade_gives_na_not_a_number() -> None:
    results = await run(ASKING, record(), judge=OverlapJudge())
    assert {(result.state, result.reason) for result in results.values()} == {("na", "unsupported_by_judge")}


async def test_blank_contexts_are_empty_slots_for_a_judge() -> None:
    chat = ScriptedChat([{"grades": [{"id": 1, "grade": 5}]}])
    made = record(pool="ab", used="ba", texts={"a": "text", "b": "  "})
    results = await run(["p_at_k", "mrr", "context_precision_graded"], made, judge=LLMJudge(chat))
    assert results["p_at_k"].value == 0.5
    assert results["mrr"].value == 1.0
    assert results["context_precision_graded"].value == 1.0


async def test_a_delivered_context_outside_the_graded_pool_is_unlabelled() -> None:
    chat = ScriptedChat([{"grades": [{"id": 1, "grade": 2}]}])
    results = await run(ASKING, record(pool="a", used="az"), judge=LLMJudge(chat))
    assert {result.reason for result in results.values()} == {"unlabelled_topk"}


async def test_several_k_are_told_apart() -> None:
    results = await run(["p_at_k", "harm"], record(labels={"a": 5, "b": 2}), k_values=(1, 2, 4, 1))
    assert {name: (result.k, result.value) for name, result in results.items()} == {
        "p_at_k": (1, 1.0),
        "p_at_k@2": (2, 0.5),
        "p_at_k@4": (4, 0.25),
        "harm_at_k": (1, 0.0),
        "harm_at_k@2": (2, 0.5),
        "harm_at_k@4": (4, 0.25),
    }


async def test_without_a_place_nothing_is_asked() -> None:
    chat = ScriptedChat()
    asked = [name for name in ALL if name != "context_precision_graded"]
    results = await run(asked, RagRecord(id="1"), judge=LLMJudge(chat))
    assert {(result.state, result.reason) for result in results.values()} == {("na", "k_not_positive")}
    empty = await run(["context_precision_graded"], RagRecord(id="1"), judge=LLMJudge(chat))
    assert empty["context_precision_graded"].reason == "no_contexts"
    assert chat.calls == 0


async def test_mrr_needs_grades_only_up_to_the_first_hit() -> None:
    known = await run(["mrr"], record(used="abcd", labels={"a": 1, "b": 5}))
    assert known["mrr"].value == 0.5
    unknown = await run(["mrr"], record(used="abcd", labels={"a": 1, "c": 5}))
    assert unknown["mrr"].reason == "unlabelled_topk"


@pytest.mark.parametrize("grade", [0, 6, 2.5, True, "4", None, float("nan")])
async def test_a_grade_that_is_none_is_an_error_everywhere(grade) -> None:
    results = await run(ALL, record(labels={"a": grade, "b": 4}))
    assert {(result.state, result.reason) for result in results.values()} == {("error", "invalid_grade")}


@pytest.mark.parametrize("scale", ["umbrela_mapped", "umbrela_mapped_strict"])
async def test_ndcg_gains_are_umbrela_grades_however_they_were_mapped(scale) -> None:
    umbrela = {"a": 0, "b": 1, "c": 2, "d": 3}
    grades = {key: from_umbrela(grade, strict=scale.endswith("strict")) for key, grade in umbrela.items()}
    made = RagRecord(id="1", pools=(stage("used", "abcd"),), labels=Labels(grades=grades, scale=scale))
    found = (await run(["ndcg"], made))["ndcg_at_k"]
    assert found.value == rank.ndcg_at_k(list("abcd"), umbrela, 4) == pytest.approx(0.614, abs=5e-4)


async def test_ndcg_of_a_judge_that_grades_strictly_is_that_of_one_that_does_not() -> None:
    texts = {"a": "one", "b": "two", "c": "three"}
    values = set()
    for scale in ("umbrela", "umbrela_strict"):
        rows = [{"id": n, "grade": grade} for n, grade in ((1, 1), (2, 0), (3, 3))]
        judge = LLMJudge(ScriptedChat([{"grades": rows}]), scale=scale)
        values.add(
            (await run(["ndcg"], record(pool="abc", used="abc", texts=texts), judge=judge))["ndcg_at_k"].value
        )
    assert len(values) == 1
    assert None not in values


async def test_no_gain_to_be_had_has_no_ratio() -> None:
    results = await run(ALL, record(labels={"a": 1, "b": 2, "c": 1, "d": 1}))
    reasons = {name: result.reason for name, result in results.items() if result.state == "na"}
    assert set(reasons.values()) == {"zero_oracle"}
    assert "ndcg_at_k" in reasons
    assert results["p_at_k"].value == 0.0
    assert results["harm_at_k"].value == 1.0
    assert results["context_utility_at_k"].value == 0.0


async def test_copies_count_once_and_are_reported() -> None:
    results = await run(["ra_nwg", "p_at_k"], record(pool="ab", used="aab", labels={"a": 5, "b": 4}))
    assert results["p_at_k"].value == pytest.approx(2 / 3)
    assert results["ra_nwg_at_k"].value == 1.0
    assert results["ra_nwg_at_k"].details["dup_count"] == 1
    assert results["ra_nwg_at_k"].details["dup_rate"] == pytest.approx(1 / 3)


async def test_bounds_are_given_when_asked_for() -> None:
    made = record(used="ax", pool="abx", labels={"a": 5, "b": 5})
    result = (await run([ra_nwg(has_bounds=True)], made))["ra_nwg_at_k"]
    assert result.reason == "unlabelled_topk"
    assert result.details["bounds"]["ra_nwg"] == [0.5, 1.0]


async def test_the_monotone_form_has_names_of_its_own() -> None:
    metric = ra_nwg(SetParams(monotone=True))
    results = await run([metric], record(labels={"a": 5, "b": 4}))
    assert list(results)[:2] == ["ra_nwg_monotone_at_k", "proc_monotone_at_k"]
    assert not {output.name for output in metric.spec.outputs} & {output.name for output in ra_nwg().spec.outputs}
