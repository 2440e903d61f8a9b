"""Scored files side by side: what is paired, what is refused, what is counted."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ragtrace.errors import ConfigError, InputError
from ragtrace.scoring import ComparedFile, compare, scored_row
from ragtrace.stats import clustered_interval, paired_difference, unpaired_difference


def ok(value: float, **more: Any) -> dict[str, Any]:
    return {"state": "ok", "value": value, "judge": "j", "version": "v1", **more}


def na(state: str = "na", reason: str = "no_claims", **more: Any) -> dict[str, Any]:
    return {"state": state, "value": None, "reason": reason, "judge": "j", "version": "v1", **more}


def line(n: int, score: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    return {"id": f"q{n}", "query": f"Question {n}?", "scores": {"faithfulness": score} if score else {}, **more}


def arm(name: str, lines: list[dict[str, Any]]) -> ComparedFile:
    return ComparedFile(name, [scored_row(one, n) for n, one in enumerate(lines, start=1)])


def values(seed: int, n: int = 30) -> list[float]:
    draw = random.Random(seed)
    return [draw.random() for _ in range(n)]


def pair(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> Any:
    return compare([arm("a", first), arm("b", second)])


def test_equal_ids_are_paired_in_whatever_order_they_stand() -> None:
    one, other = values(1), values(2)
    second = [line(n, ok(value)) for n, value in enumerate(other)]
    random.Random(3).shuffle(second)
    found = pair([line(n, ok(value)) for n, value in enumerate(one)], second).lines[0]
    assert found.contrasts[0].difference == paired_difference(one, other)
    assert found.sides[0].mean == clustered_interval(one)


def test_other_ids_are_unpaired() -> None:
    one, other = values(1), values(2, 20)
    first = [line(n, ok(value)) for n, value in enumerate(one)]
    second = [line(n + 100, ok(value)) for n, value in enumerate(other)]
    assert pair(first, second).lines[0].contrasts[0].difference == unpaired_difference(one, other)


def test_line_numbers_that_meet_by_chance_are_no_pairs() -> None:
    first = [{"query": f"A {n}?", "scores": {"m": ok(0.5)}} for n in range(5)]
    second = [{"query": f"B {n}?", "scores": {"m": ok(0.5)}} for n in range(5)]
    assert not pair(first, second).lines[0].contrasts[0].difference.is_paired
    assert pair(first, first).lines[0].contrasts[0].difference.is_paired


@pytest.mark.parametrize(("common", "is_paired"), [(10, True), (5, True), (4, False)])
def test_pairs_count_where_half_of_the_smaller_side_has_a_partner(common, is_paired) -> None:
    first = [line(n, ok(0.1 * n)) for n in range(10)]
    second = [line(n + 10 - common, ok(0.5)) for n in range(10)]
    found = pair(first, second).lines[0].contrasts[0].difference
    assert (found.is_paired, found.n) == (is_paired, (common,) if is_paired else (10, 10))


def test_failures_are_counted_and_never_averaged() -> None:
    first = [line(0, ok(1.0)), line(1, na()), line(2, na("error", "judge_timeout")), line(3, None)]
    side = pair(first, first).lines[0].sides[0]
    assert (side.values, dict(side.na), dict(side.errors)) == ((1.0,), {"no_claims": 1}, {"judge_timeout": 1})
    assert side.mean == (1.0, 0.0, 1.0)


@pytest.mark.parametrize(
    "other",
    [
        {"judge": "k"},
        {"version": "v2"},
        {"k": 5},
        {"label_scale": "umbrela_mapped"},
        {"universe": "gold"},
    ],
)
def test_scores_of_another_kind_are_refused_in_one_line(other) -> None:
    found = pair([line(n, ok(0.1)) for n in range(9)], [line(n, ok(0.9, **other)) for n in range(9)])
    assert len(found.refused) == 1
    assert found.refused[0].startswith("faithfulness: a and b are not compared: ")
    assert "\n" not in found.refused[0]
    assert [len(one.sides[0].values) + len(one.sides[1].values) for one in found.lines] == [9, 9]
    assert all(one.contrasts[0].difference is None for one in found.lines)


def over(versions: list[str | None], shift: float = 0.0) -> list[dict[str, Any]]:
    scores = [ok(0.01 * n + shift, details={"labels_version": version}) for n, version in enumerate(versions)]
    return [line(n, score) for n, score in enumerate(scores)]


def test_labels_with_a_version_a_query_are_one_line_and_paired() -> None:
    versions = [str(n) for n in range(30)]
    found = pair(over(versions), over(versions, 0.25))
    assert (found.refused, len(found.lines)) == ((), 1)
    contrast = found.lines[0].contrasts[0]
    assert (contrast.difference.n, contrast.other_labels) == ((30,), 0)
    assert contrast.difference.value == pytest.approx(0.25)
    assert found.lines[0].sides[0].mean == clustered_interval([0.01 * n for n in range(30)])


def test_pairs_whose_labels_changed_are_left_out_and_counted() -> None:
    before = [str(n) for n in range(30)]
    after = [*before[:25], *("later" for _ in range(5))]
    found = pair(over(before), over(after, 0.25))
    contrast = found.lines[0].contrasts[0]
    assert (contrast.difference.n, contrast.other_labels) == ((25,), 5)
    assert contrast.to_json()["other_labels"] == 5
    assert found.refused == ()


@pytest.mark.parametrize("changed", [16, 30])
def test_labels_that_changed_in_most_pairs_are_refused_in_one_line(changed) -> None:
    before = [None] * 30
    found = pair(over(before), over(["2"] * changed + before[changed:], 0.25))
    assert [one.contrasts[0].difference for one in found.lines] == [None]
    assert found.lines[0].contrasts[0].other_labels == changed
    assert found.refused == (
        "faithfulness: a and b are not compared: the labels changed between them; score both again over the same labels",
    )


@pytest.mark.parametrize(("version", "is_refused"), [("v1", False), ("v2", True)])
def test_files_of_other_queries_need_the_same_labels(version, is_refused) -> None:
    found = pair(over(["v1"] * 30), [{**one, "id": f"x{one['id']}"} for one in over([version] * 30)])
    assert (found.lines[0].contrasts[0].difference is None, len(found.refused)) == (is_refused, is_refused)


def test_runs_over_several_labels_are_not_mixed() -> None:
    runs = [line(0, ok(0.5, details={"labels_version": version})) for version in ("1", "1", "2")]
    lines = {one.key.metric: one for one in compare([arm("a", runs)]).lines}
    assert lines["score_std(faithfulness)"].sides[0].na == {"insufficient_runs": 1}


def test_one_file_of_several_k_is_compared_k_by_k() -> None:
    lines = [line(n, ok(0.2 + 0.1 * (n % 2), k=3 + n % 2)) for n in range(20)]
    found = pair(lines, lines)
    assert found.refused == ()
    assert [(one.label, one.sides[0].mean.mean) for one in found.lines] == [
        ("faithfulness (K 3)", pytest.approx(0.2)),
        ("faithfulness (K 4)", pytest.approx(0.3)),
    ]
    assert [one.contrasts[0].difference.n for one in found.lines] == [(10,), (10,)]


def test_a_failure_that_knows_no_k_stands_beside_the_values_of_its_judge() -> None:
    first = [line(0, ok(0.5, k=3)), line(1, ok(0.5, k=3, judge="z")), line(2, na(judge="z", k=None))]
    lines = {one.label: one for one in pair(first, first).lines}
    assert not lines["faithfulness (j)"].sides[0].na
    assert lines["faithfulness (z)"].sides[0].na == {"no_claims": 1}


@pytest.mark.parametrize("kind", ["session", "user"])
def test_sessions_and_users_count_as_one(kind) -> None:
    one, other = values(1), values(2)
    first, second = (
        [line(n, ok(value), **{kind: f"s{n // 3}"}) for n, value in enumerate(made)] for made in (one, other)
    )
    clusters = [n // 3 for n in range(30)]
    found = pair(first, second).lines[0]
    assert found.contrasts[0].difference == paired_difference(one, other, clusters)
    assert found.sides[0].mean == clustered_interval(one, clusters)
    assert found.sides[0].units == f"{kind}s"


def test_one_session_for_all_is_one_piece_of_evidence() -> None:
    made = [line(n, ok(value), session="s") for n, value in enumerate(values(1))]
    found = pair(made, made).lines[0]
    assert found.sides[0].mean[1:] == (0.0, 1.0)
    assert found.sides[0].units == "sessions"
    assert found.contrasts[0].difference.is_significant is None


def test_repeated_runs_have_their_consistency_and_differ_by_query() -> None:
    def runs(shift: float, answers: list[str]) -> list[dict[str, Any]]:
        return [
            line(query, ok(0.25 * (query + 1) + shift * (run - 1)), answer=answer)
            for query in range(3)
            for run, answer in enumerate(answers)
        ]

    found = pair(runs(0.0, ["It is Oslo."] * 3), runs(0.125, ["It is Oslo.", "It was Rome.", "Who knows?"]))
    assert found.arms[0]["repeated"] == 3
    lines = {one.key.metric: one for one in found.lines}
    assert lines["faithfulness"].sides[0].units == "queries"
    rouge, spread = lines["rouge_l_consistency"], lines["score_std(faithfulness)"]
    assert (rouge.is_over_runs, rouge.sides[0].values) == (True, (1.0, 1.0, 1.0))
    assert rouge.contrasts[0].difference.n == (3,)
    assert rouge.contrasts[0].difference.value < -0.5
    assert spread.sides[0].values == (0.0, 0.0, 0.0)
    assert spread.sides[1].values == pytest.approx((0.125, 0.125, 0.125))
    assert spread.direction == "down"


def test_two_runs_are_too_few_and_one_is_not_repeated() -> None:
    twice = [line(0, ok(0.5), answer="a"), line(0, ok(0.5), answer="b"), line(1, ok(0.5), answer="c")]
    lines = {one.key.metric: one for one in compare([arm("a", twice)]).lines}
    assert lines["rouge1_consistency"].sides[0].na == {"insufficient_runs": 1}
    assert lines["score_cv(faithfulness)"].sides[0].na == {"insufficient_runs": 1}


def test_runs_of_several_judges_are_not_mixed() -> None:
    mixed = [line(0, ok(0.5)), line(0, ok(0.5)), line(0, ok(0.9, judge="k"))]
    lines = {one.key.metric: one for one in compare([arm("a", mixed)]).lines}
    assert lines["score_std(faithfulness)"].sides[0].na == {"insufficient_runs": 1}


def test_metrics_may_be_chosen() -> None:
    rows = [{"id": "1", "scores": {"mrr": ok(1.0), "p_at_k": ok(0.5), "p_at_k@5": ok(0.4)}}]
    assert [one.key.metric for one in compare([arm("a", rows)], metrics=["p_at_k"]).lines] == ["p_at_k", "p_at_k@5"]
    assert [one.key.metric for one in compare([arm("a", rows)], metrics=["p_at_k@5"]).lines] == ["p_at_k@5"]
    named = compare(
        [arm("a", [{"id": "1", "scores": {"answered": ok(1.0), "mrr": ok(1.0)}}])], metrics=["no_answer"]
    )
    assert [one.key.metric for one in named.lines] == ["answered"]
    thrice = [line(0, ok(0.5), answer="a b")] * 3
    over_runs = compare([arm("a", thrice)], metrics=["rouge_consistency"])
    assert [one.key.metric for one in over_runs.lines] == [f"rouge{n}_consistency" for n in ("1", "2", "_l")]
    with pytest.raises(ConfigError, match="no file has such a score"):
        compare([arm("a", rows)], metrics=["mrrr"])


def test_a_metric_without_ends_has_an_interval_in_its_own_unit() -> None:
    rows = [
        {"id": str(n), "scores": {"answer_similarity": ok(0.7 + 0.01 * n), "words": ok(100.0 + n)}}
        for n in range(12)
    ]
    lines = {one.key.metric: one for one in compare([arm("a", rows), arm("b", rows)]).lines}
    for name, first in (("answer_similarity", 0.7), ("words", 100.0)):
        scores = [first + (0.01 if first < 1 else 1.0) * n for n in range(12)]
        assert lines[name].sides[0].mean == pytest.approx(clustered_interval(scores, ends=None))
        assert lines[name].contrasts[0].difference == paired_difference(scores, scores, ends=None)


def test_the_share_of_questions_answered() -> None:
    rows = [{"id": str(n), "scores": {"answered": ok(float(n > 0))}} for n in range(4)]
    rows.append({"id": "x", "scores": {"answered": na()}})
    assert compare([arm("a", rows)]).answered[0].mean == 0.75
    assert compare([arm("a", [line(0, ok(1.0))])]).answered[0].mean is None


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"query": "q"}, "no scores"),
        ({"scores": []}, "no scores"),
        ({"scores": {"m": 0.5}}, "'scores.m' is not a score"),
        ({"scores": {"m": {"state": "fine", "value": 1}}}, "'scores.m' is not a score"),
        ({"scores": {"m": {"state": "ok"}}}, "'scores.m.value' must be a finite number"),
        ({"scores": {"m": {"state": "ok", "value": True}}}, "'scores.m.value'"),
        ({"scores": {"m": {"state": "ok", "value": "0.5"}}}, "'scores.m.value'"),
        ({"scores": {"m": {"state": "ok", "value": 10**400}}}, "'scores.m.value'"),
        (
            {"scores": {"m": {"state": "ok", "value": 1.7e308}}},
            "'scores.m.value' must lie between -1e100 and 1e100",
        ),
        ({"scores": {"m": {"state": "ok", "value": -2e100}}}, "'scores.m.value' must lie between -1e100 and 1e100"),
        ({"scores": {"answered": {"state": "ok", "value": 2}}}, "'scores.answered.value' must lie between 0 and 1"),
        ({"scores": {"answered": {"state": "ok", "value": -0.1}}}, "'scores.answered.value' must lie between 0"),
        ([], "must be a JSON object"),
    ],
)
def test_what_is_no_scored_line_is_refused_by_field(given, reason) -> None:
    with pytest.raises(InputError, match=reason.replace(".", r"\.")):
        scored_row(given, 1)


@pytest.mark.parametrize(
    ("judge", "scale", "grades", "expected"),
    [
        ("overlap", "direct5", [5, 1, 4], {"a": 3, "c": 0, "d": 2}),  # a judge never sees a blank context
        ("labels", "direct5", [5, 1, 4, 3], {"a": 3, "b": 0, "c": 2, "d": 1}),
        ("overlap", "umbrela_mapped_strict", [2, 1, 5], {"a": 1, "c": 0, "d": 3}),
        ("overlap", "direct5", [5, None, True], {"a": 3}),
        ("overlap", "direct5", [], None),
        ("overlap", "direct5", "all", None),
    ],
)
def test_umbrela_grades_by_passage(judge, scale, grades, expected) -> None:
    contexts = [{"id": key, "text": text} for key, text in zip("abcda", ["x", " ", "y", "z", "x"], strict=True)]
    short = ok(1.0, judge=judge, label_scale=scale, details={"grades": grades[:1]})
    score = ok(1.0, judge=judge, label_scale=scale, details={"grades": grades})
    row = scored_row({"contexts": contexts, "scores": {"p_at_k": short, "mrr": score, "x": na()}}, 1)
    assert row.umbrela == expected
