"""What a scorer in an application's process promises, each as a named test with real parts."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import time
import weakref

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import ragtrace
from integrations.langchain.tests.parts import lcel
from ragtrace.capture import internal_errors
from ragtrace.service import current
from ragtrace_langchain import RagtraceHandler
from tests.guards.judge_server import Answer
from tests.guards.processes import until
from tests.kept import ANSWER
from tests.process.observing import ask, fork, providers, status_of

pytestmark = pytest.mark.slow


@pytest.fixture
def exporter():
    return InMemorySpanExporter()


@pytest.fixture
def start(exporter):
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    def configure(**settings):
        ragtrace.configure(
            **{
                "sample_rate": 1.0,
                "content": "full",
                **providers(tracer_provider=provider),
                **settings,
            }
        )
        return current()

    yield configure
    ragtrace.shutdown(5)


def balanced(service):
    counts, pending = service.gauges.accounts()
    assert service.ledger.offered == sum(counts.values()) + pending
    return counts


def test_nothing_of_a_hook_a_sink_or_an_exporter_reaches_the_application(start, exporter):
    class Bad:
        def emit(self, record, scores):
            raise RuntimeError("sink")

    def redact(text):
        raise RuntimeError("redact")

    before = sum(internal_errors().values())
    exporter.export = lambda spans: 1 / 0
    start(redact=redact, sinks=[Bad()])
    assert lcel().invoke("Where?", {"callbacks": [RagtraceHandler()]}) == ANSWER
    assert ragtrace.flush(10)
    assert sum(internal_errors().values()) > before


def test_memory_is_bounded_and_what_is_dropped_is_counted(start, hung):
    service = start(judge="openai:m", judge_base_url=hung, queue_units=50, concurrency=2)
    ask(500)
    assert service.pipeline.drain(30)
    assert service.queue.size <= 50
    counts = balanced(service)
    assert counts["dropped", "queue_full"] >= 500 - 50 - 2
    assert not ragtrace.shutdown(0.5)
    assert balanced(service)["dropped", "shutdown"] >= 50


@pytest.mark.parametrize("busy", [False, True], ids=["quiet", "while others capture"])
def test_a_forked_child_scores_its_own_runs_and_the_parent_goes_on(start, busy):
    def child():
        ask()
        return ragtrace.flush(20) and dict(current().ledger.counts()) == {("scored", ""): 1}

    service = start()
    ask()
    stop = threading.Event()

    def others():
        while not stop.is_set():
            ask()

    threads = [threading.Thread(target=others) for _ in range(2 if busy else 0)]
    for thread in threads:
        thread.start()
    number = fork(child)
    stop.set()
    for thread in threads:
        thread.join()
    assert status_of(number) == 0
    ask()
    assert ragtrace.flush(20)
    assert balanced(service).keys() == {("scored", "")}


def test_a_shutdown_keeps_its_deadline(start, hung):
    start(judge="openai:m", judge_base_url=hung)
    ask()
    begun = time.monotonic()
    assert not ragtrace.shutdown(1.0)
    assert time.monotonic() - begun < 5.0


def test_a_shutdown_says_how_many_traces_it_leaves(start, server, caplog):
    class Sink:
        def emit(self, record, scores):
            raise AssertionError

        def close(self, timeout_s):
            until(lambda: service.ledger.pending == 0)  # those under way have ended, too

    server.always = lambda _: Answer(hold=threading.Event())
    service = start(judge="openai:m", judge_base_url=server.url, concurrency=2, sinks=[Sink()])
    ask(5)
    until(lambda: len(server.requests) == 2)
    assert not ragtrace.shutdown(1.0)
    (said,) = [record.getMessage() for record in caplog.records if "shutdown" in record.getMessage()]
    assert "not scored: 5 traces" in said


def test_a_service_that_was_shut_down_is_collected(start):
    service = weakref.ref(start())
    ask()
    ragtrace.flush(10)
    ragtrace.shutdown(10)
    deadline = time.monotonic() + 30
    while service() is not None and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.02)
    assert service() is None


def test_a_suspended_stream_s_span_is_exported_before_the_end(start, exporter):
    start()
    stream = lcel().stream("Where?", {"callbacks": [RagtraceHandler()]})
    next(stream)
    ragtrace.shutdown(10)
    roots = [span for span in exporter.get_finished_spans() if span.parent is None]
    assert [span.attributes["ragtrace.run.outcome"] for span in roots] == ["partial"]
    assert "".join(stream) == ANSWER.removeprefix("T")


def test_what_we_call_may_call_us(start, caplog):
    """A sink that asks a captured chain makes no run to score, and a log handler that captures ends by itself."""
    asked = []

    class Asks:
        def emit(self, record, scores):
            if record.workflow not in {"inner", "log"}:
                ask(workflow="inner")
                asked.append(record.id)

    class Captures(logging.Handler):
        def emit(self, record):
            with ragtrace.query("from a log", workflow="log"):
                pass

    handler = Captures()
    logging.getLogger("ragtrace").addHandler(handler)
    try:
        service = start(sinks=[Asks()])
        ask()
        deadline = time.monotonic() + 30
        while (not asked or service.ledger.pending) and time.monotonic() < deadline:
            time.sleep(0.01)
        logging.getLogger("ragtrace").warning("something")
        assert ragtrace.flush(10)
    finally:
        logging.getLogger("ragtrace").removeHandler(handler)
    assert len(asked) == 1
    assert service.ledger.offered == 2


class Hostile:
    """A value of which nothing can be asked."""

    def __getattr__(self, name):
        raise ZeroDivisionError(name)

    __str__ = __repr__ = __iter__ = __len__ = __bool__ = __float__ = __hash__ = __getattr__
    __eq__ = __lt__ = __gt__ = __getattr__


def broken_off():
    yield "a"
    raise RuntimeError


def test_no_value_of_an_argument_raises_and_every_run_ends(start):
    service = start()
    values = [None, 5, -1, float("nan"), 10**400, b"x", "\ud800", [], {}, object(), Hostile(), [Hostile()], [[[]]]]
    fields = ("workflow", "session", "user", "corpus", "corpus_version", "tags", "k")
    methods = (
        "retrieved",
        "reranked",
        "used",
        "answered",
        "set_labels",
        "add_metadata",
        "add_prompt",
        "tool_called",
    )
    for value in values:
        for field in fields:
            ragtrace.query("Where?", **{field: value}).finish()
        ragtrace.query(value).finish()
        ragtrace.feedback(value, value, value)
    for make in (broken_off, *(lambda value=value: value for value in values)):
        for method in methods:
            with ragtrace.query("Where?") as run:
                getattr(run, method)(make())
    assert ragtrace.flush(60)
    balanced(service)
    assert service.ledger.offered == len(values) * (len(fields) + 1) + (len(values) + 1) * len(methods)
    with pytest.raises(TypeError):
        ragtrace.query("Where?", wrkflow="x")


def test_huge_deep_and_cyclic_data(start):
    loop = {}
    loop["self"] = loop
    deep = []
    for _ in range(100_000):
        deep = [deep]
    service = start()
    with ragtrace.query("x" * 50_000_000) as run:
        run.retrieved([{"id": "a", "text": "y" * 5_000_000, "metadata": {"loop": loop, "deep": deep}}])
        run.answered("z" * 5_000_000)
    assert ragtrace.flush(60)
    assert balanced(service) == {("scored", ""): 1}


def test_an_outage_of_the_collector_holds_up_nobody():
    """The port is closed; the runs go on, and a flush says in time that not everything was exported."""
    provider = TracerProvider()
    nowhere = OTLPSpanExporter(endpoint="http://127.0.0.1:9/v1/traces", timeout=1)
    provider.add_span_processor(BatchSpanProcessor(nowhere, max_queue_size=16, max_export_batch_size=8))
    ragtrace.configure(sample_rate=1.0, tracer_provider=provider)
    try:
        service = current()
        for _ in range(100):
            assert lcel().invoke("Where?", {"callbacks": [RagtraceHandler()]}) == ANSWER
        begun = time.monotonic()
        ragtrace.flush(3.0)
        assert time.monotonic() - begun < 10.0
        assert service.wait_scored(30)
        assert balanced(service) == {("scored", ""): 100}
    finally:
        ragtrace.shutdown(1.0)


def test_many_threads_and_event_loops_share_one_recorder(start, exporter):
    service = start()
    chain, handler = lcel(), RagtraceHandler()

    def loop(number):
        async def several():
            return await asyncio.gather(
                *(chain.ainvoke(f"{number}-{i}?", {"callbacks": [handler]}) for i in range(10))
            )

        assert asyncio.run(several()) == [ANSWER] * 10

    threads = [threading.Thread(target=loop, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ragtrace.flush(60)
    assert balanced(service) == {("scored", ""): 80}
    roots = [s for s in exporter.get_finished_spans() if s.name.startswith("invoke_workflow")]
    assert len({span.attributes["input.value"] for span in roots}) == len(roots) == 80


@pytest.mark.parametrize("jump_s", [86_400, -86_400])
def test_a_wall_clock_that_jumps_makes_no_negative_time(start, exporter, monkeypatch, jump_s):
    service = start()
    real, real_ns = time.time, time.time_ns
    with ragtrace.query("Where?") as run:
        run.retrieved([{"id": "a", "text": "The lab is in Oslo.", "score": 0.9}])
        monkeypatch.setattr(time, "time", lambda: real() + jump_s)
        monkeypatch.setattr(time, "time_ns", lambda: real_ns() + jump_s * 10**9)
        run.answered(ANSWER)
    assert ragtrace.flush(20)
    assert balanced(service) == {("scored", ""): 1}
    spans = exporter.get_finished_spans()
    assert [span.name for span in spans if span.end_time < span.start_time] == []
