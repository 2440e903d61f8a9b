"""The file of scored lines: gone on with exactly where it ends, and never touched when it is somebody else's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragtrace.cli.io.jsonl_writer import ScoredLines, done_before
from ragtrace.errors import ConfigError


def line(identity: Any, **score: Any) -> bytes:
    scores = {"faithfulness": {"state": "ok", "value": 0.5, **score}}
    return json.dumps({"id": identity, "query": "q", "scores": scores}).encode() + b"\n"


def read(path: Path) -> tuple[dict[str, int], int]:
    seen: list[Any] = []
    return dict(done_before(path, seen.append)), len(seen)


def test_a_missing_or_empty_file_is_a_fresh_start(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    assert read(path) == ({}, 0)
    path.touch()
    assert read(path) == ({}, 0)


@pytest.mark.parametrize("whole", [b"", line("a"), line("a") + line("b")])
def test_a_torn_last_line_is_cut_wherever_it_was_torn(tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / "out.jsonl"
    torn = line("torn é")
    for cut in range(1, len(torn) - 1):
        path.write_bytes(whole + torn[:cut])
        assert read(path)[1] == whole.count(b"\n")
        assert path.read_bytes() == whole


def test_a_line_that_lacks_its_end_alone_is_kept_and_ended(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(line("a") + line("b")[:-1])
    assert read(path) == ({"a": 1, "b": 1}, 2)
    assert path.read_bytes() == line("a") + line("b")


@pytest.mark.parametrize(
    "foreign",
    [
        b"precious notes",
        b"precious notes\nof many lines\n",
        b'{"query": "q", "answer": "an input file"}\n',
        b'{"query": "q", "answer": "an input file of one line without end"}',
        b'{"id": 1, "query": "the same with an id"}',
        b'{"id": 1, "scores": [1]}\n',
        b'{"id": 1, "scores": {"faithfulness": 0.5}}\n',
        b'{"id": 1, "scores": {"faithfulness": {"state": "ok", "value": null}}}\n',
        b"\x1f\x8b\x08\x00gzip without a line end",
        b"\xff\xfe\n",
        b"[" * 100_000 + b"\n",
        line("a") + b'{"id": "b"}\n' + line("c"),
        line("a") + b'{"id": "b"}',
    ],
)
def test_what_is_not_ours_is_refused_and_left_as_it_is(tmp_path: Path, foreign: bytes) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(foreign)
    with pytest.raises(ConfigError, match=r"out\.jsonl:\d: not a line of `ragtrace score`"):
        read(path)
    assert path.read_bytes() == foreign


def test_a_device_may_be_written_to_and_a_folder_not(tmp_path: Path) -> None:
    sink = ScoredLines("/dev/null", is_resumed=False)
    sink.write("x\n")
    sink.close()
    with pytest.raises(ConfigError):
        ScoredLines(str(tmp_path), is_resumed=False)
    with pytest.raises(ConfigError, match="choose another --out"):
        ScoredLines(str(tmp_path / "missing" / "out.jsonl"), is_resumed=False)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_one_line_that_says_how_to_go_on() -> None:
    sink = ScoredLines("/dev/full", is_resumed=False)
    with pytest.raises(ConfigError, match=r"No space left on device.*--resume"):
        sink.write("x\n")
    sink.close()
