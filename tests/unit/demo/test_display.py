"""The chart, the frame and the next steps fit the terminal."""

from __future__ import annotations

import io
import sys

import pytest
from rich.console import Console

from ragtrace.demo import (
    DemoHeading,
    Fall,
    MetricScores,
    Progress,
    WorstAnswer,
    own_command,
    print_closing,
    running_means,
)
from ragtrace.demo.view import chart, frame

WORST = WorstAnswer(question=3, query="Where?", value=0.1, before="", sentence="In Bergen.", reason="no")
FALL = Fall(question=60, changed_at=51, before_mean=0.9, recent_mean=0.5, recent_n=9)
PROGRESS = Progress(
    asked=100, total=100, failed=0, counts={"sampled": 100, "scored": 100, "waiting": 0, "dropped": 0},
    seconds=1.0, incident_at=51, metrics=tuple(MetricScores(name=f"m{n}", values=[0.5]) for n in range(13)),
    points=tuple((n, 1.0 if n < 51 else 0.55) for n in range(1, 101)), worst=(WORST,) * 5,
    search="a fall", fall=FALL,
)  # fmt: skip
HEADING = DemoHeading(
    model="m", judge="overlap", seed=0, endpoint="http://127.0.0.1:9464/metrics", out="demo.jsonl"
)


def test_a_drop_is_drawn_lower_and_in_red() -> None:
    rows = chart(running_means(PROGRESS.points, 100, 50), height=5, before=0.9)
    assert {len(row.plain) for row in rows} == {54}
    assert rows[0].plain[8] == "█"
    assert rows[0].plain[-1] == " "
    assert rows[4].plain[-1] != " "
    assert any(span.style == "red" for span in rows[4].spans)


def test_the_axis_begins_at_zero_when_it_has_to() -> None:
    assert chart([0.9], height=5, before=None)[4].plain.startswith("0.5")
    assert chart([0.1], height=5, before=None)[4].plain.startswith("0.0")


@pytest.mark.parametrize("height", [10, 24, 35, 50, 60])
def test_a_frame_fits_the_terminal(height: int) -> None:
    console = Console(file=io.StringIO(), width=80, height=height)
    lines = console.render_lines(frame(PROGRESS, HEADING, width=80, height=height))
    assert len(lines) <= max(height, 16)


@pytest.mark.parametrize("width", [80, 200])
def test_no_line_of_the_next_steps_wraps(width: int) -> None:
    said = io.StringIO()
    console = Console(file=said, width=width)
    print_closing(console, PROGRESS, out="ragtrace-demo.jsonl", lines=1, has_view=True)
    steps = said.getvalue().partition("Next\n")[2].splitlines()
    assert all(line.startswith("  ") and len(line) <= width for line in steps), steps


def test_the_next_steps_name_the_command_that_runs(tmp_path, monkeypatch) -> None:
    script = tmp_path / ".venv" / "bin" / "ragtrace"
    script.parent.mkdir(parents=True)
    script.touch(0o755)
    monkeypatch.setattr(sys, "executable", str(script.with_name("python")))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    assert own_command() == ".venv/bin/ragtrace"
    monkeypatch.setenv("PATH", str(script.parent))
    assert own_command() == "ragtrace"
    other = tmp_path / "other" / "ragtrace"
    other.parent.mkdir()
    other.touch(0o755)
    monkeypatch.setenv("PATH", str(other.parent))
    assert own_command() == ".venv/bin/ragtrace"
    monkeypatch.chdir("/")
    assert own_command() == str(script).removeprefix("/")
