"""``ragtrace compare`` as a person runs it: scored files in, table, JSON, CSV and picture out."""

from __future__ import annotations

import csv
import gzip
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.command_line import ran

if TYPE_CHECKING:
    from pathlib import Path

SCORES = (
    "retrieval_score_umbrela_scores",
    "retrieval_score_mean_umbrela_score",
    "generation_score_vital_nuggetizer_score",
    "generation_score_hallucination_score",
    "generation_score_citation_f1_score",
    "generation_score_no_answer_score",
)


def ragtrace(*args: object, stdin: bytes = b"", **env: str) -> subprocess.CompletedProcess[str]:
    done = ran(*args, stdin=stdin, **env)
    return subprocess.CompletedProcess(args, done.returncode, done.stdout.decode(), done.stderr.decode())


def score(value: float | None, reason: str = "no_claims", **more: Any) -> dict[str, Any]:
    state = (
        {"state": "ok", "value": value} if value is not None else {"state": "na", "value": None, "reason": reason}
    )
    return {**state, "judge": "j", "version": "v", **more}


def line(n: int, *, query: str = "", **scores: dict[str, Any]) -> dict[str, Any]:
    return {"id": f"q{n}", "query": query or f"Question {n}?", "answer": "Oslo.", "scores": scores}


def write(path: Path, lines: list[Any]) -> Path:
    raw = "".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in lines).encode()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


def cells(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_what_score_writes_compare_reads(tmp_path: Path) -> None:
    arms = []
    for name, answer in (("a", "The lab of unit {} is in Oslo."), ("b", "Nobody has ever seen purple dragons {}.")):
        records = [
            {"id": n, "query": f"Where is lab {n}?", "answer": answer.format(n), "contexts": [f"The lab of unit {n} is in Oslo."]}
            for n in range(12)
        ]  # fmt: skip
        out = tmp_path / f"{name}.scored.jsonl"
        done = ragtrace(
            "score", write(tmp_path / f"{name}.jsonl", records), "--out", out, "--metrics", "faithfulness,no_answer"
        )
        assert done.returncode == 0, done.stderr
        arms.append(out)
    done = ragtrace("compare", *arms, "--json", tmp_path / "out.json")
    assert done.returncode == 0, done.stderr
    row = next(one for one in done.stdout.splitlines() if "12 pairs" in one)
    assert row.rstrip().endswith("12 pairs: worse")
    found = json.loads((tmp_path / "out.json").read_text())
    metric = next(one for one in found["metrics"] if one["metric"] == "faithfulness")
    assert metric["judge"] == "overlap"
    assert [side["n"] for side in metric["files"]] == [12, 12]
    difference = metric["differences"][0]
    assert (difference["paired"], difference["significant"], difference["n"]) == (True, True, [12])
    assert difference["high"] < 0.0
    assert [share["mean"] for share in found["answered"]] == [1.0, 1.0]


def test_gzip_pipes_and_broken_lines(tmp_path: Path) -> None:
    good = [line(n, mrr=score(n / 10)) for n in range(10)]
    a = write(tmp_path / "a.jsonl.gz", [*good, "{torn", {"query": "no scores"}])
    raw = "".join(f"{json.dumps(one)}\n" for one in good).encode()
    done = ragtrace("compare", a, "-", stdin=raw)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"{a}:11: not JSON: Expecting property name enclosed in double quotes at column 2",
        f"{a}:12: not a line of `ragtrace score`: no scores in it",
    ]
    assert "A  a.jsonl.gz: 10 lines, 2 broken" in done.stdout
    assert "10 pairs: no difference shown" in done.stdout


def test_another_judge_is_refused_and_the_rest_compared(tmp_path: Path) -> None:
    a = write(tmp_path / "a.jsonl", [line(n, mrr=score(0.5), harm_at_k=score(0.1, k=3)) for n in range(15)])
    b = write(
        tmp_path / "b.jsonl", [line(n, mrr=score(0.5, judge="k"), harm_at_k=score(0.9, k=3)) for n in range(15)]
    )
    done = ragtrace("compare", a, b)
    assert done.returncode == 3
    assert "- refused: mrr: a.jsonl and b.jsonl are not compared: judge j and k" in done.stdout
    assert "15 pairs: worse" in done.stdout  # lower is better
    assert ragtrace("compare", a, b, "--metrics", "harm_at_k").returncode == 0


@pytest.mark.parametrize(
    ("pairs", "verdict", "note"),
    [
        (5, "too few to tell", ""),
        (10, "worse", "by chance"),
        (30, "worse", "by chance"),
    ],
)
def test_a_verdict_needs_ten_pairs_and_the_note_says_what_it_is_worth(
    tmp_path: Path, pairs: int, verdict: str, note: str
) -> None:
    a = write(tmp_path / "a.jsonl", [line(n, mrr=score(0.9)) for n in range(pairs)])
    b = write(tmp_path / "b.jsonl", [line(n, mrr=score(0.5 + 0.01 * (n % 2))) for n in range(pairs)])
    done = ragtrace("compare", a, b, "--json", tmp_path / "out.json")
    assert f"{pairs} pairs: {verdict}" in done.stdout
    notes = [said for said in done.stdout.splitlines() if "by chance" in said]
    assert [said.endswith(note) for said in notes] == ([True] if note else [])
    difference = json.loads((tmp_path / "out.json").read_text())["metrics"][0]["differences"][0]
    assert difference["significant"] is (True if note else None)
    assert (difference["high"] < 0.0) == (pairs >= 10)


def test_csv_of_one_file_has_the_plain_columns_and_empty_cells(tmp_path: Path) -> None:
    graded = score(1.0, label_scale="direct5", details={"grades": [5, 3, 1]})
    first = line(
        1,
        mrr=graded,
        nuggets_vital=score(0.5),
        hallucination=score(0.25),
        citation_f1=score(0.0),
        answered=score(1.0),
    )
    first["contexts"] = [{"id": key, "text": "x"} for key in ("p1", "p2", "=p3")]
    error = {"state": "error", "value": None, "reason": "judge_timeout"}
    second = line(2, query="=HYPERLINK(1)", citation_f1=score(None), hallucination=error, answered=score(0.0))
    done = ragtrace(
        "compare",
        write(tmp_path / "a.jsonl", [first, second, line(3, query='-1, "quoted"\nand more')]),
        "--csv",
        tmp_path / "out.csv",
    )
    assert done.returncode == 0, done.stderr
    head = (tmp_path / "out.csv").read_text().splitlines()[0]
    assert head == ",".join(("query_id", "query", *SCORES))
    one, two, three = cells(tmp_path / "out.csv")
    assert json.loads(one[SCORES[0]]) == {"p1": 3, "p2": 1, "=p3": 0}
    assert [float(one[name]) for name in SCORES[1:5]] == [pytest.approx(4 / 3), 0.5, 0.25, 0.0]
    assert json.loads(one[SCORES[5]]) == {"query_answered": "yes"}
    assert two["query"] == "'=HYPERLINK(1)"
    assert [two[name] for name in SCORES[:5]] == [""] * 5
    assert json.loads(two[SCORES[5]]) == {"query_answered": "no"}
    assert three["query"] == '\'-1, "quoted"\nand more'
    assert {three[name] for name in SCORES} == {""}


def test_csv_of_repeated_runs_has_one_row_a_query(tmp_path: Path) -> None:
    lines = [
        line(n, query=query, citation_f1=score(value))
        for n, (query, value) in enumerate([("a", 0.1), ("b", 0.2), ("A ", 0.3)])
    ]
    done = ragtrace("compare", write(tmp_path / "a.jsonl", lines), "--csv", tmp_path / "out.csv")
    assert done.returncode == 0, done.stderr
    rows = cells(tmp_path / "out.csv")
    assert list(rows[0]) == ["query_id", "query", *(f"run_{n}_{name}" for n in (1, 2) for name in SCORES)]
    assert [(row["query_id"], row["run_1_generation_score_citation_f1_score"], row["run_2_generation_score_citation_f1_score"]) for row in rows] == [
        ("q0", "0.1", "0.3"),
        ("q1", "0.2", ""),
    ]  # fmt: skip


def test_csv_of_two_files_numbers_runs_over_the_files(tmp_path: Path) -> None:
    a = write(tmp_path / "a.jsonl", [line(1, citation_f1=score(0.1)), line(1, citation_f1=score(0.2))])
    b = write(tmp_path / "b.jsonl", [line(1, citation_f1=score(0.3)), line(2, citation_f1=score(0.4))])
    assert ragtrace("compare", a, b, "--csv", tmp_path / "out.csv").returncode == 0
    rows = cells(tmp_path / "out.csv")
    shown = [[row[f"run_{n}_{name}"] for n in (1, 2, 3) for name in ("file", SCORES[4])] for row in rows]
    assert shown == [["a.jsonl", "0.1", "a.jsonl", "0.2", "b.jsonl", "0.3"], ["", "", "", "", "b.jsonl", "0.4"]]


def test_queries_asked_twice_are_one_sentence(tmp_path: Path) -> None:
    done = ragtrace("compare", write(tmp_path / "a.jsonl", [line(n % 4, mrr=score(0.5)) for n in range(8)]))
    assert "rouge" not in done.stdout
    assert "- no query was asked 3 times: not enough for consistency over runs" in done.stdout
    assert "- counted as one each: queries, as" in done.stdout


def test_the_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    a = write(tmp_path / "a.jsonl", [line(n, faithfulness=score(n / 10), answered=score(1.0)) for n in range(10)])
    for name, magic in (("out.png", b"\x89PNG"), ("out.svg", b"<?xml")):
        assert ragtrace("compare", a, a, "--plot", tmp_path / name).returncode == 0
        assert (tmp_path / name).read_bytes().startswith(magic)


def test_a_missing_extra_is_named_before_anything_is_read(tmp_path: Path) -> None:
    script = (
        "import sys, importlib.util as u\nfind = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'matplotlib' else find(name, *rest)\n"
        "from ragtrace.cli import main\n"
        f"sys.exit(main(['compare', {str(tmp_path / 'none.jsonl')!r}, '--plot', {str(tmp_path / 'a.png')!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        'ragtrace: matplotlib is not installed: pip install ".[plots]" in your clone;'
        ' of a release "ragtrace-otel[plots]"\n'
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", ":1: the file is empty"),
        (b"precious notes\nof mine\n", ":1: not JSON"),
        (b'{"query": "q", "answer": "a"}\n', ":1: not a line of `ragtrace score`: no scores in it"),
        (
            b'\n{"scores": {"m": {"state": "ok", "value": null}}}\n',
            ":2: field 'scores.m.value' must be a finite number",
        ),
        (b"\x1f\x8bnot gzip", ":1: the file cannot be read on from here"),
    ],
)
def test_a_file_without_a_good_line_is_one_line_with_its_number(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(content)
    good = write(tmp_path / "good.jsonl", [line(1, mrr=score(1.0))])
    done = ragtrace("compare", good, path)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert f"{path}{said}" in done.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["missing.jsonl"], "missing.jsonl: No such file or directory"),
        (["good.jsonl", "--metrics", "mrrr"], "--metrics mrrr: no file has such a score"),
        (["good.jsonl", "--csv", "good.jsonl"], "--csv good.jsonl is read or written already"),
        (["good.jsonl", "--csv", "x.csv", "--json", "x.csv"], "--json x.csv is read or written already"),
        (["good.jsonl", "--json", "no/such/a.json"], "--json no/such/a.json: cannot be written there"),
        (["good.jsonl", "--plot", "a.pdf"], "--plot a.pdf: the name must end with .png or .svg"),
        (["-", "-"], "standard input, which can be read once"),
    ],
)
def test_usage_errors_are_one_line(tmp_path: Path, monkeypatch, args: list[str], said: str) -> None:
    monkeypatch.chdir(tmp_path)
    good = write(tmp_path / "good.jsonl", [line(1, mrr=score(1.0))])
    before = good.read_bytes()
    done = ragtrace("compare", *args, PYTHONPATH=os.environ.get("PYTHONPATH", ""))
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert said in done.stderr
    assert good.read_bytes() == before


def test_the_largest_values_give_finite_numbers(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    lines = [line(n % 4, mine=score(1e100 if n % 3 else -1e100)) for n in range(12)]
    a = write(tmp_path / "a.jsonl", lines)
    done = ragtrace("compare", a, a, "--json", tmp_path / "out.json", "--plot", tmp_path / "out.png")
    assert (done.returncode, done.stderr) == (0, "")

    def refuse(name: str) -> None:
        raise AssertionError(name)

    json.loads((tmp_path / "out.json").read_text(), parse_constant=refuse)
