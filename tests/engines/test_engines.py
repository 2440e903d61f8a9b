"""The same files on real Ray, Spark and Dask as in one process, and the examples."""

from __future__ import annotations

import os
import signal
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ragtrace.cli import main
from tests.engines.parts import ENGINES, begin, engines_python, outputs, ran, rows, write_lines
from tests.environments import ROOT

EXAMPLES = {"ray": "ray_parquet/nightly.py"}  # a whole application; the others are the shortest form
engines_python()  # one skip for the file where there is none
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """Files with a broken line and a corrupt row group, and what one process makes of them."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "in").mkdir()
    path = folder / "in" / "a.parquet"
    pq.write_table(
        pa.Table.from_pylist(rows(200)), path, row_group_size=50, compression="none", write_page_checksum=True
    )
    column = pq.ParquetFile(path).metadata.row_group(2).column(1)
    data = bytearray(path.read_bytes())
    start = column.dictionary_page_offset or column.data_page_offset
    for place in range(start + 30, start + column.total_compressed_size - 5):
        data[place] ^= 0x5A
    path.write_bytes(bytes(data))
    write_lines(folder / "in" / "b.jsonl", 40)
    with (folder / "in" / "b.jsonl").open("a") as out:
        out.write("{\n")
    command = ["score", str(folder / "in"), "--metrics", "faithfulness", "--out", str(folder / "local")]
    assert main(command) == 1
    return folder, outputs(folder / "local")


@pytest.fixture(scope="module", params=ENGINES)
def session(request, given):
    """An engine's name, and what the command and the example print on it."""
    folder, _ = given
    arguments = ["score", folder / "in", "--metrics", "faithfulness", "--out", folder / request.param]
    example = ROOT / "examples" / EXAMPLES.get(request.param, f"engines/{request.param}_batch.py")
    script = ROOT / "tests" / "engines" / "session.py"
    return request.param, *ran(script, example, *arguments, "--engine", request.param, "--workers", 2)


def test_an_engine_gives_what_one_process_gives(given, session):
    folder, expected = given
    engine, out, err = session
    assert len(expected) == 4
    assert outputs(folder / engine) == expected
    assert f"failed: {folder / 'in' / 'a.parquet'}, row group 2: OSError" in err
    assert "5 of 5 parts, 190 rows" in err
    assert "190 scored in" in out
    assert "1 broken, 1 part failed: --resume tries again status 1" in out


def test_the_example_runs(session):
    engine, out, _ = session
    _, _, said = out.partition("status 1")
    if engine in EXAMPLES:
        assert "eu: 100 scores, mean faithfulness 1.000 us: 100 scores, mean faithfulness 0.875" in said
        return
    assert "200 rows" in said
    assert "1.000" in said


def test_a_killed_run_is_resumed_to_the_same_files(tmp_path, capsys):
    """kill -9 of driver and workers in the middle; a resumed run, here of one process, scores the rest alone."""
    (tmp_path / "in").mkdir()
    for number in range(30):
        write_lines(tmp_path / "in" / f"f{number:02d}.jsonl", 60)
    command = ["score", str(tmp_path / "in"), "--metrics", "faithfulness", "--out"]
    assert main([*command, str(tmp_path / "whole")]) == 0
    expected, out = outputs(tmp_path / "whole"), tmp_path / "killed"
    process = begin("-m", "ragtrace", *command, out, "--engine", "dask", "--workers", 2)
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline and process.poll() is None:
        if out.is_dir() and len(outputs(out)) >= 3:
            break
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    kept = outputs(out)
    assert 3 <= len(kept) < 30
    assert kept.items() <= expected.items()
    assert main([*command, str(out), "--resume"]) == 0
    assert outputs(out) == expected
    assert f"{60 * len(kept)} there already" in " ".join(capsys.readouterr().out.split())
