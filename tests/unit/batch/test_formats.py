"""One table: every format by every form of the rows gives the same scores, and names or refuses the same things."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ragtrace.batch import score
from ragtrace.cli import main
from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Row = dict[str, Any]

METRICS = "faithfulness,mrr,answer_similarity"
PASSAGES = [
    ("d1", "The canteen opens at noon."),
    ("d2", "The lab's in Oslo, Norway; it is new."),
    ("d3", "It's red."),
]
PLAIN: list[Row] = [
    {
        "id": "a",
        "query": "Where is the lab?",
        "answer": "The lab's in Oslo, Norway.",
        "contexts": [{"id": name, "text": text, "score": 0.5} for name, text in PASSAGES],
        "reference": "In Oslo.",
        "labels": {"d2": 5, "d1": 1},
        "k": 2,
        "head_probability": 0.5,
    },
    {
        "id": "b",
        "query": "(also) when?",
        "answer": "It rains in Rome.",
        "contexts": [{"id": name, "text": text, "score": None} for name, text in PASSAGES],
        "reference": None,
        "labels": {"d1": 5},
        "k": None,
        "head_probability": 0.25,
    },
    {"id": "c", "query": "Who?", "answer": None, "contexts": [], "reference": None, "labels": None, "k": 1},
]
SCORES: list[Row] = [
    {"faithfulness": 1.0, "mrr": 0.5},
    {"faithfulness": 0.0, "mrr": 1.0},
    {"faithfulness": "missing_input:answer", "mrr": "unsupported_by_judge"},
]


class Found(NamedTuple):
    status: int
    scores: list[dict[str, Any]]
    said: str


def found(status: int, said: str, rows: Iterable[Row]) -> Found:
    """Return scores in the order of the rows, as a value or a reason; those of SCORES alone."""
    of_id = {}
    for row in rows:
        if (given := row["scores"]) is None:  # of a broken row of Parquet
            continue
        by_name = {one["metric"]: one for one in given} if isinstance(given, list) else given
        of_id[row["id"]] = {name: by_name[name]["value"] or by_name[name]["reason"] or 0.0 for name in SCORES[0]}
    return Found(status, [of_id[name] for name in sorted(of_id)], " ".join(said.split()))


class Runner:
    """Scores rows in one format."""

    def __init__(self, folder: Path, capsys: Any, caplog: Any) -> None:
        self.folder, self.capsys, self.caplog = folder, capsys, caplog

    def file(self, name: str, data: bytes, *, out: str = "out") -> Found:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        given = path.parent if out == "folder" else path
        status = main(["score", str(given), "--metrics", METRICS, "--out", str(self.folder / out)])
        printed = self.capsys.readouterr()
        outputs = [self.folder / out] if out.endswith(".jsonl") else sorted((self.folder / out).glob("[!_]*"))
        rows: list[Row] = []
        for one in outputs:
            if one.suffix == ".parquet":
                rows += pq.read_table(one).to_pylist(maps_as_pydicts="lossy")
            elif one.exists():
                rows += map(json.loads, one.read_text().splitlines())
        return found(status, printed.out + printed.err, rows)

    def table(self, table: pa.Table) -> Found:
        try:
            scored = score(table, METRICS)
        except ConfigError as error:
            return Found(2, [], str(error))
        rows = scored.to_pylist(maps_as_pydicts="lossy")
        said = " ".join([*self.caplog.messages, *(row["score_error"] or "" for row in rows)])
        return found(0, said, rows)


def lines(rows: list[Row]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def cells(rows: list[Row], text: Callable[[Any], str], delimiter: str = ",", end: str = "\n") -> str:
    head = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator=end)
    values = ([row.get(name) for name in head] for row in rows)
    writer.writerows([head, *(["" if one is None else text(one) for one in row] for row in values)])
    return out.getvalue()


def as_json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=list)


def as_python(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def as_excel(value: Any) -> str:
    return str(value).replace(".", ",") if isinstance(value, float) else as_json(value)


def arrow(rows: list[Row]) -> pa.Table:
    """Return a table; objects of open keys are maps, and what has no one type is a text of JSON."""
    columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        is_map = any(isinstance(one, dict) for one in values)
        try:
            columns[name] = pa.array(
                [list(one.items()) if isinstance(one, dict) and is_map else one for one in values],
                pa.map_(pa.string(), pa.int64()) if is_map else None,
            )
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            columns[name] = pa.array([None if one is None else as_json(one) for one in values])
    return pa.table(columns)


def parquet(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, row_group_size=2)
    return out.getvalue()


def frame(rows: list[Row]) -> pa.Table:
    """Return a table of a frame whose lists are arrays of numpy, as pandas reads them from Parquet."""

    def held(value: Any) -> Any:
        return np.array([*value, None], dtype=object)[:-1] if isinstance(value, list) else value

    return arrow([{name: held(value) for name, value in row.items()} for row in rows])


def of_pandas(rows: list[Row]) -> str:
    """Return what ``DataFrame.to_csv`` writes: the index is a column without a name, and numbers are floats."""
    of_index = [{"": place, **row} for place, row in enumerate(rows)]
    return cells(
        [{name: float(one) if name == "k" and one else one for name, one in row.items()} for row in of_index],
        as_python,
    )


FORMATS: dict[str, Callable[[Runner, list[Row]], Found]] = {
    "JSON lines": lambda run, rows: run.file("a.jsonl", lines(rows), out="out.jsonl"),
    "JSON lines, packed": lambda run, rows: run.file("a.jsonl.gz", gzip.compress(lines(rows)), out="out.jsonl"),
    "texts in JSON lines": lambda run, rows: run.file("a.jsonl", lines(as_texts(rows)), out="out.jsonl"),
    "a folder": lambda run, rows: run.file("in/a.jsonl", lines(rows), out="folder"),
    "CSV": lambda run, rows: run.file("a.csv", cells(rows, as_json).encode()),
    "CSV of Python's csv": lambda run, rows: run.file("a.csv", cells(rows, as_python).encode()),
    "CSV of pandas": lambda run, rows: run.file("a.csv", of_pandas(rows).encode()),
    "CSV of Excel": lambda run, rows: run.file("a.csv", cells(rows, as_excel, ";", "\r\n").encode("utf-8-sig")),
    "tabs, packed": lambda run, rows: run.file("A.TSV.bz2", bz2.compress(cells(rows, as_json, "\t").encode())),
    "Unicode text of Excel": lambda run, rows: run.file("a.csv", cells(rows, as_excel, "\t", "\r\n").encode("utf-16")),
    "Parquet": lambda run, rows: run.file("a.parquet", parquet(arrow(rows))),
    "Parquet of texts": lambda run, rows: run.file("a.parquet", parquet(arrow(as_texts(rows)))),
    "a notebook's table": lambda run, rows: run.table(arrow(rows)),
    "a notebook's frame": lambda run, rows: run.table(frame(as_texts(rows, {"labels"}))),
}  # fmt: skip


def as_texts(rows: list[Row], names: set[str] | None = None) -> list[Row]:
    """Return rows whose lists and objects are texts, of JSON and of Python in turn."""
    return [
        {
            name: (as_json, as_python)[place % 2](value)
            if isinstance(value, dict | list) and (names is None or name in names)
            else value
            for name, value in row.items()
        }
        for place, row in enumerate(rows)
    ]


def renamed(**names: str) -> Callable[[Row], Row]:
    return lambda row: {names.get(name, name): value for name, value in row.items()}


def with_contexts(form: Callable[[Row], Any]) -> Callable[[Row], Row]:
    return lambda row: {**row, "contexts": [form(one) for one in row["contexts"]]}


def conversation(row: Row) -> Row:
    turns = [
        {"content": "Hi (you)", "type": "human"},
        {"content": "Hello.", "type": "ai"},
        {"content": row["query"], "type": "human"},
        *([{"content": row["answer"], "type": "ai"}] if row["answer"] else []),
    ]
    rest = {name: value for name, value in row.items() if name not in {"query", "answer", "contexts"}}
    return {"user_input": turns, "retrieved_contexts": row["contexts"], **rest}


RAGAS = renamed(query="user_input", answer="response", contexts="retrieved_contexts")
FORMS: dict[str, Callable[[Row], Row]] = {
    "records": dict,
    "ragas": RAGAS,
    "DeepEval": renamed(query="input", answer="actual_output", contexts="retrieval_context", reference="expected_output"),
    "blanks around the names": renamed(query=" query", answer="answer ", contexts="\tcontexts", labels="labels "),
    "a conversation": conversation,
    "documents of LangChain": with_contexts(
        lambda one: {"id": one["id"], "metadata": {"page": 1}, "page_content": one["text"], "type": "Document"}
    ),
    "documents of LangChain's dumpd": with_contexts(
        lambda one: {
            "lc": 1, "type": "constructor", "id": ["langchain", "schema", "Document"],
            "kwargs": {"id": one["id"], "metadata": {"page": 1}, "page_content": one["text"], "type": "Document"},
        }
    ),
    "nodes of LlamaIndex": with_contexts(
        lambda one: {
            "node": {"id_": one["id"], "metadata": {"page": 1}, "text": one["text"], "class_name": "TextNode"},
            "score": 0.5, "class_name": "NodeWithScore",
        }
    ),
    "texts of documents": with_contexts(
        lambda one: as_json({"id": one["id"], "metadata": {"page": 1}, "page_content": one["text"], "type": "Document"})
    ),
    "facts of passages as texts": with_contexts(lambda one: {**one, "metadata": "{'page': 1}"}),
    "documents with their scores": with_contexts(
        lambda one: [{"id": one["id"], "page_content": one["text"], "type": "Document"}, 0.5]
    ),
    "nodes of LlamaIndex without scores": with_contexts(
        lambda one: {"id_": one["id"], "text": one["text"], "text_template": "x", "class_name": "TextNode"}
    ),
}  # fmt: skip


@pytest.fixture
def run(tmp_path, capsys, caplog):
    return Runner(tmp_path, capsys, caplog)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", FORMATS)
def test_the_same_rows_have_the_same_scores(run, name, form):
    done = FORMATS[name](run, [FORMS[form](row) for row in PLAIN])
    assert (done.status, done.scores) == (0, SCORES), done.said
    ignored = done.said.partition("ignored, since they are not part of a record")[2]
    assert ("column 1 (3)" in ignored) == (name == "CSV of pandas")  # its index
    assert len(ignored.split("(see `ragtrace schema`): ")[-1].partition(" 3 scored")[0].split(",")) == 1


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_not_read_is_named(run, name):
    def with_more(row: Row) -> Row:
        contexts = [{**one, "title": "Labs"} for one in row["contexts"]]
        return {**RAGAS({**row, "contexts": contexts}), "documents": ["x"], "note": None, "answer ": "In Rome."}

    done = FORMATS[name](run, [with_more(row) for row in PLAIN])
    assert done.scores == SCORES_OF_ANSWER
    ignored = done.said.partition("ignored, since they are not part of a record")[2]
    assert "documents (3)" in ignored
    assert "retrieved_contexts.title (2)" in ignored
    assert "response (2)" in ignored
    assert "note" not in ignored


SCORES_OF_ANSWER: list[Row] = [{**row, "faithfulness": 0.0} for row in SCORES[:2]] + [
    {"faithfulness": "no_contexts", "mrr": SCORES[2]["mrr"]}
]


@pytest.mark.parametrize("name", FORMATS)
def test_two_names_that_are_one_are_refused(run, name):
    done = FORMATS[name](run, [{**row, " answer": "In Rome."} for row in PLAIN])
    assert done.scores == []
    assert "'answer'" in done.said
    assert "rename or delete one" in done.said


@pytest.mark.parametrize("text", ["It is in Oslo.", "array(['It is in Oslo.'], dtype=object)", '"[1]"'])
@pytest.mark.parametrize("name", FORMATS)
def test_contexts_that_are_one_text_are_refused_with_the_way_out(run, name, text):
    done = FORMATS[name](run, [{**row, "contexts": text} for row in PLAIN])
    assert done.scores == []
    assert "field 'contexts' is a text that is no list; write the rows by df.to_json(FILE, orient=" in done.said


@pytest.mark.parametrize("name", FORMATS)
def test_a_blank_text_is_no_contexts(run, name):
    done = FORMATS[name](run, [{**row, "contexts": place * " "} for place, row in enumerate(PLAIN)])
    assert [row["faithfulness"] for row in done.scores] == ["no_contexts", "no_contexts", "missing_input:answer"]


@pytest.mark.parametrize("name", [name for name in FORMATS if "frame" not in name])
def test_arrays_that_numpy_printed_are_refused_with_the_way_out(run, name):
    texts = [str(np.array([one["text"] for one in row["contexts"]])) for row in PLAIN]
    done = FORMATS[name](run, [{**row, "contexts": text} for row, text in zip(PLAIN, texts, strict=True)])
    assert done.scores == [SCORES[2]]  # of the row with an empty list
    assert done.said.count("df.to_json(FILE, orient='records', lines=True)") >= 2


def twins(first: str, rest: str) -> bytes:
    return f"{first}\n{rest}\n".encode()


TWINS: dict[str, tuple[str, bytes, int, str]] = {
    "CSV": ("a.csv", twins("answer,query,answer", "In Oslo.,Where?,In Rome."), 2, "a.csv: line 1: the columns 1 and 3"),
    "CSV of Excel": ("a.csv", twins("sep=;", "answer;query;answer"), 2, "a.csv: line 2: the columns 1 and 3"),
    "Parquet": (
        "a.parquet", parquet(pa.table([["In Oslo."], ["Where?"], ["In Rome."]], names=["answer", "query", "answer"])), 2,
        "a.parquet: the columns 1 and 3",
    ),
    "JSON lines": (
        "a.jsonl", twins('{"query": "a: b", "answer": "c"}', '{"answer": "In Oslo.", "query": "?", "answer" : "No."}'), 1,
        "a.jsonl:2: the key 'answer' twice, at the bytes 2 and 38",
    ),
    "a folder": (
        "in/a.jsonl", twins('{"query": "?"}', '{"contexts": [{"text": "a", "text": "b"}]}'), 1,
        "a.jsonl, line 2: the key 'text' twice, at the bytes 16 and 29",
    ),
    "a cell": (
        "a.csv", twins("query,contexts", """Where?,"[{'text': 'a', 'text': 'b'}]\""""), 1,
        "line 2: field 'contexts' is a text that is no list: the key 'text' a second time",
    ),
}  # fmt: skip


def test_a_conversation_of_objects_is_refused_and_a_question_in_brackets_is_none(run):
    turns = "[HumanMessage(content='Where?', type='human')]"
    texts = [turns, "[Lab(3)] where is it?"]
    rows = [{"id": str(place), "user_input": text, "response": "In Oslo."} for place, text in enumerate(texts)]
    done = run.file("a.csv", cells(rows, as_json).encode())
    assert (done.status, len(done.scores)) == (1, 1)
    assert "field 'user_input' is a text that is no list: it holds HumanMessage(...)" in done.said


@pytest.mark.parametrize("word", ["nan", "None", "NaN", " "])
def test_a_word_for_no_value_is_none_in_a_cell_of_numbers_or_lists(run, word):
    rows = [
        {**row, "k": word if row["k"] is None else row["k"], "contexts": row["contexts"] or word} for row in PLAIN
    ]
    done = run.file("a.csv", cells(rows, as_json).encode())
    assert (done.status, done.scores) == (0, SCORES), done.said


def test_the_columns_of_a_frame_are_no_row(run):
    done = run.file("a.json", b'{"query": {"0": "Where?"}, "answer": {"0": "In Oslo."}}', out="out.jsonl")
    assert done.status == 1
    assert "every field is an object, as of a table's columns; write the rows by df.to_json(" in done.said


def test_blanks_behind_the_commas_are_no_part_of_the_cells(run):
    text = 'id, query, answer, contexts\na, Where?, "In Oslo, Norway.", "[""It is in Oslo, Norway.""]"\n'
    done = run.file("a.csv", text.encode())
    assert (done.status, [row["faithfulness"] for row in done.scores]) == (0, [1.0])


def test_double_quotes_behind_backslashes_break_their_row_alone(run):
    text = 'id,query,answer\na,Where?,"In \\"Oslo\\"."\nb,Where?,In Oslo.\n'
    done = run.file("a.csv", text.encode())
    assert (done.status, len(done.scores)) == (1, 1)
    assert "line 2: ',' expected after '\"'; write \"\" for a double quote in it" in done.said


@pytest.mark.parametrize("name", TWINS)
def test_a_name_that_stands_twice_is_refused_with_both_places(run, name):
    file, data, status, said = TWINS[name]
    done = run.file(file, data, out={"JSON lines": "out.jsonl", "a folder": "folder"}.get(name, "out"))
    assert done.status == status
    assert said in done.said


def test_a_key_that_a_map_has_twice_breaks_its_row_alone():
    labels = pa.array([[("d1", 1), ("d1", 5)], [("d1", 5)]], pa.map_(pa.string(), pa.int64()))
    table = pa.table({"query": ["Where?", "When?"], "contexts": [["x"], ["y"]], "labels": labels})
    first, second = score(table, "mrr")["score_error"].to_pylist()
    assert "two keys or fields of one name" in first
    assert second is None


NUMBERS = {
    "a comma": (("0,5", "1.234,5", "7"), [0.5, 1234.5, 7.0]),
    "a point": (("0.5", "1,234.5", "7"), [0.5, 1234.5, 7.0]),
    "whole": (("5", "1234", "7"), [5.0, 1234.0, 7.0]),
    "both": (
        ("0,5", "0.5", "7"),
        "has 0.5 (line 3) with a point before the decimals, and 0,5 (line 2) with a comma",
    ),
    "an exponent": (("1e5", "7", "7"), [1e5, 7.0, 7.0]),
    "either": (("1,234", "7", "7"), "has 1,234 (line 2), which may be a number with decimals or one of thousands"),
    "told by another": (("1,234", "7", "0,5"), [1.234, 7.0, 0.5]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_column_decides_how_its_numbers_are_read(run, name):
    given, expected = NUMBERS[name]
    text = "".join(f'{place};Where?;"{one}"\n' for place, one in enumerate(given))
    done = run.file("a.csv", f"id;query;started\n{text}".encode())
    if isinstance(expected, str):
        assert done.status == 2
        assert f"the column 'started' {expected}; write a point before decimals" in done.said
        return
    assert done.status == 0
    (written,) = (run.folder / "out").glob("*.jsonl")
    assert [json.loads(line)["started"] for line in written.read_text().splitlines()] == expected


REFUSED = {
    "Latin-1 in the header": (
        "größe,query\n".encode("latin-1"),
        "line 1: not UTF-8; of Excel save the file as CSV UTF-8",
    ),
    "UTF-16 without a mark": ("query,answer\n".encode("utf-16-le"), "this is UTF-16 or UTF-32 without a mark"),
    "unknown columns": (b"a;b\n1;2\n", "unknown format with the columns a, b; formats: "),
    "a header without end": (b'query,"answer\n', "line 1: a text in double quotes has no end"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_table_that_cannot_be_read_is_one_line(run, name):
    data, said = REFUSED[name]
    done = run.file("a.csv", data)
    assert done.status == 2
    assert f"{run.folder / 'a.csv'}: {said}" in done.said.replace("line 1: this is", "this is")


SPANS = [
    {"span_kind": "CHAIN", "attributes.input.value": "Where?", "attributes.output.value": "In Oslo."},
    {
        "span_kind": "RETRIEVER",
        "attributes.input.value": "Where?",
        "attributes.retrieval.documents": [
            {"document.content": "It's in Oslo.", "document.id": "d", "document.score": None}
        ],
    },
    {
        "span_kind": "LLM",
        "attributes.llm.input_messages": [{"message.role": "user", "message.content": "It's in Oslo. Where?"}],
        "attributes.output.value": "In Oslo.",
        "attributes.llm.token_count.prompt": 7,
    },
]
OF_SPANS = [name for name in FORMATS if name.startswith(("a folder", "CSV", "Unicode", "Parquet"))]


@pytest.mark.parametrize("name", OF_SPANS)
def test_spans_of_phoenix_are_the_same_in_every_format(run, name):
    rows = [
        {
            "context.trace_id": "a" * 32, "context.span_id": f"{place:016x}", "name": span["span_kind"], "cost": 1,
            "parent_id": f"{0:016x}" if place else None, "start_time": f"2025-01-01T00:00:0{place}+00:00", **span,
        }
        for place, span in enumerate(SPANS)
    ]  # fmt: skip
    done = FORMATS[name](run, rows)
    assert done.status == 0, done.said
    assert [row["faithfulness"] for row in done.scores] == [1.0]
    assert "cost (3)" in done.said
    (written,) = [one for one in run.folder.glob("*/*.jsonl") if one.parent.name in {"out", "folder"}]
    record = json.loads(written.read_text())
    assert record["usage"]["input_tokens"] == 7
    assert [one["text"] for one in record["pool"]] == ["It's in Oslo."]


@pytest.mark.parametrize("name", OF_SPANS)
def test_observations_of_langfuse_are_the_same_in_every_format(run, name):
    documents = [{"page_content": "It's in Oslo.", "metadata": {"source": "a"}, "type": "Document"}]
    rows = [
        {"id": "o0", "type": "SPAN", "input": "(now) Where?", "output": "In Oslo."},
        {"id": "o1", "type": "RETRIEVER", "input": "Where?", "output": documents},
        {"id": "o2", "type": "GENERATION", "input": [{"role": "user", "content": "Where?"}], "output": "In Oslo."},
    ]
    more = {"trace_id": "t", "latency": 3}
    done = FORMATS[name](
        run, [{**row, **more, "parent_observation_id": "o0" if n else None} for n, row in enumerate(rows)]
    )
    assert done.status == 0, done.said
    assert [row["faithfulness"] for row in done.scores] == [1.0]
    assert "latency (3)" in done.said


def test_a_resumed_run_names_what_its_finished_parts_did_not_read(run):
    path = run.folder / "a.jsonl"
    path.write_bytes(lines([{**PLAIN[0], "documents": ["x"]}]))
    command = ["score", str(path), "--engine", "local", "--metrics", METRICS, "--out", str(run.folder / "out")]
    for more in ([], ["--resume"]):
        assert main([*command, *more]) == 0
        assert "documents (1)" in run.capsys.readouterr().out
