"""Rule F in promtool: each arm, each gate, the judge that changes, and a baseline that does not learn the incident.

All scenarios run at once, each as a service of its own: 300 evaluations of all rules take promtool some seconds, and
that no service disturbs another is part of what is tested.
"""

from __future__ import annotations

import re

import pytest

from ragtrace_dashboards.drift import DRIFT_ALERTS
from tests.monitoring.promtool import COARSE, FAITHFULNESS, Scores, expecting, firing, run, scores

DAY = 24.0
T0 = 16 * DAY
"""Hour at which most things change."""
BEFORE = Scores(T0, 200)
QUALITY, SELECTION, HARM = DRIFT_ALERTS
CHANGED = "RagtraceJudgeChanged"
OF = {QUALITY: "faithfulness", SELECTION: "selection_efficiency_at_k", HARM: "harm_at_k"}
ONLY = {*DRIFT_ALERTS, CHANGED}

# what: (metric, alert, phases, [(hour, alerts that fire)])
ONE_SERIES = {
    "a drop of 7 points": (
        "faithfulness", QUALITY, [BEFORE, Scores(72, 200, 0.85)],
        [(24, 0), (240, 0), (T0, 0), (T0 + 60, 1), (T0 + 70, 1)]),
    "a drop of 5 points at 200 a day: three days see it": (
        "faithfulness", QUALITY, [BEFORE, Scores(72, 200, 0.87)], [(T0, 0), (T0 + 70, 1)]),
    "four bad hours at 5000 a day: six hours see them": (
        "faithfulness", QUALITY, [Scores(T0, 5_000), Scores(4, 5_000, 0.76), Scores(24, 5_000)],
        [(T0, 0), (T0 + 6, 1), (T0 + 22, 0)]),
    "a drop within the tolerance": (
        "faithfulness", QUALITY, [Scores(T0, 5_000), Scores(96, 5_000, 0.905)], [(T0 + 48, 0), (T0 + 94, 0)]),
    "a rise": ("faithfulness", QUALITY, [BEFORE, Scores(72, 200, 1.0)], [(T0 + 70, 0)]),
    "low n: 8 a day": ("faithfulness", QUALITY, [Scores(T0, 8), Scores(72, 8, 0.3)], [(T0 + 24, 0), (T0 + 70, 0)]),
    "low effective n: few of many scores carry the weight": (
        "faithfulness", QUALITY, [Scores(T0, 200, w2=25.0), Scores(72, 200, 0.6, w2=25.0)], [(T0 + 70, 0)]),
    "a baseline of 150 scores": (
        "faithfulness", QUALITY, [Scores(36, 100), Scores(24, 100, 0.5)], [(48, 0), (58, 0)]),
    "silence": ("faithfulness", QUALITY, [BEFORE, Scores(96, 0)], [(T0 + 6, 0), (T0 + 22, 0), (T0 + 94, 0)]),
    "a metric that is not watched": ("own", QUALITY, [BEFORE, Scores(72, 200, 0.5)], [(T0 + 70, 0)]),
    "selection efficiency falls": (
        "selection_efficiency_at_k", SELECTION, [BEFORE, Scores(72, 200, 0.8)], [(T0, 0), (T0 + 70, 1)]),
    "selection efficiency holds": (
        "selection_efficiency_at_k", SELECTION, [BEFORE, Scores(72, 200)], [(T0 + 70, 0)]),
    "selection efficiency has an alert of its own": (
        "selection_efficiency_at_k", QUALITY, [BEFORE, Scores(72, 200, 0.8)], [(T0 + 70, 0)]),
    "low n of selection efficiency": (
        "selection_efficiency_at_k", SELECTION, [Scores(T0, 8), Scores(72, 8, 0.2)], [(T0 + 70, 0)]),
    "harm rises": ("harm_at_k", HARM, [Scores(T0, 200, 0.1), Scores(72, 200, 0.2)], [(T0, 0), (T0 + 70, 1)]),
    "harm falls": ("harm_at_k", HARM, [Scores(T0, 200, 0.2), Scores(72, 200, 0.0)], [(T0 + 70, 0)]),
    "harm falls far: quality is as it was": (
        "harm_at_k", QUALITY, [Scores(T0, 200, 0.6), Scores(72, 200, 0.0)], [(T0 + 70, 0)]),
    "low n of harm": ("harm_at_k", HARM, [Scores(T0, 8, 0.0), Scores(72, 8, 0.9)], [(T0 + 70, 0)]),
}  # fmt: skip


def labels(job, metric="faithfulness", **others):
    return FAITHFULNESS | {"job": job, "gen_ai_evaluation_name": metric} | others


def whose(job):
    return "{" + ", ".join(f'{k}="{v}"' for k, v in labels(job).items() if k != "ragtrace_stratum") + "}"


def one_series():
    for job, (metric, alert, phases, hours) in ONE_SERIES.items():
        yield scores(labels(job, metric), *phases), [firing(alert, hour, count, job) for hour, count in hours]


def judge_changes():
    """A stricter judge; one that comes in an incident; and the new judge's own drop."""
    new = {"ragtrace_judge_version": "bbbb2222"}
    quiet = [firing(QUALITY, T0 + after, 0, "strict") for after in (6, 12, 22, 30, 48, 94)]
    seen = [firing(CHANGED, T0 + 6, 1, "strict"), firing(CHANGED, T0 + 30, 0, "strict"), firing(CHANGED, T0, 0)]
    yield (
        scores(labels("strict"), BEFORE, Scores(96, 0))
        + scores(labels("strict", **new), Scores(96, 200, 0.6), begin_h=T0),
        quiet + seen,
    )
    yield (
        scores(labels("both"), BEFORE, Scores(48, 200, 0.6), Scores(24, 100, 0.6))
        + scores(labels("both", **new), Scores(24, 100, 0.6), begin_h=T0 + 48),
        [firing(QUALITY, T0 + 46, 1, "both"), firing(QUALITY, T0 + 60, 0, "both")],
    )
    yield (
        scores(labels("later"), BEFORE, Scores(10 * DAY, 0))
        + scores(labels("later", **new), Scores(6 * DAY, 200, 0.85), Scores(72, 200, 0.70), begin_h=T0),
        [firing(QUALITY, T0 + 5 * DAY, 0, "later"), firing(QUALITY, T0 + 8 * DAY, 1, "later")],
    )


def baseline_rests():
    """Six days into a drop a baseline that rolls on would have taken much of it for normal: z 1.8, no alert."""
    job, late = "long", T0 + 6 * DAY
    mine = f'{{job="{job}"}}'
    rolling = (
        f"sum(increase(ragtrace_score_wx_total{mine}[14d] offset 1d))"
        f" / sum(increase(ragtrace_score_w_total{mine}[14d] offset 1d)) < bool 0.90"
    )
    kept = f"last_over_time(ragtrace:baseline_mean:day{mine}[7d]) > bool 0.91"
    end = T0 + 10 * DAY - 2
    yield (
        scores(labels(job), BEFORE, Scores(6 * DAY, 200, 0.85), Scores(4 * DAY, 200, 0.92)),
        [
            *(firing(QUALITY, T0 + 24 * day, 1, job) for day in (2, 3, 4, 5, 6)),
            *(expecting(f"ragtrace:baseline_{it}{mine}", late, []) for it in ("mean:day", "n_eff:days", "s2:day")),
            expecting(kept, late, [{"labels": whose(job), "value": 1}]),
            expecting(rolling, late, [{"labels": "{}", "value": 1}]),
            firing(QUALITY, end, 0, job),
            expecting(f"count(ragtrace:baseline_mean:day{mine})", end, [{"labels": "{}", "value": 1}]),
        ],
    )


def a_well_metric_beside_a_sick_one():
    count = 'count by (gen_ai_evaluation_name) (ragtrace:baseline_mean:day{job="two"})'
    only = [{"labels": '{gen_ai_evaluation_name="answer_relevancy"}', "value": 1}]
    yield (
        scores(labels("two"), BEFORE, Scores(72, 200, 0.7))
        + scores(labels("two", "answer_relevancy"), BEFORE, Scores(72, 200)),
        [firing(QUALITY, T0 + 48, 1, "two"), expecting(count, T0 + 48, only)],
    )


def test_rule_f(tmp_path):
    series, checks = [], []
    for found in (one_series(), judge_changes(), baseline_rests(), a_well_metric_beside_a_sick_one()):
        for more_series, more_checks in found:
            series += more_series
            checks += more_checks
    run(tmp_path, series, checks, only=ONLY, step_min=COARSE)


def test_a_new_level_is_normal_once_the_old_baseline_is_forgotten(tmp_path):
    series = scores(FAITHFULNESS, BEFORE, Scores(18 * DAY, 200, 0.80))
    checks = [firing(QUALITY, T0 + 96, 1), firing(QUALITY, T0 + 18 * DAY - 2, 0)]
    run(tmp_path, series, checks, only=ONLY, step_min=COARSE)


def test_the_message_names_mean_and_baseline(tmp_path):
    alert = {"eval_time": f"{round((12 * DAY) * 60)}m", "alertname": QUALITY, "exp_alerts": []}
    series = scores(FAITHFULNESS, Scores(11 * DAY, 200), Scores(30, 200, 0.6))
    with pytest.raises(AssertionError) as told:  # promtool prints what it got instead of nothing
        run(tmp_path, series, [], [alert], only=ONLY, step_min=COARSE)
    got = str(told.value)
    for text in (
        "faithfulness of support is lower than its baseline",
        "http://localhost:8000/runbooks/RagtraceQualityDrift.md#meaning",
        "http://localhost:3000/d/ragtrace-investigate?viewPanel=21&var-job=shop&var-metric=faithfulness",
    ):
        assert text in got
    found = re.search(r"lies ([0-9.]+) standard errors.*Mean of 1d: ([0-9.]+)\. Baseline: ([0-9.]+)\.", got)
    assert found is not None, got
    # z = (.92 - .02 - .60) / sqrt(.04 (1 / 200 + 1 / 2000)) = 20.2
    assert float(found[1]) == pytest.approx(20.2, abs=0.4)
    assert float(found[2]) == pytest.approx(0.600, abs=0.002)
    assert float(found[3]) == pytest.approx(0.920, abs=0.002)
