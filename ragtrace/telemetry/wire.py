"""Make values, ids and whole spans fit for the wire: always valid, always sized in bytes, never raising."""

from __future__ import annotations

import math
from itertools import zip_longest
from typing import TYPE_CHECKING, overload

import orjson
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from ragtrace import semconv
from ragtrace.text import MAX_MESSAGE_CHARS, clean, cut, cut_bytes, fit, share_of, size_bytes, valid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opentelemetry.util.types import AnyValue

_MOST_CHARACTER_BYTES = 4  # in UTF-8
_NUMBER_BYTES = 8
_MOST_MARK_BYTES = 512  # of the names of what was cut
_MARK_SHARE = 16  # of the budget, where that is less
# JSON arrays, best rank first; those of one line are cut at the same rank.
_RANKED = (
    (semconv.POOL_IDS, semconv.POOL_SCORES),
    (semconv.SELECTED_IDS, semconv.SELECTED_SCORES, semconv.SELECTED_RANKS),
    (semconv.PROMPT_IDS,),
    (semconv.RERANK_DOCUMENTS,),
    (semconv.GEN_AI_RETRIEVAL_DOCUMENTS,),
)
_JSON_ENDS = (
    semconv.METADATA, semconv.EVALUATION_DETAILS, semconv.GEN_AI_INPUT_MESSAGES, semconv.GEN_AI_OUTPUT_MESSAGES,
)  # fmt: skip
_MESSAGES = '[{"role":'
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


def within(attributes: Mapping[str, object], budget: int, limit_chars: int | None = None) -> dict[str, AnyValue]:
    """Return the attributes of one span, clean, in at most `budget` bytes of names and values.

    None is left out. Lists by rank lose their lowest ranks, texts their end. JSON that cannot be cut is left out.
    ``ragtrace.span.cut`` then names the attributes that are not whole.

    Args:
        attributes: of the span.
        budget: bytes of all names and values.
        limit_chars: the SDK's own limit on a value. It would break the JSON of a list, which loses its lowest ranks
            instead. None = none.

    Example:
        >>> found = within({"ragtrace.prompt.ids": '["a","b","c"]', "user.id": "u" * 9_000}, 600)
        >>> found["ragtrace.prompt.ids"], len(found["user.id"]), found["ragtrace.span.cut"]
        ('["a","b","c"]', 505, ('user.id',))
    """
    kept = clean_attributes(attributes)
    most = sum([len(name) + _most_bytes(value) for name, value in kept.items()])
    if limit_chars is not None:
        for name in (name for group in _RANKED for name in group if name in kept):
            if len(str(kept[name])) > limit_chars:
                _cut_ranks(kept, (name,), limit_chars - 1, len)
    if most <= budget or _bytes(kept) <= budget:
        return kept
    mark = min(_MOST_MARK_BYTES, budget // _MARK_SHARE)
    groups = _groups(kept)
    sizes = [sum(len(name) + _value_bytes(kept[name]) for name in group) for group in groups]
    room = budget - mark - len(semconv.SPAN_CUT)
    share = share_of(sizes, room)
    shortened: list[str] = []
    for group, size in sorted(zip(groups, sizes, strict=True), key=lambda one: -one[1]):
        if size > share or _bytes(kept) > room:
            _shrink(kept, group, share)
            shortened.extend(group)
    kept[semconv.SPAN_CUT] = fit(shortened, _value_bytes, mark)
    return kept


def _most_bytes(value: object) -> int:
    """Return a bound on the bytes of a value that costs no encoding."""
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value) * _MOST_CHARACTER_BYTES
    return _value_bytes(value) if isinstance(value, tuple) else _NUMBER_BYTES


def _groups(attributes: Mapping[str, object]) -> list[tuple[str, ...]]:
    ranked = [tuple(name for name in group if name in attributes) for group in _RANKED]
    known = {name for group in ranked for name in group}
    return [*filter(None, ranked), *((name,) for name in attributes if name not in known)]


def _shrink(attributes: dict[str, AnyValue], group: tuple[str, ...], share: int) -> None:
    """Cut the attributes of a group, in place, to at most `share` bytes together."""
    room = share - sum(map(len, group))
    if any(group[0] in names for names in _RANKED):
        _cut_ranks(attributes, group, room - 2 * len(group), size_bytes)
        return
    (name,) = group
    value = attributes.pop(name)
    if isinstance(value, tuple):
        attributes[name] = fit(value, _value_bytes, room)
    elif isinstance(value, str) and not name.endswith(_JSON_ENDS) and not value.startswith(_MESSAGES):
        short = cut_bytes(value, room)
        if size_bytes(short) <= room:
            attributes[name] = short


def _cut_ranks(
    attributes: dict[str, AnyValue], names: Sequence[str], room: int, size: Callable[[str], int]
) -> None:
    """Cut lists at the same rank, in place, so that all of them together have room."""
    lists = [orjson.loads(str(attributes[name])) for name in names]
    sizes = [[size(to_json(row)) + 1 for row in rows] for rows in lists]
    kept = len(fit(list(zip_longest(*sizes, fillvalue=0)), sum, room))
    attributes.update((name, to_json(rows[:kept])) for name, rows in zip(names, lists, strict=True))
    if semconv.GEN_AI_RETRIEVAL_DOCUMENTS in names:
        attributes[semconv.RETRIEVAL_DOCUMENT_CAPTURED] = kept


def _bytes(attributes: Mapping[str, object]) -> int:
    return sum(len(name) + _value_bytes(value) for name, value in attributes.items())


def _value_bytes(value: object) -> int:
    if isinstance(value, str):
        return size_bytes(value)
    return sum(map(_value_bytes, value)) if isinstance(value, tuple) else _NUMBER_BYTES


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
