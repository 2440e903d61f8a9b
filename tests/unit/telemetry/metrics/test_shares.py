"""Weighted counts of verdicts and of runs without a score, through the real instruments."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from ragtrace import semconv
from ragtrace.model import (
    DIAGNOSIS,
    ERROR_REASONS,
    NA_REASONS,
    NOT_APPLICABLE,
    SKIP_REASONS,
    VERDICTS,
    MetricResult,
    Missed,
    Scale,
)
from tests.unit.telemetry.metrics.test_instruments import RECORD, Instruments, Metered
from tests.unit.telemetry.runs import score

SCALES = {"faithfulness": Scale(threshold=0.8), DIAGNOSIS: Scale(threshold=1.0)}


@pytest.fixture
def metered():
    return Metered()


@pytest.fixture
def instruments(metered):
    return Instruments([metered.meter])


def diagnosed(verdict, weight=20.0, **facts):
    about = {"state": "na", "reason": "no_claims"} if verdict == "undetermined" else {"state": "ok"}
    value = float(verdict in {"ok", "rightly_refused"})
    return score(DIAGNOSIS, value, weight=weight, details={"verdict": verdict}, **about, **facts)


def by(metered, name, label):
    found = metered.values(name)
    shown = {about[label]: value for about, value in found}
    assert len(shown) == len(found), "one series for each value of the label"
    return shown


def test_a_verdict_counts_with_its_weight(metered, instruments):
    drawn = (("lost_in_rerank", 20.0), ("lost_in_rerank", 10.0), ("ok", 2.0), ("undetermined", 3.0))
    for number, (verdict, weight) in enumerate(drawn):
        asked = replace(RECORD, query=f"Where is {number}?")
        instruments.scored(asked, [diagnosed(verdict, weight)], SCALES, is_recorded=True)
    expected = {"lost_in_rerank": (2, 30.0, 500.0), "ok": (1, 2.0, 4.0), "undetermined": (1, 3.0, 9.0)}
    names = (semconv.DIAGNOSIS_N, semconv.DIAGNOSIS_W, semconv.DIAGNOSIS_W2)
    for name, place in zip(names, range(3), strict=True):
        got = {verdict: value for verdict, value in by(metered, name, semconv.DIAGNOSIS_VERDICT).items() if value}
        assert got == {verdict: sums[place] for verdict, sums in expected.items()}


def test_turns_of_a_session_are_one_run_for_the_effective_number(metered, instruments):
    turn = replace(RECORD, session="s")
    for verdict in ("lost_in_rerank", "ok", "ok"):
        instruments.scored(turn, [diagnosed(verdict, 2.0), score(weight=2.0)], SCALES, is_recorded=True)
    w, w2 = (
        sum(value for _, value in metered.values(name)) for name in (semconv.DIAGNOSIS_W, semconv.DIAGNOSIS_W2)
    )
    assert w * w / w2 == 1.0
    due = dict(
        zip(
            ("w", "w2"), (metered.values(n)[0][1] for n in (semconv.SCORE_DUE_W, semconv.SCORE_DUE_W2)), strict=True
        )
    )
    assert due["w"] ** 2 / due["w2"] == 1.0
    for number in range(3):
        other = replace(RECORD, session=f"s{number}")
        instruments.scored(other, [diagnosed("ok", 2.0)], SCALES, is_recorded=True)
    w, w2 = (
        sum(value for _, value in metered.values(name)) for name in (semconv.DIAGNOSIS_W, semconv.DIAGNOSIS_W2)
    )
    assert w * w / w2 == pytest.approx(12.0**2 / (6.0**2 + 3 * 2.0**2))


def test_every_verdict_of_a_workflow_exists_at_zero_before_the_first(metered, instruments):
    known = MetricResult(name=DIAGNOSIS, state="na", reason="no_answer")
    instruments.precreate_metric(known, SCALES[DIAGNOSIS])
    assert metered.values(semconv.DIAGNOSIS_W) == []
    instruments.precreate("support", "gpt-x")
    instruments.precreate("support", "gpt-y")
    for name in (semconv.DIAGNOSIS_N, semconv.DIAGNOSIS_W, semconv.DIAGNOSIS_W2):
        assert by(metered, name, semconv.DIAGNOSIS_VERDICT) == dict.fromkeys(VERDICTS, 0)
    assert {about[semconv.GEN_AI_WORKFLOW_NAME] for about, _ in metered.values(semconv.DIAGNOSIS_W)} == {"support"}


def test_no_verdict_series_without_the_metric(metered, instruments):
    instruments.scored(RECORD, [score()], SCALES, is_recorded=True)
    assert metered.values(semconv.DIAGNOSIS_W) == []


def test_forced_runs_and_unknown_weights_count_nowhere(metered, instruments):
    missing = {"state": "na", "reason": "abstained"}
    for facts in ({"stratum": "forced"}, {"weight": None}):
        results = [diagnosed("unsupported", **{"weight": 20.0} | facts), score(**missing, **facts)]
        instruments.scored(RECORD, results, SCALES, is_recorded=True)
    for name in (semconv.DIAGNOSIS_W, semconv.SCORE_MISSING_W, semconv.SCORE_DUE_W):
        assert {value for _, value in metered.values(name)} <= {0.0}


def test_a_run_without_a_score_is_due_and_missing(metered, instruments):
    results = [score(value=0.5, weight=4.0)]
    results += [score(state="na", reason="abstained", weight=2.0), score(state="error", reason="judge_timeout")]
    instruments.precreate("support", "gpt-x")
    for number, one in enumerate(results):
        instruments.scored(replace(RECORD, query=f"Where is {number}?"), [one], SCALES, is_recorded=True)
    about = {semconv.GEN_AI_EVALUATION_NAME: "faithfulness", semconv.GEN_AI_WORKFLOW_NAME: "support"}
    assert metered.values(semconv.SCORE_DUE_W) == [(about, 26.0)]
    assert metered.values(semconv.SCORE_DUE_W2) == [(about, 16.0 + 4.0 + 400.0)]
    got = {(it["ragtrace.outcome"], it["ragtrace.reason"]): w for it, w in metered.values(semconv.SCORE_MISSING_W)}
    assert {key: w for key, w in got.items() if w} == {("na", "abstained"): 2.0, ("error", "judge_timeout"): 20.0}
    assert got["na", "no_contexts"] == 0.0, "seen at 0 before the first such run"


def test_each_reason_is_missing_or_not_applicable():
    assert NOT_APPLICABLE < NA_REASONS
    for state, reasons in (("na", NA_REASONS), ("error", ERROR_REASONS)):
        for reason in reasons:
            result = MetricResult(name="x", state=state, reason=reason)
            assert result.is_missing == (reason not in NOT_APPLICABLE)
    assert not MetricResult(name="x", state="na", reason="missing_input:reference").is_missing
    for reason in SKIP_REASONS:
        assert MetricResult(name="x", state="skipped", reason=reason).is_missing == (reason != "not_sampled")
    assert not MetricResult(name="x", state="ok", value=1.0).is_missing


def test_the_reference_names_the_reasons_that_do_not_count():
    page = (Path(__file__).parents[4] / "docs" / "reference" / "telemetry.md").read_text()
    section = page.split("### Missing scores and verdicts")[1].split("| name")[0]
    (rule,) = re.findall(r"each `na` but(.*?)\. With q", section, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", rule)) == NOT_APPLICABLE


@pytest.mark.parametrize("reason", sorted(NOT_APPLICABLE))
def test_a_metric_that_does_not_apply_is_not_due(metered, instruments, reason):
    instruments.scored(RECORD, [score(state="na", reason=reason)], SCALES, is_recorded=True)
    assert metered.values(semconv.SCORE_DUE_W) == []


def test_a_metric_with_several_k_counts_once_a_run(metered, instruments):
    results = [
        score("mrr", 0.5, k=k, variant=variant, weight=2.0) for k, variant in ((3, ""), (5, "5"), (10, "10"))
    ]
    instruments.scored(RECORD, results, {"mrr": Scale()}, is_recorded=True)
    assert [value for _, value in metered.values(semconv.SCORE_DUE_W)] == [2.0]


def test_a_diagnosis_without_a_verdict_is_undetermined(metered, instruments):
    failed = score(DIAGNOSIS, state="error", reason="judge_error", weight=5.0)
    apart = score(DIAGNOSIS, state="na", reason="no_answer_expected", weight=5.0)
    instruments.scored(RECORD, [failed, apart], SCALES, is_recorded=True)
    got = by(metered, semconv.DIAGNOSIS_W, semconv.DIAGNOSIS_VERDICT)
    assert {verdict: w for verdict, w in got.items() if w} == {"undetermined": 5.0}


def test_label_sets_are_bounded(metered, instruments):
    for number in range(400):
        known = MetricResult(name=f"metric {number}", state="na", reason="no_answer")
        instruments.precreate_metric(known, Scale())
    instruments.precreate("support", None)
    assert len(metered.values(semconv.SCORE_MISSING_W)) <= 1_000


def kinds(metered, name):
    found = Counter()
    for about, weight in metered.values(name):
        found[about[semconv.OUTCOME], about[semconv.REASON]] += weight
    return dict(+found)


def due_of(metered, metric="faithfulness"):
    return sum(w for about, w in metered.values(semconv.SCORE_DUE_W) if metric in about.values())


TIMED_OUT = score(state="error", reason="judge_timeout", weight=4.0)


def test_a_run_that_waits_is_due_and_missing_until_its_score_comes(metered, instruments):
    missed = instruments.waits(RECORD, [TIMED_OUT], "judge_timeout")
    assert missed == {"faithfulness": Missed(4.0, "error", "judge_timeout")}
    assert (due_of(metered), kinds(metered, semconv.SCORE_MISSING_W)) == (4.0, {("error", "judge_timeout"): 4.0})
    # What another queue kept of it since may have raised the weight: what comes back is what was counted.
    instruments.scored(RECORD, [score(weight=5.0)], SCALES, is_recorded=True, missed=missed)
    assert due_of(metered) == 4.0
    assert kinds(metered, semconv.SCORE_RECOVERED_W) == kinds(metered, semconv.SCORE_MISSING_W)
    assert [w for _, w in metered.values(semconv.SCORE_W)] == [5.0]


@pytest.mark.parametrize(
    "last", [{"state": "error", "reason": "judge_refused"}, {"state": "na", "reason": "abstained"},
             {"state": "na", "reason": "no_labels"}]
)  # fmt: skip
def test_a_run_that_waited_and_got_no_score_stays_missing_and_is_counted_once(metered, instruments, last):
    missed = instruments.waits(RECORD, [TIMED_OUT], "judge_timeout")
    instruments.scored(RECORD, [score(weight=4.0, **last)], SCALES, is_recorded=True, missed=missed)
    assert (due_of(metered), kinds(metered, semconv.SCORE_MISSING_W)) == (4.0, {("error", "judge_timeout"): 4.0})
    assert kinds(metered, semconv.SCORE_RECOVERED_W) == {}


def test_scores_that_wait_for_others_of_their_run_are_missing_too(metered, instruments):
    found = [score(weight=4.0), score(DIAGNOSIS, state="error", reason="judge_error", weight=4.0)]
    missed = instruments.waits(RECORD, found, "judge_error")
    assert set(missed) == {"faithfulness", DIAGNOSIS}
    assert metered.values(semconv.DIAGNOSIS_W) == [], "no verdict yet"
    instruments.scored(RECORD, [score(weight=4.0), diagnosed("ok", 4.0)], SCALES, is_recorded=True, missed=missed)
    assert kinds(metered, semconv.SCORE_RECOVERED_W) == {("error", "judge_error"): 8.0}
    assert {about[semconv.DIAGNOSIS_VERDICT]: w for about, w in metered.values(semconv.DIAGNOSIS_W) if w} == {
        "ok": 4.0
    }


def test_forced_runs_do_not_wait_in_the_bounds(metered, instruments):
    facts = {"state": "error", "reason": "judge_timeout"}
    for apart in ({"stratum": "forced"}, {"weight": None}):
        assert instruments.waits(RECORD, [score(**facts, **apart)], "judge_timeout") == {}
    assert due_of(metered) == 0.0


def test_runs_that_were_lost_alike_count_as_so_many_clusters(metered, instruments):
    lost = [score(state="skipped", reason="queue_full", weight=2.0)]
    instruments.lost(replace(RECORD, session="s"), lost, runs=10)
    assert due_of(metered) == 20.0
    assert [w for _, w in metered.values(semconv.SCORE_DUE_W2)] == [40.0]
    assert kinds(metered, semconv.SCORE_MISSING_W) == {("skipped", "queue_full"): 20.0}
    assert kinds(metered, semconv.SCORE_RECOVERED_W) == {}


def test_what_may_come_back_exists_at_zero_before_it_does(metered, instruments):
    instruments.precreate_metric(MetricResult(name="faithfulness", state="na", reason="no_answer"), Scale())
    instruments.precreate("support", None)
    made = {name: {(a[semconv.OUTCOME], a[semconv.REASON]) for a, _ in metered.values(name)}
            for name in (semconv.SCORE_MISSING_W, semconv.SCORE_RECOVERED_W)}  # fmt: skip
    assert {("skipped", "budget_exceeded"), ("skipped", "queue_full")} < made[semconv.SCORE_MISSING_W]
    assert made[semconv.SCORE_RECOVERED_W] == {kind for kind in made[semconv.SCORE_MISSING_W] if kind[0] == "error"}
