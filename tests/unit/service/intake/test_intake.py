"""The intake asks for no fewer traces than may be drawn, counts each once, and pushes back when it is full."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

import ragtrace
from ragtrace.ingest import AssemblyLimits, RawSpan
from ragtrace.model import RagRecord
from ragtrace.queues import MemoryQueue, Unit
from ragtrace.sampling import Rates, Rule, Sampler, uniform
from ragtrace.service import TraceIntake, runtime

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ragtrace.service import Service

FIXTURES = Path(__file__).parents[3] / "ingest" / "fixtures"


@pytest.fixture
def service() -> Iterator[Any]:
    def make(**settings: Any) -> Service:
        ragtrace.configure(**settings)
        made = runtime.current()
        assert made is not None
        return made

    yield make
    ragtrace.shutdown(5.0)


def spans(name: str) -> list[RawSpan]:
    found = []
    for line in (FIXTURES / name).read_text().splitlines():
        for resource in _parsed(line).resource_spans:
            for scope in resource.scope_spans:
                found += [RawSpan(span, resource.resource, scope.scope.name) for span in scope.spans]
    return found


def _parsed(line: str) -> ExportTraceServiceRequest:
    given = json.loads(line)
    for resource in given["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for name in ("traceId", "spanId", "parentSpanId"):
                    span[name] = base64.b64encode(bytes.fromhex(span.get(name, ""))).decode()
    return ParseDict(given, ExportTraceServiceRequest(), ignore_unknown_fields=True)


def test_no_trace_that_would_be_drawn_is_left_out_by_its_id() -> None:
    rates = Rates(
        rate=0.1, metrics={"nuggets": 0.3}, rules=(Rule(rate=0.2, tag="vip"), Rule(rate=0.01, tag="bulk"))
    )
    metrics = ("faithfulness", "nuggets")
    share = rates.most(metrics)
    assert share == pytest.approx(0.6)
    sampler = Sampler(rates)
    for _ in range(3_000):
        trace_id = os.urandom(16).hex()
        for tags in ((), ("vip",), ("bulk",)):
            record = RagRecord(id="1", trace_id=trace_id, tags=tags)
            if sampler.decide(record, metrics, seen=share).decision == "random":
                assert uniform(trace_id) < share


def test_each_trace_is_counted_once_by_what_became_of_it(service: Any) -> None:
    made = service(sample_rate=1.0)
    intake = TraceIntake(made)
    given = spans("openinference/openinference-langchain-0.1.80.jsonl")
    assert intake.put_spans(given, skipped_roots=10) == 0
    assert intake.put_spans(given, skipped_roots=0) == 0  # a sender's retry
    intake.close()
    assert made.flush(20.0)
    assert {end: n for end, n in made.ledger.snapshot().items() if n} == {
        "offered": 13, "skipped": 10, "skipped:not_sampled": 10, "scored": 3,
    }  # fmt: skip
    assert intake.counts["duplicate"] == len(given)


def test_a_run_that_its_own_application_scores_is_not_scored_twice(service: Any) -> None:
    made = service(sample_rate=1.0)
    said: list[str] = []
    intake = TraceIntake(made, say=said.append)
    given = spans("ragtrace/ragtrace-langchain-full.jsonl")
    for raw in given:
        for pair in raw.span.attributes:
            if pair.key == "ragtrace.sampling.decision":
                pair.value.string_value = "random"
    intake.put_spans(given, skipped_roots=0)
    intake.close()
    assert made.ledger.snapshot()["skipped:scored_by_sender"] == 3
    assert len(said) == 1


@pytest.mark.parametrize(("is_chain_here", "outcome"), [(True, "answered"), (False, "partial")])
def test_a_run_is_partial_where_the_span_around_it_is_missing(
    service: Any, outcome: str, *, is_chain_here: bool
) -> None:
    records: list[RagRecord] = []

    class Sink:
        def emit(self, record: RagRecord, scores: object) -> None:
            del scores
            records.append(record)

    made = service(sample_rate=1.0, sinks=[Sink()])
    intake = TraceIntake(made, limits=AssemblyLimits(longest_s=0.0))
    given = spans("openinference/openinference-langchain-0.1.80.jsonl")
    for raw in given:
        if not raw.span.parent_span_id:
            raw.span.parent_span_id = b"elsewher"
    if not is_chain_here:
        given = [raw for raw in given if raw.span.name in {"HelpCentre", "ChatOpenAI"}]
    intake.put_spans(given, skipped_roots=0)
    intake.close()
    assert made.flush(20.0)
    assert {record.outcome for record in records} == {outcome}
    assert intake.counts["no_root"] == 3


def test_a_full_assembly_or_queue_asks_senders_to_wait(service: Any) -> None:
    made = service(sample_rate=1.0)
    intake = TraceIntake(made, limits=AssemblyLimits(traces=3))
    assert intake.retry_after_s() is None
    given = spans("openinference/openinference-langchain-0.1.80.jsonl")
    intake.put_spans(given, skipped_roots=0)
    assert intake.retry_after_s() == 10.0
    intake.close()
    assert intake.retry_after_s() is None
    made.queue = MemoryQueue(2, 1 << 20)
    for name in "ab":
        made.queue.put(Unit(record=RagRecord(id=name)))
    assert intake.retry_after_s() == 5.0


def test_content_is_advised_where_the_sender_hides_it(service: Any) -> None:
    said: list[str] = []
    intake = TraceIntake(service(sample_rate=1.0), say=said.append)
    intake.put_spans(spans("ragtrace/ragtrace-langchain-none.jsonl"), skipped_roots=0)
    intake.close()
    assert any("set RAGTRACE_CONTENT=full" in line for line in said)
