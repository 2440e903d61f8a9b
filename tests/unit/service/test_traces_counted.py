"""`ragtrace.traces` counts every trace once, as what was decided of it; what becomes of it is the ledger's."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import ragtrace
from ragtrace import semconv
from ragtrace.model import RagRecord, Reading, Sign
from ragtrace.sampling import Load, Pressure
from ragtrace.service import current
from tests.guards.processes import until
from tests.process.observing import ask, points, providers


@pytest.fixture
def reader():
    found = InMemoryMetricReader()
    yield found
    ragtrace.shutdown(5)


def configure(reader, rate, **settings):
    ragtrace.configure(sample_rate=rate, **providers(meter_provider=MeterProvider([reader])), **settings)
    return current()


def traces(reader):
    if (service := current()) is not None:
        assert service.pipeline.drain(30)
    counted = points(reader, semconv.TRACES).items()
    return {(dict(about)[semconv.DECISION], dict(about).get(semconv.REASON)): n for about, n in counted}


def test_what_pressure_left_no_chance_counts_as_dropped_everywhere(reader):
    service = configure(reader, 0.5)
    now = [0.0]
    pressure = Pressure(lambda: Load(size=0, capacity=10, served=0), window_s=60, clock=lambda: now[0])
    pressure.factor(1e9)  # a window with so many traces leaves the next one a factor next to 0
    now[0] = 61.0
    service.sampler._pressure = pressure
    ask(20)
    dropped = traces(reader).get(("dropped", "pressure"), 0)
    assert dropped == 20
    assert service.ledger._ends["dropped", "pressure"] == dropped
    assert traces(reader).get(("sampled", "pressure")) is None


def test_drawn_and_not_drawn(reader):
    service = configure(reader, 1.0)
    ask()
    assert service.pipeline.drain(30)
    service.sampler.rates = service.sampler.rates.__class__(rate=0.0)
    ask()
    assert traces(reader) == {("sampled", None): 1, ("skipped", "not_sampled"): 1}


def test_runs_are_counted_drawn_or_not_and_a_later_revision_is_not(reader):
    service = configure(reader, 0.0)
    ask(2)
    assert service.pipeline.drain(30)
    record = RagRecord(id="1", workflow="late", reading=Reading(signs=(Sign("answer_guessed"),)))
    for revision in (0, 1):
        revised = replace(record, revision=revision)
        service.pipeline.unit_of(revised, service.sampler.decide(revised, service.pipeline.metrics))
    assert sum(points(reader, semconv.RUNS).values()) == 3
    signed = {dict(about)[semconv.SIGN]: n for about, n in points(reader, semconv.RUNS_SIGNED).items() if n}
    assert signed == {"answer_guessed": 1, "any": 1}


def test_a_captured_run_counts_under_its_sign_and_its_root_names_it(reader):
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    ragtrace.configure(
        sample_rate=0.0, **providers(meter_provider=MeterProvider([reader]), tracer_provider=provider)
    )
    with ragtrace.query("Where?", workflow="desk") as run:
        run.retrieved([{"id": "a", "text": "The lab is in Oslo."}])
        run.add_prompt("Nothing of what was found stands here.")
        run.answered("In Oslo.")
    assert current().pipeline.drain(30)
    signed = {
        (dict(about)[semconv.GEN_AI_WORKFLOW_NAME], dict(about)[semconv.SIGN]): n
        for about, n in points(reader, semconv.RUNS_SIGNED).items()
    }
    assert {key: n for key, n in signed.items() if n} == {("desk", "evidence_unread"): 1, ("desk", "any"): 1}
    assert len(signed) == 10  # the others at 0, so that the first increase is seen
    (root,) = [span for span in spans.get_finished_spans() if span.name == "invoke_workflow desk"]
    assert root.attributes[semconv.RUN_SIGNS] == ("evidence_unread",)


def test_what_is_lost_later_is_counted_once_and_lost_in_the_ledger(reader, hung):
    judged = {"judge": "openai:m", "judge_base_url": hung, "judge_api_key": "k"}
    service = configure(reader, 1.0, queue_units=5, concurrency=1, **judged)
    ask(50)
    assert traces(reader) == {("sampled", None): 50}
    assert service.ledger.counts()["dropped", "queue_full"] >= 44
    assert not ragtrace.shutdown(0.5)
    assert traces(reader) == {("sampled", None): 50}
    until(lambda: service.ledger.counts().get(("dropped", "shutdown"), 0) >= 5)  # the call under way ends last


def test_what_a_spool_does_not_take_is_counted_once_and_lost_in_the_ledger(reader, tmp_path, monkeypatch):
    service = configure(reader, 1.0, spool=str(tmp_path / "spool.sqlite"), scorer="worker")
    monkeypatch.setattr("ragtrace.queues.sqlite.MOST_BYTES", 1)
    ask()
    assert ragtrace.flush(30)
    assert traces(reader) == {("sampled", None): 1}
    assert service.ledger.counts() == {("dropped", "too_large"): 1}
