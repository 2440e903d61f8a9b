"""Make values and ids fit for the wire: always valid, never raising, and JSON also where it is cut.

An SDK cuts a value at its limit of characters wherever that falls, and says nothing. So what is over a limit is cut
here before it.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Final, NamedTuple, overload

import orjson
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from ragtrace import semconv
from ragtrace.text import MAX_MESSAGE_CHARS, clean, cut, cut_bytes, share_of, size_bytes, valid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from opentelemetry.util.types import AnyValue

_LISTS = (list, tuple)
_JSON: Final = re.compile(r'\s*[\[{"]')
_LEAST_SHARE: Final = 40  # of a text inside JSON: room for a word and the mark of a cut
_EMPTY: Final = frozenset({"{}", "[]", '""'})
_TEXTS: Final = 8  # of the longest that fit, where lists and fields go
_MOST_DEPTH: Final = 32  # of what is cut inside JSON
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


class AttributeLimits(NamedTuple):
    """Limits of an SDK on the attributes of a span, an event or a log record.

    Attributes:
        length: characters of a value; None = no limit. It cuts longer ones.
        most: attributes; None = no limit. It drops the oldest beyond it.
    """

    length: int | None = None
    most: int | None = None


NO_LIMITS: Final = AttributeLimits()


def within(attributes: Mapping[str, AnyValue], limits: AttributeLimits) -> dict[str, AnyValue]:
    """Return clean attributes of an event or a log record within limits.

    Of too many the first stay. ``ragtrace.span.cut`` names those that are not whole.

    Example:
        >>> within({"score": 0.5, "ids": '["a","b","c"]', "why": "No."}, AttributeLimits(length=10, most=3))
        {'score': 0.5, 'ids': '["a","b"]', 'ragtrace.span.cut': ('ids', 'why')}
    """
    kept, short = dict(attributes), list[str]()
    if limits.length is not None:
        for name, value in attributes.items():
            if longest(value) > limits.length:
                short.append(name)
                if (shorter := cut_value(value, limits.length, len)) is None:
                    del kept[name]
                else:
                    kept[name] = shorter
    if limits.most is not None and len(kept) + bool(short) > limits.most:
        over = list(kept)[max(limits.most - 1, 0) :]
        short += [name for name in over if name not in short]
        kept = {name: value for name, value in kept.items() if name not in over}
    if short and limits.most != 0:
        kept[semconv.SPAN_CUT] = tuple(name[: limits.length] for name in short)
    return kept


def longest(value: object) -> int:
    """Return the characters of a text, or of the longest one of a list; 0 of other values.

    Example:
        >>> longest("abc"), longest(("a", "bc")), longest(7)
        (3, 2, 0)
    """
    if isinstance(value, str):
        return len(value)
    return max(map(longest, value), default=0) if isinstance(value, tuple) else 0


def cut_value(value: AnyValue, most: int, size: Callable[[str], int] = size_bytes) -> AnyValue:
    """Return a clean value whose texts take at most `most`; None for JSON that cannot be cut so far.

    A text is cut at its end, with a mark where there is room for it. A text that is JSON stays JSON: first its
    longest texts are cut, and then it loses the ends of its lists and the fields that do not fit.

    Args:
        value: as `clean_value` returns it.
        most: of a text, or of each one of a list.
        size: of a text, bytes or ``len``.

    Example:
        >>> cut_value('{"city":"Oslo","filters":["' + "north " * 20 + '"],"k":3}', 80)
        '{"city":"Oslo","filters":["north north north no…[cut, 120 characters]"],"k":3}'
        >>> cut_value("north " * 20, 31), cut_value('["Oslo","Bergen"]', 10), cut_value("[7]", 1)
        ('north n…[cut, 120 characters]', '["Oslo"]', None)
    """
    most = max(most, 0)
    if isinstance(value, tuple):
        return tuple(cut_value(item, most, size) or "" if isinstance(item, str) else item for item in value)
    if not isinstance(value, str) or size(value) <= most:
        return value
    if _JSON.match(value) is not None:
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError):  # a text that begins as JSON does
            pass
        else:
            return _cut_json(parsed, most, size)
    return _head(value, most, size)


def _head(text: str, most: int, size: Callable[[str], int]) -> str:
    kept = cut_bytes(text, most, size)
    if size(kept) <= most:
        return kept
    return text[:most] if size is len else text[:most].encode(errors="replace")[:most].decode("utf-8", "ignore")


def _cut_json(value: object, most: int, size: Callable[[str], int]) -> str | None:
    text = to_json(value)
    total = size(text)
    if total <= most:
        return text
    sizes = [size(to_json(leaf)) for leaf in _texts(value)]
    share = share_of(sizes, most - (total - sum(sizes)))
    if share < _LEAST_SHARE:  # shorter texts alone do not help: lists and fields go too
        share = max(most // _TEXTS, _LEAST_SHARE)
    return _fitted(value, most, share, size)


def _texts(value: object, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list) and depth < _MOST_DEPTH:
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item, depth + 1)


def _fitted(value: object, room: int, share: int, size: Callable[[str], int], depth: int = 0) -> str | None:
    """Return JSON of as much of a value as fits, its texts within a share of the room; None where nothing fits."""
    if isinstance(value, str):
        return _fitted_text(value, min(room, share), size)
    if depth >= _MOST_DEPTH or not isinstance(value, dict | list):
        text = to_json(value)
        return text if size(text) <= room else None
    left, parts = room - 2, list[str]()
    if left < 0:
        return None
    if isinstance(value, list):
        for item in value:
            part = _fitted(item, left, share, size, depth + 1)
            if part is None or (item and part in _EMPTY):
                break
            parts.append(part)
            left -= size(part) + 1
        return f"[{','.join(parts)}]"
    for name, item in value.items():
        head = f"{to_json(name)}:"
        part = _fitted(item, left - size(head), share, size, depth + 1)
        if part is not None:
            parts.append(head + part)
            left -= size(head) + size(part) + 1
    return f"{{{','.join(parts)}}}"


def _fitted_text(text: str, room: int, size: Callable[[str], int]) -> str | None:
    if room < 2:
        return None
    found, most = to_json(text), room - 2
    while size(found) > room:  # again only where escapes blow a text up
        found = to_json(_head(text, most, size))
        most //= 2
    return found


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
