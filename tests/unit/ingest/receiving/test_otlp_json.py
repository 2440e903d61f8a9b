"""OTLP/JSON becomes the messages that protobuf's own converter makes, with OTLP's hexadecimal ids."""

from __future__ import annotations

import json
import random

import orjson
import pytest
from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as st

from ragtrace.ingest import ReceiverLimits, ReceiverRefusal
from ragtrace.ingest.receiving.otlp_json import read_logs, read_spans
from tests.unit.ingest.receiving.requests import logs_request, some_spans, span, spans_request

LIMITS = ReceiverLimits()
EVENT = b"gen_ai.evaluation.result"
HEX = {"traceId": "trace_id", "spanId": "span_id", "parentSpanId": "parent_span_id"}


def as_json(request, *, snake=False, names=False):
    """The request as OTLP writes it in JSON."""
    loaded = json_format.MessageToDict(request, preserving_proto_field_name=snake, use_integers_for_enums=not names)
    resources = "resource_spans" if snake else "resourceSpans"
    for resource, of_resource in zip(loaded.get(resources, []), request.resource_spans, strict=True):
        for scope, of_scope in zip(
            resource["scope_spans" if snake else "scopeSpans"], of_resource.scope_spans, strict=True
        ):
            for one, message in zip(scope["spans"], of_scope.spans, strict=True):
                for camel, name in HEX.items():
                    if value := getattr(message, name):
                        one[name if snake else camel] = value.hex()
    return loaded


def read(loaded, wants=lambda _: True, limits=LIMITS):
    return read_spans(orjson.dumps(loaded), limits, wants)


@pytest.mark.parametrize("snake", [False, True])
@pytest.mark.parametrize("names", [False, True])
def test_spans_are_those_of_the_protobuf_form(snake, names):
    request = some_spans()
    found = read(as_json(request, snake=snake, names=names))
    assert [raw.span for raw in found.wanted] == list(request.resource_spans[0].scope_spans[0].spans)
    assert {raw.scope for raw in found.wanted} == {"tests"}
    assert found.wanted[0].resource == request.resource_spans[0].resource


def test_unwanted_roots_are_counted():
    request = some_spans(count=40)
    found = read(as_json(request), lambda trace_id: trace_id[0] < 128)
    others = [one for one in request.resource_spans[0].scope_spans[0].spans if one.trace_id[0] >= 128]
    assert (len(found.wanted), found.rejected) == (40 - len(others), 0)
    assert found.skipped_roots == sum(not one.parent_span_id for one in others)


def test_unknown_fields_and_nulls_are_ignored():
    loaded = as_json(some_spans(count=1))
    one = loaded["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    one |= {"later": {"a": [1]}, "links": None, "traceState": None}
    assert len(read(loaded).wanted) == 1


@pytest.mark.parametrize("value", ["1700000000000000001", 1700000000000000001])
def test_64_bits_come_as_text_or_number(value):
    loaded = as_json(some_spans(count=1))
    loaded["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["startTimeUnixNano"] = value
    assert read(loaded).wanted[0].span.start_time_unix_nano == 1700000000000000001


@pytest.mark.parametrize(
    "change",
    [
        {"startTimeUnixNano": "-1"}, {"startTimeUnixNano": "1" * 5_000}, {"startTimeUnixNano": True}, {"kind": "WHAT"},
        {"kind": 2**31}, {"name": 5}, {"attributes": {}}, {"attributes": [5]}, {"events": [[]]}, {"status": []},
        {"parentSpanId": "zz"}, {"attributes": [{"key": "a", "value": {"bytesValue": "***"}}]}, {"status": {"code": 0.5}},
        {"attributes": [{"key": "a", "value": {"doubleValue": "many"}}]}, {"traceState": []},
        {"attributes": [{"key": "a", "value": {"boolValue": 1}}]}, {"flags": -1},
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_refused(change):
    loaded = as_json(some_spans(count=1))
    loaded["resourceSpans"][0]["scopeSpans"][0]["spans"][0] |= change
    with pytest.raises(ReceiverRefusal) as refused:
        read(loaded)
    assert refused.value.reason == "malformed"


@pytest.mark.parametrize("trace_id", ["", None, 5, "zz", "00" * 16, "ab" * 15, ["a"]])
def test_a_span_without_a_trace_id_is_rejected_alone(trace_id):
    loaded = as_json(some_spans(count=2))
    loaded["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"] = trace_id
    found = read(loaded)
    assert (len(found.wanted), found.rejected) == (1, 1)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"null", b"5", b'"x"', b"\xff", b"[" * 200_000, b'{"a":' * 200_000, b"[" * 900 + b"]" * 900,
        b'{"resourceSpans": 5}', b'{"resourceSpans": [5]}', b'{"resourceSpans": [{"scopeSpans": [[]]}]}',
        b'{"resourceSpans": [{"resource": 5, "scopeSpans": [{"spans": 5}]}]}', b'{"resourceSpans": "\\ud800"}',
    ],
)  # fmt: skip
def test_a_broken_body_is_refused(body):
    with pytest.raises(ReceiverRefusal) as refused:
        read_spans(body, LIMITS, lambda _: True)
    assert refused.value.reason == "malformed"


def test_values_within_values_have_a_limit():
    value = {"stringValue": "x"}
    for _ in range(40):
        value = {"arrayValue": {"values": [value]}}
    loaded = as_json(some_spans(count=1))
    loaded["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"] = [{"key": "a", "value": value}]
    with pytest.raises(ReceiverRefusal):
        read(loaded)


def test_json_over_its_limits_is_refused():
    loaded = as_json(some_spans(count=5))
    for limits in (ReceiverLimits(json_bytes=100), ReceiverLimits(items=5)):
        with pytest.raises(ReceiverRefusal) as refused:
            read(loaded, limits=limits)
        assert refused.value.http_status == 413
    assert read(loaded, limits=ReceiverLimits(span_bytes=10)).rejected == 5


@pytest.mark.parametrize("as_attribute", [False, True])
def test_evaluation_results_are_found_among_logs(as_attribute):
    request = logs_request("gen_ai.evaluation.result", "other", as_attribute=as_attribute)
    loaded = json_format.MessageToDict(request)
    for record in loaded["resourceLogs"][0]["scopeLogs"][0]["logRecords"]:
        record |= {"traceId": bytes(range(16)).hex(), "spanId": bytes(range(8)).hex()}
    found = read_logs(orjson.dumps(loaded), LIMITS, EVENT)
    assert [raw.record for raw in found.wanted] == [request.resource_logs[0].scope_logs[0].log_records[0]]


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.sampled_from(["spans", "traceId", "attributes", "value", "arrayValue", "values", "key", "stringValue"]), inner
    ),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=50)
@given(junk=JUNK, seed=st.integers(0, 9), place=st.integers(0, 500))
def test_any_json_is_refused_or_read(junk, seed, place):
    loaded = as_json(spans_request([span(random.Random(seed))]))
    _put(loaded, place, junk)
    try:
        read_spans(json.dumps(loaded).encode(), LIMITS, lambda _: True)
    except ReceiverRefusal:
        return


def _put(loaded, place, junk):
    """Put a value in one place of the tree."""
    places = []

    def walk(node):
        for key in node if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], dict | list):
                walk(node[key])

    walk(loaded)
    node, key = places[place % len(places)]
    node[key] = junk


@pytest.mark.parametrize("tiny", [b"[]", b"{}", b'{"":{}}'])
def test_json_of_many_tiny_values_is_refused_before_it_is_read(tiny):
    body = b'{"resourceSpans":[' + tiny + (b"," + tiny) * (5 * 2**20 // len(tiny)) + b"]}"
    with pytest.raises(ReceiverRefusal, match="more than 750000 lists and objects"):
        read_spans(body, LIMITS, lambda _: True)
