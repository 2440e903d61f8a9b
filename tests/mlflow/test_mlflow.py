"""Scores in a real MLflow server: shown once however often they are sent, and by its own client."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import pytest

import ragtrace
from ragtrace.model import RagRecord
from ragtrace.queues import Spool
from ragtrace.sinks import MlflowSink
from ragtrace.testing.otlp import OtlpReceiver
from tests.guards.processes import closed_port
from tests.phoenix.runs import ANSWER, INVENTED, Kept, ask, chain
from tests.phoenix.server import wait_for
from tests.process.observing import worker
from tests.process.test_outbox_crash import offer
from tests.unit.sinks.scores import lost_at, score

if TYPE_CHECKING:
    from tests.mlflow.server import Mlflow

UNITS = 60


@pytest.fixture
def sink(mlflow: Mlflow):
    sink = MlflowSink(mlflow.url, content="full")
    yield sink
    sink.close(5)


@pytest.fixture
def target(mlflow: Mlflow, request: pytest.FixtureRequest) -> RagRecord:
    """A root span that MLflow has, without assessments."""
    name = request.node.name.encode().hex()
    record = RagRecord(id="1", trace_id=name[-32:], span_id=name[-16:])
    mlflow.take_trace(record.trace_id, record.span_id)
    return record


def shown(mlflow: Mlflow, record: RagRecord) -> list[tuple[str, Any]]:
    return sorted(
        (row["assessment_name"], row["feedback"].get("value")) for row in mlflow.assessments(record.trace_id)
    )


def test_a_chains_trace_has_its_scores_in_mlflows_own_client(mlflow: Mlflow, monkeypatch) -> None:
    kept = Kept()
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    monkeypatch.setenv("OTEL_LOGS_EXPORTER", "none")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{mlflow.url}/v1/traces")
    headers = f"x-mlflow-experiment-id={mlflow.experiment('support')}"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", headers)
    ragtrace.configure(
        sample_rate=1.0,
        metrics=("faithfulness", "mrr"),
        content="full",
        sinks=[kept, MlflowSink(mlflow.url, content="full")],
    )
    try:
        ask(chain())
        assert ragtrace.flush(60), "all spans and assessments were taken"
    finally:
        ragtrace.shutdown(10)
    ((record, scores),) = kept.seen
    value = next(score.result.value for score in scores if score.result.name == "faithfulness")
    found = mlflow.client(record.trace_id)
    assert "invoke_workflow support" in found["spans"]
    (row,) = found["assessments"]  # mrr says nothing: nobody gave labels
    assert (row["name"], row["value"], row["error"], row["span_id"]) == (
        "faithfulness",
        value,
        None,
        record.span_id,
    )
    assert row["source"] == ["CODE", "overlap"]
    assert INVENTED in ANSWER
    assert INVENTED in row["rationale"]
    assert (row["metadata"]["state"], row["metadata"]["workflow"]) == ("ok", "support")


def test_sent_twice_is_shown_once_and_a_new_version_beside_it(mlflow: Mlflow, sink: MlflowSink, target) -> None:
    for value in (0.25, 0.75, 0.5):
        sink.emit(target, [score(record=target, value=value)])
        assert sink.flush(30)
        assert shown(mlflow, target) == [("faithfulness", value)]
    sink.emit(target, [score(record=target, value=1.0, version="aaaa0000")])
    assert sink.flush(30)
    assert shown(mlflow, target) == [("faithfulness", 0.5), ("faithfulness", 1.0)]
    versions = {row["metadata"]["version"] for row in mlflow.client(target.trace_id)["assessments"]}
    assert versions == {"dcbbe188", "aaaa0000"}


def test_a_failure_takes_the_number_back_and_a_number_the_failure(mlflow: Mlflow, sink: MlflowSink, target) -> None:
    failed = score(record=target, state="error", reason="judge_timeout", details={"message": "no answer"})
    for sent in (score(record=target), failed):
        sink.emit(target, [sent])
        assert sink.flush(30)
    (row,) = mlflow.client(target.trace_id)["assessments"]
    assert (row["value"], row["error"], row["rationale"]) == (None, "judge_timeout", "no answer")
    sink.emit(target, [score(record=target)])
    assert sink.flush(30)
    (row,) = mlflow.client(target.trace_id)["assessments"]
    assert (row["value"], row["error"], row["metadata"]["reason"]) == (0.5, None, "")


def test_a_score_may_come_before_its_trace(mlflow: Mlflow, sink: MlflowSink) -> None:
    record = RagRecord(id="1", trace_id="e" * 32, span_id="e" * 16)
    sink.emit(record, [score(record=record)])
    assert wait_for(lambda: sink._outbox._delayed), "MLflow has no such trace yet"
    mlflow.take_trace(record.trace_id, record.span_id)
    assert wait_for(lambda: shown(mlflow, record)) == [("faithfulness", 0.5)]


def test_any_text_is_taken(mlflow: Mlflow, sink: MlflowSink, target) -> None:
    before = lost_at("mlflow", "refused")
    texts = ["lone \ud800, zero \0", "<b>&\u202e", "x" * 100_000]
    scores = [score(f"odd-{number}", target, details={"explanation": text}) for number, text in enumerate(texts)]
    sink.emit(target, [*scores, score("n" * 300, target)])
    assert sink.flush(30)
    assert len(mlflow.assessments(target.trace_id)) == 4
    assert lost_at("mlflow", "refused") == before


def test_after_a_kill_the_next_process_sends_what_is_owed_and_each_score_is_shown_once(
    mlflow: Mlflow, tmp_path
) -> None:
    traces = [f"{number:032x}" for number in range(1, UNITS + 1)]
    for number, trace in enumerate(traces, 1):
        mlflow.take_trace(trace, f"{number:016x}")
    spool = tmp_path / "spool"
    offer(Spool(spool), 1, UNITS + 1)
    receiver = OtlpReceiver()

    def life(endpoint: str, *args: str) -> Any:
        return worker(
            spool, *args,
            RAGTRACE_STORE=str(tmp_path / "store"), RAGTRACE_METRICS="faithfulness", RAGTRACE_SINKS="mlflow",
            MLFLOW_TRACKING_URI=mlflow.url, OTEL_LOGS_EXPORTER="otlp", OTEL_EXPORTER_OTLP_ENDPOINT=endpoint,
            OTEL_EXPORTER_OTLP_TIMEOUT="1",
        )  # fmt: skip

    def n_shown() -> list[int]:
        return [len(mlflow.assessments(trace)) for trace in traces]

    try:
        process = life(f"http://127.0.0.1:{closed_port()}")  # no receiver confirms, so that every score is owed
        assert wait_for(lambda: sum(n_shown()) >= 3, 60), process.poll()
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
        process = life(receiver.endpoint, "--once")
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said
        assert n_shown() == [1] * UNITS
        rows = [row for trace in traces for row in mlflow.assessments(trace)]
        assert any(row["last_update_time"] != row["create_time"] for row in rows), "some came from both processes"
    finally:
        receiver.close()
