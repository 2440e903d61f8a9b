"""The recorded culprit is that of `tests.monitoring.culprits`, over drops and anchors of many kinds, in promtool."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import get_args

import numpy as np
import pytest
import yaml

from ragtrace import semconv
from ragtrace.stats import JudgeChange
from ragtrace_dashboards import SERIES, Config, Watched, culprit_rules, label
from ragtrace_dashboards.drift_rule import culprit as rules
from ragtrace_dashboards.drift_rule.culprit import CULPRIT
from tests.monitoring.culprits import Culprit, Drop, culprit
from tests.monitoring.drift_cases import QUALITY, labels
from tests.monitoring.promtool import COARSE, JUDGE, Scores, gauge, run, scores, tool

CONFIG = Config(
    metrics=(Watched(name="faithfulness"), Watched(name="hallucination", direction="down")),
    fast_window_s=240,  # its two halves are of two samples each
)
RISE_ERROR, S2 = 0.03, 0.04


@dataclass(frozen=True)
class Case:
    job: str
    metric: str
    drop: Drop
    judge: JudgeChange | None

    @property
    def word(self):
        return culprit(self.drop, self.judge, is_down=self.metric == "hallucination")


def cases():
    """Return 240 cases, most of them near an edge of the"""
    rng, found = np.random.default_rng(11), []
    for number in range(240):
        day = float(rng.choice([-0.01, 0.03, 0.07, 0.1, 0.16]) + rng.normal(0, 0.01))
        fast = day + float(rng.choice([0.0, 0.05, 0.1]))
        drop = Drop(
            day=day, day_error=float(rng.uniform(0.005, 0.02)), fast=fast, fast_error=float(rng.uniform(0.01, 0.03)),
            rise=float(rng.normal(0.0, 0.03)), rise_error=RISE_ERROR,
        )  # fmt: skip
        metric = "hallucination" if number % 4 == 0 else "faithfulness"
        error = float(rng.choice([0.001, 0.01, 0.03]))
        part = float(rng.choice([0.0, 0.5, 1.0, -0.5])) * drop.value + float(rng.normal(0, error))
        mean = part if metric == "hallucination" else -part
        judge = JudgeChange(mean=mean, low=mean - 1.96 * error, high=mean + 1.96 * error, n=200)
        found.append(Case(f"job{number}", metric, drop, None if number % 10 == 3 else judge))
    return found


def labelled(name, case, **labels):
    given = {"job": case.job, "gen_ai_evaluation_name": case.metric} | labels
    shown = ",".join(f'{key}="{value}"' for key, value in given.items())
    return f"{name}{{{shown}}}"


def series_of(case):
    whose = {
        "gen_ai_workflow_name": "support", label(semconv.JUDGE_MODEL): "m", label(semconv.JUDGE_VERSION): "v"
    }  # fmt: skip
    judge = {name: value for name, value in whose.items() if name != "gen_ai_workflow_name"}
    drop = case.drop
    values = {
        "ragtrace:drift_drop:day": drop.day,
        "ragtrace:drift_drop:fast": drop.fast,
        "ragtrace:drift_error:day": drop.day_error,
        "ragtrace:drift_error:fast": drop.fast_error,
        "ragtrace:normal_s2:day": S2,
        rules.HALF_SIZE: 2 * S2 / (RISE_ERROR**2 - rules.WANDER_FACTOR * rules.HALF_WANDER**2),
    }
    found = {labelled(name, case, **whose): value for name, value in values.items()}
    before, now = 0.8, 0.8 + (drop.rise if case.metric == "hallucination" else -drop.rise)
    half = {"series": labelled(rules.HALF_MEAN, case, **whose), "values": f"{before:.17g}x1 {now:.17g}x1"}
    if case.judge is not None:
        gauges = {semconv.ANCHOR_MEAN: "mean", semconv.ANCHOR_LOW: "low", semconv.ANCHOR_HIGH: "high"}
        # Two scorers export the same anchors.
        for instance in "ab":
            found |= {
                labelled(SERIES[name], case, **judge, instance=instance): getattr(case.judge, field)
                for name, field in gauges.items()
            }
    return [half, *({"series": name, "values": f"{value:.17g}x3"} for name, value in found.items())]


def change(mean: float, error: float = 0.008, n: int = 200) -> JudgeChange:
    return JudgeChange(mean=mean, low=mean - 1.96 * error, high=mean + 1.96 * error, n=n)


def fell(by: float, **given: float) -> Drop:
    return Drop(**({"day": by, "day_error": 0.01, "fast": by, "fast_error": 0.015} | given))


@pytest.mark.parametrize(
    ("drop", "judge", "word"),
    [
        (fell(0.08), None, "unknown"),
        (fell(0.08), change(-0.08, n=20), "unknown"),
        (fell(-0.01), change(-0.08), "unknown"),
        (fell(0.08), change(-0.08), "judge"),
        (fell(0.08), change(0.0), "system"),
        (fell(0.08), change(0.05), "system"),
        (fell(0.16), change(-0.08), "both"),
        (fell(0.08), change(-0.08, error=0.05), "unknown"),
        (fell(0.08), change(-0.009, error=0.001), "system"),
        (fell(0.02, fast=0.07), change(-0.08), "judge"),
        (fell(0.02, fast=0.16), change(-0.08), "both"),
        (fell(0.02, fast=0.07, rise=0.08, rise_error=0.02), change(-0.08), "unknown"),
        (fell(0.02, fast=0.07, rise=0.08, rise_error=0.02), change(0.0), "system"),
        (fell(0.02, fast=0.105), change(-0.08), "unknown"),
    ],
)
def test_the_culprit(drop: Drop, judge: JudgeChange | None, word: Culprit):
    assert culprit(drop, judge) == word


def test_lower_is_better_turns_the_judge_not_the_drop():
    assert culprit(fell(0.08), change(0.08), is_down=True) == "judge"
    assert culprit(fell(0.08), change(-0.08), is_down=True) == "system"


@pytest.mark.slow
def test_promql_names_the_same_culprit(tmp_path):
    promtool = tool("promtool")
    chosen = cases()
    given = {rules.HALF_MEAN, rules.HALF_SIZE}
    made = [{"record": it.record, "expr": it.expr} for it in culprit_rules(CONFIG) if it.record not in given]
    (tmp_path / "rules.yaml").write_text(
        yaml.safe_dump({"groups": [{"name": "culprit", "interval": "1m", "rules": made}]})
    )
    expected = [
        {
            "expr": f'{CULPRIT}{{job="{case.job}"}}',
            "eval_time": "2m",
            "exp_samples": [
                {
                    "labels": labelled(
                        CULPRIT,
                        case,
                        gen_ai_workflow_name="support",
                        ragtrace_judge_model="m",
                        ragtrace_judge_version="v",
                        culprit=case.word,
                    ),
                    "value": 1,
                }
            ]
            if case.drop.value > 0
            else [],
        }
        for case in chosen
    ]
    test = {
        "interval": "1m",
        "input_series": [it for case in chosen for it in series_of(case)],
        "promql_expr_test": expected,
    }
    text = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]}
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump(text))
    done = subprocess.run(
        [promtool, "test", "rules", "tests.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"[:4_000]
    counts = {word: sum(case.word == word for case in chosen) for word in get_args(Culprit)}
    assert min(counts.values()) >= 20, f"every word is tried: {counts}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (-0.31, "Culprit: judge. Of the drop, the judge's part is 0.310."),
        (-0.15, "Culprit: both. Of the drop, the judge's part is 0.150."),
        (0.0, "Culprit: system. Of the drop, the judge's part is 0.000."),
        (None, ""),
    ],
)
def test_the_alert_names_the_culprit(tmp_path, change, said):
    """A mean that falls by .32 for thirty hours, over the whole chain of rules."""
    series = scores(labels("shop"), Scores(4 * 24, 200), Scores(30, 200, 0.6))
    if change is not None:
        whose = {"job": "shop", "gen_ai_evaluation_name": "faithfulness", **JUDGE}
        given = {semconv.ANCHOR_MEAN: 0.0, semconv.ANCHOR_LOW: -0.02, semconv.ANCHOR_HIGH: 0.02}
        series += [gauge(SERIES[name], whose, (6 * 24, change + beside)) for name, beside in given.items()]
    alert = {"eval_time": f"{5 * 24 * 60}m", "alertname": QUALITY, "exp_alerts": []}
    with pytest.raises(AssertionError) as told:  # promtool prints what it got instead of nothing
        run(tmp_path, series, [], [alert], only={QUALITY}, step_min=COARSE)
    assert said in str(told.value)
    labelled, _, annotated = str(told.value).partition("Annotations:")
    assert ("Culprit: " in annotated) == bool(said)
    assert "culprit=" not in labelled, "a label that changes would make a new alert"
