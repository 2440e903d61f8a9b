"""promtool reads every rule file that is shipped or can be exported, and finds nothing to complain of."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ragtrace_dashboards.alerts import alerts
from ragtrace_dashboards.config import Config
from ragtrace_dashboards.rule_files import ALERT_RULES, ALERTING, grafana_files, prometheus_files
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
    (of_prometheus,) = rule_files(config)[ALERT_RULES]["groups"]
    for theirs, ours in zip(group["rules"], of_prometheus["rules"], strict=True):
        query, condition = theirs["data"]
        assert theirs["condition"] == condition["refId"]
        assert condition["model"]["expression"] == f"is_number(${query['refId']})"
        waits = {"keep_firing_for": theirs["keepFiringFor"]} if "keepFiringFor" in theirs else {}
        waits |= {} if theirs["for"] == "0s" else {"for": theirs["for"]}
        found = {"alert": theirs["title"], "expr": query["model"]["expr"], "labels": theirs["labels"]} | waits
        assert found == {key: value for key, value in ours.items() if key != "annotations"}
        assert ours["annotations"].keys() >= theirs["annotations"].keys()


def test_a_broken_rule_is_seen(tmp_path):
    document = rule_files(Config())
    group = next(iter(document.values()))["groups"][0]
    group["rules"][0]["expr"] += " and ("
    with pytest.raises(AssertionError, match="could not parse expression"):
        check(write_rules(tmp_path, document))
