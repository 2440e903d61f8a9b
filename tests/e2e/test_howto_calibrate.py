"""The worked example of docs/how-to/calibrate.md: what it shows is what the command prints."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.e2e.howto import blocks, lines, run_python, run_shell

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def plain(text: str) -> list[str]:
    """Lines without the judge's version, which is no part of the example."""
    return lines(re.sub(r"overlap [0-9a-f]{8}", "overlap", text))


def test_the_example_prints_what_the_page_shows(tmp_path: Path) -> None:
    python, shell, text = (blocks("calibrate", kind)[-1] for kind in ("python", "sh", "text"))
    run_python(python, tmp_path)
    assert plain(text) == plain(run_shell(shell, tmp_path))
    assert (tmp_path / "calibrate.png").stat().st_size > 10_000
    assert (tmp_path / "report.json").exists()
