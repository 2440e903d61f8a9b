"""Datasets of ragas, also of its earlier versions, and conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace.batch.readers import Reader
from ragtrace.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_TODAY, _EARLIER = {"user_input"}, {"question", "contexts"}
_ROLES = {"human": "user", "ai": "assistant", "tool": "tool"}


def _reads(columns: Collection[str]) -> bool:
    return _TODAY.issubset(columns) or _EARLIER.issubset(columns)


def _record(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record; the last question of a conversation is its query, and earlier turns are its history."""
    record = dict(row)
    if record.get("reference") is None and (truths := record.pop("ground_truths", None)):
        record["reference"] = truths[0] if isinstance(truths, list) else truths
    turns = record.pop("user_input", record.pop("question", None))
    if not isinstance(turns, list):
        return record | {"query": turns}
    last = next((place for place in reversed(range(len(turns))) if _role(turns[place]) == "user"), None)
    if last is None:
        raise InputError("the conversation in 'user_input' has no question of a person")
    said = [turn.get("content") for turn in turns[last + 1 :] if _role(turn) == "assistant" and turn.get("content")]
    record["history"] = [{"role": _role(turn), "content": turn.get("content")} for turn in turns[:last]]
    record["query"] = turns[last].get("content")
    return record if record.get("response") is not None or not said else record | {"response": said[-1]}


def _role(turn: object) -> str:
    if not isinstance(turn, dict):
        raise InputError("a turn of 'user_input' must be an object with type and content")
    kind = str(turn.get("type") or turn.get("role") or "human")
    return _ROLES.get(kind, kind)


READER = Reader(
    about="Datasets of ragas: user_input, response, retrieved_contexts, reference.", reads=_reads, record=_record
)
