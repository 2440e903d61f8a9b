"""The page of the recording rules has each of them, in its group, with what it says in the rule file."""

from __future__ import annotations

import re
from pathlib import Path

from ragtrace_dashboards import Config, duration, recording_groups

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "recording-rules.md"


def test_the_page_has_the_rules_and_their_cost():
    """`python -m benchmarks.alerts.rule_cost` prints the tables anew."""
    groups = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    found = {
        group.splitlines()[0]: re.findall(r"^\| `(\S+)` \| (.+) \| [\d.]+ \| [\d.]+ \|$", group, re.MULTILINE)
        for group in groups
    }
    assert found == {
        f"`{group.name}`, every {duration(group.interval_s)}": [
            (rule.record.removeprefix("ragtrace:"), rule.says) for rule in group.rules
        ]
        for group in recording_groups(Config())
    }
