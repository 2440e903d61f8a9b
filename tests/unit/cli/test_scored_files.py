"""`ragtrace worst`, `show`, `compare`, `investigate` and `anchors` over a folder of parts and over Parquet."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ragtrace.cli import main

pa = pytest.importorskip("pyarrow", reason="the extra lake")
pq = pytest.importorskip("pyarrow.parquet", reason="the extra lake")
fsspec = pytest.importorskip("fsspec", reason="the extra lake")

ROWS = [
    {
        "id": f"r{i}",
        "trace_id": f"{i:032x}",
        "query": f"Where is lab {i}?",
        "answer": "In Oslo." if i < 40 else "In Rome it rains.",
        "contexts": [f"Lab {i} is in Oslo."],
        "ended": 1_795_000_000.0 + 3_600.0 * i,
    }
    for i in range(80)
]


@pytest.fixture
def given(tmp_path):
    (tmp_path / "runs").mkdir()
    pq.write_table(pa.Table.from_pylist(ROWS[:50]), tmp_path / "runs" / "a.parquet", row_group_size=25)
    lines = "".join(json.dumps(row) + "\n" for row in ROWS[50:])
    (tmp_path / "runs" / "b.jsonl").write_text(lines, encoding="utf-8")
    return tmp_path / "runs"


@pytest.fixture
def scored(given, capsys):
    out = given.parent / "scored"
    assert main(["score", str(given), "--out", str(out), "--metrics", "faithfulness,diagnosis"]) == 0
    capsys.readouterr()
    return out


def said(capsys, *command):
    """Return exit status, words of standard output, and standard error."""
    status = main([*map(str, command)])
    printed = capsys.readouterr()
    return status, " ".join(printed.out.split()), printed.err


def test_worst_and_show_read_a_folder_with_numbers_that_go_on_from_part_to_part(scored, capsys):
    status, out, err = said(capsys, "worst", scored, "-n", "80")
    assert (status, err) == (0, "")
    assert "40 worst of 80 answers by faithfulness (higher is better); left out: 40 with the best value" in out
    assert f"{scored}:41 Where is lab 40?" in out
    assert f"{scored}:80 Where is lab 79?" in out
    assert f"The whole answer: ragtrace show {scored} 41" in out
    for which in (["41"], ["r40"], ["--id", f"{40:032x}"]):
        status, out, err = said(capsys, "show", scored, *which)
        assert (status, err) == (0, "")
        assert "id r40" in out
        assert "In Rome it rains. [bad claim 1]" in out


def test_worst_reads_one_file_of_parquet(scored, capsys):
    name = sorted(scored.glob("*.parquet"))[1]
    status, out, err = said(capsys, "worst", name)
    assert (status, err) == (0, "")
    assert f"{name}:16 Where is lab 40?" in out
    assert "10 worst of 25 answers" in out


def test_compare_finds_no_difference_between_a_folder_and_a_file_of_the_same_rows(given, scored, tmp_path, capsys):
    one = tmp_path / "one.jsonl"
    (tmp_path / "all.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    scoring = ("score", tmp_path / "all.jsonl", "--out", one, "--metrics", "faithfulness,diagnosis")
    assert said(capsys, *scoring)[0] == 0
    status, out, err = said(capsys, "compare", one, scored)
    assert (status, err) == (0, "")
    assert "B scored: 80 lines, 0 broken" in out
    assert "80 pairs: no difference shown" in out


def test_investigate_reads_a_folder(scored, capsys):
    status, out, err = said(capsys, "investigate", scored)
    assert (status, err) == (0, "")
    assert "faithfulness" in out
    assert f"ragtrace show {scored} --id" in out
    assert "In Rome it rains." in out


def test_anchors_take_the_runs_of_a_folder(scored, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("RAGTRACE_CONTENT", "full")
    store = tmp_path / "store.sqlite"
    status, out, _ = said(capsys, "anchors", "freeze", "--store", store, "--file", scored, "--n", "60")
    assert status == 0
    assert "60 anchors, 60 of 60 scores of the reference" in out


def test_a_folder_at_an_address_is_read(given, capsys):
    system = fsspec.filesystem("memory")
    try:
        assert main(["score", str(given), "--out", "memory://lake/scored", "--metrics", "faithfulness"]) == 0
        capsys.readouterr()
        status, out, err = said(capsys, "worst", "memory://lake/scored", "-n", "1")
    finally:
        system.rm("/lake", recursive=True)
    assert (status, err) == (0, "")
    assert "memory://lake/scored:41 Where is lab 40?" in out


def test_parts_keep_the_columns_of_ragas_and_are_read_by_them(tmp_path, capsys):
    turns = [
        {"type": "human", "content": "Hello."},
        {"type": "ai", "content": "Hello."},
        {"type": "human", "content": "Where is it?"},
        {"type": "ai", "content": "In Rome it rains."},
    ]
    row = {"user_input": turns, "retrieved_contexts": ["It is in Oslo."]}
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "a.parquet")
    out = tmp_path / "out"
    assert said(capsys, "score", tmp_path / "a.parquet", "--out", out, "--metrics", "faithfulness")[0] == 0
    status, printed, err = said(capsys, "show", out, "1")
    assert (status, err) == (0, "")
    assert "Where is it?" in printed
    assert "In Rome it rains. [bad claim 1]" in printed


def test_rows_that_were_broken_when_scored_are_left_out_and_keep_their_number(tmp_path, capsys):
    good = {"query": "Where?", "answer": "In Rome.", "contexts": '["In Oslo."]'}
    pq.write_table(pa.Table.from_pylist([good | {"contexts": "['x' 'y']"}, good]), tmp_path / "a.parquet")
    assert said(capsys, "score", tmp_path / "a.parquet", "--out", tmp_path / "out")[0] == 1
    status, out, err = said(capsys, "worst", tmp_path / "out")
    assert (status, err) == (0, "")
    assert f"{tmp_path / 'out'}:2 Where?" in out


def test_a_broken_line_of_a_part_is_named_by_its_file(scored, capsys):
    part = next(scored.glob("*.jsonl"))
    part.write_text(part.read_text(encoding="utf-8") + "{\n", encoding="utf-8")
    status, out, err = said(capsys, "worst", scored)
    assert status == 0
    assert "of 80 answers" in out
    assert err == f"{part}:31: not JSON: the line ends too early, at column 2\n"


def test_damaged_pages_are_named_and_the_other_parts_are_read(scored, capsys):
    part = min(scored.glob("*.parquet"))
    data = bytearray(part.read_bytes())
    data[60:200] = bytes(140)
    part.write_bytes(data)
    status, out, err = said(capsys, "worst", scored)
    assert status == 0
    assert "of 55 answers" in out
    assert err.startswith(f"{part}:1: the file cannot be read on from here (")


def test_what_is_not_scored_is_refused_in_one_line(given, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    (tmp_path / "no.parquet").write_text("query,answer\n")
    unscored = "no column of scores here; score the file first: ragtrace score FILE --out FOLDER"
    others = {"text": ["0.5"], "numbers": [[0.5]], "structs": [[{"id": "d1", "score": 0.5}]]}
    for name, scores in others.items():  # a column of this name that another tool wrote
        pq.write_table(pa.table({"query": ["Where?"], "scores": scores}), tmp_path / f"{name}.parquet")
    for command in ("worst", "investigate", "compare"):
        for name, why in (
            (given / "a.parquet", unscored),
            *((tmp_path / f"{name}.parquet", unscored) for name in others),
            (tmp_path / "no.parquet", "not a Parquet file; check the path"),
            (tmp_path / "empty", "there is no file that `ragtrace score` wrote; check the path"),
            ("nothing://there", "Protocol not known: nothing"),
        ):
            assert said(capsys, command, name) == (2, "", f"ragtrace: {name}: {why}\n")
    assert said(capsys, "show", given / "a.parquet", "1")[0] == 2
    assert said(capsys, "show", tmp_path / "empty") == (
        2, "", f"ragtrace: show: name one answer by its line, id or trace id: ragtrace show {tmp_path / 'empty'} 1\n"
    )  # fmt: skip


@pytest.mark.parametrize("package", ["pyarrow", "fsspec"])
def test_without_the_packages_the_extra_is_named(scored, capsys, monkeypatch, package):
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, package, None)
    for command in ("worst", "investigate", "compare"):
        status, out, err = said(capsys, command, scored)
        assert (status, out) == (2, "")
        assert err.startswith(f"ragtrace: {package} is not installed: pip install")
        assert err.endswith('of a release "ragtrace-otel[lake]"\n')
    lines = next(Path(scored).glob("*.jsonl"))
    assert said(capsys, "worst", lines)[0] == 0
