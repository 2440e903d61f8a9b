"""docs/runbooks.md names every alert of the pack with its severity and the first step of its runbook."""

from __future__ import annotations

import re

from docs.blocks import ROOT

RUNBOOKS = ROOT / "dashboards" / "ragtrace_dashboards" / "dist" / "runbooks"


def test_every_alert_has_its_severity_and_first_step() -> None:
    rows = {
        name: (severity, step)
        for name, severity, step in re.findall(
            r"^\| \[(\w+)\]\(.*?\) \| (\w+) \| [^|]* \| ([^|]*) \|$", _text("docs/runbooks.md"), re.MULTILINE
        )
    }
    pages = {path.stem: path.read_text() for path in RUNBOOKS.glob("Ragtrace*.md")}
    assert set(rows) == set(pages)
    for name, page in pages.items():
        severity, step = rows[name]
        assert severity == _found(r"Severity \*\*(\w+)\*\*", page), name
        first = _found(r"^1\. ((?:.|\n   )+)", page)
        commands = re.findall(r"`(ragtrace \w+)", first)
        assert re.findall(r"`(ragtrace \w+)", step) == commands[:1], name
        assert ("Open the board" in step) == first.startswith("Open the board"), name


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    assert found is not None, pattern
    return found[1]
