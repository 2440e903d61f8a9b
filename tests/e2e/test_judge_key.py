"""The judge's key is in nothing that a service or a command hands on when its judge fails."""

from __future__ import annotations

import json
import logging
import threading
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ragtrace.cli.main import main
from ragtrace.service import current
from ragtrace_langchain import RagtraceHandler
from tests.unit.judges.openai.asking import KEY
from tests.unit.judges.openai.faults import FAULTS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.judges.openai.judge_server import JudgeServer

pytestmark = pytest.mark.slow
METRICS = ["faithfulness"]


KINDS = ["a wrong key", "a redirect", "bad JSON", "broken", "a cut body", "broken gzip", "an error in a 200"]


@pytest.fixture(params=KINDS)
def failing(
    request: pytest.FixtureRequest, judge_server: JudgeServer, caplog: pytest.LogCaptureFixture
) -> JudgeServer:
    answer = FAULTS[request.param](threading.Event())
    judge_server.always = lambda _: answer
    caplog.set_level(logging.DEBUG)
    return judge_server


def test_spans_events_metrics_logs_and_store_of_a_service(
    tmp_path: Path, chain: Any, service: Any, failing: JudgeServer, caplog: pytest.LogCaptureFixture
) -> None:
    spans, events, reader = InMemorySpanExporter(), InMemoryLogRecordExporter(), InMemoryMetricReader()
    tracers, loggers = TracerProvider(), LoggerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    loggers.add_log_record_processor(SimpleLogRecordProcessor(events))
    meters = MeterProvider(metric_readers=[reader])
    given = {"tracer_provider": tracers, "meter_provider": meters, "logger_provider": loggers}
    judge = {"judge": "openai:m", "judge_base_url": failing.url, "judge_api_key": KEY}
    service.configure(
        **judge, metrics=METRICS, sample_rate=1.0, content="full", store=tmp_path / "ragtrace.db", **given
    )
    chain.invoke("How long does a refund take?", config={"callbacks": [RagtraceHandler()]})
    current().wait_scored(3)  # or longer: a judge that is down is waited for
    metrics = reader.get_metrics_data()
    service.shutdown(2)
    assert {request.headers["authorization"] for request in failing.requests} == {f"Bearer {KEY}"}
    told = [span.to_json() for span in spans.get_finished_spans()]
    assert len(told) >= 4, told
    told += [repr(event.log_record) for event in events.get_finished_logs()]
    assert metrics is not None
    assert KEY not in "\n".join([*told, metrics.to_json(), caplog.text])
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert kept
    assert not [path for path in kept if KEY.encode() in path.read_bytes()]


def test_file_terminal_and_logs_of_a_command(
    tmp_path: Path, failing: JudgeServer, caplog: pytest.LogCaptureFixture, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.setenv("RAGTRACE_JUDGE_API_KEY", KEY)
    source, out = tmp_path / "answers.jsonl", tmp_path / "scored.jsonl"
    source.write_text('{"query": "Where?", "answer": "In Oslo.", "contexts": ["The lab is in Oslo."]}\n')
    judge = ["--judge", "openai:m", "--base-url", failing.url, "--metrics", ",".join(METRICS)]
    main(["score", str(source), *judge, "--out", str(out)])
    assert {request.headers["authorization"] for request in failing.requests} == {f"Bearer {KEY}"}
    said = capsys.readouterr()
    scores = json.loads(out.read_text())["scores"]
    assert scores["faithfulness"]["state"] == "error", scores
    assert KEY not in said.out + said.err + out.read_text() + caplog.text
