"""`ragtrace score`, `show` and `worst` say the verdict on a run, its evidence, and the shares in a file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from ragtrace.cli import main
from ragtrace.cli.io.verdicts import verdict_line, verdict_lines
from ragtrace.model import VERDICTS
from ragtrace.model.diagnosis import MEANINGS
from ragtrace.stats import clustered_interval

if TYPE_CHECKING:
    from pathlib import Path

FEE = {"id": "fee", "text": "Cancelling a plan costs a fee of 40 euros."}
TEA = {"id": "tea", "text": "Tea is sold in bags."}
ASKED: dict[str, object] = {"query": "What does cancelling cost?", "labels": {"grades": {"fee": 5}}}
RUNS: list[dict[str, object]] = [
    {**ASKED, "answer": FEE["text"], "pool": [FEE, TEA]},
    {**ASKED, "answer": FEE["text"], "pool": [FEE, TEA]},
    {**ASKED, "answer": "I do not know.", "pool": [TEA, FEE], "selection": [TEA]},
    {**ASKED, "answer": "I do not know.", "pool": [TEA]},
    {**ASKED, "labels": None, "answer": "I do not know.", "pool": [TEA]},
]


@pytest.fixture
def scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """The scored file, and what the command printed."""
    given, out = tmp_path / "runs.jsonl", tmp_path / "scored.jsonl"
    runs = [{**run, "id": f"r{i}", "query": f"{run['query']} Plan {i}"} for i, run in enumerate(RUNS)]
    given.write_text("".join(json.dumps(run) + "\n" for run in runs))
    assert main(["score", str(given), "--out", str(out), "--metrics", "faithfulness,diagnosis"]) == 0
    return str(out), capsys.readouterr().out


def test_score_ends_with_the_shares_of_verdicts(scored: tuple[str, str]) -> None:
    rows = {line.split()[0]: line.split() for line in scored[1].splitlines() if line.split()}
    assert rows["ok"][1:3] == ["2", "40.0%"]
    share = clustered_interval([1.0, 1.0, 0.0, 0.0, 0.0])
    assert rows["ok"][3:6] == [f"{share.low:.1%}", "to", f"{share.high:.1%}"]
    assert rows["lost_in_rerank"][1:3] == ["1", "20.0%"]
    assert rows["lost_in_rerank"][-1] == "rerank"
    assert rows["not_retrieved"][-1] == "retrieval"
    assert rows["undetermined"][1] == "1"
    assert rows["diagnosis"][1:3] == ["4", "0.500"]


SAID = "no label id was ever seen in a pool"


@pytest.mark.parametrize(
    ("pools", "labels", "count"),
    [
        ([[FEE]] * 3 + [[TEA]] * 2, {"doc-12": 5}, 5),
        ([[], *[[TEA]] * 5], {"doc-12": 5}, 5),  # nothing was retrieved in the first
        ([[FEE], *[[TEA]] * 20], {"doc-12": 5, "fee": 1}, 0),
        ([[FEE]] * 4, {"doc-12": 5}, 0),
        ([[]] * 5, {"doc-12": 5}, 0),
        ([[FEE]] * 5, None, 0),
    ],
)
def test_labels_of_another_kind_of_ids_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], pools: list[object], labels: object, count: int
) -> None:
    given, out = tmp_path / "runs.jsonl", tmp_path / "scored.jsonl"
    runs = [
        {**ASKED, "labels": labels and {"grades": labels}, "answer": FEE["text"], "pool": pool} for pool in pools
    ]
    given.write_text("".join(json.dumps(run) + "\n" for run in runs))
    assert main(["score", str(given), "--out", str(out), "--metrics", "diagnosis"]) == 0
    said = [line for line in capsys.readouterr().out.splitlines() if SAID in line]
    assert [line.partition(":")[2].partition(":")[0] for line in said] == (
        [f" {SAID} ({count} labelled runs)"] if count else []
    )
    again = ["score", str(given), "--out", str(out), "--metrics", "diagnosis", "--resume"]
    assert main(again) == 0  # the lines that were scored before count too
    assert (SAID in capsys.readouterr().out) == bool(count)


def test_labels_of_another_query_are_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = tmp_path / "runs.jsonl"
    labels = {"grades": {"doc-12": 5}, "query": "Where is Oslo?"}
    run = {**ASKED, "labels": labels, "answer": FEE["text"], "pool": [TEA]}
    given.write_text((json.dumps(run) + "\n") * 5)
    assert main(["score", str(given), "--out", str(tmp_path / "out"), "--metrics", "diagnosis"]) == 0
    assert SAID not in capsys.readouterr().out


def test_show_prints_the_verdict_with_its_evidence(
    scored: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", scored[0], "3"]) == 0
    shown = capsys.readouterr().out
    assert f"lost_in_rerank (rerank): {MEANINGS['lost_in_rerank']}" in shown
    assert "needed passages by labels, grade 4 and better: 1, of which 1 in the pool and 0 in the prompt" in shown
    assert "first lost passage: rank 2 in the pool, grade 5" in shown
    assert "lost: fee (rerank)" in shown
    assert main(["show", scored[0], "5"]) == 0
    shown = capsys.readouterr().out
    assert "undetermined: the evidence does not decide, sufficiency_unknown" in shown
    assert "Bad claims" not in shown, "a refusal is no claim"


def test_worst_names_the_verdict_of_each_answer(
    scored: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["worst", scored[0], "--metric", "diagnosis"]) == 0
    shown = capsys.readouterr().out
    assert "2 worst of 4 answers by diagnosis" in shown
    assert "lost_in_rerank (rerank)" in shown
    assert "not_retrieved (retrieval)" in shown


@pytest.mark.parametrize(
    "details", [{}, {"verdict": "other"}, {"verdict": 3}, {"verdict": ["ok"]}, [], None, "ok"], ids=repr
)
def test_a_file_with_other_details_has_no_verdict(details: object) -> None:
    assert verdict_line({"diagnosis": {"details": details}}) is None  # type: ignore[typeddict-item]
    assert not [*verdict_lines({"diagnosis": {"details": details}}, 80)]  # type: ignore[typeddict-item]


def test_odd_evidence_is_left_out() -> None:
    details: dict[str, object] = {
        "verdict": "ok",
        "by": "nobody",
        "lost": "all",
        "sufficient": "yes",
        "nuggets": "many",
    }
    assert [*verdict_lines({"diagnosis": {"details": details}}, 80)] == ["", "Verdict", f"  ok: {MEANINGS['ok']}"]


def test_each_verdict_has_a_meaning() -> None:
    assert tuple(sorted(MEANINGS)) == tuple(sorted(VERDICTS))
