"""What is JSON stays JSON under every limit of the SDK, and says that it was cut."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.sdk._logs import LoggerProvider, LogRecordLimits
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import SpanLimits

from ragtrace import semconv
from ragtrace.capture import Recorder
from ragtrace.model import Call, JudgeInfo, Message
from ragtrace.telemetry import EvaluationWriter, SpanWriter
from ragtrace.telemetry.spans.evaluation import MAX_SCORE_ATTRIBUTES
from ragtrace.telemetry.wire import AttributeLimits, cut_value, within
from ragtrace.text import size_bytes
from tests.unit.telemetry.runs import Taken, score

ARGUMENTS = json.dumps(
    {"q": "return window", "filters": {"region": "north " * 300, "shops": [*range(300)]}}, indent=2
)
ANSWER = json.dumps({"answer": "You have thirty days. " * 90, "sources": [f"document {n}" for n in range(200)]})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=80),
    lambda inner: st.lists(inner, max_size=9) | st.dictionaries(st.text(max_size=9), inner, max_size=9),
    max_leaves=60,
)


def json_run(writer):
    """A run in which the application's own texts are JSON wherever it has any."""
    taken = Taken(writer)
    run = Recorder(taken, span_metadata=["filter"]).start(query=ANSWER, workflow="support", tags=[ANSWER[:200]])
    run.add_metadata({"filter": json.dumps({"shop": ["Oslo"] * 40})})
    pool = [{"id": f"{n}é", "text": ANSWER, "score": 0.5, "metadata": {"title": "y" * 300}} for n in range(60)]
    run.retrieved(pool, query=ARGUMENTS)
    run.reranked(pool[:20])
    run.tool_called("search", arguments=ARGUMENTS, result=ANSWER)
    calls = [Message(role="assistant", content="", calls=(Call(name="search", arguments=ARGUMENTS),))]
    said = [Message(role="user", content=ANSWER), *calls, Message(role="tool", content=ANSWER)]
    run.generated(model="m", inputs=said, outputs=said[:1], error=ValueError(ANSWER))
    run.answered(ANSWER, model="m")
    run.failed(ValueError(ANSWER))
    run.finish()
    return taken.runs[0]


def exported(make_spans, log_limits=None, *, dialect="both", content="full", scores=None, **limits):
    """Return all attribute sets that a run and its scores make under some limits: of spans, events and records."""
    spans, records = make_spans(span_limits=SpanLimits(**limits)), InMemoryLogRecordExporter()
    loggers = LoggerProvider(log_record_limits=log_limits) if log_limits else LoggerProvider()
    loggers.add_log_record_processor(SimpleLogRecordProcessor(records))
    writer = SpanWriter(spans.tracer, content=content, dialect=dialect)
    root, captured = json_run(writer)
    writer.write(root, captured, decision="random", reason=None, probability=1.0)
    root.end(captured.ended_ns)
    told = {"explanation": ANSWER, "unsupported": [f"Claim {n} is long enough to be cut." for n in range(60)]}
    judge = JudgeInfo(model="m", prompt_hash="p")
    scores = scores or [score(f"metric_{n}", details=told, judge=judge, root=root) for n in range(4)]
    evaluation = EvaluationWriter(spans.tracer, loggers.get_logger("ragtrace"), content=content)
    evaluation.write(
        captured.record, scores, is_root_sampled=True, decision="random", probability=1.0, started_ns=0, ended_ns=1
    )
    evaluation.write_feedback(root.trace_id, root.span_id, "helpful", 1.0, ANSWER, is_good=True)
    found = [span.attributes for span in spans.finished]
    found += [event.attributes for span in spans.finished for event in span.events]
    return [*found, *(entry.log_record.attributes for entry in records.get_finished_logs())], spans


def is_json(text):
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("dialect", ["both", "genai", "openinference"])
@pytest.mark.parametrize("length", [0, 1, 2, 30, 255, 1_024, 4_095])
def test_every_attribute_that_is_json_stays_json_and_says_that_it_was_cut(make_spans, dialect, length):
    whole, _ = exported(make_spans, dialect=dialect)
    cut, _ = exported(
        make_spans, LogRecordLimits(max_attribute_length=length), dialect=dialect, max_attribute_length=length
    )
    assert len(whole) == len(cut) > 10
    told = {semconv.SPAN_CUT, semconv.GEN_AI_RETRIEVAL_DOCUMENTS}  # whose texts have a count of their own
    for before, after in zip(whole, cut, strict=True):
        named, over = after.get(semconv.SPAN_CUT, ()), set()
        for name, value in before.items():
            if isinstance(value, str) and len(value) > length and name not in told:
                over.add(name)
                kept = after.get(name, "")
                assert len(kept) <= length, name
                assert is_json(kept or "0") or not is_json(value), (name, value[:99], kept[:99])
        assert named or not (over and length)
        if length >= 255:
            by_field = {name for name in over if name not in after}  # which another form may stand for
            assert over - by_field <= {*named} or sum(map(len, named)) > 400


@pytest.mark.parametrize("dialect", ["both", "openinference"])
def test_the_limit_of_spans_alone_leaves_events_and_records_whole(make_spans, dialect):
    found, spans = exported(make_spans, dialect=dialect, max_span_attribute_length=200)
    whole, _ = exported(make_spans, dialect=dialect)
    of_spans = len(spans.finished)
    sizes = [[{name: len(str(value)) for name, value in it.items()} for it in all_of] for all_of in (found, whole)]
    assert sizes[0][of_spans:] == sizes[1][of_spans:], "ids differ"
    assert all(len(value) <= 200 for one in found[:of_spans] for value in one.values() if isinstance(value, str))


def test_versions_of_all_metrics_stay_in_the_details_and_the_last_claims_go(make_spans):
    _, spans = exported(make_spans, max_attribute_length=1_024)
    found = spans.one("evaluation").attributes
    details = json.loads(found[semconv.EVALUATION_DETAILS])
    assert [row["version"] for row in details.values()] == ["0a1b2c3d"] * 4
    assert details["metric_0"]["details"]["explanation"].startswith('{"answer"')
    assert "details" not in details["metric_3"]
    assert semconv.EVALUATION_DETAILS in found[semconv.SPAN_CUT]


@pytest.mark.parametrize("count", [1, 4, 12, 40])
def test_too_many_attributes_lose_the_last_and_not_the_first(make_spans, count):
    limits = LogRecordLimits(max_attributes=count)
    found, spans = exported(make_spans, limits, max_attributes=count, max_span_attributes=count)
    assert all(len(one) <= count for one in found)
    names = [next(iter(event.attributes)) for event in spans.one("evaluation").events]
    if count > 3:
        assert {span.dropped_attributes for span in spans.finished} == {0}
        assert set(names) == {semconv.GEN_AI_EVALUATION_NAME}
        top = spans.one("evaluation").attributes
        assert top[semconv.GEN_AI_OPERATION_NAME] == semconv.OPERATION_EVALUATION
        assert (semconv.SPAN_CUT in top) == (count < 40)


def test_scores_come_before_their_details_where_attributes_are_few(make_spans):
    scores = [score(f"metric_{n}") for n in range(MAX_SCORE_ATTRIBUTES)]
    _, spans = exported(make_spans, scores=scores, max_span_attributes=64)
    found = spans.one("evaluation").attributes
    assert sum(name.startswith("ragtrace.score.") for name in found) > 40
    assert found["ragtrace.score.metric_0"] == 0.75


def test_limits_of_the_environment_count_where_a_span_does_not_show_its_own(monkeypatch):
    from ragtrace.telemetry.spans.limits import event_limits, log_limits, span_limits

    monkeypatch.setenv("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "99")
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "50")
    monkeypatch.setenv("OTEL_LOGRECORD_ATTRIBUTE_COUNT_LIMIT", "7")
    assert span_limits(object()) == (50, 128)
    assert event_limits(object()) == (99, 128)
    assert log_limits(object()) == (99, 7)


@settings(max_examples=300, deadline=None)
@given(JSON, st.integers(0, 200), st.booleans(), st.booleans())
def test_any_json_is_cut_to_json_within_its_room(value, most, is_bytes, is_spaced):
    size = size_bytes if is_bytes else len
    text = json.dumps(value, ensure_ascii=is_spaced, indent=2 if is_spaced else None)
    kept = cut_value(text, most, size)
    if size(text) <= most:
        assert kept == text
    elif text[0] in '[{"':
        assert kept is None or (size(kept) <= most and type(json.loads(kept)) is type(value))
        assert kept is not None or most < 2
    else:  # a number is cut like a text
        assert size(kept) <= most


def test_what_is_no_json_is_cut_as_a_text():
    for text in ("[1] says so. " * 9, '"Yes", she said. ' * 9, "{name} is " * 20, "[" * 5_000):
        kept = cut_value(text, 60)
        assert (
            kept == text[: 60 - len(f"…[cut, {len(text)} characters]".encode())] + f"…[cut, {len(text)} characters]"
        )
    assert cut_value("é" * 99, 11) == "é" * 5, "no room for a mark"
    assert cut_value(('["Oslo","Bergen"]', "ab", "north " * 9), 10, len) == ('["Oslo"]', "ab", "north nort")


def test_a_long_document_is_cut_in_one_walk():
    text = json.dumps([{"text": "é" * 40, "n": n} for n in range(20_000)])
    kept = json.loads(cut_value(text, 100_000))
    assert kept == [{"text": "é" * 40, "n": n} for n in range(len(kept))]
    assert 900 < len(kept) < 1_200


def test_attributes_within_limits():
    kept = within({"a": 1, "b": "x" * 50, "c": "y", "d": 2}, AttributeLimits(length=30, most=3))
    assert kept == {"a": 1, "b": "xxxxxxxxx…[cut, 50 characters]", semconv.SPAN_CUT: ("b", "c", "d")}
    assert within({"a": 1, "c": "y"}, AttributeLimits(length=30, most=2)) == {"a": 1, "c": "y"}
    assert within({"a": 1}, AttributeLimits(most=0)) == {}
