"""README's first screens, copied as a new user copies them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from ragtrace.judges.offline.tables import table

README = Path(__file__).parents[2] / "README.md"
DOCS = README.parent / "docs"


def test_the_first_snippet_shows_a_score_and_its_worst_claim_with_nothing_else(tmp_path: Path) -> None:
    code = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)[0]
    (tmp_path / "first.py").write_text(code)
    keep = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "RAGTRACE_"))}
    done = subprocess.run(
        [sys.executable, "first.py"], cwd=tmp_path, env=keep, capture_output=True, text=True, timeout=60, check=True
    )
    read, *lines = [line for line in done.stderr.splitlines() if not line.startswith("  evidence: ")]
    assert read.startswith("ragtrace: rag: question ")
    assert re.match(
        r"ragtrace: faithfulness 0\.\d\d LOW \(bad below 0\.57\), invented_specifics 1\.00 HIGH \(bad above 0\.2\), "
        r".* \| How do I cancel\? \| trace [0-9a-f]{32}$",
        lines[0],
    )
    assert re.match(r" +not supported \(0\.\d\d\): A fee of 40 euros applies\.$", lines[1])
    assert len(lines) == 4, "and what the judge misses, and one warning that no collector answers"
    assert lines[2].startswith("ragtrace: the judge overlap compares words and facts: it misses")
    assert lines[3].startswith("ragtrace: no OpenTelemetry collector answers at localhost:4318")
    assert done.stdout == ""


def test_no_install_line_names_the_other_project_on_pypi() -> None:
    root = README.parent
    pages = [
        *root.glob("*.md"),
        *root.glob("docs/**/*.md"),
        *root.glob("ragtrace/**/*"),
        *root.glob("dashboards/**/*.md"),
    ]
    pages += root.glob("integrations/*/*.md")
    lines = [
        line
        for page in pages
        if page.suffix in {".md", ".py"}
        for line in page.read_text().splitlines()
        if re.search(r"pip install.*\bragtrace\b(?!-)", line)
    ]
    assert lines == []


def test_the_metric_of_its_own_scores_a_run(tmp_path: Path) -> None:
    page = DOCS / "reference" / "metrics.md"
    (code,) = (
        code
        for code in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
        if "@ragtrace.metric" in code
    )
    run = """
ragtrace.configure(console=True, sample_rate=1.0, metrics=["characters_in_answer"])
with ragtrace.query("Where?") as run:
    run.answered("In the old town.")
"""
    (tmp_path / "own.py").write_text(code + run)
    done = subprocess.run(
        [sys.executable, "own.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert "characters_in_answer 16.00" in done.stderr


def test_the_number_of_languages_of_refusals_is_that_of_the_table() -> None:
    names = [name for name in table("refusals.txt") if name != "whole answers"]
    languages = sum(len(name.split(" and ")) for name in names)
    assert f"in any of {languages} languages" in (DOCS / "how-to" / "choose-a-judge.md").read_text()
