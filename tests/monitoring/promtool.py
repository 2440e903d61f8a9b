"""Rule tests of promtool, written from Python: series in phases, and when an alert fires."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from ragtrace import semconv
from ragtrace_dashboards import ALERT_GROUP, ALERT_RULES, GROUPS, HELD, SERIES, Config, label, prometheus_files

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

RECORDED = re.compile(r"ragtrace:\w+(?::\w+)?")
QUARTER, COARSE = 15, 120
"""Minutes between samples and evaluations; the long one where days pass: 64 times as fast."""

JUDGE = {label(semconv.JUDGE_MODEL): "small", label(semconv.JUDGE_VERSION): "aaaa1111"}
FAITHFULNESS = {
    "job": "shop", "gen_ai_workflow_name": "support", "gen_ai_evaluation_name": "faithfulness",
    "ragtrace_stratum": "random", **JUDGE,
}  # fmt: skip


def tool(name: str) -> str:
    """Return where a program of the Prometheus package is, or skip."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (Debian: apt-get install prometheus)")
    return found


@dataclass(frozen=True)
class Scores:
    """A stretch of constant traffic."""

    hours: float
    per_day: float
    mean: float = 0.92
    low: float = 0.1
    var: float = 0.04
    weight: float = 1.0
    w2: float | None = None
    """Mean squared weight, None = all weights alike."""


def samples(name: str, labels: dict[str, str], values: str) -> dict[str, str]:
    shown = ",".join(f'{key}="{value}"' for key, value in labels.items())
    return {"series": f"{name}{{{shown}}}", "values": values}


def counter(
    name: str, labels: dict[str, str], *phases: tuple[float, float], begin_h: float = 0.0, step_min: int = QUARTER
) -> dict[str, str]:
    """Return a counter that grows by so much an hour, phase after phase: (hours, an hour)."""
    parts, value = ["0"], 0.0
    per_step = step_min / 60
    if begin_h:
        parts.insert(0, f"_x{round(begin_h / per_step)}")
    for hours, per_hour in phases:
        steps, by = round(hours / per_step), per_hour * per_step
        # promtool adds up in floats; a value that seems to fall would be taken for a restart.
        value += 1e-6 if value else 0.0
        parts.append(f"{value + by!r}+{by!r}x{steps - 1}")
        value += by * steps
    return samples(name, labels, " ".join(parts))


def gauge(
    name: str,
    labels: dict[str, str],
    *phases: tuple[float, float | None],
    begin_h: float = 0.0,
    step_min: int = QUARTER,
) -> dict[str, str]:
    """Return a gauge: (hours, value), None = absent."""
    spans = ((begin_h, None), *phases) if begin_h else phases
    parts = []
    for hours, value in spans:
        steps = round(hours * 60 / step_min)
        parts.append(f"_x{steps}" if value is None else f"{value!r}+0x{steps - 1}")
    return samples(name, labels, " ".join(parts))


def scores(
    labels: dict[str, str], *phases: Scores, begin_h: float = 0.0, step_min: int = COARSE
) -> list[dict[str, str]]:
    """Return the seven counters of a metric."""

    def of(name: str, each: Any) -> dict[str, str]:
        grown = [(it.hours, it.per_day / 24 * each(it)) for it in phases]
        return counter(SERIES[name], labels, *grown, begin_h=begin_h, step_min=step_min)

    def w2(it: Scores) -> float:
        return it.weight**2 if it.w2 is None else it.w2

    return [
        of(semconv.SCORE_N, lambda _: 1.0),
        of(semconv.SCORE_W, lambda it: it.weight),
        of(semconv.SCORE_WX, lambda it: it.weight * it.mean),
        of(semconv.SCORE_W2, w2),
        of(semconv.SCORE_W2X, lambda it: w2(it) * it.mean),
        of(semconv.SCORE_W2X2, lambda it: w2(it) * (it.mean**2 + it.var)),
        of(semconv.SCORE_LOW_W, lambda it: it.weight * it.low),
    ]


def baseline(
    labels: dict[str, str],
    *phases: tuple[float, float | None],
    n: int = 2_000,
    sd: float = 0.2,
    begin_h: float = 0.0,
    frozen_h: float = math.inf,
) -> list[dict[str, str]]:
    """Return the baseline that the scorer exports: (hours, mean), None = it is away.

    What begins at `frozen_h` or later was frozen then, what begins before was learnt.
    """
    names = [name for name in (*HELD, "instance") if name in labels]
    whose = {name: labels[name] for name in names}
    begins = [begin_h + sum(hours for hours, _ in phases[:i]) for i in range(len(phases))]

    def of(name: str, each: Callable[[float, float], float | None]) -> dict[str, str]:
        told = [
            (hours, None if mean is None else each(begin, mean))
            for begin, (hours, mean) in zip(begins, phases, strict=True)
        ]
        return gauge(SERIES[name], whose, *told, begin_h=begin_h, step_min=COARSE)

    return [
        of(semconv.BASELINE_MEAN, lambda _, mean: mean),
        of(semconv.BASELINE_SD, lambda *_: sd),
        of(semconv.BASELINE_N, lambda *_: n),
        of(semconv.BASELINE_FROZEN_TIME, lambda begin, _: begin * 3_600 if begin >= frozen_h else None),
    ]


def firing(alert: str, hour: float, count: int, job: str) -> dict[str, Any]:
    """Return the check that so many alerts of a name fire for a service at an hour."""
    samples_ = [{"labels": "{}", "value": count}] if count else []
    expr = f'count(ALERTS{{alertname="{alert}",alertstate="firing",job="{job}"}})'
    return expecting(expr, hour, samples_)


def expecting(expr: str, hour: float, samples_: list[dict[str, Any]]) -> dict[str, Any]:
    return {"expr": expr, "eval_time": f"{round(hour * 60)}m", "exp_samples": samples_}


def rule_files(config: Config) -> dict[str, Any]:
    """Return what Prometheus is given: rule files by path."""
    return {path: yaml.safe_load(text) for path, text in prometheus_files(config).items()}


def write_rules(folder: Path, rules: dict[str, Any]) -> list[str]:
    """Write rule files and return where."""
    for path, document in rules.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(yaml.safe_dump(document, sort_keys=False))
    return [str(folder / path) for path in rules]


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run promtool and return what it says; with less collecting of garbage it takes a sixth less time."""
    environment = os.environ | {"GOGC": "400"}
    return subprocess.run(
        [tool("promtool"), *arguments], capture_output=True, text=True, check=False, env=environment
    )


def stepped(config: Config, step_s: int) -> Config:
    """Return a configuration for evaluations so many seconds apart.

    A block must hold two samples, and each reading counts for a step.
    """
    return replace(
        config,
        block_s=max(config.block_s, step_s),
        fast_block_s=max(config.fast_block_s, step_s),
        wander_interval_s=max(config.wander_interval_s, step_s),
    )


def recorded(read: Sequence[dict[str, Any]], rules: dict[str, Any]) -> set[str]:
    """Return the names of recorded series that rules and checks read, and of those that these are made of."""
    made = [it for document in rules.values() for group in document["groups"] for it in group["rules"]]
    found: set[str] = set()
    while read:
        names = set(RECORDED.findall(str(read))) - found
        found |= names
        read = [it for it in made if it.get("record") in names]
    return found


def run(
    folder: Path,
    series: Sequence[dict[str, str]],
    checks: Sequence[dict[str, Any]],
    alerts: Sequence[dict[str, Any]] = (),
    *,
    only: Collection[str],
    step_min: int = QUARTER,
    config: Config | None = None,
) -> None:
    """Write one test file beside the shipped rules, run promtool on it and show what it says when it fails.

    Args:
        folder: where to.
        series: what is scraped.
        checks: expressions and what they shall give.
        alerts: alerts with all their annotations.
        only: alerts that are loaded, without their messages where none is looked at; recording rules come along when
            one of them or a check reads what they record. The guards run all rules as they are shipped.
        step_min: minutes between samples and between evaluations.
        config: what they are generated from, None = the default.
    """
    config = stepped(config or Config(), step_min * 60)
    rules = rule_files(config)
    groups = rules[ALERT_RULES]["groups"]
    loaded = [rule for group in groups for rule in group["rules"] if rule.get("alert") in only]
    assert len(loaded) == len(set(only))
    if not alerts:
        loaded = [{name: it for name, it in rule.items() if name != "annotations"} for rule in loaded]
    needed = None if alerts else recorded([*loaded, *checks], rules)  # a message makes names of series up
    # Alerts come last: after hours, a message would find no series of a group behind its alert's.
    for document in rules.values():
        for group in document["groups"]:
            is_last = group["name"] == ALERT_GROUP
            made = [it for it in group["rules"] if "record" in it and (needed is None or it["record"] in needed)]
            group["rules"] = loaded if is_last else made
        document["groups"] = [group for group in document["groups"] if group["rules"]]
    write_rules(folder, rules)
    names = {group["name"] for document in rules.values() for group in document["groups"]}
    test: dict[str, Any] = {"interval": f"{step_min}m", "input_series": list(series)}
    if checks:
        test["promql_expr_test"] = list(checks)
    if alerts:
        test["alert_rule_test"] = list(alerts)
    document = {
        "rule_files": list(rules),
        "evaluation_interval": f"{step_min}m",
        "group_eval_order": [name for name in GROUPS if name in names],
        "tests": [test],
    }
    file = folder / "test.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    done = promtool("test", "rules", str(file))
    assert done.returncode == 0, done.stdout + done.stderr
