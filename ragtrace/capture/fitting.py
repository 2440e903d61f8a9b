"""Cut a record to its limits, in characters, so that every language is cut alike."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from ragtrace.model.record import CONTEXTS_TRUNCATED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ragtrace.model import AnswerPart, Feedback, Message, Passage, Pool, RagRecord

T = TypeVar("T")
ENVELOPE_CHARS = 64  # of an item without its texts: names, numbers and brackets in JSON
_MOST_NAMES_CHARS = 512 + ENVELOPE_CHARS  # id and source of a passage, as capture clamps them
_MOST_FACT_CHARS = 1_280  # key and value of its metadata; a list has 32 items and as many commas


def fitted(record: RagRecord, *, text_chars: int, passage_chars: int, fact_chars: int) -> RagRecord:
    """Return a record within its limits; `lossy` says how much of each kind was cut.

    Passages lose their texts from the lowest rank up: those that were only retrieved first, those that were
    delivered to the model last. Ids, scores and ranks stay as long as `fact_chars` lasts. Half of the labels would
    be other numbers, so that labels are kept whole or not at all.

    Args:
        record: a finished run's.
        text_chars: characters kept of all turns of the history, all answer parts, and all feedback, each.
        passage_chars: characters kept of all passages' texts; the same text counts once.
        fact_chars: characters kept of all passages' ids, sources and metadata, and of the labels.

    Example:
        >>> from ragtrace.model import Passage, Pool, RagRecord
        >>> found = [Passage(id=str(rank), text=text, rank=rank) for rank, text in enumerate(("Oslo.", "Rome."), 1)]
        >>> record = RagRecord(id="1", pools=(Pool(stage="retrieved", passages=tuple(found)),))
        >>> cut = fitted(record, text_chars=99, passage_chars=9, fact_chars=9_999)
        >>> [p.text for p in cut.contexts], dict(cut.lossy)
        (['Oslo.', ''], {'passage_texts': 1})
    """
    lossy: dict[str, int] = {}
    changed: dict[str, Any] = {}
    pools = _with_texts(_with_facts(record.pools, fact_chars, lossy), passage_chars, lossy)
    if pools is not record.pools:
        changed["pools"] = pools
    parts: list[tuple[str, Sequence[Any], Callable[[Any], int], int]] = [
        ("history", record.history[::-1], _turn_chars, text_chars),
        ("answer_parts", record.answer_parts, _part_chars, 2 * text_chars),
        ("feedback", record.feedback, _feedback_chars, 2 * text_chars),
    ]
    for name, items, size, room in parts:
        if items and (gone := len(items) - len(kept := first_within(items, size, room))):
            changed[name], lossy[name] = kept[::-1] if name == "history" else kept, gone
    if record.labels is not None:
        grades = record.labels.grades
        if sum(map(len, grades)) + ENVELOPE_CHARS * len(grades) > fact_chars:
            changed["labels"], lossy["labels"] = None, len(grades)
    if not changed:
        return record
    counted = {name: record.lossy.get(name, 0) + gone for name, gone in lossy.items()}
    return replace(record, **changed, lossy={**record.lossy, **counted})


def fact_chars_of(passage: Passage) -> int:
    """Return the characters of a passage beside its text: id, source and metadata.

    Example:
        >>> from ragtrace.model import Passage
        >>> fact_chars_of(Passage(id="a", text="Oslo.", rank=1, metadata={"page": 3}))
        70
    """
    return _names_chars(passage) + (_metadata_chars(passage) if passage.metadata else 0)


def _names_chars(passage: Passage) -> int:
    return ENVELOPE_CHARS + len(passage.id) + len(passage.source or "")


def _metadata_chars(passage: Passage) -> int:
    return sum(len(name) + _value_chars(value) for name, value in passage.metadata.items())


def _value_chars(value: Any) -> int:
    return sum(len(str(item)) + 4 for item in value) if isinstance(value, list) else len(str(value))


def _turn_chars(turn: Message) -> int:
    return ENVELOPE_CHARS + len(turn.content)


def _part_chars(part: AnswerPart) -> int:
    return ENVELOPE_CHARS + len(part.text) + sum(map(len, part.citations)) + 4 * len(part.citations)


def _feedback_chars(feedback: Feedback) -> int:
    return ENVELOPE_CHARS + len(feedback.comment or "") + len(feedback.source)


def first_within(items: Sequence[T], size: Callable[[T], int], room: int) -> tuple[T, ...]:
    """Return as many of the first items as fit together.

    Example:
        >>> first_within(["ab", "cd", "e"], len, 4)
        ('ab', 'cd')
    """
    kept = 0
    for item in items:
        room -= size(item)
        if room < 0:
            break
        kept += 1
    return tuple(items[:kept])


def _with_texts(pools: tuple[Pool, ...], limit: int, lossy: dict[str, int]) -> tuple[Pool, ...]:
    """Return pools whose lowest ranks have no text; what was delivered goes last, since the judge reads it."""
    if sum([len(p.text) for pool in pools for p in pool.passages]) <= limit:  # each stage counted
        return pools
    texts = dict.fromkeys(p.text for pool in reversed(pools) for p in pool.passages)
    kept = {*first_within(list(texts), len, limit), ""}
    gone = len(texts.keys() - kept)
    if not gone:
        return pools
    lossy["passage_texts"] = gone
    return _each(pools, lambda p: p if p.text in kept else _emptied(p))


def _with_facts(pools: tuple[Pool, ...], limit: int, lossy: dict[str, int]) -> tuple[Pool, ...]:
    """Return pools whose lowest ranks have no metadata; where ids alone are too much, the lowest ranks go."""
    passages = [p for pool in pools for p in pool.passages]
    # Nearly every run is far below that, which is quick to see.
    if len(passages) * _MOST_NAMES_CHARS + sum([len(p.metadata) for p in passages]) * _MOST_FACT_CHARS <= limit:
        return pools
    kept: list[Pool] = []
    for pool in reversed(pools):
        first = first_within(pool.passages, _names_chars, limit)
        limit -= sum(map(_names_chars, first))
        kept.insert(0, replace(pool, passages=first))
    gone = len(passages) - sum(len(pool.passages) for pool in kept)
    if gone:
        lossy["passages"] = gone
    if delivered := len(pools[-1].passages) - len(kept[-1].passages):
        lossy[CONTEXTS_TRUNCATED] = delivered
    described = [p for pool in reversed(kept) for p in pool.passages if p.metadata]
    whole = set(map(id, first_within(described, _metadata_chars, limit)))
    if len(whole) < len(set(map(id, described))):
        lossy["passage_metadata"] = len(described) - sum(id(p) in whole for p in described)
        return _each(kept, lambda p: p if not p.metadata or id(p) in whole else replace(p, metadata={}))
    return tuple(kept) if gone else pools


def _emptied(passage: Passage) -> Passage:
    return replace(passage, text="", truncated=passage.truncated or len(passage.text))


def _each(pools: Iterable[Pool], change: Callable[[Passage], Passage]) -> tuple[Pool, ...]:
    return tuple(replace(pool, passages=tuple(map(change, pool.passages))) for pool in pools)
