"""The reference of metrics and README's table say what the specs and the closed lists of reasons say."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from ragtrace.metrics.registry import all_metrics
from ragtrace.model import ERROR_REASONS, NA_REASONS, SKIP_REASONS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "reference" / "metrics.md").read_text()


def test_the_table_is_that_of_the_specs() -> None:
    spec = importlib.util.spec_from_file_location("docs_build", ROOT / "docs" / "build.py")
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    assert build.metrics_page() == PAGE, "run `python docs/build.py --metrics`"


def test_every_reason_is_listed() -> None:
    rows = dict(re.findall(r"^\| `(na|error|skipped)` \| [^|]+ \| (.+) \|$", PAGE, re.MULTILINE))
    listed = {state: {*re.findall(r"`([a-z_]+)`", cells)} for state, cells in rows.items()}
    assert listed == {"na": NA_REASONS, "error": ERROR_REASONS, "skipped": SKIP_REASONS}


def test_readme_names_every_metric_of_one_record_and_no_other() -> None:
    section = (ROOT / "README.md").read_text().partition("\n## Metrics\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[2] for line in section.splitlines() if line.startswith("| ")][1:]
    named = {name for cell in rows for name in re.findall(r"`([a-z0-9_]+)`", cell)}
    specs = [metric.spec for metric in all_metrics().values() if "runs" not in metric.spec.needs]
    missing = [spec.name for spec in specs if not names_of(spec) & named]
    assert (named - set().union(*map(names_of, specs)), missing) == (set(), [])


def names_of(spec) -> set[str]:
    return {spec.name, *spec.aliases, *(output.name for output in spec.outputs)}
