"""The main promise, end to end: one callback, then spans, scores, events and metrics, over every transport."""

from __future__ import annotations

import json
from typing import Any

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ragtrace import semconv
from ragtrace.service import baseline_monitor, current
from ragtrace.testing.otlp import OtlpReceiver, attributes_of
from ragtrace_langchain import RagtraceHandler
from tests.e2e.chains import ANSWER, CHOSEN, POOL

QUESTION = "How long does the refund of parcel 7 take?"
METRICS = [
    "faithfulness",
    "answer_relevancy",
    "answer_similarity",
    "no_answer",
    "citations",
    "p_at_k",
    "ra_nwg",
    "harm",
]
LABELS = {"doc-7": 5, "doc-3": 4, **{name: 1 for name in POOL if name not in {"doc-7", "doc-3"}}}
SUPPORT = "invoke_workflow support"


def ask(chain: Any) -> str:
    config = {"callbacks": [RagtraceHandler()], "metadata": {"ragtrace.labels": LABELS}}
    return str(chain.invoke(QUESTION, config=config).content)


class Memory:
    """In-memory exporters of all three signals."""

    def __init__(self) -> None:
        self.spans, self.logs, self.reader = (
            InMemorySpanExporter(),
            InMemoryLogRecordExporter(),
            InMemoryMetricReader(),
        )
        self.tracers, self.loggers = TracerProvider(), LoggerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.spans))
        self.loggers.add_log_record_processor(SimpleLogRecordProcessor(self.logs))
        self.meters = MeterProvider(metric_readers=[self.reader])

    def given(self) -> dict[str, Any]:
        return {"tracer_provider": self.tracers, "meter_provider": self.meters, "logger_provider": self.loggers}

    def named(self) -> dict[str, Any]:
        return {span.name: span for span in self.spans.get_finished_spans()}

    def points(self) -> dict[str, list[Any]]:
        data = self.reader.get_metrics_data()
        metrics = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics]
        return {metric.name: list(metric.data.data_points) for metric in metrics}


def hexed(context: Any) -> tuple[str, str]:
    return f"{context.trace_id:032x}", f"{context.span_id:016x}"


def test_in_memory_the_span_tree_the_scores_and_the_metrics(chain: Any, service: Any) -> None:
    memory = Memory()
    service.configure(sample_rate=1.0, content="full", metrics=METRICS, **memory.given())
    assert ask(chain) == ANSWER
    assert current().wait_scored(30)  # a flush would collect, and each collection takes the exemplars along
    spans = memory.named()
    assert set(spans) == {SUPPORT, "retrieval faq", "rerank rerank", "chat FakeListChatModel", "evaluation support"}
    root = spans.pop(SUPPORT)
    assert root.parent is None
    assert {span.parent.span_id for span in spans.values()} == {root.context.span_id}
    assert {span.context.trace_id for span in spans.values()} == {root.context.trace_id}
    check_root(dict(root.attributes))
    check_retrieval(dict(spans["retrieval faq"].attributes))
    check_rerank(dict(spans["rerank rerank"].attributes))
    check_evaluation(dict(spans["evaluation support"].attributes))
    links = {link.context.span_id for link in spans["evaluation support"].links}
    assert links == {spans[name].context.span_id for name in ("retrieval faq", "chat FakeListChatModel")}
    check_events(memory, root)
    check_metrics(memory, root)


def test_baselines_are_labelled_as_the_scores_that_alerts_hold_against_them(
    chain: Any, service: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baseline_monitor, "LEARNT_SCORES", 1)
    memory = Memory()
    service.configure(sample_rate=1.0, metrics=METRICS, judge="overlap", **memory.given())
    assert ask(chain) == ANSWER
    assert current().wait_scored(30)
    points = memory.points()
    held = (semconv.GEN_AI_EVALUATION_NAME, semconv.GEN_AI_WORKFLOW_NAME, semconv.K, semconv.JUDGE_VERSION)

    def told(name: str) -> set[tuple[Any, ...]]:
        return {tuple(point.attributes.get(it) for it in held) for point in points[name]}

    watched = told(semconv.BASELINE_N)
    assert watched <= told(semconv.SCORE_W)
    assert {k is None for _, _, k, _ in watched} == {True, False}, "with K and without"
    assert all(version for *_, version in watched)


def check_root(got: dict[str, Any]) -> None:
    assert json.loads(got[semconv.POOL_IDS]) == POOL
    assert json.loads(got[semconv.POOL_SCORES]) == [(100 - i) / 100 for i in range(50)]
    assert json.loads(got[semconv.SELECTED_IDS]) == CHOSEN
    assert json.loads(got[semconv.SELECTED_SCORES]) == [9.0 - i for i in range(8)]
    assert json.loads(got[semconv.SELECTED_RANKS]) == [8, 4, 2, 21, 6, 3, 10, 12]
    assert json.loads(got[semconv.PROMPT_IDS]) == CHOSEN
    assert got["ragtrace.selection.source"] == "chain"
    assert got["ragtrace.run.outcome"] == "answered"
    assert got["ragtrace.k"] == 8
    assert got["gen_ai.operation.name"] == "invoke_workflow"
    assert got["gen_ai.workflow.name"] == "support"
    assert got["openinference.span.kind"] == "CHAIN"
    assert QUESTION in got["input.value"]
    assert got["output.value"] == ANSWER
    assert (got["ragtrace.sampling.decision"], got["ragtrace.sampling.probability"]) == ("random", 1.0)
    assert "gen_ai.conversation.id" not in got, "a conversation id is never invented"
    assert len(got) <= 30


def check_retrieval(got: dict[str, Any]) -> None:
    documents = json.loads(got["gen_ai.retrieval.documents"])
    assert [d["id"] for d in documents] == POOL
    assert [d["rank"] for d in documents] == list(range(1, 51))
    assert documents[7] | {"metadata": None} == {
        "id": "doc-7", "score": 0.93, "rank": 8, "content": "A refund of parcel 7 takes 17 days.", "metadata": None,
    }  # fmt: skip
    assert got["gen_ai.retrieval.top_k"] == 50
    assert got["gen_ai.data_source.id"] == "faq"
    assert got["ragtrace.retrieval.document.count"] == 50
    assert got["ragtrace.retrieval.document.truncated"] == 0
    assert got["openinference.span.kind"] == "RETRIEVER"


def check_rerank(got: dict[str, Any]) -> None:
    documents = json.loads(got["ragtrace.rerank.documents"])
    assert documents[0] == {"id": "doc-7", "score": 9.0, "rank": 1, "previous_rank": 8, "retrieval_score": 0.93}
    assert got["ragtrace.rerank.candidate.count"] == 50
    assert got["openinference.span.kind"] == "RERANKER"


def check_evaluation(got: dict[str, Any]) -> None:
    assert got["ragtrace.score.faithfulness"] == 1.0
    assert got["ragtrace.score.answered"] == 1.0
    assert got["ragtrace.score.harm_at_k"] == 6 / 8
    assert got["ragtrace.score.n_recall5_at_k"] == 1.0
    assert got["ragtrace.score.answer_relevancy.state"] == "na"
    assert got["ragtrace.score.answer_relevancy.reason"] == "unsupported_by_judge"
    assert got["ragtrace.evaluation.judge.model"] == "overlap"
    assert got["openinference.span.kind"] == "EVALUATOR"
    details = json.loads(got["ragtrace.evaluation.details"])
    assert "overlap" in json.dumps(details["faithfulness"])
    assert len(got) <= 100


def check_events(memory: Memory, root: Any) -> None:
    logs = [item.log_record for item in memory.logs.get_finished_logs()]
    assert {log.event_name for log in logs} == {"gen_ai.evaluation.result"}
    by_name = {log.attributes["gen_ai.evaluation.name"]: log for log in logs}
    faithfulness = by_name["faithfulness"]
    assert faithfulness.attributes["gen_ai.evaluation.score.value"] == 1.0
    assert faithfulness.attributes["gen_ai.evaluation.score.label"] == "pass"
    assert hexed(faithfulness) == hexed(root.context)


def check_metrics(memory: Memory, root: Any) -> None:
    points = memory.points()
    scores = {p.attributes["gen_ai.evaluation.name"]: p for p in points["ragtrace.evaluation.score"]}
    (exemplar,) = scores["faithfulness"].exemplars
    assert hexed(exemplar) == hexed(root.context)
    attributes = scores["faithfulness"].attributes
    assert attributes["ragtrace.judge.model"] == "overlap"
    assert len(attributes["ragtrace.judge.version"]) == 8
    assert attributes["ragtrace.stratum"] == "random"
    assert attributes["gen_ai.workflow.name"] == "support"
    for name in ("n", "w", "wx", "w2", "w2x", "w2x2"):
        found = {p.attributes["gen_ai.evaluation.name"]: p.value for p in points[f"ragtrace.score.{name}"]}
        assert found["faithfulness"] == 1.0
        assert "answer_similarity" not in found, "a metric that can be negative has no sums"
    windows = {
        p.attributes["gen_ai.evaluation.name"]: p.value for p in points["ragtrace.evaluation.score.window.mean"]
    }
    assert windows["faithfulness"] == 1.0
    assert {p.attributes["ragtrace.decision"]: p.value for p in points["ragtrace.traces"]} == {"sampled": 1}
    assert points["ragtrace.evaluation.last.time"][0].value > 1.7e9
    expected = {
        "ragtrace.evaluations", "ragtrace.evaluation.duration", "ragtrace.evaluation.lag", "ragtrace.queue.size",
        "ragtrace.queue.capacity", "ragtrace.ledger", "ragtrace.evaluation.pass.ratio",
        "gen_ai.invoke_workflow.duration", "gen_ai.client.operation.duration", "gen_ai.client.inference.duration",
        "gen_ai.client.inference.usage.input_tokens",
    }  # fmt: skip
    assert expected <= set(points)


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_the_same_through_a_real_receiver(
    chain: Any, service: Any, protocol: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OtlpReceiver(protocol) as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.endpoint)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
        monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
        for signal in ("TRACES", "METRICS", "LOGS"):
            monkeypatch.delenv(f"OTEL_{signal}_EXPORTER", raising=False)
        service.configure(sample_rate=1.0, content="full", metrics=METRICS)
        assert ask(chain) == ANSWER
        assert service.flush(30)
        spans = {span.name: span for span in receiver.spans}
        assert set(spans) == {
            SUPPORT,
            "retrieval faq",
            "rerank rerank",
            "chat FakeListChatModel",
            "evaluation support",
        }
        root = spans[SUPPORT]
        check_root(attributes_of(root.attributes))
        check_retrieval(attributes_of(spans["retrieval faq"].attributes))
        check_rerank(attributes_of(spans["rerank rerank"].attributes))
        check_evaluation(attributes_of(spans["evaluation support"].attributes))
        assert root.parent_span_id == b""
        evaluation = spans["evaluation support"]
        assert evaluation.parent_span_id == root.span_id
        assert {event.name for event in evaluation.events} == {"gen_ai.evaluation.result"}
        assert {log.event_name for log in receiver.logs} == {"gen_ai.evaluation.result"}
        assert {(log.trace_id, log.span_id) for log in receiver.logs} == {(root.trace_id, root.span_id)}
        sums = receiver.metrics["ragtrace.score.w"].sum
        assert (sums.is_monotonic, sums.aggregation_temporality) == (True, 2), "cumulative"
        histogram = receiver.metrics["ragtrace.evaluation.score"].histogram
        exemplars = {e.trace_id for point in histogram.data_points for e in point.exemplars}
        assert exemplars == {root.trace_id}
        assert receiver.resource["service.name"] == "shop"
        assert service.shutdown(10)


def test_content_none_keeps_every_text_off_the_wire(chain: Any, service: Any) -> None:
    memory = Memory()
    service.configure(sample_rate=1.0, content="none", **memory.given())
    ask(chain)
    assert service.flush(30)
    shown = repr([dict(s.attributes) for s in memory.spans.get_finished_spans()])
    shown += repr([[dict(e.attributes) for e in s.events] for s in memory.spans.get_finished_spans()])
    shown += repr([item.log_record.attributes for item in memory.logs.get_finished_logs()])
    assert "refund" not in shown
    assert "parcel" not in shown
    assert memory.named()["evaluation support"].attributes["ragtrace.score.faithfulness"] == 1.0


def test_attach_link_is_a_trace_of_its_own(chain: Any, service: Any) -> None:
    memory = Memory()
    service.configure(sample_rate=1.0, attach="link", **memory.given())
    ask(chain)
    assert service.flush(30)
    spans = memory.named()
    evaluation, root = spans["evaluation support"], spans[SUPPORT]
    assert evaluation.parent is None
    assert evaluation.context.trace_id != root.context.trace_id
    assert hexed(root.context) in {hexed(link.context) for link in evaluation.links}


def test_not_drawn_is_traced_but_not_scored(chain: Any, service: Any) -> None:
    memory = Memory()
    service.configure(sample_rate=0.0, **memory.given())
    ask(chain)
    assert service.flush(30)
    root = memory.named()[SUPPORT]
    assert root.attributes["ragtrace.sampling.decision"] == "none"
    assert "evaluation support" not in memory.named()
    counted = {p.attributes["ragtrace.decision"]: p.value for p in memory.points()["ragtrace.traces"]}
    assert counted == {"sampled": 0, "skipped": 1}


def test_a_trace_that_the_tracer_dropped_is_scored_without_span_and_exemplar(chain: Any, service: Any) -> None:
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

    memory = Memory()
    memory.tracers = TracerProvider(sampler=ALWAYS_OFF)
    memory.tracers.add_span_processor(SimpleSpanProcessor(memory.spans))
    service.configure(sample_rate=1.0, **memory.given())
    ask(chain)
    assert current().wait_scored(30)
    assert memory.named() == {}
    points = {p.attributes["gen_ai.evaluation.name"]: p for p in memory.points()["ragtrace.evaluation.score"]}
    assert points["faithfulness"].count == 1
    assert list(points["faithfulness"].exemplars) == []


def test_the_ambient_span_is_the_parent(chain: Any, service: Any) -> None:
    memory = Memory()
    service.configure(sample_rate=1.0, **memory.given())
    with memory.tracers.get_tracer("app").start_as_current_span("request") as request:
        ask(chain)
    assert service.flush(30)
    assert memory.named()[SUPPORT].parent.span_id == request.get_span_context().span_id
