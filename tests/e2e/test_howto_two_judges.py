"""The worked example of docs/how-to/two-judges.md: what it shows is what the command prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.howto import blocks, lines, run_python, run_shell

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def test_the_example_prints_what_the_page_shows(tmp_path: Path) -> None:
    python, shell, text = (
        blocks("two-judges", kind, "## Which runs to judge")[-1] for kind in ("python", "sh", "text")
    )
    run_python(python, tmp_path)
    assert lines(text) == lines(run_shell(shell, tmp_path))
