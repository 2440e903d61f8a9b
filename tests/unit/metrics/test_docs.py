"""The reference of metrics says what the specs and the closed lists of reasons say."""

from __future__ import annotations

import re
from pathlib import Path

from docs import build, metric_table, verdict_table
from ragtrace.model import ERROR_REASONS, NA_REASONS, SKIP_REASONS, STAGES

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "reference" / "metrics.md").read_text()


def test_the_table_is_that_of_the_specs() -> None:
    assert build.metrics_page() == PAGE, "run `python docs/build.py --metrics`"


def test_every_reason_is_listed() -> None:
    rows = dict(re.findall(r"^\| `(na|error|skipped)` \| [^|]+ \| (.+) \|$", PAGE, re.MULTILINE))
    listed = {state: {*re.findall(r"`([a-z_]+)`", cells)} for state, cells in rows.items()}
    assert listed == {"na": NA_REASONS, "error": ERROR_REASONS, "skipped": SKIP_REASONS}


def test_the_table_by_family_lists_every_metric() -> None:
    text = metric_table.PAGE.read_text()
    assert metric_table.with_table(text) == text, "run `python -m docs.metric_table`"


def test_the_page_on_verdicts_holds_the_decision_table() -> None:
    text = verdict_table.PAGE.read_text()
    assert verdict_table.with_table(text) == text, "run `python -m docs.verdict_table`"


def test_the_page_on_verdicts_has_an_example_of_each() -> None:
    rows = dict(
        re.findall(
            r"^\| `([a-z_]+)` \| ([a-z]+) \| [^|]+ \| [^|]+ \|$", verdict_table.PAGE.read_text(), re.MULTILINE
        )
    )
    assert rows == STAGES
