"""The walk over a request's bytes finds what a full parse finds, and refuses broken bytes."""

from __future__ import annotations

import contextlib
import gzip
import random

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from ragtrace.ingest import ReceiverLimits, ReceiverRefusal, inflated, span_portions
from ragtrace.ingest.receiving.wire import log_portions, read_spans
from tests.unit.ingest.receiving.requests import field, logs_request, pair, some_spans, span, spans_request

LIMITS = ReceiverLimits()
EVENT = b"gen_ai.evaluation.result"


def read_logs(body, limits, name):
    """All portions of a request's log records as one."""
    portions = list(log_portions(body, limits, name))
    return portions[-1]._replace(wanted=[raw for portion in portions for raw in portion.wanted])


def half(trace_id):
    return trace_id[15] < 128


def parsed(request, wants):
    """The spans, resources and scopes that a full parse gives, and the number of other roots."""
    every = [
        (one, resource.resource, scope.scope.name)
        for resource in request.resource_spans for scope in resource.scope_spans for one in scope.spans
    ]  # fmt: skip
    others = [one for one, _, _ in every if not wants(one.trace_id)]
    return (
        [found for found in every if wants(found[0].trace_id)],
        sum(not one.parent_span_id for one in others),
    )


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), count=st.integers(0, 30), state=st.sampled_from(["", "a=b", "x" * 200]))
def test_it_finds_what_a_full_parse_finds(seed, count, state):
    rng = random.Random(seed)
    request = ExportTraceServiceRequest()
    for number in range(rng.randrange(3)):
        resource = request.resource_spans.add(schema_url="https://opentelemetry.io/schemas/1.40.0")
        resource.resource.attributes.append(pair("service.name", f"shop {number}"))
        for _ in range(rng.randrange(3)):
            scope = resource.scope_spans.add(schema_url="x")
            scope.scope.name = rng.choice(["", "my.scope"])
            scope.spans.extend(
                span(rng, is_root=rng.random() < 0.3, state=state, documents=rng.choice([0, 3, 2_000]))
                for _ in range(count)
            )
    found = read_spans(request.SerializeToString(), LIMITS, half)
    wanted, roots = parsed(request, half)
    assert [tuple(raw) for raw in found.wanted] == wanted
    assert (found.skipped_roots, found.rejected) == (roots, 0)


def test_spans_of_one_resource_share_it():
    found = read_spans(some_spans().SerializeToString(), LIMITS, lambda _: True)
    assert len({id(raw.resource) for raw in found.wanted}) == 1


def test_fields_in_another_order_are_found():
    """Protobuf allows every order: scope and resource behind the spans, the trace id behind the name."""
    rng = random.Random(2)
    one, other = span(rng, "a"), span(rng, "b", is_root=True)
    ids = Span(trace_id=one.trace_id).SerializeToString()
    one_bytes = one.SerializeToString()[len(ids) :] + ids
    scope = field(2, one_bytes) + field(2, other.SerializeToString()) + field(1, b"\x0a\x01s")
    body = field(1, field(2, scope) + field(1, b""))
    found = read_spans(body, LIMITS, lambda trace_id: trace_id == one.trace_id)
    assert [(raw.span, raw.scope) for raw in found.wanted] == [(one, "s")]
    assert (found.skipped_roots, found.rejected) == (1, 0)
    assert read_spans(body, LIMITS, lambda _: False).wanted == []


def test_a_second_trace_id_does_not_pass_by_the_draw():
    rng = random.Random(3)
    one = span(rng)
    twice = one.SerializeToString() + Span(trace_id=bytes(15) + b"\xff").SerializeToString()
    found = read_spans(field(1, field(2, field(2, twice))), LIMITS, lambda trace_id: trace_id == one.trace_id)
    assert (found.wanted, found.rejected) == ([], 0)


def test_unknown_fields_are_passed_over():
    body = some_spans(count=3).SerializeToString() + b"\x98\x06\x01" + b"\xa1\x06" + bytes(8) + field(99, b"later")
    assert len(read_spans(body, LIMITS, lambda _: True).wanted) == 3


@pytest.mark.parametrize(
    "change",
    [{"trace_id": b""}, {"trace_id": bytes(16)}, {"trace_id": b"short"}, {"span_id": b""}, {"span_id": b"123"}],
)
def test_a_span_without_valid_ids_is_rejected_alone(change):
    rng = random.Random(4)
    broken = span(rng)
    for name, value in change.items():
        setattr(broken, name, value)
    found = read_spans(spans_request([broken, span(rng)]).SerializeToString(), LIMITS, lambda _: True)
    assert (len(found.wanted), found.rejected) == (1, 1)


def test_a_span_over_its_limit_is_rejected_alone():
    rng = random.Random(5)
    large = span(rng)
    large.attributes.append(pair("text", "x" * 5_000))
    found = read_spans(
        spans_request([large, span(rng)]).SerializeToString(), ReceiverLimits(span_bytes=2_000), lambda _: True
    )
    assert (len(found.wanted), found.rejected) == (1, 1)


def test_a_large_request_comes_in_portions():
    rng = random.Random(6)
    spans = [span(rng, f"s{number}") for number in range(20)]
    for one in spans:
        one.attributes.append(pair("text", "x" * 2**20))
    others = [span(rng, is_root=True)]
    others[0].trace_id = bytes(15) + b"\xff"
    portions = list(
        span_portions(
            spans_request(spans + others).SerializeToString(), LIMITS, lambda trace_id: trace_id[:15] != bytes(15)
        )
    )
    assert [len(portion.wanted) for portion in portions] == [1] * 20 + [0]
    assert [raw.span for portion in portions for raw in portion.wanted] == spans
    assert [portion.skipped_roots for portion in portions] == [0] * 20 + [1]


def test_a_resource_is_parsed_for_its_portions_alone():
    """Fifteen resources of 28 times their bytes would stay until the request ends."""
    body = b"".join(
        field(1, field(1, field(1, field(1, b"k" * 40_000)) * 8) + field(2, field(2, span(random.Random(n)).SerializeToString())))
        for n in range(15)
    )  # fmt: skip
    kept = []
    for portion in span_portions(body, LIMITS, lambda _: True):
        resources = {id(raw.resource): raw.resource for raw in portion.wanted}
        assert len(resources) <= 4
        kept += [len(one.attributes) for one in resources.values()]
    assert kept == [8] * 15


@pytest.mark.parametrize("place", ["resource", "scope"])
def test_nested_messages_of_large_resources_are_bounded(place):
    many = {"resource": b"", "scope": b"", place: field({"resource": 1, "scope": 3}[place], b"") * 40_000}
    one = span(random.Random(1)).SerializeToString()
    body = field(1, field(1, many["resource"]) + field(2, field(1, many["scope"]) + field(2, one)))
    assert len(read_spans(body, ReceiverLimits(nested=40_000), lambda _: True).wanted) == 1
    with pytest.raises(ReceiverRefusal, match="more than 39999 nested values"):
        read_spans(body, ReceiverLimits(nested=39_999), lambda _: True)


def test_log_records_come_in_portions_and_are_bounded():
    request = logs_request(*["gen_ai.evaluation.result"] * 5)
    for record in request.resource_logs[0].scope_logs[0].log_records:
        record.attributes.append(pair("text", "x" * 2**20))
    found = list(log_portions(request.SerializeToString(), LIMITS, EVENT))
    assert [len(portion.wanted) for portion in found] == [1, 1, 1, 1, 1, 0]
    with pytest.raises(ReceiverRefusal, match="more than 9 nested values"):
        read_logs(request.SerializeToString(), ReceiverLimits(nested=9), EVENT)


def test_a_resource_over_its_limit_is_refused():
    body = spans_request([span(random.Random(1))], service="x" * 5_000).SerializeToString()
    with pytest.raises(ReceiverRefusal, match="a resource or a scope is larger than 2000 bytes"):
        read_spans(body, ReceiverLimits(span_bytes=2_000), lambda _: True)


@given(data=st.data(), seed=st.integers(0, 50))
def test_broken_bytes_are_refused_or_read(data, seed):
    body = bytearray(some_spans(seed, 5).SerializeToString())
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(body) - 1))
        kind = data.draw(st.sampled_from(["byte", "cut", "insert", "delete"]))
        if kind == "byte":
            body[at] = data.draw(st.integers(0, 255))
        elif kind == "cut" and at:
            del body[at:]
        elif kind == "insert":
            body[at:at] = data.draw(st.binary(max_size=12))
        elif len(body) > 1:
            del body[at]
    try:
        found = read_spans(bytes(body), LIMITS, lambda _: True)
    except ReceiverRefusal:
        return
    try:
        whole = ExportTraceServiceRequest.FromString(bytes(body))
    except DecodeError:
        return  # a broken part that nobody needs, as a schema URL
    spans = [one for resource in whole.resource_spans for scope in resource.scope_spans for one in scope.spans]
    assert len(found.wanted) + found.rejected == len(spans)


@given(st.binary(max_size=300))
def test_random_bytes_are_refused_or_read(body):
    for read in (lambda: read_spans(body, LIMITS, half), lambda: read_logs(body + EVENT, LIMITS, EVENT)):
        with contextlib.suppress(ReceiverRefusal):
            read()


@pytest.mark.parametrize("pattern", ["0a00", "0a021200", "1200", "0800", "9806011a00"])
@pytest.mark.parametrize("around", [0, 1, 2])
def test_a_body_of_tiny_fields_is_refused_soon(pattern, around):
    """Sixty-four megabytes of two bytes each would take half a minute, and gigabytes as messages."""
    body = bytes.fromhex(pattern) * 2**18
    for level in range(around):
        body = field(2 if level < around - 1 else 1, body)
    for read in (lambda: read_spans(body, LIMITS, lambda _: True), lambda: read_logs(body, LIMITS, EVENT)):
        with pytest.raises(ReceiverRefusal):
            read()


def test_more_items_than_the_limit_are_refused():
    body = some_spans(count=11).SerializeToString()
    with pytest.raises(ReceiverRefusal, match="more than 10 items"):
        read_spans(body, ReceiverLimits(items=10), half)
    assert len(read_spans(body, ReceiverLimits(items=15), lambda _: True).wanted) == 11


@pytest.mark.parametrize("as_attribute", [False, True])
def test_evaluation_results_are_found_among_logs(as_attribute):
    body = logs_request("gen_ai.evaluation.result", "gen_ai.choice", as_attribute=as_attribute).SerializeToString()
    found = read_logs(body, LIMITS, EVENT)
    assert [raw.record.trace_id for raw in found.wanted] == [bytes(range(16))]
    assert found.wanted[0].resource.attributes[0].value.string_value == "shop"


def test_a_bomb_is_refused_while_it_inflates():
    charged = []
    with pytest.raises(ReceiverRefusal) as refused:
        inflated(gzip.compress(bytes(200 * 2**20), 9), 16 * 2**20, charged.append)
    assert refused.value.http_status == 413
    assert sum(charged) <= 16 * 2**20


@pytest.mark.parametrize("end", [0, 1, 5, 12, -1])
def test_gzip_that_is_cut_off_is_refused(end):
    with pytest.raises(ReceiverRefusal, match="not valid gzip"):
        inflated(gzip.compress(b"spans")[:end], 100, lambda _: None)


def test_a_second_gzip_stream_is_refused():
    with pytest.raises(ReceiverRefusal, match="not valid gzip"):
        inflated(gzip.compress(b"a") * 2, 100, lambda _: None)
