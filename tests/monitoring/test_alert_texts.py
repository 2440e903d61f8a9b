"""First sentences of drift alerts, as promtool fills them from recorded series, with each series left out."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING

import pytest
import yaml

from ragtrace_dashboards import (
    ALERT_RULES,
    ALERTING,
    DRIFT_ALERTS,
    Config,
    alerts,
    arms,
    grafana_files,
    prometheus_files,
)
from tests.command_line import parsed
from tests.monitoring.promtool import FAITHFULNESS, JUDGE, promtool, samples, write_rules

if TYPE_CHECKING:
    from pathlib import Path

HELD = {name: value for name, value in FAITHFULNESS.items() if name != "ragtrace_stratum"} | JUDGE
QUALITY = "RagtraceQualityDrift"
STEP_MIN = 10
BEGAN_H, NOW_H = 98 + 40 / 60, 102 + 40 / 60
"""A fall on the fifth of January at 02:40, and four hours later."""

ARMS = [it.name for it in arms(Config())]
TEXTS = {
    rule["alert"]: rule["annotations"]
    for group in yaml.safe_load(prometheus_files(Config())[ALERT_RULES])["groups"]
    for rule in group["rules"]
    if "alert" in rule
}


def ramp(window_h: float, before: float, after: float, began_h: float = BEGAN_H) -> str:
    """Return the values of a moving window's mean while a step moves through it."""
    hours = [step * STEP_MIN / 60 for step in range(round(NOW_H * 60 / STEP_MIN) + 1)]
    return " ".join(
        f"{before + (after - before) * min(max(hour - began_h, 0) / window_h, 1):.5f}" for hour in hours
    )


def flat(value: float) -> str:
    return f"{value}x{round(NOW_H * 60 / STEP_MIN)}"


FAST = {
    "drift_drop:fast": ramp(6, 0.0, 0.18),
    "drift_limit:fast": flat(0.055),
    "drift_error:fast": flat(0.018),
    "score_mean:fast": ramp(6, 0.921, 0.741),
    "score_n_eff:fast": flat(166),
    "normal_mean:day": flat(0.921),
}
SHARES = {
    "verdict_grown:fast": flat(0.122),
    "verdict_share:fast": flat(0.163),
    "verdict_share_before:fast": flat(0.041),
}
CULPRIT = {"drift_culprit": flat(1), "drift_judge_part": flat(0.004)}
ALL = FAST | SHARES | CULPRIT


def told(folder: Path, given: dict[str, str], *, name: str = QUALITY, **others: str) -> dict[str, str]:
    """Return the annotations of the alert of a series whose recorded values are given."""
    whose = {key: value for key, value in (HELD | others).items() if value}
    flow = {key: whose[key] for key in ("job", "gen_ai_workflow_name") if key in whose}
    of = {
        "verdict": flow | {"ragtrace_diagnosis_verdict": "not_retrieved"},
        "drift_culprit": whose | {"culprit": "system"},
    }
    series = [
        samples(f"ragtrace:{it}", of.get("verdict" if "verdict" in it else it, whose), values)
        for it, values in given.items()
    ]
    fires = " or ".join(f"ragtrace:drift_drop:{arm} > ragtrace:drift_limit:{arm}" for arm in ARMS)
    rule = {"alert": name, "expr": fires, "annotations": TEXTS[name]}
    write_rules(folder, {"rules.yaml": {"groups": [{"name": "texts", "rules": [rule]}]}})
    asked = {"eval_time": f"{round(NOW_H * 60)}m", "alertname": name, "exp_alerts": []}
    test = {"interval": f"{STEP_MIN}m", "input_series": series, "alert_rule_test": [asked]}
    document = {"rule_files": ["rules.yaml"], "evaluation_interval": f"{STEP_MIN}m", "tests": [test]}
    (folder / "test.yaml").write_text(yaml.safe_dump(document))
    done = promtool("test", "rules", str(folder / "test.yaml"))
    assert done.returncode == 1, done.stdout + done.stderr  # promtool prints what it got instead of nothing
    (pairs,) = re.findall(r"Annotations:\{(.*)\}$", done.stdout + done.stderr, re.MULTILINE)
    found = re.findall(r'(\w+)=("(?:[^"\\]|\\.)*")', pairs)
    return {key: json.loads(value) for key, value in found}


COMMAND = "ragtrace investigate --since 6h --metric faithfulness --workflow support"
MEANS = "faithfulness of support fell from 0.921 to 0.801"
BY = " (by 0.120, 95 % interval 0.085 to 0.155)"
SINCE = " since about 02:40 UTC"
STAGE = ', mostly "not_retrieved" (4.1 % to 16.3 % of runs)'
EVIDENCE = "166 effective scores within 6h, whose noise stays below 0.055."
RUN = f". Run: {COMMAND}"


def test_the_first_sentence_has_all_of_it(tmp_path):
    said = told(tmp_path, ALL)
    assert said["summary"] == MEANS + BY + SINCE + STAGE + RUN
    assert said["command"] == COMMAND
    assert said["evidence"] == EVIDENCE
    assert said["culprit"] == "Culprit: system. Of the drop, the judge's part is 0.004."


@pytest.mark.parametrize(
    ("missing", "summary", "other"),
    [
        (("verdict_grown:fast",), MEANS + BY + SINCE + RUN, {}),
        (("verdict_share:fast",), f'{MEANS}{BY}{SINCE}, mostly "not_retrieved"{RUN}', {}),
        (("verdict_share_before:fast",), f'{MEANS}{BY}{SINCE}, mostly "not_retrieved"{RUN}', {}),
        (tuple(SHARES), MEANS + BY + SINCE + RUN, {}),
        (("drift_error:fast",), f"{MEANS} (by 0.120){SINCE}{STAGE}{RUN}", {}),
        (("score_n_eff:fast",), MEANS + BY + SINCE + STAGE + RUN, {"evidence": ""}),
        (("score_mean:fast",), f"faithfulness of support is worse than its baseline by 0.120{RUN}", {}),
        (("normal_mean:day",), f"faithfulness of support is worse than its baseline by 0.120{RUN}", {}),
        (("drift_culprit",), MEANS + BY + SINCE + STAGE + RUN, {"culprit": ""}),
        (("drift_judge_part",), MEANS + BY + SINCE + STAGE + RUN, {"culprit": ""}),
        (tuple(CULPRIT), MEANS + BY + SINCE + STAGE + RUN, {"culprit": ""}),
    ],
    ids=lambda it: "+".join(it) if isinstance(it, tuple) else "",
)
def test_what_is_not_recorded_leaves_no_gap(tmp_path, missing, summary, other):
    said = told(tmp_path, {name: values for name, values in ALL.items() if name not in missing})
    assert said["summary"] == summary
    for name, text in other.items():
        assert said[name] == text


def test_a_fall_from_before_the_rules_has_no_beginning(tmp_path):
    """All that was ever recorded of it is the fallen level."""
    whole = ALL | {"drift_drop:fast": flat(0.12), "score_mean:fast": flat(0.801)}
    assert told(tmp_path, whole)["summary"] == MEANS + BY + STAGE + RUN


@pytest.mark.parametrize(("arm", "since", "began_h"), [("day", "1d", 80.0), ("week", "7d", 24.0)])
def test_one_window_alone(tmp_path, arm, since, began_h):
    hours = {"day": 24, "week": 168}[arm]
    given = {
        f"drift_drop:{arm}": ramp(hours, 0.0, 0.08, began_h),
        f"drift_limit:{arm}": flat(0.03),
        f"score_mean:{arm}": ramp(hours, 0.92, 0.84, began_h),
        f"normal_mean:{arm}": flat(0.92),
    }
    said = told(tmp_path, given)["summary"]
    found = re.fullmatch(
        r"faithfulness of support fell from 0\.920 to (0\.8\d\d) \(by (0\.0\d\d)\) since about (\d) Jan (\d\d):(\d\d) UTC"
        rf"\. Run: ragtrace investigate --since {since} --metric faithfulness --workflow support",
        said,
    )
    assert found is not None, said
    assert float(found[1]) == pytest.approx(0.92 - float(found[2]), abs=0.0011)
    began = (int(found[3]) - 1) * 24 + int(found[4]) + int(found[5]) / 60
    assert began == pytest.approx(began_h, abs=2 * hours / 36)


def test_the_shortest_window_that_fires_speaks(tmp_path):
    day = {"drift_drop:day": flat(0.05), "drift_limit:day": flat(0.02), "score_mean:day": flat(0.871)}
    assert told(tmp_path, ALL | day)["summary"].startswith(MEANS)
    quiet = told(tmp_path, ALL | day | {"drift_limit:fast": flat(0.2)})
    assert quiet["summary"].startswith("faithfulness of support fell from 0.921 to 0.871 (by 0.050)")
    assert "--since 1d" in quiet["command"]


def test_a_metric_of_which_less_is_better_rises(tmp_path):
    given = ALL | {"normal_mean:day": flat(0.02), "score_mean:fast": flat(0.14)}
    said = told(tmp_path, given, gen_ai_evaluation_name="invented_specifics")["summary"]
    assert said.startswith("invented_specifics of support rose from 0.020 to 0.140 (by 0.120, ")


def test_a_service_without_workflows(tmp_path):
    said = told(tmp_path, ALL, gen_ai_workflow_name="")
    assert said["summary"] == MEANS.replace(" of support", "") + BY + SINCE + STAGE + RUN.replace(
        " --workflow support", ""
    )
    assert said["summary"].endswith(said["command"])


@pytest.mark.parametrize("workflow", ["<!channel> & `id` '; rm", "two words", "$(id)", "Run: x", "köln", "a\nb"])
def test_a_name_is_one_word_of_the_command(tmp_path, workflow):
    escaped = workflow.replace("\n", r"\n")
    command = told(tmp_path, ALL, gen_ai_workflow_name=escaped)["command"]
    assert "`" not in command
    words = shlex.split(command)
    assert words[:7] == [*COMMAND.split()[:6], "--workflow"]
    assert words[7:] == [re.sub(r"['`\s]+", " ", workflow)]
    parsed(words[1:])


@pytest.mark.parametrize("name", DRIFT_ALERTS)
def test_every_drift_alert_says_it(tmp_path, name):
    assert told(tmp_path, ALL, name=name)["summary"] == MEANS + BY + SINCE + STAGE + RUN


def test_grafanas_texts_need_no_query_and_leave_no_gap(tmp_path):
    """Its templates have labels and the value alone. A label that a series lacks leaves no dangling word."""
    (group,) = yaml.safe_load(grafana_files(Config())[ALERTING])["groups"]
    rules, series, asked = [], [], []
    for name, rule in ((it["title"], it) for it in group["rules"]):
        texts = {it: text.replace("$values.A.Value", "$value") for it, text in rule["annotations"].items()}
        assert not any("query" in text or "[[" in text for text in texts.values()), name
        rules.append({"alert": name, "expr": f'of{{rule="{name}"}}', "annotations": {"summary": texts["summary"]}})
        few = {
            "rule": name,
            "gen_ai_evaluation_name": "faithfulness",
            "ragtrace_judge_model": "j",
            "ragtrace_unit": "usd",
        }
        series += [samples("of", few, "0.25x3"), samples("of", few | HELD, "0.25x3")]
        asked.append({"eval_time": "10m", "alertname": name, "exp_alerts": []})
    write_rules(tmp_path, {"rules.yaml": {"groups": [{"name": "texts", "rules": rules}]}})
    test = {"interval": "5m", "input_series": series, "alert_rule_test": asked}
    document = {"rule_files": ["rules.yaml"], "evaluation_interval": "5m", "tests": [test]}
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(document))
    done = promtool("test", "rules", str(tmp_path / "test.yaml"))
    found = [json.loads(it) for it in re.findall(r'summary=("(?:[^"\\]|\\.)*")', done.stdout + done.stderr)]
    assert len(found) == 2 * len(rules)
    run = "Run: ragtrace investigate --since 1d --metric faithfulness"
    assert f"faithfulness of support is worse than its baseline by 0.250. {run} --workflow support" in found
    assert f"faithfulness is worse than its baseline by 0.250. {run}" in found
    for text in found:
        assert not re.search(r"  | [.,:]|\b(of|by|in|for|below)([.,:]|$)|\(\)|''|no value", text), text


def test_no_text_speaks_of_standard_errors():
    for alert in alerts(Config()):
        said = " ".join(TEXTS[alert.name].values())
        assert not re.search(r"standard error|\bz\b", said), alert.name
