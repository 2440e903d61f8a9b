"""Standard streams that are closed or full: one line or nothing, and never a traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

LINE = {"query": "Where is the lab?", "answer": "In Oslo.", "contexts": ["The lab is in Oslo."]}
needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")


def in_shell(tmp_path: Path, args: str, streams: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "in.jsonl").write_text(json.dumps(LINE) + "\n")
    command = f'exec "$0" -m ragtrace {args} {streams}'
    return subprocess.run(
        ["/bin/sh", "-c", command, sys.executable],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("args", "streams", "status"),
    [
        ("score in.jsonl --metrics faithfulness", "<&- >&- 2>&-", 0),
        ("score - --metrics faithfulness", "<&-", 0),
        ("scroe", "2>&-", 2),
        ("--help", ">&-", 0),
    ],
)
def test_a_stream_that_is_closed_is_an_empty_one(tmp_path: Path, args: str, streams: str, status: int) -> None:
    done = in_shell(tmp_path, args, streams)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr + done.stdout


@needs_full
@pytest.mark.parametrize(
    "args",
    [
        "metrics",
        "score in.jsonl --metrics faithfulness --out out.jsonl",
    ],
)
def test_a_full_standard_output_is_one_line(tmp_path: Path, args: str) -> None:
    done = in_shell(tmp_path, args, ">/dev/full")
    told = [line for line in done.stderr.splitlines() if line.startswith("ragtrace: ")]
    assert (done.returncode, len(told)) == (2, 1), done.stderr
    assert "No space left on device" in told[0]
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@needs_full
def test_where_nobody_can_be_told_the_status_still_tells(tmp_path: Path) -> None:
    assert in_shell(tmp_path, "scroe", "2>/dev/full").returncode == 2
