"""Bytes and identity of a unit outside the process."""

from __future__ import annotations

import uuid
from typing import Literal

import msgspec
from msgspec import Struct

from ragtrace.model import Missed
from ragtrace.model.codec import json_bytes, record_from_line, record_to_line
from ragtrace.model.line import RecordLine
from ragtrace.queues.base import Unit

# A record that capture made stays below it in every script: control characters take six bytes each in JSON, and a
# text stands in each of three pools.
MOST_BYTES = 50_331_648
PRIORITIES = {"random": 0, "forced": 1}
_NAMESPACE = uuid.UUID("6f1e0d5c-6a8b-5d0f-9b7e-2f1f6f3b8a11")


def key_of(unit: Unit) -> str:
    """Return the identity of a unit by trace, span and revision.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> one = Unit(record=RagRecord(id="1", trace_id="a" * 32, span_id="b" * 16))
        >>> key_of(one) == key_of(one)
        True
    """
    record = unit.record
    name = "\0".join((record.trace_id or record.id, record.span_id, str(record.revision)))
    return str(uuid.uuid5(_NAMESPACE, name))


class _UnitLine(Struct, kw_only=True):
    """A unit as it stands in a queue."""

    record: RecordLine
    decision: Literal["random", "forced"]
    reason: str | None = None
    probability: float
    kept: float = 1.0
    rates: dict[str, float] = {}
    missed: dict[str, Missed] = {}
    is_recorded: bool = True


_READER = msgspec.json.Decoder(_UnitLine)
_MISSED_READER = msgspec.json.Decoder(dict[str, Missed])


def to_bytes(unit: Unit) -> bytes:
    """Return a unit as JSON, without its handle of the root span."""
    line = _UnitLine(
        record=record_to_line(unit.record),
        decision=unit.decision,
        reason=unit.reason,
        probability=unit.probability,
        kept=unit.kept,
        rates=dict(unit.rates),
        missed=dict(unit.missed),
        is_recorded=unit.is_recorded,
    )
    return json_bytes(line)


def from_bytes(payload: bytes, *, key: str, age_s: float, now: float, kept: float = 1.0) -> Unit:
    """Return the unit of some JSON, which was kept with some probability in the place that it comes from.

    Raises:
        ValueError: it is not one; also of a kind that a newer ragtrace wrote.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> unit = Unit(record=RagRecord(id="1", query="Where?"), probability=0.5)
        >>> from_bytes(to_bytes(unit), key="k", age_s=0.0, now=0.0).record.query
        'Where?'
    """
    try:
        line = _READER.decode(payload)
    except msgspec.DecodeError as error:
        raise ValueError(f"the payload is not a unit of this version: {error}") from None
    return Unit(
        record=record_from_line(line.record, fallback_id=key),
        decision=line.decision,
        reason=line.reason,
        probability=line.probability,
        kept=kept * line.kept,
        rates=line.rates,
        missed=line.missed,
        is_recorded=line.is_recorded,
        offered_at=now - age_s,
    )


def missed_to_text(unit: Unit) -> str:
    """Return what a unit was counted missing with as JSON, "" where it was not.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> unit = Unit(record=RagRecord(id="1"), missed={"mrr": Missed(20.0, "error", "judge_timeout")})
        >>> missed_from_text(missed_to_text(unit)) == unit.missed
        True
    """
    return json_bytes(dict(unit.missed)).decode() if unit.missed else ""


def missed_from_text(text: str) -> dict[str, Missed]:
    """Return what `missed_to_text` wrote."""
    return _MISSED_READER.decode(text) if text else {}
