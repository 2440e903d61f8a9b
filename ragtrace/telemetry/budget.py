"""Keeps one span within its byte budget: the largest attributes are cut, and the span names them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ragtrace import semconv
from ragtrace.capture.fitting import first_within
from ragtrace.telemetry.wire import cut_text, share_of, size_bytes, to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def within(attributes: dict[str, Any], budget: int) -> dict[str, Any]:
    """Return the attributes of one span, clean ones, in at most `budget` bytes of names and values.

    Lists by rank lose their lowest ranks, texts their end, and JSON that cannot be cut is left out.
    ``ragtrace.span.cut`` then names the attributes that are not whole.

    Example:
        >>> found = within({"ragtrace.prompt.ids": '["a","b","c"]', "user.id": "u" * 9_000}, 600)
        >>> found["ragtrace.prompt.ids"], len(found["user.id"]), found["ragtrace.span.cut"]
        ('["a","b","c"]', 505, ('user.id',))
    """
    if most_bytes(attributes) <= budget or (size := _bytes(attributes)) <= budget:
        return attributes
    mark = min(_MOST_MARK_BYTES, budget // _MARK_SHARE)
    groups = _groups(attributes)
    sizes = [sum(len(name) + _value_bytes(attributes[name]) for name in group) for group in groups]
    room = budget - mark - len(semconv.SPAN_CUT)
    share = share_of(sizes, room)
    kept = dict(attributes)
    cut: list[str] = []
    for group, size in sorted(zip(groups, sizes, strict=True), key=lambda one: -one[1]):
        if size > share or _bytes(kept) > room:
            _shrink(kept, group, share)
            cut.extend(group)
    kept[semconv.SPAN_CUT] = first_within(cut, _value_bytes, mark)
    return kept


def _groups(attributes: dict[str, Any]) -> list[tuple[str, ...]]:
    ranked = [tuple(name for name in group if name in attributes) for group in _RANKED]
    known = {name for group in ranked for name in group}
    return [*filter(None, ranked), *((name,) for name in attributes if name not in known)]


def _shrink(attributes: dict[str, Any], group: tuple[str, ...], share: int) -> None:
    """Cut the attributes of a group, in place, to at most `share` bytes together."""
    values = [attributes.pop(name) for name in group]
    room = share - sum(map(len, group))
    if any(group[0] in names for names in _RANKED):
        lists = [[to_json(row) for row in json.loads(value)] for value in values]
        kept = _ranks(lists, room - 2 * len(group))
        attributes.update((name, f"[{','.join(rows[:kept])}]") for name, rows in zip(group, lists, strict=True))
        if semconv.GEN_AI_RETRIEVAL_DOCUMENTS in group:
            attributes[semconv.RETRIEVAL_DOCUMENT_CAPTURED] = kept
        return
    (name,), (value,) = group, values
    if isinstance(value, tuple):
        attributes[name] = first_within(value, _value_bytes, room)
    elif isinstance(value, str) and not name.endswith(_JSON_ENDS) and not value.startswith(_MESSAGES):
        short = cut_text(value, room)
        if size_bytes(short) <= room:
            attributes[name] = short


def _ranks(lists: Sequence[Sequence[str]], room: int) -> int:
    """Return how many first ranks of all lists fit together."""
    most = max(map(len, lists))
    for rank in range(most):
        room -= sum(size_bytes(rows[rank]) + 1 for rows in lists if rank < len(rows))
        if room < 0:
            return rank
    return most


def most_bytes(attributes: dict[str, Any]) -> int:
    """Return a bound that costs no encoding; a text in ASCII has as many bytes as characters."""
    size = 0
    for name, value in attributes.items():
        if type(value) is str:
            size += len(name) + len(value) * (1 if value.isascii() else _MOST_CHARACTER_BYTES)
        else:
            size += len(name) + _value_bytes(value)
    return size


def _bytes(attributes: dict[str, Any]) -> int:
    return sum(len(name) + _value_bytes(value) for name, value in attributes.items())


def _value_bytes(value: Any) -> int:
    if isinstance(value, str):
        return size_bytes(value)
    return sum(map(_value_bytes, value)) if isinstance(value, tuple) else _NUMBER_BYTES
