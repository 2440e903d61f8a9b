"""The rules fit Mimir's default limits, and none reads what another group records at the same time."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from ragtrace_dashboards import Config, Watched, prometheus_files
from tests.dashboards.promql import asked
from tests.monitoring.test_rule_files import DIST

MOST_RULES, MOST_GROUPS = 20, 70
"""Mimir's ruler_max_rules_per_rule_group and ruler_max_rule_groups_per_tenant."""
MOST_RECORDED = 60

TEN = replace(
    Config(),
    metrics=(*Config().metrics, *(Watched(name=f"own_{it}") for it in range(10)))[:10],
)
ONE = replace(Config(), metrics=(Watched(name="faithfulness"),))


def groups_of(texts):
    return [group for text in texts for group in yaml.safe_load(text)["groups"]]


SETS = {
    "committed": groups_of(path.read_text(encoding="utf-8") for path in sorted((DIST / "rules").glob("*.yaml"))),
    "one metric": groups_of(prometheus_files(ONE).values()),
    "ten metrics": groups_of(prometheus_files(TEN).values()),
}


@pytest.mark.parametrize("chosen", SETS)
def test_the_rules_fit_mimirs_default_limits(chosen):
    groups = SETS[chosen]
    assert len({it["name"] for it in groups}) == len(groups) <= MOST_GROUPS
    assert {it["name"]: len(it["rules"]) for it in groups if len(it["rules"]) > MOST_RULES} == {}


@pytest.mark.parametrize("chosen", SETS)
def test_few_rules_are_recorded_whatever_is_watched(chosen):
    recorded = [rule["record"] for group in SETS[chosen] for rule in group["rules"] if "record" in rule]
    assert 0 < len(set(recorded)) == len(recorded) < MOST_RECORDED


@pytest.mark.parametrize("chosen", SETS)
def test_no_rule_reads_what_another_group_records_in_the_same_interval(chosen):
    """Groups of one interval run side by side, so a rule might read the value of before."""
    groups = SETS[chosen]
    home = {rule["record"]: group for group in groups for rule in group["rules"] if "record" in rule}
    found = [
        (group["name"], rule.get("record") or rule["alert"], name)
        for group in groups
        for rule in group["rules"]
        for name in {series for series, *_ in asked(rule["expr"]).selectors} & set(home)
        if home[name] is not group and home[name]["interval"] == group["interval"]
    ]
    assert found == []
