"""The number of nested messages is what a full parse finds, and the walk ends at its bound."""

from __future__ import annotations

import random

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from ragtrace.ingest.nested import Malformed, TooMany, count_nested, varint
from tests.unit.ingest.receiving.requests import field

VALUES = st.recursive(
    st.builds(AnyValue, string_value=st.text(max_size=9)) | st.builds(AnyValue, int_value=st.integers(-9, 2**60)),
    lambda inner: (
        st.builds(AnyValue, array_value=st.builds(ArrayValue, values=st.lists(inner, max_size=4)))
        | st.builds(
            AnyValue,
            kvlist_value=st.builds(
                KeyValueList, values=st.lists(st.builds(KeyValue, key=st.text(max_size=3), value=inner))
            ),
        )
    ),
    max_leaves=20,
)
PAIRS = st.lists(st.builds(KeyValue, key=st.text(max_size=200), value=VALUES), max_size=5)


def messages_in(message: Message) -> int:
    found = 0
    for of, value in message.ListFields():
        if of.message_type is not None:
            for one in value if of.is_repeated else [value]:
                found += 1 + messages_in(one)
    return found


@given(
    PAIRS,
    st.lists(st.builds(Span.Event, name=st.text(), attributes=PAIRS), max_size=3),
    st.lists(st.builds(Span.Link), max_size=3),
)
def test_it_counts_what_a_full_parse_finds(
    attributes: list[KeyValue], events: list[Span.Event], links: list[Span.Link]
) -> None:
    span = Span(trace_id=bytes(16), name="chat", attributes=attributes, events=events, links=links)
    assert count_nested(span.SerializeToString(), "span", 10**6) == messages_in(span)


def test_a_list_of_numbers_counts_once() -> None:
    numbers = AnyValue(array_value=ArrayValue(values=[AnyValue(double_value=n / 3) for n in range(1_536)]))
    span = Span(attributes=[KeyValue(key="embedding.vector", value=numbers)])
    assert count_nested(span.SerializeToString(), "span", 9) == 3


def test_the_walk_ends_at_its_bound_and_at_protobuf_s_depth() -> None:
    assert count_nested(field(9, b"") * 5, "span", 5) == 5
    with pytest.raises(TooMany):
        count_nested(field(9, b"") * 6, "span", 5)
    deep = b""
    for _ in range(200):
        deep = field(5, field(1, deep))
    with pytest.raises(Malformed):
        count_nested(field(9, field(2, deep)), "span", 10**6)


def test_a_tag_that_is_longer_than_it_needs_to_be_hides_nothing() -> None:
    long_tag = bytes([9 << 3 | 2 | 0x80, 0])
    assert varint(long_tag, 0, 2)[0] == 9 << 3 | 2
    assert Span.FromString((long_tag + b"\0") * 7).attributes.__len__() == 7
    assert count_nested((long_tag + b"\0") * 7, "span", 10) == 7


@given(st.binary(max_size=60), st.integers(0, 99))
def test_any_bytes_are_counted_or_malformed(body: bytes, seed: int) -> None:
    made = bytearray(Span(attributes=[KeyValue(key="a", value=AnyValue(int_value=1))] * 3).SerializeToString())
    made[random.Random(seed).randrange(len(made)) :] = body
    try:
        assert count_nested(bytes(made), "span", 10**6) <= len(made)
    except Malformed:
        return
