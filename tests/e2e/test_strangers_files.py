"""Files that a stranger wrote, by every command that reads lines: a broken line costs itself alone."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys

import pytest

from ragtrace.cli import main
from ragtrace.model.codec import UNPACK

GOOD = [
    json.dumps(
        {
            "id": f"r{number}",
            "query": f"Where is lab {number}?",
            "answer": "In Oslo.",
            "contexts": ["In Oslo."],
            "label": number % 2,
            "scores": {"faithfulness": {"state": "ok", "value": 1.0 if number % 3 else 0.4, "version": "1"}},
        }
    ).encode()
    + b"\n"
    for number in range(60)
]
BROKEN = {
    "a number of 5,000 digits": (
        b'{"query": "a", "x": ' + b"9" * 5000 + b"}",
        "a whole number has too many digits",
    ),
    "lists without end": (b'{"query": "a", "x": ' + b"[" * 100_000, "nested too deeply"),
    "900 lists in lists": (b'{"query": "a", "x": ' + b"[" * 900 + b"]" * 900 + b"}", "nested too deeply"),
    "700 objects in objects": (b'{"query": "a", "x": ' + b'{"a":' * 700 + b"1" + b"}" * 701, "nested too deeply"),
    "a million lists": (
        b'{"query": "a", "x": [' + b"[]," * 1_000_000 + b"1]}",
        "more than 131,072 lists and objects, or 1,048,576 values",
    ),
    "a line of 17 MiB": (b'{"query": "' + b"a" * 17 * 2**20 + b'"}', "a line of more than 16 MiB"),
    "a list": (b"[1]", f"a line must be a JSON object, got a list; write one object a line: {UNPACK}"),
    "half a line": (b'{"query": "a', "not JSON: the line ends too early"),
    "no UTF-8": (b'{"query": "\xff"}', "not UTF-8 (byte 12 of the line)"),
}
READERS = {
    "score": (["score", "FILE", "--metrics", "answered", "--out", "OUT.jsonl"], 1, "FILE:31: "),
    "score in parts": (["score", "FOLDER", "--metrics", "answered", "--out", "OUT"], 1, "FILE, line 31: "),
    "compare": (["compare", "FILE", "FILE"], 1, "FILE:31: "),
    "worst": (["worst", "FILE", "--metric", "faithfulness"], 0, "FILE:31: "),
    "show": (["show", "FILE", "40"], 0, "FILE:31: "),
    "investigate": (["investigate", "FILE", "--metric", "faithfulness"], 2, "FILE:31: "),
    "calibrate": (["calibrate", "FILE", "--label", "label", "--metric", "faithfulness"], 2, "FILE:31: "),
}  # fmt: skip


def filled(arguments, folder):
    places = {"FILE": folder / "in" / "a.jsonl", "FOLDER": folder / "in", "OUT": folder / "out"}
    names = {**places, "OUT.jsonl": folder / "out.jsonl"}
    return [str(names.get(argument, argument)) for argument in arguments]


@pytest.mark.parametrize("fault", BROKEN)
@pytest.mark.parametrize("reader", READERS)
def test_a_broken_line_is_named_and_the_others_are_read(reader, fault, tmp_path, capsys):
    (tmp_path / "in").mkdir()
    file = tmp_path / "in" / "a.jsonl"
    line, why = BROKEN[fault]
    file.write_bytes(b"".join([*GOOD[:30], line, b"\n", *GOOD[30:]]))
    arguments, status, where = READERS[reader]
    assert main(filled(arguments, tmp_path)) == status
    printed = capsys.readouterr()
    assert f"{where.replace('FILE', str(file))}{why}" in printed.err
    assert "Traceback" not in printed.err
    if reader == "score":
        assert "60 scored in" in printed.out
        assert len((tmp_path / "out.jsonl").read_bytes().splitlines()) == 60
    if reader == "score in parts":
        assert "60 scored in" in printed.out


def test_a_packed_file_that_ends_early_keeps_its_good_lines_in_parts(tmp_path, capsys):
    (tmp_path / "in").mkdir()
    file = tmp_path / "in" / "a.jsonl.gz"
    whole = gzip.compress(b"".join(GOOD) * 20)
    file.write_bytes(whole[: len(whole) * 2 // 3])
    assert main(["score", str(tmp_path / "in"), "--metrics", "answered", "--out", str(tmp_path / "out")]) == 1
    printed = capsys.readouterr()
    assert "the file cannot be read on from here (Compressed file ended before" in printed.err
    assert " 0 scored" not in printed.out
    assert "1 broken" in printed.out


def test_a_quoted_text_without_end_costs_its_row_of_csv_alone(tmp_path, capsys):
    file = tmp_path / "a.csv"
    rows = [f"Where is lab {number}?,In Oslo.\n" for number in range(60)]
    file.write_text("".join(["query,answer\n", *rows[:30], 'Where?,"In Oslo.\n', "\n", *rows[30:]]))
    assert main(["score", str(file), "--metrics", "answered", "--out", str(tmp_path / "out")]) == 1
    printed = capsys.readouterr()
    assert f"{file}, line 32: " in printed.err
    assert "60 scored in" in printed.out
    assert "1 broken" in printed.out


def test_a_cell_of_csv_without_end_is_named_and_the_rows_behind_it_are_read(tmp_path, capsys):
    file = tmp_path / "a.csv"
    rows = [f"Where is lab {number}?,In Oslo.\n" for number in range(60)]
    cell = f"Where?,{'a' * 17 * 2**20}\n"
    long = 'Where?,"' + "\n" * 300_000
    file.write_text("".join(["query,answer\n", *rows[:30], cell, *rows[30:], long]))
    assert main(["score", str(file), "--metrics", "answered", "--out", str(tmp_path / "out")]) == 1
    printed = capsys.readouterr()
    assert f"{file}, line 32: a line of more than 16 MiB" in printed.err
    assert f"{file}, line 63: a row of more than 16 MiB" in printed.err
    assert "60 scored in" in printed.out


def test_a_file_without_a_line_break_is_refused(capsys):
    assert main(["score", "/dev/zero", "--metrics", "answered"]) == 1
    assert capsys.readouterr().err.startswith("/dev/zero:1: this is UTF-16 or UTF-32; write it as UTF-8")


def test_a_number_beyond_a_float_is_named_where_a_part_is_written(tmp_path, capsys):
    (tmp_path / "in").mkdir()
    bad = b'{"query": "a", "answer": "b", "contexts": ["c"], "x": 1e999}\n'
    (tmp_path / "in" / "a.jsonl").write_bytes(b"".join([*GOOD, bad]))
    assert main(["score", str(tmp_path / "in"), "--metrics", "answered", "--out", str(tmp_path / "out")]) == 1
    assert "line 61: cannot be written again as JSON: a number is too large" in capsys.readouterr().err


# A process begins with the peak of the one that started it, so a small one stands between it and pytest.
MEASURE = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
process.returncode = os.waitstatus_to_exitcode(status)
print(used.ru_maxrss / 1024)
"""


def peak_of(*arguments):
    """Return the most memory of a command in MiB, and its standard error."""
    command = [sys.executable, "-c", MEASURE, sys.executable, "-m", "ragtrace", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("reader", ["score", "score in parts", "compare", "worst", "calibrate"])
@pytest.mark.parametrize("unit", [b"x", b" ", b"\n", b"["])
def test_a_packed_file_that_unfolds_takes_no_more_than_64_mb(reader, unit, tmp_path):
    arguments, _, where = READERS[reader]
    arguments = [one.replace("OUT.jsonl", "OUT") for one in arguments]
    peaks = {}
    for name, times in (("good", 0), ("bomb", 400)):
        folder = tmp_path / name
        (folder / "in").mkdir(parents=True)
        file = folder / "in" / "a.jsonl.gz"
        with gzip.open(file, "wb") as stream:
            stream.write(b"".join(GOOD[:30]))
            for _ in range(times):
                stream.write(unit * 2**20)
            stream.write(b"\n" if times else b"")
            stream.write(b"".join(GOOD[30:]))
        peaks[name], said = peak_of(*(one.replace("a.jsonl", "a.jsonl.gz") for one in filled(arguments, folder)))
        assert "Traceback" not in said
        if times and unit != b"\n":
            assert f"{where.replace('FILE', str(file))}a line of more than 16 MiB" in said
    assert peaks["bomb"] - peaks["good"] < 64
