"""The MLflow sink against an HTTP server on loopback that answers as MLflow does; tests/mlflow has the real MLflow."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from ragtrace.errors import ConfigError
from ragtrace.model import JudgeInfo
from ragtrace.sinks import MlflowSink, assessment, sinks_of
from tests.unit.sinks.scores import RECORD, lost_at, score

TOKEN = "a-very-secret-token"
PATH = f"/api/3.0/mlflow/traces/tr-{RECORD.trace_id}/assessments"


class Recorded:
    """Answers as MLflow 3.17.2 did to a trace that it has from the `misses`-th request on."""

    def __init__(self, misses: int = 0, refused: str = "", broken: str = "") -> None:
        self.misses, self.refused, self.broken = misses, refused, broken
        self.kept: dict[str, Any] = {}

    def __call__(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        row = body["assessment"]
        if self.misses:
            self.misses -= 1
            return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": f"Trace with ID {path} not found."}
        if method == "POST":
            return self._created(row)
        name = path.removeprefix(f"{PATH}/")
        if name not in self.kept:
            return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "Assessment not found"}
        assert set(body["update_mask"].split(",")) == row.keys()
        self.kept[name] |= row
        return 200, {"assessment": self.kept[name]}

    def _created(self, row: Any) -> tuple[int, Any]:
        if row["assessment_name"] == self.refused:
            return 400, {"error_code": "INVALID_PARAMETER_VALUE", "message": "no"}
        if row["assessment_name"] == self.broken or row["assessment_id"] in self.kept:
            return 500, {"error_code": "INTERNAL_ERROR", "message": "Failed to create assessment"}
        self.kept[row["assessment_id"]] = row
        return 200, {"assessment": row}


def test_a_score_of_each_state() -> None:
    judge = JudgeInfo(model="openai:m", prompt_hash="07903802")
    sent: Any = assessment(
        RECORD, score(judge=judge, passed=False, details={"unsupported": ["So."]}), has_content=True
    )
    assert sent["source"] == {"source_type": "LLM_JUDGE", "source_id": "openai:m"}
    assert sent["feedback"] == {"value": 0.5}
    assert sent["rationale"] == 'unsupported: ["So."]'
    assert sent["metadata"]["judge_version"] == "07903802"
    assert {type(value) for value in sent["metadata"].values()} == {str}
    quiet = assessment(RECORD, score(details={"unsupported": ["So."]}), has_content=False)
    assert "So." not in str(quiet)
    failed = assessment(RECORD, score(state="error", reason="judge_timeout"), has_content=True)
    assert failed["feedback"] == {"value": None, "error": {"error_code": "judge_timeout", "error_message": ""}}
    missing = assessment(RECORD, score(state="na", reason="no_contexts"), has_content=True)
    assert (missing["feedback"], missing["rationale"]) == ({"value": None}, "no_contexts")


def test_a_new_score_is_one_request_and_a_repeat_two(serve) -> None:
    mlflow = Recorded()
    server = serve(replies=mlflow)
    for value in (0.25, 0.75):  # two processes
        sink = MlflowSink(server.url)
        sink.emit(RECORD, [score(value=value)])
        assert sink.close(20)
    (row,) = mlflow.kept.values()
    assert row["feedback"] == {"value": 0.75}
    paths = [path for path, _, _ in server.requests]
    assert list(zip(server.methods, paths, strict=True)) == [
        ("POST", PATH), ("POST", PATH), ("PATCH", f"{PATH}/{row['assessment_id']}"),
    ]  # fmt: skip


def test_a_trace_that_comes_later_is_waited_for_and_one_that_never_comes_is_counted(serve, caplog) -> None:
    before = lost_at("mlflow", "unreachable")
    mlflow = Recorded(misses=3)
    sink = MlflowSink(serve(replies=mlflow).url)
    sink.emit(RECORD, [score("mrr"), score("recall")])
    assert sink.close(20)
    assert len(mlflow.kept) == 2
    sink = MlflowSink(serve(replies=Recorded(misses=9_999)).url, attempts=3)
    sink.emit(RECORD, [score()])
    assert not sink.flush(20)
    assert lost_at("mlflow", "unreachable") == before + 1
    assert "does not have the trace of a score" in caplog.text
    sink.close(1)


def test_one_refused_and_one_broken_assessment_hold_no_other_up(serve) -> None:
    refused, unreachable = lost_at("mlflow", "refused"), lost_at("mlflow", "unreachable")
    mlflow = Recorded(refused="bad", broken="odd")
    server = serve(replies=mlflow)
    sink = MlflowSink(server.url, attempts=3)
    sink.emit(RECORD, [score("odd"), score("good"), score("bad"), score("fine")])
    assert not sink.flush(20)
    assert sorted(row["assessment_name"] for row in mlflow.kept.values()) == ["fine", "good"]
    assert lost_at("mlflow", "refused") == refused + 1
    assert lost_at("mlflow", "unreachable") == unreachable + 1
    names = [body["assessment"].get("assessment_name") for _, _, body in server.requests]
    assert [names.count(name) for name in ("good", "fine", "bad")] == [1, 1, 1]
    assert names.count("odd") >= 3
    sink.close(1)


@pytest.mark.parametrize("statuses", [(0, 0), (429,), (503, 503, 503), (200, 503)])
def test_a_server_that_is_away_is_waited_for(statuses: tuple[int, ...], serve) -> None:
    mlflow = Recorded()
    sink = MlflowSink(serve(*statuses, replies=mlflow).url)
    sink.emit(RECORD, [score("mrr"), score("recall"), score("ndcg")])
    assert sink.close(20)
    assert len(mlflow.kept) == 3 - (200 in statuses)  # a 200 of the script kept nothing


@pytest.mark.parametrize(
    ("status", "words"),
    [(401, "check username (MLFLOW_TRACKING_USERNAME)"), (405, "check endpoint (MLFLOW_TRACKING_URI)")],
)
def test_what_cannot_pass_is_said_and_counted_and_no_key_is_shown(status, words, serve, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    before = lost_at("mlflow", "refused")
    server = serve(status, status, replies=Recorded())
    sink = MlflowSink(server.url, token=TOKEN)
    sink.emit(RECORD, [score("mrr"), score("recall")])
    assert not sink.flush(20)
    assert lost_at("mlflow", "refused") == before + 2
    assert server.requests[0][1]["Authorization"] == f"Bearer {TOKEN}"
    assert caplog.text.count(words) == 1
    assert TOKEN not in caplog.text + repr(sink)
    sink.close(1)


def test_keys_come_from_mlflows_own_variables_also_with_another_address(serve, monkeypatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:1")
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "ada")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", TOKEN)
    server = serve(replies=Recorded())
    (sink,) = sinks_of([f"mlflow:{server.url}"])
    assert isinstance(sink, MlflowSink)
    sink.emit(RECORD, [score()])
    assert sink.close(20)
    assert server.requests[0][1]["Authorization"].startswith("Basic ")


def test_by_name_it_finds_the_address_where_mlflow_does(serve, monkeypatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with pytest.raises(
        ConfigError, match=r"needs username .MLFLOW_TRACKING_USERNAME. and password .MLFLOW_TRACKING_PASSWORD."
    ):
        MlflowSink("http://127.0.0.1:1", username="ada")
    with pytest.raises(ConfigError, match="set MLFLOW_TRACKING_URI"):
        sinks_of(["mlflow"])
    mlflow = Recorded()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", serve(replies=mlflow).url)
    (sink,) = sinks_of(["mlflow"])
    assert isinstance(sink, MlflowSink)
    sink.emit(RECORD, [score()])
    assert sink.close(20)
    assert len(mlflow.kept) == 1


@pytest.mark.parametrize(
    "endpoint", ["sqlite:///mlflow.db", "databricks", "http://h/api/2.0", "http://h/v1/traces", ""]
)
def test_a_wrong_endpoint_is_one_clear_line(endpoint: str) -> None:
    with pytest.raises(ConfigError, match="MLFLOW_TRACKING_URI"):
        MlflowSink(endpoint)
