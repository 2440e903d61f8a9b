"""The worked example of docs/how-to/files.md: what it shows is what the command prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.howto import blocks, lines, run_python, run_shell

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
def test_the_example_prints_what_the_page_shows(tmp_path: Path) -> None:
    run_python(blocks("files", "python")[0], tmp_path)
    _, _, score, worst, look, _, _, resume, _ = blocks("files", "sh")
    assert lines(blocks("files", "text")[0]) == lines(run_shell(score, tmp_path))
    assert lines(blocks("files", "text")[1]) == lines(run_shell(worst, tmp_path))
    looked = run_shell(look, tmp_path)
    assert "scored:108  id r7" in looked
    assert "A  scored: 200 lines, 0 broken" in looked
    assert len(list((tmp_path / "scored").glob("*.parquet"))) == 2
    assert len(list((tmp_path / "scored").glob("*.jsonl"))) == 1
    assert "0 scored now in scored, 200 there already" in run_shell(resume, tmp_path)
