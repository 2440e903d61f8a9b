"""The file of scored records is the demo's own, and replaces nobody else's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from ragtrace.demo import ScoredFile
from ragtrace.errors import ConfigError
from ragtrace.model import RagRecord, record_from_json
from tests import make

if TYPE_CHECKING:
    from pathlib import Path

RECORD = RagRecord(id="trace-span", query="Where?", answer="In Oslo, più o meno.", tags=("demo:17",))
SCORE = make.score(RECORD, "mrr")


def test_a_line_is_a_record_with_scores(tmp_path: Path) -> None:
    path = tmp_path / "demo.jsonl"
    with ScoredFile(path) as file:
        file.emit(RECORD, [SCORE])
        line = json.loads(path.read_text(encoding="utf-8"))  # written at once, not at the end
    assert line["id"] == "demo-0017"
    assert line["scores"]["mrr"]["value"] == 0.5
    assert record_from_json(line, fallback_id="1").answer == "In Oslo, più o meno."


def test_a_file_of_the_demo_is_replaced_with_the_first_line(tmp_path: Path) -> None:
    path = tmp_path / "demo.jsonl"
    for lines in (1, 1, 0):  # the last run wrote nothing, and leaves the file of the one before
        with ScoredFile(path) as file:
            for _ in range(lines):
                file.emit(RECORD, [SCORE])
        assert len(path.read_text(encoding="utf-8").splitlines()) == 1
    path.unlink()
    with ScoredFile(path):
        pass
    assert not path.exists()


@pytest.mark.parametrize("content", ['{"id": "7"}\n', "my notes\n", "[1]\n", '"demo-1"\n'])
def test_another_file_is_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match="--out"):
        ScoredFile(path)
    assert path.read_text(encoding="utf-8") == content


def test_a_folder_that_is_missing_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written"):
        ScoredFile(tmp_path / "none" / "demo.jsonl")
