"""A secret across a cut: no part of it leaves, whatever cut it is and wherever the text goes."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.messages import HumanMessage
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import ragtrace
from ragtrace import text
from ragtrace.capture import internal_errors
from ragtrace.ingest import RawSpan, read_trace
from ragtrace.queues import Unit, to_bytes
from ragtrace.testing.recording import Recording
from ragtrace.text import kept
from ragtrace_langchain import RagtraceHandler

SECRET = "αβγδεζηθικλμνξοπ"  # letters that no other text of these tests has
LETTERS = frozenset(SECRET)
BOUNDS = sorted({size for name, size in vars(text).items() if name.startswith("MAX_") and name.endswith("_CHARS")})
# Of other rooms: details and explanations of scores, lines of the console and of a webhook, documents on a span.
OTHERS = [60, 80, 100, 200, 300, 4_096, 65_536]


def without(said: str) -> str:
    """Take the secret out; what it leaves is shorter, so that a later cut is further behind it."""
    return said.replace(SECRET, "")


def emptied(said: str) -> str:
    """Take out nearly all, as the worst there is for a bound: what stood at its end is then at the beginning."""
    return without(said).replace("x", "")


def across(bound: int, inside: int = len(SECRET) // 2) -> str:
    """Return a text of which a bound would keep so many letters of the secret."""
    return "x" * (bound - inside) + SECRET + " y" * 60


def leaks(*places: object) -> set[str]:
    """Return the letters of the secret in some values and their JSON."""
    shown = "".join(map(str, places))
    return {letter for letter in LETTERS if letter in shown or f"\\u{ord(letter):04x}" in shown}


def leaked_pairs(file: bytes) -> set[str]:
    """Return the pairs of letters of the secret in a file, whose ids are random bytes: one letter is there by chance."""
    pairs = {SECRET[place : place + 2] for place in range(len(SECRET) - 1)}
    return {pair for pair in pairs if pair.encode() in file or json.dumps(pair)[1:-1].encode() in file}


@pytest.mark.parametrize("redact", [without, emptied])
@pytest.mark.parametrize("bound", BOUNDS)
def test_no_bound_comes_before_redact(bound, redact):
    for inside in (1, len(SECRET) // 2, len(SECRET) - 1):
        for most in BOUNDS:
            assert not leaks(kept(across(bound, inside), most, redact)[0])


def test_a_text_beyond_what_redact_is_given_ends_before_what_may_be_half_of_a_secret():
    said, length = kept("x" * 2_000_000, text.MAX_RECORD_CHARS, without)
    assert (len(said), length) == (text.MAX_REDACTED_CHARS - text.HALF_CHARS, 2_000_000)


def test_a_mark_in_place_of_a_text_beyond_what_redact_is_given_stays():
    assert kept("x" * 2_000_000, text.MAX_RECORD_CHARS, lambda _: "[gone]") == ("[gone]", 2_000_000)


def test_a_redaction_that_returns_more_than_ten_times_its_text_has_failed():
    before = internal_errors().get("ragtrace.capture.redact", 0)
    recording = Recording(redact=lambda said: said * (11 if "Where" in said else 1))
    with recording.recorder.start(query="Where is it?", user="Ada") as run:
        run.answered("In Oslo.")
    record = recording.only.record
    assert (record.query, record.user, record.answer) == ("", "Ada", "In Oslo.")
    assert internal_errors()["ragtrace.capture.redact"] == before + 1


def test_a_mark_may_be_longer_than_its_text():
    recording = Recording(redact=lambda said: "<name of a person>" if said == "A" else said)
    with recording.recorder.start(user="A") as run:
        run.answered("In Oslo.")
    assert recording.only.record.user == "<name of a person>"


class Said:
    """An object that has a text."""

    def __init__(self, said: str) -> None:
        self.said = said

    def __str__(self) -> str:
        return self.said


def report(run: Any, said: Any) -> None:
    """Report a text in every place that takes one."""
    turn = SimpleNamespace(role="user", content=said)
    passage = {"id": "a", "text": said, "score": 0.5, "metadata": {"note": said, "notes": [said, said], said: "z"}}
    run.add_metadata({"tenant": said})
    run.set_history([turn])
    run.retrieved([passage, {"text": f"{said}z"}], source=said, query=said)
    run.reranked([passage], error=ConnectionError(said))
    run.used([said])
    run.add_prompt(said)
    run.tool_called("t", arguments={"a": said}, result=said, description=said, error=ConnectionError(said))
    run.generated(inputs=[turn], outputs=[turn], error=ConnectionError(said))
    run.answered(said, parts=[{"text": said, "citations": []}])
    run.reference(said)
    run.feedback(0.0, said, source=said)


class Kept:
    def __init__(self) -> None:
        self.texts: list[str] = []

    def emit(self, record: Any, scores: Any) -> None:
        self.texts += [repr(record), repr(scores), to_bytes(Unit(record=record)).decode()]


@pytest.mark.slow
@pytest.mark.parametrize("bound", sorted({*BOUNDS, *OTHERS}))
def test_no_part_of_a_secret_leaves_the_service(bound, tmp_path, caplog, capsys):
    spans, events, sink = InMemorySpanExporter(), InMemoryLogRecordExporter(), Kept()
    tracing, logs = TracerProvider(), LoggerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(spans))
    logs.add_log_record_processor(SimpleLogRecordProcessor(events))
    file = str(tmp_path / "file.sqlite")
    ragtrace.configure(
        judge="overlap", sample_rate=1.0, content="full", store_texts="all", span_metadata="tenant", console=True,
        store=file, spool=file, redact=without, sinks=[sink], tracer_provider=tracing, logger_provider=logs,
    )  # fmt: skip
    try:
        for said in (across(bound), Said(across(bound))):
            names = {"session": said, "user": said, "corpus": said, "corpus_version": said, "tags": [said]}
            with ragtrace.query(said, **names) as run:
                report(run, said)
            with ragtrace.query(said) as run:
                run.failed(ConnectionError(said))
            assert ragtrace.feedback(run.trace_id, 0.0, said, rater=said, session=said, user=said)
        assert ragtrace.flush(60)
    finally:
        ragtrace.shutdown(10)
    places = {
        "spans": [span.to_json() for span in spans.get_finished_spans()],
        "events": [event.to_json() for event in events.get_finished_logs()],
        "sink": sink.texts,
        "console": capsys.readouterr(),
        "log": caplog.text,
    }
    assert len(sink.texts) == 12
    assert {place: found for place, it in places.items() if (found := leaks(it))} == {}
    assert {path.name: found for path in tmp_path.iterdir() if (found := leaked_pairs(path.read_bytes()))} == {}


@pytest.mark.parametrize("bound", [text.MAX_TEXT_CHARS, text.MAX_REDACTED_CHARS])
def test_no_part_of_a_secret_is_left_of_a_stream_that_breaks_off(bound):
    recording, call = Recording(redact=without), uuid4()
    with recording.recorder.start(query="Where?"):
        handler = RagtraceHandler(recorder=recording.recorder)
        handler.on_chat_model_start({}, [[HumanMessage("Where?")]], run_id=call)
        for piece in ("x" * (bound - 8), SECRET[:3], SECRET[3:9], SECRET[9:], "y"):
            handler.on_llm_new_token(piece, run_id=call)
        handler.on_llm_error(ConnectionError("the server went away"), run_id=call)
    said = "".join(turn.content for step in recording.only.steps for turn in step.outputs)
    assert said.startswith("xxx")
    assert not leaks(recording.runs, *(span.to_json() for span in recording.spans))


@pytest.mark.parametrize("bound", BOUNDS)
def test_no_part_of_a_secret_is_left_of_a_received_span(bound):
    said = across(bound)
    facts = {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.query.text": said,
        "error.type": "Timeout",
    }
    pairs = [KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in facts.items()]
    failed = Status(code=Status.STATUS_CODE_ERROR, message=said)
    span = Span(trace_id=bytes(range(16)), span_id=b"12345678", attributes=pairs, status=failed)
    runs = read_trace([RawSpan(span, Resource())], redact=without)
    assert len(runs) == 1
    assert not leaks(runs)
