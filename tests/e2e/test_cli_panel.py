"""``ragtrace score`` with a panel over HTTP, as a person runs it, and what is wrong in one line."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from ragtrace.cli import main
from tests.guards.judge_server import Answer, JudgeServer, Request, completion

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GRADES = {"kind": 5, "strict": 2}


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("RAGTRACE_", "OPENAI_")):
            monkeypatch.delenv(name)


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    def graded(request: Request) -> Answer:
        return Answer(body=completion({"attempted": True, "reason": "", "grade": GRADES[request.body["model"]]}))

    with JudgeServer(graded) as made:
        yield made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    line = {"id": "r1", "query": "Where?", "answer": "In Oslo.", "contexts": ["The lab is in Oslo."]}
    file = tmp_path / "in.jsonl"
    file.write_text(json.dumps(line) + "\n", encoding="utf-8")
    return file


def scored(path: Path, *args: str) -> dict[str, Any]:
    out = path.with_name("out.jsonl")
    out.unlink(missing_ok=True)
    assert main(["score", str(path), "--out", str(out), "--metrics", "faithfulness_1to5", *args]) == 0
    scores: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))["scores"]
    return scores


def test_a_panel_scores_a_file(path: Path, server: JudgeServer, capsys: pytest.CaptureFixture[str]) -> None:
    judges = ["--judge", "openai:kind,openai:strict", "--base-url", server.url]
    scores = scored(path, *judges, "--judge-repeats", "3")
    grade, unit = scores["faithfulness_1to5"], scores["faithfulness_1to5_normalised"]
    assert (grade["value"], grade["passed"], unit["value"], unit["passed"]) == (3.5, True, 0.625, True)
    assert grade["details"]["panel"]["mean_abs_diff"] == 3.0
    assert len(server.requests) == 6
    assert "faithfulness_1to5" in capsys.readouterr().out
    again = scored(path, *judges, "--consensus", "median")
    assert again["faithfulness_1to5"]["version"] != grade["version"]


def test_a_panel_from_the_environment(path: Path, server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "JUDGE": "openai:kind,openai:strict",
        "JUDGE_BASE_URL": server.url,
        "JUDGE_REPEATS": "2",
        "METRIC_OPTIONS_LENGTH_DEBIAS": "off",
        "METRIC_OPTIONS_THRESHOLD_1TO5": "4",
    }.items():
        monkeypatch.setenv(f"RAGTRACE_{name}", value)
    grade = scored(path)["faithfulness_1to5"]
    assert (grade["value"], grade["passed"], grade["details"]["length_debias"]) == (3.5, False, False)
    assert len(server.requests) == 4
    assert all("Length is no sign" not in json.dumps(request.body) for request in server.requests)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--judge", "openai:kind,,openai:strict"], "a name is missing"),
        (["--judge", "openai:kind,openai:kind"], "holds openai:kind twice"),
        (["--judge-repeats", "3"], "'overlap' never changes its mind"),
        (
            ["--judge", "openai:kind", "--judge-repeats", "21"],
            "Invalid value for '--judge-repeats': Input should be less than or equal to 20",
        ),
        (["--judge", "openai:kind", "--consensus", "median"], "taken over several judges"),
        (["--judge", "openai:kind", "--consensus", "vote"], "consensus='vote' is not valid"),
    ],
)
def test_bad_input_is_one_clear_line(
    path: Path, args: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["score", str(path), "--base-url", "http://127.0.0.1:9/v1", *args]
    assert main(command) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert len(shown.err.strip().splitlines()) == 1
    assert shown.out == ""
