"""The command that the demo's next steps name."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

from ragtrace.demo.closing import close, own_command
from ragtrace.demo.progress import Progress


@pytest.fixture
def script(tmp_path, monkeypatch):
    """A ragtrace in a virtual environment below the current folder."""
    folder = tmp_path / ".venv" / "bin"
    folder.mkdir(parents=True)
    (folder / "ragtrace").write_text("#!/bin/sh\n")
    (folder / "ragtrace").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    return folder / "ragtrace"


def test_it_is_the_path_of_the_script_where_none_is_on_the_path(script):
    assert own_command() == ".venv/bin/ragtrace"


def test_it_is_a_whole_path_from_elsewhere(script, monkeypatch):
    monkeypatch.chdir("/")
    assert Path("/", own_command()) == script


def test_it_is_the_plain_name_in_an_active_environment(script, monkeypatch):
    monkeypatch.setenv("PATH", str(script.parent))
    assert own_command() == "ragtrace"


def test_it_is_the_path_where_another_project_has_the_name(script, monkeypatch, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "ragtrace").write_text("#!/bin/sh\n")
    (other / "ragtrace").chmod(0o755)
    monkeypatch.setenv("PATH", str(other))
    assert own_command() == ".venv/bin/ragtrace"


@pytest.mark.parametrize("width", [80, 100, 200])
def test_no_line_of_the_next_steps_wraps(width):
    progress = Progress(
        asked=1, total=1, failed=0, sampled=1, scored=1, pending=0, dropped=0, seconds=1.0, incident_at=None,
        metrics=(), points=(), worst=(), detector=None, alarm=None,
    )  # fmt: skip
    said = io.StringIO()
    close(Console(file=said, width=width), progress, out="ragtrace-demo.jsonl", lines=1, has_view=True)
    steps = said.getvalue().partition("Next\n")[2].splitlines()
    assert all(line.startswith("  ") and len(line) <= width for line in steps), steps
    assert len(steps) == (6 if width == 200 else 12)
