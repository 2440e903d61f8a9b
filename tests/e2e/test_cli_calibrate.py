"""``ragtrace calibrate`` as a person runs it: files, a judge over HTTP, resuming, Ctrl-C and what is wrong."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from ragtrace.cli import main
from tests.guards.judge_server import Answer, JudgeServer, Request, completion

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WORDS = [
    "refund",
    "ticket",
    "parcel",
    "invoice",
    "carrier",
    "warehouse",
    "customer",
    "discount",
    "contract",
    "receipt",
]


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("RAGTRACE_", "OPENAI_")):
            monkeypatch.delenv(name)


def record(i: int, *, is_good: bool, **more: Any) -> dict[str, Any]:
    """An answer that stands in its context for the better part, or hardly."""
    rng = random.Random(i)
    said = rng.sample(WORDS, 6)
    kept = rng.choice([4, 5, 6] if is_good else [1, 2, 3])
    context = f"The {' and the '.join(said[:kept])} are handled in Oslo."
    return {
        "id": f"r{i}",
        "query": "What is handled?",
        "answer": f"The {' and the '.join(said)} are handled in Oslo.",
        "contexts": [context],
        **more,
    }


def binary(n: int, labelled: int) -> list[dict[str, Any]]:
    made = []
    for i in range(n):
        is_good = i % 5 != 0
        label = {"faithful": int(is_good if i % 11 else not is_good)} if i < labelled else {}
        made.append(record(i, is_good=is_good, **label))
    return made


def write(path: Path, rows: list[Any]) -> Path:
    text = "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows)
    path.write_text(text, encoding="utf-8")
    return path


def reported(path: Path, *args: str | Path) -> dict[str, Any]:
    target = path.with_name("report.json")
    assert main(["calibrate", str(path), *map(str, args), "--json", str(target)]) == 0
    found: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))
    return found


def test_a_file_with_labels_on_some_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "in.jsonl", binary(200, 80))
    report = reported(path, "--label", "faithful")
    figures = report["figures"]
    assert report["states"] == {"ok": 200}
    assert report["labels"] == {
        "scale": "0/1",
        "high_from": 0.5,
        "raters": 1,
        "labelled": 80,
        "high": 60,
        "low": 20,
    }
    assert 0.6 < figures["auroc"]["low"] < figures["auroc"]["value"] < 1.0
    assert figures["auroc"]["n"] == 80
    assert report["threshold"] == 0.57
    assert figures["quadratic_kappa"]["reason"] == "the labels are not whole grades from 1 to 5"
    assert figures["alpha_raters"]["reason"] == "one rater"
    mean = report["label_mean"]
    alone = mean["labels_alone"]
    assert (mean["labelled"], mean["unlabelled"]) == (80, 120)
    assert alone["value"] == 60 / 80
    assert mean["high"] - mean["low"] < alone["high"] - alone["low"]
    shown = capsys.readouterr().out
    assert "200 records: 200 ok; 80 labelled" in shown
    assert "label mean, corrected" in shown
    assert "random choice of all" in shown


def test_a_turned_label_gives_the_same_figures(tmp_path: Path) -> None:
    rows = binary(60, 60)
    straight = reported(write(tmp_path / "a.jsonl", rows), "--label", "faithful")
    turned = [{**row, "made_up": {"by_us": bool(1 - row["faithful"])}} for row in rows]
    path = write(tmp_path / "b.jsonl", turned)
    assert reported(path, "--label", "made_up.by_us", "--inverted") == straight


def test_several_raters_in_a_list_or_in_several_fields(tmp_path: Path) -> None:
    rng = random.Random(1)
    rows = []
    for i in range(40):
        grade = rng.choice([4, 5]) if i % 3 else rng.choice([1, 2])
        votes = [grade, min(5, grade + rng.choice([0, 1])), None if i % 4 == 0 else grade]
        rows.append(record(i, is_good=bool(i % 3), votes=votes, one=votes[0], two=votes[1], three=votes[2]))
    path = write(tmp_path / "in.jsonl", rows)
    listed = reported(path, "--label", "votes")
    assert listed["labels"]["raters"] == 3
    assert listed["labels"]["scale"] == "1-5"
    assert listed["figures"]["alpha_raters"]["value"] > 0.8
    assert reported(path, "--label", "one", "--label", "two", "--label", "three") == listed
    strict = reported(path, "--label", "votes", "--high-from", "4.5")
    assert strict["labels"]["high"] < listed["labels"]["high"]


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    """The first of three passages is worth 5 in every other record, and the third in the others."""
    rows = []
    for i in range(30):
        pool = [{"id": name, "text": f"text {name}"} for name in "abc"]
        grades = {"a": 5 if i % 2 else 1, "b": 1, "c": 1 if i % 2 else 5}
        rows.append({"id": i, "query": "?", "answer": "A.", "contexts": pool, "labels": grades, "human": i % 2})
    return write(tmp_path / "in.jsonl", rows)


def test_a_cut_off_behind_the_name_is_the_one_compared(
    gold: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    first = reported(gold, "--label", "human", "--metric", "ra_nwg_at_k@1", "--k-values", "3,1", "--out", out)
    assert "ra_nwg_at_k at K = 1 (" in capsys.readouterr().out
    assert first["k"] == [1]
    assert first["judge_mean"]["value"] == 0.5
    whole = reported(gold, "--label", "human", "--metric", "ra_nwg_at_k", "--k-values", "3,1")
    assert (whole["k"], whole["judge_mean"]["value"]) == ([3], 1.0)
    assert reported(gold, "--label", "human", "--metric", "ra_nwg_at_k@1") == first
    again = ("--label", "human", "--out", out, "--resume", "--metric")
    before = out.read_bytes()
    assert reported(gold, *again, "ra_nwg_at_k@1") == first
    assert reported(gold, *again, "ra_nwg_at_k@3") == whole
    assert out.read_bytes() == before
    assert main(["calibrate", str(gold), *map(str, again), "ra_nwg_at_k@2"]) == 2
    assert f"{out}:1: no score of ra_nwg_at_k@2; choose another --out" in capsys.readouterr().err


def test_a_metric_that_failed_is_taken_at_every_cut_off(gold: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    args = ("--label", "human", "--metric", "p_at_k@2", "--out", out)  # the offline judge gives no grades
    states = reported(gold, *args, "--k-values", "1,2")["states"]
    assert states == {"na unsupported_by_judge": 30}
    assert reported(gold, *args, "--resume")["states"] == states


def test_a_judge_that_is_down_for_every_labelled_line_is_exit_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "in.jsonl", binary(3, 3))
    judge = ("--judge", "openai:m", "--base-url", "http://127.0.0.1:9/v1")
    assert main(["calibrate", str(path), "--label", "faithful", *judge]) == 3
    said = "ragtrace: no line with a label has a score to compare: 3 error judge_unavailable"
    assert capsys.readouterr().err.splitlines()[-1] == said


def test_the_plot_is_written(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = write(tmp_path / "in.jsonl", binary(80, 60))
    for name, beginning in (("a.png", b"\x89PNG"), ("a.svg", b"<?xml")):
        assert main(["calibrate", str(path), "--label", "faithful", "--plot", str(tmp_path / name)]) == 0
        assert (tmp_path / name).read_bytes().startswith(beginning)
    drawn = (tmp_path / "a.svg").read_text(encoding="utf-8")
    for text in ("Scores by human label", "AUROC", "suggested threshold", "What people say at each score"):
        assert text in drawn


def test_out_is_gone_on_with_and_gives_the_same_report(tmp_path: Path) -> None:
    path, out = write(tmp_path / "in.jsonl", binary(60, 50)), tmp_path / "out.jsonl"
    whole = reported(path, "--label", "faithful", "--out", out)
    lines = out.read_bytes().splitlines(keepends=True)
    assert len(lines) == 60
    out.write_bytes(b"".join(lines[:25]) + lines[25][:40])  # torn by a crash
    assert main(["calibrate", str(path), "--label", "faithful", "--out", str(out)]) == 2, "it exists"
    assert reported(path, "--label", "faithful", "--out", out, "--resume") == whole
    assert len(out.read_bytes().splitlines()) == 60


def test_lines_of_ragtrace_score_are_taken_as_they_are(tmp_path: Path) -> None:
    path, out = write(tmp_path / "in.jsonl", binary(40, 40)), tmp_path / "out.jsonl"
    assert main(["score", str(path), "--metrics", "faithfulness", "--out", str(out)]) == 0
    before = out.read_bytes()
    report = reported(path, "--label", "faithful", "--out", out, "--resume")
    assert report["figures"]["auroc"]["n"] == 40
    assert out.read_bytes() == before


def test_scores_of_another_metric_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = write(tmp_path / "in.jsonl", binary(5, 5)), tmp_path / "out.jsonl"
    assert main(["score", str(path), "--metrics", "no_answer", "--out", str(out)]) == 0
    assert main(["calibrate", str(path), "--label", "faithful", "--out", str(out), "--resume"]) == 2
    assert f"{out}:1: no score of faithfulness; choose another --out" in capsys.readouterr().err


# What is wrong


BAD_LABELS = [
    ("good", "the label is a text"),
    ({"a": 1}, "the label is an object"),
    ([[1]], "the label is a list in a list"),
    (7, "the label 7 is out of range"),
    (-1, "the label -1 is out of range"),
    (10**400, "the label"),
]


@pytest.mark.parametrize(("label", "said"), BAD_LABELS, ids=[str(said) for _, said in BAD_LABELS])
def test_a_bad_label_names_file_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], label: Any, said: str
) -> None:
    rows = [*binary(3, 3), record(9, is_good=True, faithful=label)]
    path, out = write(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl"
    assert main(["calibrate", str(path), "--label", "faithful", "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"ragtrace: {path}:4: ")
    assert said in error
    assert len(error.splitlines()) == 1
    assert len(error) < 400
    assert not out.exists(), "nothing is judged before all is read"


def test_labels_of_two_scales_name_both_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [record(i, is_good=True, grade=grade) for i, grade in enumerate([4, 5, 0, 3])]
    path = write(tmp_path / "in.jsonl", rows)
    assert main(["calibrate", str(path), "--label", "grade"]) == 2
    error = capsys.readouterr().err
    assert f"{path}:3: the label 0 does not fit the label 5 of line 2" in error


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--label", "faithfull"], "no line has a label in 'faithfull'; did you mean 'faithful'?"),
        (["--label", "faithful", "--metric", "faithfulnes"], "did you mean 'faithfulness'?"),
        (["--label", "faithful", "--metric", "all"], "labels are about one number"),
        (["--label", "faithful", "--resume"], "--resume needs --out"),
        (["--label", "faithful", "--out", "-"], "name a file"),
        (["--label", "faithful", "--plot", "a.pdf"], "must end with .png or .svg"),
        (["--label", "faithful", "--json", "no/such/folder.json"], "in a folder that exists"),
        (["--label", "faithful", "--high-from", "0"], "--high-from 0 must be above 0 and at most 1"),
        (["--label", "faithful", "--high-from", "nan"], "--high-from nan must be above 0"),
        (["--label", "faithful", "--k-values", "x"], "write whole numbers"),
        (["--label", "faithful", "--metric", "p_at_k@5", "--k-values", "3,1"], "K 5 is not computed"),
        (["--label", "faithful", "--metric", "p_at_k@x"], "write K as a whole number, for example p_at_k@5"),
        (["--label", "faithful", "--metric", "p_at_k@0"], "metric_options_k_values=(0,) must be above 0"),
        (["--label", "faithful", "--metric", "mrr@3"], "mrr has no cut-off; write mrr"),
        ([], "--label"),
    ],
)
def test_what_a_person_may_get_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], args: list[str], said: str
) -> None:
    path = write(tmp_path / "in.jsonl", binary(3, 3))
    assert main(["calibrate", str(path), *args]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1


def test_broken_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "in.jsonl", [*binary(2, 2), "{broken"])
    for args, said in (
        ([str(path)], f"{path}:3: not JSON"),
        ([str(tmp_path / "none.jsonl")], "No such file"),
        (["-"], "reads its file twice"),
        ([str(write(tmp_path / "empty.jsonl", []))], "no line has a label in 'faithful'"),
        ([str(path), "--json", str(path)], "is read or written already"),
    ):
        assert main(["calibrate", *args, "--label", "faithful"]) == 2
        error = capsys.readouterr().err
        assert said in error
        assert len(error.splitlines()) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_a_pipe_is_refused_as_it_can_be_read_once_alone(tmp_path: Path) -> None:
    pipe, records = tmp_path / "pipe", write(tmp_path / "in.jsonl", binary(20, 20))
    os.mkfifo(pipe)
    for name in (str(pipe), "/dev/stdin"):
        command = [sys.executable, "-m", "ragtrace", "calibrate", "--label", "faithful", name]
        done = subprocess.run(command, input=records.read_bytes(), capture_output=True, timeout=60, check=False)
        assert done.returncode == 2
        assert done.stderr.decode().startswith(f"ragtrace: {name}: calibrate reads its file twice")
        assert done.stderr.count(b"\n") == 1


# A judge over HTTP


@contextmanager
def judge(delay_s: float = 0.0) -> Iterator[tuple[str, list[int]]]:
    """A model that grades passages by the number they hold, and how many it was shown in each call."""
    sizes: list[int] = []

    def graded(asked: Request) -> Answer:
        found = re.findall(r'"(\d+)":\s*"worth (\d)', asked.body["messages"][-1]["content"])
        sizes.append(len(found))
        time.sleep(delay_s)
        grades = [{"id": int(i), "grade": int(worth)} for i, worth in found]
        return Answer(200, completion({"grades": grades}))

    with JudgeServer(graded) as made:
        yield made.url, sizes


def graded_rows(n: int) -> list[dict[str, Any]]:
    rows = []
    for i in range(n):
        rng = random.Random(i)
        worths = [rng.randint(1, 5) for _ in range(8)]
        pool = [{"id": f"{i}-{j}", "text": f"worth {w} of record {i}"} for j, w in enumerate(worths)]
        share = sum(w >= 4 for w in worths) / 8
        rows.append({"id": i, "query": "What?", "answer": "That.", "contexts": pool, "useful": share})
    return rows


def test_the_judge_gives_the_grades_whatever_labels_a_line_brings(tmp_path: Path) -> None:
    rows = graded_rows(30)
    for row in rows:
        row["labels"] = {passage["id"]: 1 for passage in row["contexts"]}
    path = write(tmp_path / "in.jsonl", rows)
    with judge() as (url, sizes):
        report = reported(path, "--label", "useful", "--metric", "p_at_k", "--judge", "openai:m", "--base-url", url)
    assert sizes == [8] * 30
    assert report["figures"]["pearson"]["value"] == pytest.approx(1.0)


def test_labels_are_read_by_a_metric_that_asks_no_judge_for_grades(tmp_path: Path) -> None:
    rows = [{**row, "labels": {passage["id"]: 4 for passage in row["contexts"]}} for row in graded_rows(12)]
    path = write(tmp_path / "in.jsonl", rows)
    with judge() as (url, sizes):
        report = reported(path, "--label", "useful", "--metric", "ra_nwg", "--judge", "openai:m", "--base-url", url)
    assert (report["states"], sizes) == ({"ok": 12}, [])


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_scored(tmp_path: Path) -> None:
    path, out = write(tmp_path / "in.jsonl", graded_rows(40)), tmp_path / "out.jsonl"
    with judge(delay_s=0.02) as (url, _):
        command = [sys.executable, "-m", "ragtrace", "calibrate", str(path), "--label", "useful"]
        command += f"--metric p_at_k --judge openai:m --base-url {url} --out {out} --jobs 2".split()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        end = time.monotonic() + 60
        while not (out.exists() and out.read_bytes().count(b"\n") >= 3):
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < end
            time.sleep(0.005)  # a file tells nobody that it has grown
        process.send_signal(signal.SIGINT)
        shown, said = process.communicate(timeout=60)
        assert process.returncode == 130
        assert shown == b""
        assert b"--resume goes on" in said
        assert b"Traceback" not in said
        kept = out.read_bytes()
        assert 3 <= kept.count(b"\n") < 40
        args = ("--metric", "p_at_k", "--judge", "openai:m", "--base-url", url, "--out", out, "--resume")
        report = reported(path, "--label", "useful", *args)
    assert out.read_bytes().startswith(kept)
    assert report["records"] == 40


# The labelled data beside the checkout


PUBLISHED = [("mtrag", 0.915, 0.75), ("begin", 0.938, 0.76), ("wice", 0.779, 0.0)]  # AUROC on held-out data


@pytest.mark.slow
@pytest.mark.parametrize(("name", "ranks", "least_accuracy"), PUBLISHED)
def test_the_offline_judge_reaches_its_published_agreement(
    shared_dir: Path, tmp_path: Path, name: str, ranks: float, least_accuracy: float
) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(gzip.decompress((shared_dir / "data" / f"faith_{name}_dev.jsonl.gz").read_bytes()))
    figures = reported(path, "--label", "hallucinated", "--inverted")["figures"]
    assert figures["auroc"]["low"] <= ranks <= figures["auroc"]["high"]
    assert figures["balanced_accuracy"]["value"] >= least_accuracy
