"""forget, export, feedback and rescore as a person runs them, over real files."""

from __future__ import annotations

import csv
import gzip
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing, contextmanager

import pytest
from msgspec.structs import replace

from ragtrace.cli import main
from ragtrace.model import JudgeInfo, RagRecord
from ragtrace.queues import Entry, Spool, Unit, to_bytes
from ragtrace.stores import Label
from tests import make

TRACES = [f"{n:032x}" for n in range(1, 6)]


def record(n, **more):
    given = {"workflow": "support", "user": f"user-{n}", "session": "s"} | more
    given |= {"query": "What is the capital of Norway?", "answer": f"Oslo is the capital. It has {n} trams."}
    return make.record("Oslo is the capital of Norway.", n=n, **given)


def score(r, value, **more):
    given = {"version": "old", "at": time.time() - 3_600, "judge": JudgeInfo(model="other"), "weight": 20.0} | more
    return make.score(r, value=value, passed=value >= 0.5, **given)


@pytest.fixture
def path(tmp_path):
    """Five traces; those of odd number are low and kept."""
    path = tmp_path / "store"
    with opened(path) as store:
        for n in range(1, 6):
            r = record(n)
            store.emit(r, [score(r, 0.2 if n % 2 else 0.9, details={"claims": [r.answer]})])
        store.rate([Label(trace_id=TRACES[0], value=0.0, comment='=HYPERLINK("http://x")')])
    return path


@contextmanager
def opened(path):
    store = make.store(path, has_content=True, payload_share=0.0)
    yield store
    store.close()


def rows_of(path, **wanted):
    with opened(path) as store:
        return list(store.rows(**wanted))


@pytest.fixture
def exported(path, capsys):
    """Export JSON lines to standard output; the rows."""

    def run(*args):
        assert main(["export", "--store", str(path), "--out", "-", *args]) == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


# -- export --


def test_export_as_json_lines(path, tmp_path, capsys):
    out = tmp_path / "out.jsonl"
    assert main(["export", "--store", str(path), "--out", str(out)]) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == 6
    first = rows[0]
    assert (first["trace_id"], first["value"], first["passed"], first["weight"]) == (TRACES[0], 0.2, False, 20.0)
    assert first["details"] == {"claims": ["Oslo is the capital. It has 1 trams."]}
    assert {row["source"] for row in rows} == {"judge", "human"}
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert "6 rows in" in capsys.readouterr().err
    assert main(["export", "--store", str(path), "--out", str(out)]) == 2
    assert "exists" in capsys.readouterr().err


def test_export_as_csv_that_a_spreadsheet_can_open(path, tmp_path):
    with opened(path) as store:
        evil = record(7, workflow="=cmd|'/c calc'!A1", user="+1", session=" \t@x")
        store.emit(evil, [score(evil, -0.5)])
    out = tmp_path / "out.csv"
    assert main(["export", str(path), "--format", "csv", "--out", str(out)]) == 0
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    (row,) = [row for row in rows if row["workflow"].startswith("'")]
    assert (row["workflow"], row["user"], row["session"]) == ("'=cmd|'/c calc'!A1", "'+1", "' \t@x")
    assert float(row["value"]) == -0.5
    assert not any(value.startswith(("=", "+", "@", "\t")) for row in rows for value in row.values())


@pytest.mark.parametrize(
    ("args", "sources"),
    [
        ("--metric faithfulness", ["judge"] * 5),
        ("--workflow support", ["judge"] * 5 + ["human"]),  # the label belongs to a trace of it
        ("--workflow other", []),
        ("--since 30m", ["human"]),
        ("--until 30m", ["judge"] * 5),
        ("--metric all", ["judge"] * 5 + ["human"]),
        ("--metric mrr", []),  # known, but never scored here
        ("--metric feedback", ["human"]),
    ],
)
def test_export_of_some(exported, args, sources):
    assert sorted(row["source"] for row in exported(*args.split())) == sorted(sources)


def test_export_takes_the_names_that_scoring_takes(path, exported):
    with opened(path) as store:
        given = ("answered", "citation_recall", "citation_f1", "our_own")
        store.emit(record(7), [score(record(7), 1.0, metric=name) for name in given])

    def names(metric):
        return sorted(row["metric"] for row in exported("--metric", metric))

    assert names("no_answer") == ["answered"]
    assert names("citations") == ["citation_f1", "citation_recall"]
    assert names("citation_recall") == ["citation_recall"]
    assert names("our_own") == ["our_own"]
    assert main(["forget", "--trace", TRACES[0], "--store", str(path)]) == 0


def test_a_metric_that_nothing_knows_is_no_empty_export(path, tmp_path, capsys):
    out = tmp_path / "out.jsonl"
    assert main(["export", "--store", str(path), "--out", str(out), "--metric", "fathfulness"]) == 2
    assert capsys.readouterr().err == "ragtrace: unknown metric 'fathfulness'; did you mean 'faithfulness'?\n"
    assert not out.exists()


def test_many_pages_come_out_whole_and_once(path, exported):
    with opened(path) as store, closing(sqlite3.connect(path)) as connection, connection:
        for n in range(1, 1_301):
            store.writer([score(record(n), 0.5), score(record(n), 0.5, metric="mrr")], record(n))(connection)
    assert [row["trace_id"] for row in exported("--metric", "mrr")] == [f"{n:032x}" for n in range(1, 1_301)]


# -- feedback --


def test_feedback_from_a_file(path, tmp_path, capsys):
    lines = [
        {"trace_id": TRACES[1], "value": True, "comment": "good", "rater": "ada"},
        {"trace_id": TRACES[1], "value": 0.25, "metric": "faithfulness", "at": 1_700_000_000},
        {"trace_id": "d4" * 16, "value": 0},  # never scored
    ]
    wrong = [json.dumps({"trace_id": TRACES[2], "value": value}) for value in (7, "1")]
    broken = ["{", '{"value": 1}', *wrong, "[1]"]
    file = tmp_path / "labels.jsonl"
    file.write_text("\n".join([json.dumps(lines[0]), *broken, "", *map(json.dumps, lines[1:])]))
    assert main(["feedback", "--store", str(path), str(file)]) == 1
    said = capsys.readouterr().err
    assert "3 labels kept, 5 broken lines" in said
    assert f"{file}:4: a label's value lies between 0 and 1, got 7.0" in said
    human = [row for row in rows_of(path) if row["source"] == "human" and row["trace_id"] != TRACES[0]]
    assert {(row["metric"], row["version"], row["value"]) for row in human} == {
        ("feedback", "human:ada", 1.0), ("faithfulness", "human", 0.25), ("feedback", "human", 0.0),
    }  # fmt: skip


@pytest.mark.parametrize("given", [TRACES[1][:8], "ticket-7", "", "0" * 32, TRACES[1] + "0", "g" * 32])
def test_feedback_takes_whole_trace_ids_alone(path, tmp_path, capsys, given):
    file = tmp_path / "labels.jsonl"
    file.write_text(json.dumps({"trace_id": given, "value": 0}) + "\n")
    before = rows_of(path)
    assert main(["feedback", "--store", str(path), str(file)]) == 1
    said = capsys.readouterr().err
    assert f"{file}:1: trace_id must be a whole trace id, 32 hex digits that are not all 0, got {given!r}" in said
    assert rows_of(path) == before


@pytest.mark.parametrize("damage", ["cut", "checksum"])
def test_feedback_from_a_damaged_gzip_file_is_kept_up_to_the_damage(path, tmp_path, capsys, damage):
    lines = [json.dumps({"trace_id": os.urandom(16).hex(), "value": 1}) for _ in range(2_000)]
    packed = bytearray(gzip.compress("\n".join(lines).encode()))
    if damage == "cut":
        del packed[-200:]
    else:
        packed[-8] ^= 255
    file = tmp_path / "labels.gz"
    file.write_bytes(packed)
    assert main(["feedback", "--store", str(path), str(file)]) == 1
    said = capsys.readouterr().err
    kept = len(rows_of(path)) - 6
    assert kept > 500
    assert f"{kept} labels kept, 1 broken lines" in said
    assert f"{file}:{kept + 1}: the file cannot be read on from here" in said


def test_a_trace_id_is_lower_case_as_traces_have_it(path, tmp_path, capsys):
    trace = "57eDD83B" + "Ab" * 12
    r = replace(record(7), trace_id=trace.lower())
    with opened(path) as store:
        store.emit(r, [score(r, 0.5)])
    file = tmp_path / "labels.jsonl"
    file.write_text(json.dumps({"trace_id": trace, "value": 1}) + "\n")
    assert main(["feedback", "--store", str(path), str(file)]) == 0
    assert [row["source"] for row in rows_of(path) if row["trace_id"] == trace.lower()] == ["judge", "human"]
    assert main(["forget", "--trace", trace.upper(), "--store", str(path)]) == 0
    assert "1 score, 1 human label" in capsys.readouterr().out


def test_a_command_deletes_nothing_to_make_room(path, tmp_path, monkeypatch):
    with opened(path) as store:
        big = RagRecord(id="9", trace_id="9" * 32, answer="x" * 2_000_000)
        store.emit(big, [score(big, 0.1)])
    monkeypatch.setenv("RAGTRACE_STORE_BYTES", "1048576")  # of another service than the one that wrote it
    file = tmp_path / "labels.jsonl"
    file.write_text(json.dumps({"trace_id": TRACES[1], "value": 1}))
    assert main(["feedback", "--store", str(path), str(file)]) == 0
    assert len(rows_of(path)) == 8
    with opened(path) as store:
        assert len(list(store.records())) == 4


# -- forget --


def test_forget_says_what_it_erases_and_erases_it(path, capsys):
    assert main(["forget", "--user", "user-1", "--store", str(path), "--dry-run"]) == 0
    counts = "1 score, 1 human label, 1 record, 0 waiting units"
    assert capsys.readouterr().out == f"user user-1: {counts} would be erased\n"
    assert len(rows_of(path)) == 6
    assert main(["forget", "--user", "user-1", "--store", str(path)]) == 0
    assert capsys.readouterr().out == f"user user-1: {counts} erased\n"
    assert len(rows_of(path)) == 4
    assert b"It has 1 trams" not in path.read_bytes()
    assert main(["forget", "--session", "s", "--store", str(path)]) == 0
    assert rows_of(path) == []


def test_forget_erases_in_a_spool_too_also_an_id_that_is_no_unicode(path, tmp_path, capsys):
    broken = RagRecord(id="9", trace_id="9" * 32, user="ada\udcff")
    with opened(path) as store:
        store.emit(broken, [score(broken, 0.1)])
    spool = Spool(tmp_path / "spool")
    units = [broken, record(1), record(2)]
    spool.put([Entry(key=unit.id, payload=to_bytes(Unit(record=unit))) for unit in units])
    (tmp_path / "spool.corrupt-1-2").write_bytes(b"")
    files = ["--store", str(path), "--spool", str(spool.path)]
    assert main(["forget", "--user", "ada\udcff", *files]) == 0
    assert "1 score, 0 human labels, 1 record, 1 waiting unit erased" in capsys.readouterr().out
    assert main(["forget", "--trace", TRACES[0], *files]) == 0
    said = capsys.readouterr().out
    assert "1 score, 1 human label, 1 record, 1 waiting unit erased" in said
    assert "spool.corrupt-1-2 was put aside" in said
    assert [job.key for job in spool.lease("w", 9)] == ["2"]
    assert b"It has 1 trams" not in spool.path.read_bytes()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["forget", "--user", "u"], "give --store PATH, or set RAGTRACE_STORE"),
        (["forget", "--user", "", "--store", "STORE"], "the id is empty"),
        (["forget", "--store", "STORE"], "give one of --trace"),
        (["forget", "--user", "u", "--trace", "t", "--store", "STORE"], "give one of --trace"),
        (["export", "--out", "-", "--store", "no-such-file"], "there is no file"),
        (["export", "--out", "-", "--store", "STORE", "--since", "yesterday"], "write an age"),
        (["export", "--out", "-", "--store", "JUNK"], "is not an SQLite file"),
        (["export", "STORE", "--out", "-", "--store", "STORE"], "give the store once"),
        (["export", "--out", "-", "--store", "TORN"], "TORN"),
        (["rescore", "--metric", "faithfulness", "--since", "soon", "--store", "STORE"], "write an age"),
        (
            ["rescore", "--metric", "faithfulnes", "--since", "1d", "--store", "STORE"],
            "did you mean 'faithfulness'",
        ),
        (["rescore", "--metrics", ",", "--since", "1d", "--store", "STORE"], "no metric is given"),
        (["rescore", "--since", "1d", "--store", "STORE"], "Missing option '--metrics'"),
        (["feedback", "no-such-file", "--store", "STORE"], "no-such-file"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_and_changes_nothing(args, words, path, tmp_path, capsys):
    junk, torn = tmp_path / "JUNK", tmp_path / "TORN"
    junk.write_text("x" * 5_000)
    torn.write_bytes(path.read_bytes()[:100] + b"\xde\xad" * 10_000)
    files = {"STORE": str(path), "JUNK": str(junk), "TORN": str(torn)}
    before = {file.name: file.read_bytes() for file in (path, junk, torn)}
    assert main([files.get(arg, arg) for arg in args]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    assert {file.name: file.read_bytes() for file in (path, junk, torn)} == before
    assert list(tmp_path.glob("*.corrupt-*")) == []


# -- rescore --


def test_rescore_takes_names_as_the_other_commands_do(path, capsys):
    assert main(["rescore", "--store", str(path), "--since", "1d", "--metrics", "faithfulness, no_answer,"]) == 0
    assert {row["metric"] for row in rows_of(path) if row["source"] == "rescore"} == {"faithfulness", "answered"}


def test_rescore_makes_a_series_of_its_own_once(path, capsys):
    command = ["rescore", "--store", str(path), "--since", "1d", "--metric", "faithfulness"]
    assert main(command) == 0
    assert capsys.readouterr().err.startswith("3 rescored with")
    new = [row for row in rows_of(path) if row["source"] == "rescore"]
    assert {row["trace_id"] for row in new} == {TRACES[0], TRACES[2], TRACES[4]}
    assert {(row["judge"], row["stratum"], row["weight"], row["exported"]) for row in new} == {
        ("overlap", "random", 20.0, 1)
    }
    assert len([row for row in rows_of(path) if row["version"] == "old"]) == 5
    assert main(command) == 0
    assert capsys.readouterr().err.startswith("0 rescored with 0 judge calls, 3 done before")
    assert len(rows_of(path)) == 9


def test_where_nothing_is_kept_rescore_says_why(tmp_path, capsys):
    make.store(tmp_path / "s").close()
    assert main(["rescore", "--store", str(tmp_path / "s"), "--since", "1d", "--metric", "mrr"]) == 0
    assert "see content and store_payload_hours" in capsys.readouterr().err


@pytest.mark.slow
def test_rescore_stopped_by_ctrl_c_keeps_what_is_done_and_goes_on(tmp_path):
    path = tmp_path / "store"
    store = make.store(path, has_content=True)
    with closing(sqlite3.connect(store.path)) as connection, connection:
        for n in range(1, 1_001):
            store.writer([score(record(n), 0.1)], record(n))(connection)
    command = [
        sys.executable, "-m", "ragtrace", "rescore", "--store", str(path), "--since", "1d", "--metric", "faithfulness",
    ]  # fmt: skip
    child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60

    def done():
        return store._read("SELECT count(*) AS n FROM scored WHERE source = 'rescore'", ())[0]["n"]

    while done() < 20:
        assert time.monotonic() < deadline
        assert child.poll() is None
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    said = child.communicate(timeout=60)[1]
    assert child.returncode == 130, said
    assert "Traceback" not in said
    assert "the same command goes on" in said
    before = done()
    assert before < 1_000
    again = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert again.returncode == 0, again.stderr
    assert f"{1_000 - before} rescored" in again.stderr
    assert done() == 1_000
    store.close()
