"""Grades kept in a file, and a shadow retriever, as a person sets them: command line, environment, `configure`."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

import pytest

import ragtrace
from ragtrace.cli import main
from ragtrace.service import current
from tests.guards.judge_server import Answer, JudgeServer, completion

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ragtrace.model import RagRecord, Score
    from tests.guards.judge_server import Request

TEXTS = ["The lab is in Oslo. 5", "The lab is large. 2"]


def graded(request: Request) -> Answer:
    """Grade each passage by the digit it ends with."""
    user = request.body["messages"][-1]["content"]
    data = json.loads(user[user.index("{") : user.rindex("}") + 1])
    rows = [{"id": int(n), "grade": int(text[-1])} for n, text in data["passages"].items()]
    return Answer(body=completion({"grades": rows}))


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("RAGTRACE_", "OPENAI_")):
            monkeypatch.delenv(name)


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer(graded) as made:
        yield made


def scored(path: Path, server: JudgeServer, texts: list[str], *args: str) -> dict[str, Any]:
    path.write_text(json.dumps({"query": "Where?", "answer": "Oslo.", "contexts": texts}) + "\n", encoding="utf-8")
    out = path.with_name("out.jsonl")
    out.unlink(missing_ok=True)
    judge = ["--judge", "openai:m", "--base-url", server.url, "--metrics", "p_at_k,ra_nwg"]
    assert main(["score", str(path), "--out", str(out), *judge, *args]) == 0
    scores: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))["scores"]
    return scores


def test_a_second_run_over_a_file_of_grades_asks_nothing(tmp_path: Path, server: JudgeServer) -> None:
    path, cache = tmp_path / "in.jsonl", ["--grade-cache", str(tmp_path / "grades.sqlite")]
    first = scored(path, server, TEXTS, *cache)
    asked = len(server.requests)
    again = scored(path, server, TEXTS, *cache)
    assert (asked > 0, len(server.requests)) == (True, asked)
    assert again["p_at_k"]["value"] == first["p_at_k"]["value"] == 0.5
    assert again["p_at_k"]["details"]["grades_cached"] == 2
    assert again["ra_nwg_at_k"]["reason"] == "no_labels"
    other = scored(path, server, ["Of another retriever. 5"], *cache)
    assert (other["ra_nwg_at_k"]["universe"], other["ra_nwg_at_k"]["value"]) == ("cache", 1.0)
    scored(path, server, TEXTS, "--grade-cache", "off")
    assert len(server.requests) > asked + 1


def test_two_versions_over_one_cache_are_compared_query_by_query(
    tmp_path: Path, server: JudgeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """The cache numbers its labels as they come, so that every query has a version of its own."""

    def score(name: str, context: str) -> str:
        path, out = tmp_path / "in.jsonl", tmp_path / f"{name}.jsonl"
        records = [
            {"id": n, "query": f"Where is lab {n}?", "answer": "Oslo.", "contexts": [f"Of lab {n}. {context}"]}
            for n in range(12)
        ]
        path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
        judge = ["--judge", "openai:m", "--base-url", server.url, "--metrics", "ra_nwg"]
        cache = ["--grade-cache", str(tmp_path / "grades.sqlite")]
        assert main(["score", str(path), "--out", str(out), *judge, *cache]) == 0
        return str(out)

    score("fills", "It is far. 4")
    score("fills too", "It is near. 5")
    before, after = score("before", "It is far. 4"), score("after", "It is near. 5")
    assert main(["compare", before, after, "--json", str(tmp_path / "found.json")]) == 0
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))["metrics"]
    line = next(one for one in found if one["metric"] == "ra_nwg_at_k")
    assert [one["metric"] for one in found].count("ra_nwg_at_k") == 1
    assert (line["differences"][0]["n"], line["differences"][0]["value"]) == ([12], 0.5)
    grown = score("grown", "It is nowhere. 5")
    capsys.readouterr()
    assert main(["compare", before, grown]) == 3
    assert "the labels changed between them" in " ".join(capsys.readouterr().out.split())


def test_labels_are_frozen_from_the_environment(
    tmp_path: Path, server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGTRACE_GRADE_CACHE", str(tmp_path / "grades.sqlite"))
    scored(tmp_path / "in.jsonl", server, [*TEXTS, "Seen once. 4"])
    monkeypatch.setenv("RAGTRACE_LABEL_FREEZE", "3")
    scored(tmp_path / "in.jsonl", server, ["Later. 5"])
    found = scored(tmp_path / "in.jsonl", server, TEXTS)["ra_nwg_at_k"]
    assert (found["value"], found["details"]["labels_frozen"]) == (pytest.approx(1.0 / 1.5), 3)


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"GRADE_CACHE": "/no/such/folder/grades.sqlite"}, "grade cache"),
        ({"LABEL_FREEZE": "7"}, "has no labels to freeze"),
        ({"LABEL_FREEZE": "many"}, "is not a whole number"),
        ({"SHADOW_RATE": "5"}, "must lie between"),
    ],
)
def test_a_wrong_setting_is_one_line(
    tmp_path: Path,
    variables: dict[str, str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"RAGTRACE_{name}", value)
    path = tmp_path / "in.jsonl"
    path.write_text("{}\n", encoding="utf-8")
    assert main(["score", str(path)]) == 2
    error = capsys.readouterr().err
    assert re.search(said, error)
    assert error.count("\n") == 1


class Kept:
    """A sink that keeps what it is given."""

    def __init__(self) -> None:
        self.scores: list[Score] = []

    def emit(self, record: RagRecord, scores: list[Score]) -> None:
        """Keep them."""
        del record
        self.scores.extend(scores)


def test_a_shadow_retriever_in_a_service_is_called_off_the_request_path_and_not_captured(
    server: JudgeServer,
) -> None:
    kept, calls = Kept(), []

    def deeper(query: str, top_k: int) -> list[str]:
        calls.append((query, top_k))
        with ragtrace.query(query) as run:  # as an instrumented retriever does
            run.retrieved(["its own"])
        return [*TEXTS, "A deeper one. 5"]

    ragtrace.configure(
        judge="openai:m",
        judge_base_url=server.url,
        metrics=["proc_shadow"],
        sample_rate=1.0,
        shadow=deeper,
        shadow_rate=1.0,
        sinks=[kept],
    )
    try:
        with ragtrace.query("Where?") as run:
            run.retrieved(TEXTS)
            run.answered("Oslo.")
        assert ragtrace.flush(30)
        service = current()
        assert service is not None
        assert service.ledger.snapshot()["offered"] == 1
    finally:
        ragtrace.shutdown(10)
    found = {score.result.name: score.result for score in kept.scores}["proc_shadow_at_k"]
    assert calls == [("Where?", 100)]
    assert (found.state, found.value, found.label_scope) == ("ok", 0.5, "shadow")


def test_a_shadow_that_is_no_function_is_refused() -> None:
    with pytest.raises(ragtrace.errors.ConfigError, match="shadow must be a function"):
        ragtrace.configure(shadow="my_retriever")
