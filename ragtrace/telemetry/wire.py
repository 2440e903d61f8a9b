"""Make values and ids fit for the wire: always valid, never raising."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, overload

import orjson
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from ragtrace.text import MAX_MESSAGE_CHARS, clean, cut, valid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.util.types import AnyValue

_LISTS = (list, tuple)
_AS_TEXT = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME


def json_bytes(value: object) -> bytes:
    """Return compact, valid JSON in UTF-8 for any value.

    What orjson refuses (a lone surrogate, an object, a cycle, an odd key) is cleaned first.

    Example:
        >>> json_bytes([{"id": "a", "score": 0.5}])
        b'[{"id":"a","score":0.5}]'
    """
    try:
        return orjson.dumps(value, option=_AS_TEXT)
    except orjson.JSONEncodeError:
        return orjson.dumps(clean(value))


def to_json(value: object) -> str:
    """Return compact, valid JSON in valid Unicode for any value.

    Example:
        >>> to_json({"score": float("nan"), "name": "Zoë"})
        '{"score":null,"name":"Zoë"}'
    """
    return json_bytes(value).decode()


def clean_attributes(attributes: Mapping[str, object]) -> dict[str, AnyValue]:
    """Return attributes that the SDK takes as they are: None left out, the rest sanitised.

    Example:
        >>> clean_attributes({"a": None, "b": 1 << 70, "c": "x", "d": float("inf")})
        {'b': '1180591620717411303424', 'c': 'x'}
    """
    kept: dict[str, AnyValue] = {}
    for name, value in attributes.items():
        if type(value) is str and value.isascii():  # nearly all of them
            kept[name] = value
        elif value is not None and (cleaned := clean_value(value)) is not None:
            kept[name] = cleaned
    return kept


@overload
def clean_value(value: str) -> str: ...


@overload
def clean_value(value: object) -> AnyValue: ...


def clean_value(value: object) -> AnyValue:
    """Return one attribute value in a form that can be sent, None for one that cannot (NaN).

    Example:
        >>> clean_value(["a", "b"]), clean_value(True)
        (('a', 'b'), True)
    """
    if not isinstance(value, _LISTS):
        found: AnyValue = clean(value, 0)
        return found
    # The SDK takes sequences of one type.
    kept = tuple(value)
    kinds = set(map(type, kept))
    if kinds <= {str}:
        return tuple(map(valid, kept))
    if kinds <= {int, float} and all(map(math.isfinite, kept)):
        return tuple(map(float, kept)) if float in kinds else tuple(clean(number, 0) for number in kept)
    return tuple(cut(item, MAX_MESSAGE_CHARS)[0] for item in kept)


def remote_context(trace_id: str, span_id: str, *, is_sampled: bool) -> Context:
    """Return a context whose span is a finished one, known by its ids alone; empty for ids that are none.

    Example:
        >>> bool(remote_context("", "", is_sampled=True))
        False
    """
    found = span_context(trace_id, span_id, is_sampled=is_sampled)
    return Context() if found is None else trace.set_span_in_context(NonRecordingSpan(found), Context())


def span_context(trace_id: str, span_id: str, *, is_sampled: bool) -> SpanContext | None:
    """Return the span context of hex ids, None for ids that are none.

    Example:
        >>> span_context("0" * 31 + "1", "0" * 15 + "2", is_sampled=True).span_id
        2
    """
    try:
        numbers = int(trace_id, 16), int(span_id, 16)
    except ValueError:
        return None
    flags = TraceFlags(TraceFlags.SAMPLED if is_sampled else TraceFlags.DEFAULT)
    found = SpanContext(trace_id=numbers[0], span_id=numbers[1], is_remote=False, trace_flags=flags)
    return found if found.is_valid else None
