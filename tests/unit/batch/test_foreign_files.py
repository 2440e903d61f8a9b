"""Tables and files in another form than `score` takes: each is told, and stops nothing else."""

from __future__ import annotations

import csv
import json
import logging

import pyarrow as pa
import pytest

from ragtrace.batch import score
from ragtrace.cli.main import main

ROW = {"id": "a", "query": "Where?", "answer": "In Oslo.", "contexts": ["The lab is in Oslo."]}
PHOENIX = {"context.trace_id": "1", "context.span_id": "2", "span_kind": "CHAIN", "name": "run"}
LANGFUSE = {"id": "1", "trace_id": "t", "type": "SPAN", "name": "run", "input": "Where?", "output": "Oslo."}


def write(path, *rows):
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_a_table_without_a_good_row_is_told(caplog):
    with caplog.at_level(logging.WARNING, "ragtrace"):
        scored = score(pa.Table.from_pylist([{**ROW, "contexts": "['The lab is in Oslo.']"}] * 2))
        score(pa.Table.from_pylist([ROW, {**ROW, "contexts": []}]))
    assert "convert-string" in scored["score_error"][0].as_py()
    (told,) = caplog.messages
    assert "every row of the table is broken, 2 in all; the first: field 'contexts'" in told


def test_contexts_may_be_a_text_of_json():
    scored = score(pa.Table.from_pylist([{**ROW, "contexts": json.dumps(ROW["contexts"])}]), metrics="faithfulness")
    assert scored["scores"][0].as_py()[0]["value"] == 1.0


@pytest.mark.parametrize("wrong", [[ROW], None, "rows.parquet"])
def test_another_thing_than_a_table_is_one_line(wrong):
    with pytest.raises(TypeError, match=r"pa\.Table\.from_pandas\(df\).*pa\.Table\.from_pylist") as caught:
        score(wrong)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "names", [("query", "answer", "contexts"), ("user_input", "response", "retrieved_contexts")]
)
def test_a_csv_holds_contexts_as_json(tmp_path, names, capsys):
    with (tmp_path / "rows.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([names, ["Where?", "In Oslo.", json.dumps(["In Oslo."])]])
    out = tmp_path / "out"
    assert main(["score", str(tmp_path / "rows.csv"), "--metrics", "faithfulness", "--out", str(out)]) == 0
    (written,) = out.glob("*.jsonl")
    assert json.loads(written.read_text())[names[-1]] == ["In Oslo."]
    assert main(["worst", str(written)]) == 0
    assert "1 scored" in capsys.readouterr().out


@pytest.mark.parametrize("row", [PHOENIX, LANGFUSE])
def test_one_file_of_an_export_is_scored_in_parts(tmp_path, capsys, row):
    path = write(tmp_path / "spans.jsonl", row)
    assert main(["score", path]) == 2
    assert "--out: " in capsys.readouterr().err
    assert main(["score", path, "--out", str(tmp_path / "out.jsonl")]) == 2
    said = capsys.readouterr().err
    assert "a folder is written" in said
    assert said.count("\n") == 1
    assert main(["score", path, "--out", str(tmp_path / "out")]) == 0


def test_a_file_without_a_known_field_is_refused(tmp_path, capsys):
    path = write(tmp_path / "odd.jsonl", {"prompt": "Where?"}, {"completion": "Oslo."})
    assert main(["score", path]) == 2
    said = capsys.readouterr().err
    assert "unknown format with the columns prompt, completion; formats: " in said
    assert said.count("\n") == 1


def test_a_foreign_file_fails_alone(tmp_path, capsys):
    write(tmp_path / "in" / "a.jsonl", ROW)
    odd = write(tmp_path / "in" / "b.jsonl", {"prompt": "Where?"})
    write(tmp_path / "in" / "c.json", [ROW])
    command = ["score", str(tmp_path / "in"), "--metrics", "faithfulness", "--out", str(tmp_path / "out")]
    assert main(command) == 1
    printed = capsys.readouterr()
    assert f"failed: {odd}: unknown format with the columns prompt" in printed.err
    assert "c.json: a line is no JSON object" in printed.err
    assert "1 scored in" in printed.out
    assert "2 parts failed" in " ".join(printed.out.split())


def test_a_format_that_does_not_fit_is_one_line(tmp_path, capsys):
    path = write(tmp_path / "a.jsonl", *[ROW] * 12)
    assert main(["score", path, "--format", "phoenix", "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "a.jsonl: its columns id, query, answer, contexts do not fit --format phoenix" in said
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_broken_rows_beyond_ten_are_counted(tmp_path, capsys):
    path = write(tmp_path / "a.jsonl", ROW, *[{"query": 3}] * 13)
    assert main(["score", path, "--engine", "local", "--out", str(tmp_path / "out")]) == 1
    assert "and 3 more broken rows" in capsys.readouterr().err
