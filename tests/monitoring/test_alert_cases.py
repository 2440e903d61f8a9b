"""Every alert in promtool: when it fires, when it does not, few scores, silence, another judge."""

from __future__ import annotations

import math
import re

import pytest

from ragtrace import semconv
from ragtrace_dashboards import DRIFT_ALERTS, SERIES, Config, alerts, label
from tests.monitoring.baseline_cases import DOWN, baseline_cases, down_cases, frozen_cases
from tests.monitoring.cases import run_cases
from tests.monitoring.drift_cases import CHANGED, QUALITY, drift_cases, fall_cases, labels, long_cases, wander_cases
from tests.monitoring.level_cases import BLIND, LOW, level_cases
from tests.monitoring.operation_cases import BUDGET, CANARY, EMPTY, ERRORS, LAG, SILENT, drawn, operation_cases
from tests.monitoring.promtool import (
    COARSE,
    QUARTER,
    Scores,
    baseline,
    counter,
    expecting,
    firing,
    gauge,
    run,
    scores,
)
from tests.monitoring.share_cases import MISSING, share_cases, verdicts

pytestmark = pytest.mark.slow

SETS = {
    "drift": (drift_cases, COARSE),
    "fall": (fall_cases, COARSE),
    "long": (long_cases, COARSE),
    "wander": (wander_cases, COARSE),
    "baseline": (baseline_cases, COARSE),
    "frozen": (frozen_cases, COARSE),
    "level": (level_cases, COARSE),
    "operation": (operation_cases, QUARTER),
    "share": (share_cases, COARSE),
}
NUMBERED = {*DRIFT_ALERTS, LOW, BLIND, EMPTY, ERRORS, LAG, MISSING}
APPLIES = {
    "low n": {*NUMBERED, CHANGED},
    "silence": {*NUMBERED, CHANGED, SILENT, BUDGET, CANARY},
    "judge change": {*DRIFT_ALERTS, CHANGED, LOW, BLIND},
}
"""Which alerts a kind of case is about: the others read no scores, no counters or nothing of the judge."""
LINKED = Config(grafana_url="https://grafana.example.org", runbook_url="https://wiki.example.org/ragtrace")


def alerts_of(cases):
    return {name for case in cases for name in case.expected}


@pytest.mark.parametrize("name", SETS)
def test_cases(tmp_path, name):
    made, step_min = SETS[name]
    cases = made()
    run_cases(tmp_path, cases, only=alerts_of(cases), step_min=step_min)


def test_a_watched_metric_of_which_less_is_better(tmp_path):
    run_cases(tmp_path, down_cases(), only=DRIFT_ALERTS, step_min=COARSE, config=DOWN)


def test_six_hours_see_four_bad_ones(tmp_path):
    """The day's window takes them for spread between hours."""
    job, begin = "four bad hours", 3 * 24
    named = labels(job)
    series = scores(named, Scores(begin, 5_000), Scores(4, 5_000, 0.70), Scores(20, 5_000), step_min=QUARTER)
    series += baseline(named, (5 * 24 * COARSE // QUARTER, 0.92))
    checks = [firing(QUALITY, begin + hour, count, job) for hour, count in ((0, 0), (4.5, 1), (12, 0), (22, 0))]
    beyond = f'ragtrace:drift_drop:%s{{job="{job}"}} > bool ragtrace:drift_limit:%s'
    for arm, value in (("fast", 1), ("day", 0)):
        checks.append(expecting(f"max({beyond % (arm, arm)})", begin + 4.5, [{"labels": "{}", "value": value}]))
    run(tmp_path, series, checks, only=[QUALITY])


def test_the_more_series_are_watched_the_more_a_drop_must_be(tmp_path):
    """The same drop fires alone, and not as one of thirty."""
    begin, drop = 6 * 24, Scores(48, 5_000, 0.871)
    for folder, others, count in (("alone", 0, 1), ("of thirty", 29, 0)):
        series = []
        for workflow in range(others + 1):
            named = labels("shop") | {"gen_ai_workflow_name": f"w{workflow}"}
            series += scores(named, Scores(begin, 5_000), Scores(48, 5_000) if workflow else drop)
            series += baseline(named, (9 * 24, 0.92))
        checks = [firing(QUALITY, begin, 0, "shop"), firing(QUALITY, begin + 36, count, "shop")]
        errors = "((ragtrace:drift_limit:day - 1 / ragtrace:score_n_eff:day) / ragtrace:drift_error:day)"
        limit = f"round(max({errors}) ^ 2 - 3.6 ^ 2, 0.01)"
        family = round(2 * math.log(others + 1), 2)
        checks.append(expecting(limit, begin, [{"labels": "{}", "value": family}]))
        (tmp_path / folder).mkdir()
        run(tmp_path / folder, series, checks, only=[QUALITY], step_min=COARSE)


def test_nothing_is_scraped_at_all(tmp_path):
    capacity = gauge(SERIES[semconv.QUEUE_CAPACITY], {"job": ""}, (1, 2_048.0))
    run(tmp_path, [capacity], [firing(SILENT, 0.75, 0, ""), firing(SILENT, 8, 1, "")], only=[SILENT])


def test_a_service_without_a_trace_is_scraped(tmp_path):
    """No traces counter before the first run, after a quiet restart, and never from `ragtrace worker`."""
    series = [drawn("shop", (2, 0)), gauge(SERIES[semconv.QUEUE_CAPACITY], {"job": "shop"}, (12, 2_048.0))]
    run(tmp_path, series, [firing(SILENT, hour, 0, "") for hour in (1, 6, 11.75)], only=[SILENT])


def test_a_score_that_comes_late_but_in_time_pages_nobody(tmp_path):
    """A night without traffic, then a trace that is scored 14 minutes later; and one that never is."""

    def counted(name, labels, quiet_h):
        return counter(SERIES[name], labels, (1, 3), (quiet_h, 0), (1 / 60, 60), (2, 0), step_min=1)

    series = []
    for job, scored_h in (("in time", 9 + 14 / 60), ("never", 99)):
        series.append(counted(semconv.TRACES, {"job": job, label(semconv.DECISION): "sampled"}, 9))
        result = {"job": job, "gen_ai_evaluation_name": "faithfulness", label(semconv.OUTCOME): "ok"}
        series.append(counted(semconv.EVALUATIONS, result, scored_h))
    checks = [firing(SILENT, 10 + minutes / 60, 0, "in time") for minutes in range(0, 60, 2)]
    checks += [firing(SILENT, 10 + minutes / 60, count, "never") for minutes, count in ((14, 0), (25, 1))]
    run(tmp_path, series, checks, only=[SILENT], step_min=1)


def test_every_alert_has_a_firing_and_a_quiet_case_and_no_case_is_without_an_alert():
    cases = [case for made, _ in SETS.values() for case in made()]
    names = {it.name for it in alerts(Config())}
    assert {name for case in cases for name in case.expected if case.fires(name)} == names
    assert {name for case in cases for name in case.expected if not case.fires(name)} == names
    assert all(hours for case in cases for hours in case.expected.values())
    shown = {kind: alerts_of(case for case in cases if case.kind == kind) for kind in APPLIES}
    assert shown == APPLIES


def test_the_message_names_mean_and_baseline(tmp_path):
    series = scores(labels("shop"), Scores(4 * 24, 400), Scores(30, 400, 0.6))
    got = told(tmp_path, series, 5 * 24)
    for text in (
        "https://wiki.example.org/ragtrace/RagtraceQualityDrift.md#first-five-minutes",
        "https://grafana.example.org/d/ragtrace-investigate?var-job=shop&var-metric=faithfulness&var-workflow=support",
        "ragtrace investigate --since 6h --metric faithfulness --workflow support",
        "100 effective scores within 6h, whose noise stays below 0.",
    ):
        assert text in got
    found = re.search(
        r"faithfulness of support fell from ([\d.]+) to ([\d.]+) \(by ([\d.]+), 95 % interval ([\d.]+) to ([\d.]+)\) "
        r"since about (\d+):00 UTC\. Run: ",
        got,
    )
    assert found is not None, got
    base, mean, drop, low, high, hour = (float(it) for it in found.groups())
    assert (drop, mean, base) == pytest.approx((0.320, 0.600, 0.920), abs=0.002)
    # .32 -+ 1.96 sqrt(.04 (1 / 100 + 1 / 1600) + 1.5 * .009^2)
    assert (low, high) == pytest.approx((0.275, 0.365), abs=0.006)
    assert min(hour, 24 - hour) <= 2, "it fell at midnight"


def told(folder, series, hours, alert=QUALITY):
    """Return the texts of one alert at an hour, as promtool prints what it got instead of nothing."""
    asked = {"eval_time": f"{round(hours * 60)}m", "alertname": alert, "exp_alerts": []}
    with pytest.raises(AssertionError) as found:
        run(folder, series, [], [asked], only={alert}, step_min=COARSE, config=LINKED)
    return str(found.value)


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ("openai:m", "of the evaluations of faithfulness by openai:m fail. Run: ragtrace doctor"),
        ("", "of the evaluations of faithfulness fail. Run: ragtrace doctor"),
    ],
)
def test_the_message_names_the_judge_whose_evaluations_fail(tmp_path, judge, said):
    series = [
        counter(
            SERIES[semconv.EVALUATIONS],
            {"job": "shop", "gen_ai_evaluation_name": "faithfulness", label(semconv.OUTCOME): outcome}
            | ({label(semconv.JUDGE_MODEL): by} if by else {}),
            (24, per_hour),
            step_min=COARSE,
        )
        for by, outcome, per_hour in (("overlap", "ok", 288), (judge, "error", 12))
    ]
    assert said in told(tmp_path, series, 24, ERRORS)


WELL = {"ok": 0.85, "unsupported": 0.10, "lost_in_rerank": 0.05}
GROWN = re.compile(
    r', mostly \\"(\w+)\\" \(([\d.]+) % to ([\d.]+) % of runs\)\. Run: ragtrace investigate --since (\w+) '
)


@pytest.mark.parametrize(
    ("after", "hours", "mean", "window"),
    [
        ({"ok": 0.65, "unsupported": 0.08, "lost_in_rerank": 0.25, "undetermined": 0.02}, 30, 0.82, "1d"),
        ({"ok": 0.65, "unsupported": 0.12, "lost_in_rerank": 0.23}, 8, 0.55, "6h"),
    ],
    ids=["a day", "six hours"],
)
def test_the_message_names_the_verdict_that_grew_most_in_the_window_of_the_alert(
    tmp_path, after, hours, mean, window
):
    before, per_day = 4 * 24, 200 if window == "1d" else 400
    series = scores(labels("shop"), Scores(before, per_day), Scores(hours, per_day, mean))
    if window == "6h":  # among a day of many good scores, six bad hours of few are seen by the fast arm alone
        series = scores(labels("shop"), Scores(before, 4_000), Scores(hours, 400, mean))
    series += verdicts("shop", (before, per_day, WELL), (hours, per_day, after))
    series += verdicts("another shop", (before + hours, per_day, {"ok": 0.5, "contradicted": 0.5}))
    ((verdict, share, now, got_window),) = GROWN.findall(told(tmp_path, series, before + hours))
    assert (got_window, verdict) == (window, "lost_in_rerank")
    assert float(share) == pytest.approx(5.0, abs=0.2)
    assert float(now) == pytest.approx(100 * after["lost_in_rerank"], abs=0.3)


def test_the_message_names_no_verdict_where_none_surely_grew(tmp_path):
    series = scores(labels("shop"), Scores(4 * 24, 200), Scores(30, 200, 0.6))
    assert "mostly" not in told(tmp_path, series, 5 * 24)
    after = {"ok": 0.83, "unsupported": 0.11, "lost_in_rerank": 0.06}
    series += verdicts("shop", (4 * 24, 200, WELL), (30, 200, after))
    assert "mostly" not in told(tmp_path, series, 5 * 24)


def test_the_shares_before_rest_in_an_incident(tmp_path):
    """Nine days into a drop a baseline that rolls on would call half of it usual."""
    before, lasts = 16 * 24, 9 * 24
    series = scores(labels("shop"), Scores(before, 200), Scores(lasts, 200, 0.80))
    after = {"ok": 0.60, "unsupported": 0.10, "lost_in_rerank": 0.30}
    series += verdicts("shop", (before, 200, WELL), (lasts, 200, after))
    ((verdict, share, now, _),) = GROWN.findall(told(tmp_path, series, before + lasts))
    assert (verdict, float(now)) == ("lost_in_rerank", pytest.approx(30.0, abs=0.3))
    assert float(share) == pytest.approx(5.0, abs=1.0)
