"""Readers of datasets of others: what they are recognised by, and the records that they give."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ragtrace.batch import Broken, read_rows, reader_of, record_of
from ragtrace.batch.parts import plan
from ragtrace.batch.readers import readers
from ragtrace.errors import InputError


def records(path):
    lost: list[str] = []
    (part,) = plan(str(path))
    reader, rows = reader_of(part.format), read_rows(part, Broken())
    found = [row for _, row in rows] if reader.records is None else [*reader.records(rows, lost.append)]
    assert not lost
    return part.format, [record_of(row) for row in found]


def test_a_dataset_of_ragas(tmp_path):
    row = {
        "user_input": "Where?",
        "response": "In Oslo.",
        "retrieved_contexts": ["Oslo."],
        "reference": "Oslo",
        "reference_contexts": None,
    }
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "ragas.parquet")
    name, (record,) = records(tmp_path / "ragas.parquet")
    assert name == "ragas"
    assert (record.query, record.answer, record.reference) == ("Where?", "In Oslo.", "Oslo")
    assert [passage.text for passage in record.contexts] == ["Oslo."]


def test_earlier_ragas_and_conversations():
    assert record_of({"question": "Q?", "contexts": ["c"], "ground_truths": ["g"]}).reference == "g"
    turns = [
        {"type": "human", "content": "Hello"},
        {"type": "ai", "content": "Hi"},
        {"type": "human", "content": "Where?"},
        {"type": "ai", "content": "In Oslo."},
    ]
    record = record_of({"user_input": turns})
    assert (record.query, record.answer) == ("Where?", "In Oslo.")
    assert [turn.role for turn in record.history] == ["user", "assistant"]
    with pytest.raises(InputError, match="no question"):
        record_of({"user_input": turns[1:2]})


def test_a_csv_of_open_rag_eval(tmp_path):
    rows = [
        ("q1", "Where?", 1, "[1]", "Oslo, \nin Norway.", "In Oslo [1]."),
        ("q1", "Where?", 1, "[2]", "Noon.", ""),
        ("q1", "Where?", 2, "[1]", "Oslo.", "Oslo."),
        ("q2", "When?", 1, "[1]", "Noon.", "NO_ANSWER"),
        ("q3", "Who?", 1, "[1]", "Ann.", "API_ERROR"),
    ]
    with (tmp_path / "answers.csv").open("w", newline="") as stream:
        out = csv.writer(stream)
        out.writerow(["query_id", "query", "query_run", "passage_id", "passage", "generated_answer"])
        out.writerows(rows)
    name, found = records(tmp_path / "answers.csv")
    assert name == "open_rag_eval"
    assert [record.id for record in found] == ["q1/1", "q1/2", "q2/1", "q3/1"]
    assert [passage.text for passage in found[0].contexts] == ["Oslo, \nin Norway.", "Noon."]
    assert [record.is_answer_given for record in found] == [True, True, False, False]
    assert found[3].outcome == "error"


def test_every_reader_says_what_it_reads():
    assert all(reader.about.endswith(".") for reader in readers().values())
    assert {name for name, reader in readers().items() if reader.records is None} == {"ragas", "records"}


def test_otlp_of_a_collector_s_file(tmp_path):
    fixtures = Path(__file__).resolve().parents[2] / "ingest" / "fixtures" / "openinference"
    name, found = records(fixtures / "openinference-langchain-0.1.80.jsonl")
    assert name == "otlp"
    assert len(found) == 3
    assert all(record.query and record.answer for record in found)


@pytest.mark.parametrize("is_api", [True, False])
def test_observations_of_langfuse(tmp_path, is_api):
    documents = [{"page_content": "Oslo.", "metadata": {}, "type": "Document"}]
    trace = {"id": "t1", "name": "rag", "input": "Where?", "output": "In Oslo.", "sessionId": "s1"}
    kids = [
        {"id": "o1", "type": "RETRIEVER", "name": "search", "input": "Where?", "output": documents},
        {
            "id": "o2",
            "type": "GENERATION",
            "input": [{"role": "user", "content": "Oslo. Where?"}],
            "output": "In Oslo.",
        },
    ]
    if is_api:
        rows = [trace | {"observations": kids}]
    else:
        root = {
            "id": "o0",
            "type": "SPAN",
            "trace_id": "t1",
            "input": "Where?",
            "output": "In Oslo.",
            "session_id": "s1",
        }
        rows = [root, *({**kid, "trace_id": "t1", "parent_observation_id": "o0"} for kid in kids)]
    (tmp_path / "export.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    name, (record,) = records(tmp_path / "export.jsonl")
    assert name == "langfuse"
    assert (record.query, record.answer, record.session) == ("Where?", "In Oslo.", "s1")
    assert [passage.text for passage in record.contexts] == ["Oslo."]
