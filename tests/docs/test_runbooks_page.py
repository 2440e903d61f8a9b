"""docs/runbooks.md names every alert of the pack with its severity and the panel that its runbook opens first."""

from __future__ import annotations

import re

from docs.blocks import ROOT

RUNBOOKS = ROOT / "dashboards" / "ragtrace_dashboards" / "dist" / "runbooks"


def test_every_alert_has_its_severity_and_first_panel() -> None:
    rows = re.findall(
        r'^\| \[(\w+)\]\(.*?\) \| (\w+) \| .*? \| "(.*?)" \|', _text("docs/runbooks.md"), re.MULTILINE
    )
    wanted = [
        (
            path.stem,
            _found(r"Severity \*\*(\w+)\*\*", path.read_text()),
            _found(r'^1\. Open "([^"]+)"', path.read_text()),
        )
        for path in sorted(RUNBOOKS.glob("Ragtrace*.md"))
    ]
    assert sorted(rows) == wanted


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    assert found is not None, pattern
    return found[1]
