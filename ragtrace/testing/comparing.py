"""Compares records field by field, and says in words where they differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.model import Passage, RagRecord

if TYPE_CHECKING:
    from collections.abc import Collection

# What tells one run from another, and how it was read.
IDENTITY = frozenset({"id", "trace_id", "span_id", "started", "ended", "reading"})
_MOST_SHOWN = 20
_MOST_CHARS = 160


def facts_of(record: RagRecord, ignoring: Collection[str] = ()) -> dict[str, object]:
    """Return a record's facts under flat names: ``query``, ``retrieved[1].score``, ``used.length``.

    Identity and times are not among them.

    Args:
        record: any record.
        ignoring: names left out: of a record's field (``workflow``), of a passage's (``passage.source``), or of one
            stage's passages' field (``reranked.source``, and ``unranked.source`` of contexts without rank).

    Example:
        >>> from ragtrace.model import Pool
        >>> pool = Pool(stage="retrieved", passages=(Passage(id="a", text="Oslo.", rank=1),))
        >>> facts = facts_of(RagRecord(id="1", query="Where?", pools=(pool,)))
        >>> facts["query"], facts["stages"], facts["retrieved[1].id"]
        ('Where?', ('retrieved',), 'a')
    """
    facts: dict[str, object] = {
        name: getattr(record, name)
        for name in record.__struct_fields__
        if name not in IDENTITY and name not in {"pools", "unranked_contexts", *ignoring}
    }
    facts["stages"] = tuple(pool.stage for pool in record.pools)
    lists = {pool.stage: pool.passages for pool in record.pools} | {"unranked": record.unranked_contexts}
    for title, passages in lists.items():
        facts[f"{title}.length"] = len(passages)
        wanted = [
            name
            for name in Passage.__struct_fields__
            if f"passage.{name}" not in ignoring and f"{title}.{name}" not in ignoring
        ]
        for place, passage in enumerate(passages, start=1):
            facts.update({f"{title}[{place}].{name}": getattr(passage, name) for name in wanted})
    return facts


def differences(got: RagRecord, expected: RagRecord, ignoring: Collection[str] = ()) -> list[str]:
    """Return a line for each fact in which two records differ; none when they are the same.

    Example:
        >>> differences(RagRecord(id="1", query="a"), RagRecord(id="2", query="b"))
        ["query: got 'a', expected 'b'"]
    """
    one, other = facts_of(got, ignoring), facts_of(expected, ignoring)
    missing = object()
    return [
        f"{name}: got {_shown(one.get(name, 'nothing'))}, expected {_shown(other.get(name, 'nothing'))}"
        for name in dict.fromkeys([*other, *one])
        if one.get(name, missing) != other.get(name, missing)
    ]


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}... ({len(text)} characters)"


def same(what: str, got: object, expected: object) -> None:
    """Do nothing if two values are equal.

    Raises:
        AssertionError: they are not; it names `what` and shows both.

    Example:
        >>> same("the outcome", "answered", "error")
        Traceback (most recent call last):
        ...
        AssertionError: the outcome: got 'answered', expected 'error'
    """
    if got != expected:
        raise AssertionError(f"{what}: got {_shown(got)}, expected {_shown(expected)}")


def same_record(got: RagRecord, expected: RagRecord, ignoring: Collection[str] = ()) -> None:
    """Do nothing if two records are the same but for their identity and times.

    Raises:
        AssertionError: they are not; one line a fact, twenty at most.

    Example:
        >>> same_record(RagRecord(id="1", query="a"), RagRecord(id="2", query="a"))
    """
    found = differences(got, expected, ignoring)
    if found:
        rest = [f"and {len(found) - _MOST_SHOWN} more"] if len(found) > _MOST_SHOWN else []
        raise AssertionError("\n".join(["the record differs:", *found[:_MOST_SHOWN], *rest]))
