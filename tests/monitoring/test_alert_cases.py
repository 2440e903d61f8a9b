"""Every alert in promtool, in both forms: when it fires, when it does not, few scores, silence, another judge."""

from __future__ import annotations

import re

import pytest

from ragtrace import semconv
from ragtrace_dashboards.alerts import alerts
from ragtrace_dashboards.config import Config
from ragtrace_dashboards.drift import DRIFT_ALERTS
from ragtrace_dashboards.expressions import SERIES, label
from tests.monitoring.baseline_cases import DOWN, baseline_cases, down_cases
from tests.monitoring.cases import run_cases
from tests.monitoring.drift_cases import CHANGED, QUALITY, drift_cases, labels, long_cases
from tests.monitoring.level_cases import BLIND, LOW, level_cases
from tests.monitoring.operation_cases import BUDGET, CANARY, EMPTY, ERRORS, LAG, SILENT, drawn, operation_cases
from tests.monitoring.promtool import COARSE, FORMS, QUARTER, Scores, counter, firing, gauge, run, scores

pytestmark = pytest.mark.slow

SETS = {
    "drift": (drift_cases, COARSE),
    "long": (long_cases, COARSE),
    "baseline": (baseline_cases, COARSE),
    "level": (level_cases, COARSE),
    "operation": (operation_cases, QUARTER),
}
NUMBERED = {*DRIFT_ALERTS, LOW, BLIND, EMPTY, ERRORS, LAG}
APPLIES = {
    "low n": {*NUMBERED, CHANGED},
    "silence": {*NUMBERED, CHANGED, SILENT, BUDGET, CANARY},
    "judge change": {*DRIFT_ALERTS, CHANGED, LOW, BLIND},
}
"""Which alerts a kind of case is about: the others read no scores, no counters or nothing of the judge."""


def alerts_of(cases):
    return {name for case in cases for name in case.expected}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", SETS)
def test_cases(tmp_path, name, form):
    made, step_min = SETS[name]
    cases = made()
    run_cases(tmp_path, cases, form, only=alerts_of(cases), step_min=step_min)


@pytest.mark.parametrize("form", FORMS)
def test_a_watched_metric_of_which_less_is_better(tmp_path, form):
    run_cases(tmp_path, down_cases(), form, only=DRIFT_ALERTS, step_min=COARSE, config=DOWN)


@pytest.mark.parametrize("form", FORMS)
def test_nothing_is_scraped_at_all(tmp_path, form):
    capacity = gauge(SERIES[semconv.QUEUE_CAPACITY], {"job": ""}, (1, 2_048.0))
    run(tmp_path, [capacity], [firing(SILENT, 0.75, 0, ""), firing(SILENT, 8, 1, "")], only=[SILENT], form=form)


@pytest.mark.parametrize("form", FORMS)
def test_a_service_without_a_trace_is_scraped(tmp_path, form):
    """No traces counter before the first run, after a quiet restart, and never from `ragtrace worker`."""
    series = [drawn("shop", (2, 0)), gauge(SERIES[semconv.QUEUE_CAPACITY], {"job": "shop"}, (12, 2_048.0))]
    run(tmp_path, series, [firing(SILENT, hour, 0, "") for hour in (1, 6, 11.75)], only=[SILENT], form=form)


@pytest.mark.parametrize("form", FORMS)
def test_a_score_that_comes_late_but_in_time_pages_nobody(tmp_path, form):
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
    run(tmp_path, series, checks, only=[SILENT], step_min=1, form=form)


@pytest.mark.parametrize("form", FORMS)
def test_every_alert_has_a_firing_and_a_quiet_case_and_no_case_is_without_an_alert(form):
    cases = [case for made, _ in SETS.values() for case in made() if form in case.forms]
    names = {it.name for it in alerts(Config())}
    assert {name for case in cases for name in case.expected if case.fires(name)} == names
    assert {name for case in cases for name in case.expected if not case.fires(name)} == names
    assert all(hours for case in cases for hours in case.expected.values())
    shown = {kind: alerts_of(case for case in cases if case.kind == kind) for kind in APPLIES}
    assert shown == APPLIES


def test_the_message_names_mean_and_baseline(tmp_path):
    alert = {"eval_time": f"{5 * 24 * 60}m", "alertname": QUALITY, "exp_alerts": []}
    series = scores(labels("shop"), Scores(4 * 24, 200), Scores(30, 200, 0.6))
    with pytest.raises(AssertionError) as told:  # promtool prints what it got instead of nothing
        run(tmp_path, series, [], [alert], only={QUALITY}, step_min=COARSE)
    got = str(told.value)
    for text in (
        "faithfulness of support is worse than its baseline",
        "http://localhost:8000/runbooks/RagtraceQualityDrift.md#meaning",
        "http://localhost:3000/d/ragtrace-investigate?viewPanel=21&var-job=shop&var-metric=faithfulness&var-workflow=support",
    ):
        assert text in got
    found = re.search(r"lies ([0-9.]+) standard errors.*Mean of 1d: ([0-9.]+)\. Baseline: ([0-9.]+)\.", got)
    assert found is not None, got
    # z = (.92 - .02 - .60) / sqrt(.04 (1 / 200 + 1 / 800)) = 19.0
    assert float(found[1]) == pytest.approx(19.0, abs=0.4)
    assert float(found[2]) == pytest.approx(0.600, abs=0.002)
    assert float(found[3]) == pytest.approx(0.920, abs=0.002)
