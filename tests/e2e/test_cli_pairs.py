"""``ragtrace score --pairs`` in a process of its own, over a real model file."""

from __future__ import annotations

import json

import pytest

from tests.command_line import ran as ragtrace
from tests.unit.judges.nli import tiny_models


@pytest.fixture
def answers(tmp_path):
    path = tmp_path / "in.jsonl"
    contexts = ["the lab is in Oslo", "it opened in 2010"]
    texts = ["the lab is in Oslo", "the lab is in Bergen", "it opened not in 2010", " "]
    path.write_text(
        "".join(json.dumps({"query": "?", "answer": text, "contexts": contexts}) + "\n" for text in texts)
    )
    return path


def test_a_file_is_scored_with_a_local_model(tmp_path, answers):
    for needed in ("onnx", "onnxruntime", "tokenizers"):
        pytest.importorskip(needed, reason=f"{needed} is not installed")
    model = tiny_models.folder(tmp_path / "nli")
    out = tmp_path / "out.jsonl"
    args = ["--metrics", "hallucination,pair_contradiction", "--pairs", f"onnx:{model}", "--out", out]
    done = ragtrace("score", answers, *args, "--fail-under", "hallucination_min=0.9")
    assert done.returncode == 3, done.stderr
    read = sorted((json.loads(line) for line in out.read_text().splitlines()), key=lambda line: line["id"])
    rows = [line["scores"] for line in read]
    values = [row["hallucination_min"].get("value") for row in rows]
    assert values[0] > 0.9
    assert values[1] < 0.1
    assert values[3] is None
    assert rows[3]["hallucination_min"]["reason"] == "no_answer"
    assert [row["pair_contradiction"].get("passed") for row in rows] == [True, True, False, None]
    assert rows[0]["hallucination"]["judge"] == "pairs:onnx:nli"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--pairs", "onyx:models"], "did you mean 'onnx'"),
        (["--pairs", "onnx"], "write onnx:FOLDER"),
        (["--pairs", "onnx:no/such/folder"], "is not a folder"),
        (["--embedder", "local:no/such/folder"], "is not a folder"),
    ],
)
def test_a_wrong_name_or_folder_is_one_line_and_exit_2(answers, args, said):
    done = ragtrace("score", answers, *args)
    assert done.returncode == 2
    assert said in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
