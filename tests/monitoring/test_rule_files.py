"""promtool reads every rule file that is shipped or can be exported, and finds nothing to complain of."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from ragtrace_dashboards import (
    ALERT_RULES,
    ALERTING,
    Config,
    Watched,
    alerts,
    grafana_files,
    prometheus_files,
    recording_groups,
)
from ragtrace_dashboards.groups import FAST
from tests.dashboards.promql import asked
from tests.monitoring.promtool import promtool, rule_files, write_rules

DIST = Path(__file__).resolve().parents[2] / "dashboards" / "ragtrace_dashboards" / "dist"
CONFIGS = {"default": Config(), "demo": Config.demo()}


def check(paths):
    done = promtool("check", "rules", "--lint=all", "--lint-fatal", *map(str, paths))
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return sum(int(line.split()[1]) for line in said.splitlines() if "rules found" in line)


def test_the_committed_rules():
    paths = sorted((DIST / "rules").glob("*.yaml"))
    assert {f"rules/{it.name}": it.read_text(encoding="utf-8") for it in paths} == prometheus_files(Config())
    written = [
        rule for path in paths for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]
    ]
    assert check(paths) == len(written) > len(alerts(Config()))


@pytest.mark.parametrize("profile", CONFIGS)
def test_generated_rules(tmp_path, profile):
    assert check(write_rules(tmp_path, rule_files(CONFIGS[profile]))) > len(alerts(CONFIGS[profile]))


@pytest.mark.parametrize("profile", CONFIGS)
def test_grafana_gets_the_same_alerts(profile):
    """The same condition, wait and severity; its condition is that query A gave a number."""
    config = CONFIGS[profile]
    (group,) = yaml.safe_load(grafana_files(config)[ALERTING])["groups"]
    of_prometheus = {
        it["alert"]: it
        for each in rule_files(config)[ALERT_RULES]["groups"]
        for it in each["rules"]
        if "alert" in it
    }
    assert sorted(it["title"] for it in group["rules"]) == sorted(of_prometheus)
    for theirs in group["rules"]:
        ours = of_prometheus[theirs["title"]]
        query, condition = theirs["data"]
        assert theirs["condition"] == condition["refId"]
        assert condition["model"]["expression"] == f"is_number(${query['refId']})"
        waits = {"keep_firing_for": theirs["keepFiringFor"]} if "keepFiringFor" in theirs else {}
        waits |= {} if theirs["for"] == "0s" else {"for": theirs["for"]}
        found = {"alert": theirs["title"], "expr": query["model"]["expr"], "labels": theirs["labels"]} | waits
        assert found == {key: value for key, value in ours.items() if key != "annotations"}
        assert ours["annotations"].keys() >= theirs["annotations"].keys()


def groups():
    return [group for document in rule_files(Config()).values() for group in document["groups"]]


def test_a_ruler_takes_the_groups():
    """Mimir's defaults are 20 rules a group and 70 groups."""
    assert len(groups()) <= 70
    assert max(len(group["rules"]) for group in groups()) <= 20
    recorded = [rule["record"] for group in groups() for rule in group["rules"] if "record" in rule]
    assert len(recorded) == len(set(recorded)) < 60


def test_no_rule_grows_with_the_number_of_watched_metrics():
    more = replace(Config(), metrics=tuple(Watched(name=f"metric_{number}") for number in range(50)))
    assert [len(it.rules) for it in recording_groups(more)] == [len(it.rules) for it in recording_groups(Config())]


def test_no_rule_reads_what_another_group_records_at_the_same_interval():
    """Such groups run side by side, so a rule would read now the new value and now the one before."""
    written = {
        rule.get("record", "ALERTS"): (group["name"], group["interval"])
        for group in groups()
        for rule in group["rules"]
        if "record" in rule or group["name"] == FAST
    }
    read = [
        (group["name"], rule.get("record") or rule["alert"], name)
        for group in groups()
        for rule in group["rules"]
        for name, *_ in asked(rule["expr"]).selectors
        if name in written and written[name][0] != group["name"] and written[name][1] == group["interval"]
    ]
    assert not read
    names = {name for group in groups() for rule in group["rules"] for name, *_ in asked(rule["expr"]).selectors}
    assert {name for name in names if name.startswith("ragtrace:")} <= written.keys()


def test_what_is_read_as_it_is_comes_before_prometheus_forgets_it():
    """Within five minutes. What comes seldomer is read by a function over a range."""
    seldom = {
        rule["record"] for group in groups() if group["interval"] in {"15m", "30m"} for rule in group["rules"]
    }
    assert seldom
    here = {rule["record"]: group["name"] for group in groups() for rule in group["rules"] if "record" in rule}
    for group in groups():
        for rule in group["rules"]:
            for name, _, around in asked(rule["expr"]).selectors:
                if name in seldom and here[name] != group["name"]:
                    assert any(it.endswith("_over_time") for it in around), (rule, name)


def test_each_recording_rule_says_what_it_records():
    for text in prometheus_files(Config()).values():
        lines = text.splitlines()
        for above, line in pairwise(lines):
            if line.startswith("  - record: "):
                assert re.fullmatch(r"  # [A-Z].{10,110}\.", above), (above, line)


def test_no_expression_is_longer_than_a_page():
    long = {rule.record: len(rule.expr) for group in recording_groups(Config()) for rule in group.rules}
    assert max(long.values()) < 2_000, {name: length for name, length in long.items() if length >= 2_000}


def test_a_broken_rule_is_seen(tmp_path):
    document = rule_files(Config())
    group = next(iter(document.values()))["groups"][0]
    group["rules"][0]["expr"] += " and ("
    with pytest.raises(AssertionError, match="could not parse expression"):
        check(write_rules(tmp_path, document))
