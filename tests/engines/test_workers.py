"""Two workers of Ray score twice as fast as one where the judge takes the time."""

from __future__ import annotations

import json
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ragtrace.cli import main
from tests.engines.parts import engines_python, outputs, ran, rows
from tests.environments import ROOT

engines_python()  # one skip for the file where there is none
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROWS, PART_ROWS = 400, 16
LEAST_RATIO = 1.7


@pytest.fixture
def judge():
    command = [sys.executable, "-m", "benchmarks.batch.judge", "0.2"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        server.communicate("")


def test_two_workers_score_twice_as_fast_to_the_same_files(judge, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    path = tmp_path / "records.parquet"
    pq.write_table(pa.Table.from_pylist(rows(ROWS)), path, row_group_size=PART_ROWS)
    said, _ = ran(ROOT / "tests" / "engines" / "ray_rates.py", path, tmp_path, judge, OPENAI_API_KEY="none")
    one, two = json.loads(said)
    command = [
        "score",
        str(path),
        "--metrics",
        "faithfulness",
        "--engine",
        "local",
        "--out",
        str(tmp_path / "local"),
    ]
    assert main([*command, "--judge", "openai:m", "--base-url", judge, "--jobs", "16"]) == 0
    written = [outputs(tmp_path / name) for name in ("1", "2", "local")]
    assert len(written[0]) == ROWS // PART_ROWS
    assert written[0] == written[1] == written[2]
    assert two / one >= LEAST_RATIO, f"{one:.1f} and {two:.1f} rows a second"
