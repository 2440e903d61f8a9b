"""A captured and scored run over real OTLP, gRPC and HTTP: what arrives is what the contract says."""

from __future__ import annotations

import json

import pytest

from ragtrace.model import JudgeInfo, Scale
from ragtrace.telemetry.metrics.instruments import Instruments
from ragtrace.telemetry.setup.providers import providers
from ragtrace.telemetry.spans.evaluation import EvaluationWriter
from ragtrace.telemetry.spans.writer import SpanWriter
from ragtrace.testing.otlp import OtlpReceiver, attributes_of
from tests.unit.telemetry.runs import MS, T0, score, support_run


@pytest.fixture(params=["http/protobuf", "grpc"])
def receiver(request, monkeypatch):
    with OtlpReceiver(request.param) as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.endpoint)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", request.param)
        for signal in ("TRACES", "METRICS", "LOGS"):
            monkeypatch.delenv(f"OTEL_{signal}_EXPORTER", raising=False)
        yield receiver


def send_one_run(found):
    writer = SpanWriter(found.tracer(), content="full")
    root, captured = support_run(writer)
    writer.write(root, captured, decision="random", reason=None, probability=0.05)
    root.end(captured.ended_ns)
    scores = [score(root=root, judge=JudgeInfo(model="overlap", prompt_hash="abcd0123"))]
    EvaluationWriter(found.tracer(), found.logger()).write(
        captured.record, scores, is_root_sampled=root.is_recording, decision="random", probability=0.05,
        started_ns=T0 + 600 * MS, ended_ns=T0 + 700 * MS, root=root,
    )  # fmt: skip
    instruments = Instruments(found.meters())
    instruments.take_gauges()
    instruments.operations(captured)
    instruments.scored(
        captured.record, scores[:1], {scores[0].result.name: Scale(threshold=0.8)}, is_recorded=root.is_recording
    )
    instruments.evaluated(captured.record, scores, duration_s=0.1, lag_s=0.2)
    return root


def test_everything_arrives(receiver):
    found = providers(service_name="shop")
    root = send_one_run(found)
    assert found.flush(10.0)

    spans = {span.name: span for span in receiver.spans}
    assert set(spans) == {
        "invoke_workflow support", "retrieval faq", "rerank cross", "chat gpt-x", "evaluation support",
    }  # fmt: skip
    assert {span.trace_id.hex() for span in spans.values()} == {root.trace_id}
    assert {s.parent_span_id.hex() for s in spans.values()} == {"", root.span_id}
    attributes = attributes_of(spans["invoke_workflow support"].attributes)
    assert json.loads(attributes["ragtrace.selected.ranks"]) == [7, 3, 1, 20, 5, 2, 9, 11]
    assert len(json.loads(attributes["ragtrace.pool.ids"])) == 50
    documents = json.loads(attributes_of(spans["retrieval faq"].attributes)["gen_ai.retrieval.documents"])
    assert documents[49]["content"] == "Passage number 50 says something of its own."
    evaluation = spans["evaluation support"]
    assert attributes_of(evaluation.attributes)["ragtrace.score.faithfulness"] == 0.75
    assert [event.name for event in evaluation.events] == ["gen_ai.evaluation.result"]
    assert receiver.resource["service.name"] == "shop"

    (event,) = receiver.logs
    assert event.event_name == "gen_ai.evaluation.result"
    assert (event.trace_id.hex(), event.span_id.hex()) == (root.trace_id, root.span_id)

    metrics = receiver.metrics
    (point,) = metrics["ragtrace.evaluation.score"].histogram.data_points
    assert point.exemplars[0].trace_id.hex() == root.trace_id
    assert metrics["ragtrace.score.w"].sum.is_monotonic
    assert metrics["ragtrace.score.w"].sum.aggregation_temporality == 2, "cumulative"
    assert metrics["ragtrace.evaluation.score.window.mean"].gauge.data_points[0].as_double == 0.75
    assert found.shutdown(10.0)
    assert found.unsent() == {}


def test_spans_beyond_a_receivers_four_megabytes_arrive_all(receiver):
    found = providers()
    for number in range(60):
        found.tracer().start_span(f"s{number}", attributes={"text": "x" * 200_000}).end()
    assert found.flush(30.0)
    assert len(receiver.spans) == 60
    assert found.shutdown(10.0)
