"""Tables and files in another form than `score` takes: each is told, and stops nothing else."""

from __future__ import annotations

import csv
import json
import logging

import pyarrow as pa
import pytest

from ragtrace.batch import score
from ragtrace.cli import main
from ragtrace.errors import ConfigError

ROW = {"id": "a", "query": "Where?", "answer": "In Oslo.", "contexts": ["The lab is in Oslo."]}
PHOENIX = {"context.trace_id": "1", "context.span_id": "2", "span_kind": "CHAIN", "name": "run"}
LANGFUSE = {"id": "1", "trace_id": "t", "type": "SPAN", "name": "run", "input": "Where?", "output": "Oslo."}


def write(path, *rows):
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_a_table_without_a_good_row_is_told(caplog):
    with caplog.at_level(logging.WARNING, "ragtrace"):
        scored = score(pa.Table.from_pylist([{**ROW, "contexts": "['The lab' 'is in Oslo.']"}] * 2))
        score(pa.Table.from_pylist([ROW, {**ROW, "contexts": []}]))
    assert "convert-string" in scored["score_error"][0].as_py()
    (told,) = caplog.messages
    assert "every row of the table is broken, 2 in all; the first: field 'contexts'" in told


def test_contexts_may_be_a_text_of_json():
    scored = score(pa.Table.from_pylist([{**ROW, "contexts": json.dumps(ROW["contexts"])}]), metrics="faithfulness")
    assert scored["scores"][0].as_py()[0]["value"] == 1.0


def test_a_table_without_a_field_of_a_record_is_one_line():
    with pytest.raises(ConfigError, match="rename them to query, answer and contexts") as caught:
        score(pa.table({"q": ["Where?"], "a": ["In Oslo."]}))
    assert "\n" not in str(caught.value)


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


def test_traces_of_langfuse_without_their_observations_are_named(tmp_path, capsys):
    trace = {"id": "t", "name": "rag", "input": "Where?", "output": "In Oslo.", "sessionId": "s"}
    found = {**LANGFUSE, "type": "RETRIEVER", "output": [{"page_content": "The lab is in Oslo."}]}
    traces, both = write(tmp_path / "traces.jsonl", trace), write(tmp_path / "both.jsonl", trace, found)
    assert main(["score", traces, "--out", str(tmp_path / "one")]) == 0
    assert f"no answer in {traces} has contexts; one file must hold" in " ".join(capsys.readouterr().out.split())
    assert main(["score", both, "--out", str(tmp_path / "two")]) == 0
    printed = capsys.readouterr().out
    assert "1 scored" in printed
    assert "has contexts" not in printed


def test_a_page_of_an_api_is_told_how_to_become_lines(tmp_path, capsys):
    path = tmp_path / "in" / "page.json"
    path.parent.mkdir()
    for text in (json.dumps({"data": [ROW] * 3}, indent=2), json.dumps({"data": [ROW] * 3})):
        path.write_text(text)
        for given in (path, path.parent):
            assert main(["score", str(given), "--out", str(tmp_path / "out")]) == 2
            assert "jq -c '.data[]' FILE" in capsys.readouterr().err


TURNS = [{"type": "ai", "content": "Hi."}, {"type": "human", "content": "Where?"}]
RAGAS = {"user_input": TURNS, "response": "In Oslo.", "retrieved_contexts": ["In Oslo."]}
EARLIER = {"question": "Where?", "answer": "In Oslo.", "contexts": ["In Oslo."], "ground_truths": ["Oslo."]}


def test_one_file_of_ragas_is_read_as_in_a_folder(tmp_path, capsys):
    command = ["--metrics", "faithfulness,answer_similarity", "--out"]
    (tmp_path / "in").mkdir()
    for name, row in (("turns", RAGAS), ("earlier", {**EARLIER, "note": None})):
        path, out = write(tmp_path / "in" / f"{name}.jsonl", row), tmp_path / f"{name}.out"
        assert main(["score", path, *command, str(out)]) == 0
        assert "warning: ignored" not in capsys.readouterr().out
        given = json.loads(out.read_text())
        assert {key: given[key] for key in row} == row
    assert main(["score", str(tmp_path / "in"), *command, str(tmp_path / "out")]) == 0
    for name in ("turns", "earlier"):
        (part,) = (tmp_path / "out").glob(f"{name}-*.jsonl")
        one, of_many = (json.loads(p.read_text())["scores"] for p in (tmp_path / f"{name}.out", part))
        assert one == of_many


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
    assert f"left out: {odd}: unknown format with the columns prompt" in printed.err
    assert "c.json: a line is no JSON object" in printed.err
    assert "1 scored in" in printed.out
    said = " ".join(printed.out.split())
    assert "2 files left out as said above" in said
    assert "--resume" not in said


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
