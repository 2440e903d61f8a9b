"""The worked example of docs/how-to/investigate.md: what it shows is what the demo's file gives."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "investigate.md"


def unchanging(text: str) -> list[str]:
    """Return the lines without what differs from run to run: the time and the trace ids."""
    return [re.sub(r"[0-9a-f]{32}|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "...", line) for line in text.splitlines()]


def test_the_example_prints_what_the_page_shows(tmp_path: Path) -> None:
    example = PAGE.read_text(encoding="utf-8").partition("## An example")[2]
    commands, shown = re.findall(r"```(?:sh|text)\n(.*?)```", example, re.DOTALL)[:2]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("RAGTRACE_", "OPENAI_"))}
    printed = ""
    for command in commands.splitlines():
        name, *args = command.split()
        assert name == "ragtrace"
        line = [sys.executable, "-m", name, *args]
        done = subprocess.run(line, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=240, check=True)
        printed = done.stdout
    assert unchanging(printed) == unchanging(shown)
