"""`ragtrace score` over folders, Parquet and ranges of bytes, in one process."""

from __future__ import annotations

import json
import shutil
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ragtrace.batch import BatchJob, Broken, read_rows, score_part
from ragtrace.batch.parts import plan
from ragtrace.cli import main
from ragtrace.model.codec import UNPACK

ROWS = [
    {"id": f"r{i}", "query": f"Where is lab {i}?", "answer": f"In hall {i}.", "contexts": [f"Lab {i}: hall {i}."]}
    for i in range(60)
]


def parquet(path, rows=ROWS, group=20):
    pq.write_table(
        pa.Table.from_pylist(rows), path, row_group_size=group, compression="none", write_page_checksum=True
    )


def lines(path, rows=ROWS):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def scored(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.name != "_ragtrace.json"}


def break_group(path, group):
    """Flip bytes in the first column of a row group."""
    column = pq.ParquetFile(path).metadata.row_group(group).column(0)
    data = bytearray(path.read_bytes())
    start = column.dictionary_page_offset or column.data_page_offset
    for place in range(start + 30, start + column.total_compressed_size - 5):
        data[place] ^= 0x5A
    path.write_bytes(bytes(data))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    parquet(tmp_path / "in" / "a.parquet")
    lines(tmp_path / "in" / "b.jsonl")
    return tmp_path


def test_each_part_has_an_output_and_the_summary_counts_all(folder, capsys):
    assert main(["score", str(folder / "in"), "--out", str(folder / "out"), "--metrics", "faithfulness"]) == 0
    printed = capsys.readouterr()
    assert f"120 scored in {folder / 'out'}, 0 broken" in " ".join(printed.out.split())
    assert "4 of 4 parts, 120 rows" in printed.err
    outputs = scored(folder / "out")
    assert [name.rpartition(".")[2] for name in outputs] == ["parquet"] * 3 + ["jsonl"]
    first = pq.read_table(folder / "out" / next(iter(outputs)))
    assert first.column_names == [*ROWS[0], "scores", "score_error"]
    row = json.loads(outputs[next(name for name in outputs if name.endswith("jsonl"))].splitlines()[0])
    assert row["id"] == "r0"
    assert row["scores"]["faithfulness"]["judge"] == "overlap"


@pytest.mark.parametrize("part_bytes", [1, 90, 700, 10_000_000])
def test_ranges_of_bytes_hold_every_line_once(tmp_path, part_bytes):
    lines(tmp_path / "b.jsonl")
    parts = plan(str(tmp_path / "b.jsonl"), part_bytes=part_bytes)
    found = [row["id"] for part in parts for _, row in read_rows(part, Broken())]
    assert found == [row["id"] for row in ROWS]
    assert len({part.name for part in parts}) == len(parts)


def test_a_corrupt_row_group_is_named_and_the_rest_is_scored(folder, capsys):
    break_group(folder / "in" / "a.parquet", 1)
    assert main(["score", str(folder / "in"), "--out", str(folder / "out"), "--metrics", "faithfulness"]) == 1
    printed = capsys.readouterr()
    assert f"failed: {folder / 'in' / 'a.parquet'}, row group 1: OSError: " in printed.err
    assert "100 scored in" in printed.out
    assert "1 part failed: --resume tries again" in " ".join(printed.out.split())
    parquet(folder / "in" / "a.parquet")
    again = ["score", str(folder / "in"), "--out", str(folder / "out"), "--metrics", "faithfulness", "--resume"]
    assert main(again) == 0
    assert "20 scored now in" in " ".join(capsys.readouterr().out.split())


def test_a_file_that_is_no_parquet_fails_alone(folder, capsys):
    (folder / "in" / "c.parquet").write_bytes(b"PAR1 is not enough")
    assert main(["score", str(folder / "in"), "--out", str(folder / "out"), "--metrics", "faithfulness"]) == 1
    assert "failed: " in (said := capsys.readouterr()).err
    assert "120 scored in" in said.out


def test_broken_lines_and_rows_are_counted(tmp_path, capsys):
    bad = [b"{\n", b"[1]\n", json.dumps({"query": 3}).encode() + b"\n", b'{"query": NaN}\n', b"\xff\n"]
    (tmp_path / "b.jsonl").write_bytes(b"".join([json.dumps(ROWS[0]).encode() + b"\n", *bad]))
    out = tmp_path / "out"
    assert main(["score", str(tmp_path / "b.jsonl"), "--engine", "local", "--out", str(out)]) == 1
    printed = capsys.readouterr()
    assert "1 scored in" in printed.out
    assert "5 broken" in printed.out
    path = tmp_path / "b.jsonl"
    assert printed.err.splitlines()[:5] == [
        f"{path}, line 2: not JSON: the line ends too early, at column 2",
        f"{path}, line 3: a line must be a JSON object, got a list; write one object a line: {UNPACK}",
        f"{path}, line 5: NaN is not JSON; write null",
        f"{path}, line 6: not UTF-8 (byte 1 of the line)",
        f"{path}, line 4: field 'query': expected `str | null`, got `int`",
    ]


def said_of(path, tmp_path, capsys):
    """Return the broken rows that `ragtrace score` names, without the last line, which is the progress."""
    assert main(["score", str(path), "--out", str(tmp_path / "out"), "--metrics", "faithfulness"]) == 1
    return capsys.readouterr().err.splitlines()[:-1]


def test_broken_rows_of_csv_are_named_by_the_line_on_which_they_begin(tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_bytes(
        b'query,answer,contexts\nWhere?,"In\nOslo.","[""In Oslo.""]"\n\n'
        b"Where?,In Oslo.,['In' 'Oslo.']\nWhere?,In Oslo, in Norway.,[]\nWhere?,\xff,\nWhere?,In Oslo.,,,\nWhere?\n"
    )
    first, *others = sorted(said_of(path, tmp_path, capsys))
    assert first.startswith(f"{path}, line 5: field 'contexts' is a text that is no list: a list without commas, ")
    assert "df.to_json(" in first
    assert others == [
        f"{path}, line 6: 4 cells under 3 columns; put texts with commas in double quotes",
        f"{path}, line 7: not UTF-8; of Excel save the file as CSV UTF-8",
    ]


def test_broken_rows_of_parquet_are_named_by_their_number_in_the_file(tmp_path, capsys):
    path = tmp_path / "a.parquet"
    rows = [{"query": "Where?", "contexts": '["In Oslo."]'} for _ in range(5)]
    rows[3]["contexts"] = "['In' 'Oslo.']"
    parquet(path, rows, group=3)
    (line,) = said_of(path, tmp_path, capsys)
    assert line.startswith(f"{path}, row 4: field 'contexts' is a text that is no list: a list without commas, ")


def test_broken_requests_of_otlp_are_named_by_their_line(tmp_path, capsys):
    path = tmp_path / "a.jsonl"
    span = {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "zz", "spanId": "1"}]}]}]}
    path.write_text(f'{{"resourceSpans": []}}\n\n{{\n{{"resourceSpans": 3}}\n{json.dumps(span)}\n')
    assert said_of(path, tmp_path, capsys) == [
        f"{path}, line 3: not JSON: the line ends too early, at column 2",
        f"{path}, line 4: the body is not a valid ExportTraceServiceRequest in OTLP/JSON",
        f"{path}, line 5: 1 span without valid ids",
    ]


def test_a_broken_line_in_the_middle_of_a_large_file_is_named_by_its_byte(tmp_path):
    path = tmp_path / "b.jsonl"
    lines(path, ROWS[:10])
    before = path.stat().st_size
    path.write_bytes(path.read_bytes() + b"{\n")
    broken = Broken()
    parts = plan(str(path), part_bytes=before // 2)
    assert len([row for part in parts for row in read_rows(part, broken)]) == 10
    assert broken.shown == [f"{path}, byte {before}: not JSON: the line ends too early, at column 2"]


def test_files_without_a_record_are_named(tmp_path, capsys):
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    parquet(folder / "a.parquet", ROWS[:1])
    pq.write_table(pa.Table.from_pylist(ROWS).slice(0, 0), folder / "b.parquet")
    (folder / "c.jsonl").write_text("\n")
    (folder / "d.csv").write_text("query,answer\n")
    (folder / "e.csv").touch()
    (folder / "f.jsonl").write_text('{"resourceSpans": []}\n')
    command = ["score", str(folder), "--out", str(out), "--metrics", "faithfulness"]
    assert main(command) == 0
    printed = capsys.readouterr()
    named = ", ".join(str(folder / name) for name in ("b.parquet", "c.jsonl", "d.csv", "e.csv", "f.jsonl"))
    assert f"warning: no record in {named}\n" in printed.out
    assert "6 of 6 parts" in printed.err
    assert main([*command, "--resume"]) == 0
    printed = capsys.readouterr()
    assert "0 scored now" in printed.out
    assert main(["worst", str(out)]) == 0


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.jsonl", "-"])
def test_one_file_without_a_record_is_named(tmp_path, capsys, monkeypatch, name):
    path = tmp_path / name
    pq.write_table(pa.table({"query": pa.array([], pa.string())}), path)
    if name != "a.parquet":
        path.write_bytes(b"")
    monkeypatch.setattr(sys, "stdin", path.open())
    out = tmp_path / ("out.jsonl" if name in {"a.jsonl", "-"} else "out")
    given = name if name == "-" else str(path)
    assert main(["score", given, "--out", str(out), "--metrics", "faithfulness"]) == 0
    assert f"warning: no record in {'<stdin>' if name == '-' else path}\n" in capsys.readouterr().out


def test_of_many_files_without_a_record_ten_are_named(tmp_path, capsys):
    for number in range(11):
        (tmp_path / f"{number:02d}.jsonl").touch()
    assert main(["score", str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    assert f"{tmp_path / '09.jsonl'} and 1 more file\n" in capsys.readouterr().out


def test_a_resumed_run_writes_the_same_files(folder, capsys):
    once, twice = folder / "once", folder / "twice"
    command = ["score", str(folder / "in"), "--metrics", "faithfulness", "--out"]
    assert main([*command, str(once)]) == 0
    shutil.copytree(once, twice)
    kept, *gone = sorted(scored(twice))
    for name in gone:
        (twice / name).unlink()
    before = (twice / kept).stat().st_mtime_ns
    capsys.readouterr()
    assert main([*command, str(twice), "--resume"]) == 0
    assert scored(twice) == scored(once)
    assert (twice / kept).stat().st_mtime_ns == before
    assert "20 there already" in " ".join(capsys.readouterr().out.split())


def test_a_resumed_run_counts_the_broken_rows_of_finished_parts(folder, capsys):
    lines(folder / "in" / "c.jsonl", [ROWS[0], {"query": 3}, {"query": 4}])
    parquet(folder / "in" / "d.parquet", [{**ROWS[0], "outcome": "answered"}, {**ROWS[1], "outcome": "odd"}])
    command = ["score", str(folder / "in"), "--metrics", "faithfulness", "--out", str(folder / "out")]
    assert main(command) == 1
    first = capsys.readouterr().out.splitlines()[-1]
    assert "3 broken" in first
    before = {path.name for path in (folder / "out").iterdir()}
    assert main([*command, "--resume"]) == 1
    assert "3 broken" in capsys.readouterr().out.splitlines()[-1]
    assert {path.name for path in (folder / "out").iterdir()} == before
    assert main(["worst", str(folder / "out")]) == 0


@pytest.mark.parametrize(("rows", "group", "is_told"), [(1_001, 2_000, True), (1_001, 500, False), (60, 60, False)])
def test_a_large_file_of_one_row_group_is_told(tmp_path, capsys, rows, group, is_told):
    parquet(tmp_path / "a.parquet", [{"query": f"{i}?", "k": 1} for i in range(rows)], group)
    assert main(["score", str(tmp_path / "a.parquet"), "--metrics", "mrr", "--out", str(tmp_path / "out")]) == 0
    assert ("row_group_size=500" in capsys.readouterr().err) == is_told


def test_a_folder_of_another_run_is_not_mixed_up(folder, capsys):
    command = ["score", str(folder / "in"), "--out", str(folder / "out"), "--metrics"]
    assert main([*command, "faithfulness"]) == 0
    assert main([*command, "faithfulness"]) == 2
    assert "--resume goes on with it" in capsys.readouterr().err
    assert main([*command, "mrr", "--resume"]) == 2
    assert "give --metrics faithfulness again, or choose another --out" in capsys.readouterr().err
    assert main([*command[:-1], "--resume"]) == 2
    assert "this one has no --metrics; give --metrics faithfulness again" in capsys.readouterr().err
    run = folder / "out" / "_ragtrace.json"
    noted = json.loads(run.read_text())
    run.write_text(json.dumps({**noted, "settings": {**noted["settings"], "k_values": [3]}}))
    assert main([*command, "faithfulness", "--resume"]) == 2
    assert "an earlier version began it, with other settings; choose another --out" in capsys.readouterr().err
    run.write_text(json.dumps(noted))
    lines(folder / "in" / "b.jsonl", ROWS[:3])
    assert main([*command, "faithfulness", "--resume"]) == 2
    assert "b.jsonl: the file has changed" in capsys.readouterr().err


def test_outputs_below_the_input_are_no_input(folder, capsys):
    command = ["score", str(folder / "in"), "--out", str(folder / "in" / "out"), "--metrics", "faithfulness"]
    assert main(command) == 0
    assert main([*command, "--resume"]) == 0
    assert "0 scored now in" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing/*.parquet", "--out", "x"], "nothing/*.parquet: no file of Parquet, JSON lines or CSV there"),
        (["in"], "--out: in is scored in parts"),
        (["in", "--out", "x", "--engine", "flink"], "--engine flink: unknown; valid: dask, local, ray, spark"),
        (["in", "--out", "x", "--format", "ragass"], "--format ragass: unknown; did you mean 'ragas'"),
        (["in", "--out", "x", "--limit", "3"], "--limit: "),
        (["ftps://x/y", "--out", "x"], "ftps://x/y: "),
        (["odd.parquet", "--out", "x"], "odd.parquet: unknown format with the columns a, b; formats: "),
    ],
)
def test_a_mistake_is_one_clear_line(folder, monkeypatch, capsys, arguments, said):
    monkeypatch.chdir(folder)
    pq.write_table(pa.table({"a": [1], "b": [2]}), "odd.parquet")
    assert main(["score", *arguments]) == 2
    printed = capsys.readouterr().err
    assert said in printed
    assert printed.count("\n") == 1


def test_a_failing_write_is_the_failure_of_its_part(folder):
    (folder / "file").write_text("in the way")
    part = plan(str(folder / "in" / "a.parquet"))[0]
    assert "file" in score_part(BatchJob(out=str(folder / "file" / "out")), part).failure


@pytest.mark.parametrize(
    ("engine", "module", "package"),
    [("ray", "ray", "ray"), ("spark", "pyspark", "pyspark"), ("dask", "dask", "distributed")],
)
def test_an_engine_that_is_not_installed_names_its_package(folder, capsys, monkeypatch, engine, module, package):
    monkeypatch.delitem(sys.modules, f"ragtrace.batch.engines.{engine}", raising=False)
    for name in {module, *(name for name in sys.modules if name.startswith(f"{module}."))}:
        monkeypatch.setitem(sys.modules, name, None)
    out = folder / "out"
    assert main(["score", str(folder / "in"), "--engine", engine, "--out", str(out)]) == 2
    assert capsys.readouterr() == (
        "", f"ragtrace: --engine {engine}: {module} is not installed: pip install {package}\n"
    )  # fmt: skip
    assert not out.exists()
