"""Documents as one JSON string that fits a byte budget: texts go first, lowest ranks first, ids never."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ragtrace.telemetry.wire import size_bytes, to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.model import Passage

_CONTENT_KEY_BYTES = 16  # of ,"content": and what replaces the dropped hash; an upper bound a document


@dataclass(frozen=True, slots=True, kw_only=True)
class Documents:
    """Documents ready for the wire.

    Attributes:
        json: a JSON array, never empty text.
        captured: documents that stand in it; fewer than given only where the SDK's own length limit forces it.
        truncated: documents whose text was wanted, and is cut or left out for size.
    """

    json: str
    captured: int
    truncated: int


@dataclass(slots=True, kw_only=True)
class Room:
    """What one trace may still put on the wire, so that each text is sent once and the total is bounded.

    Attributes:
        document_bytes: left for `gen_ai.retrieval.documents` of all spans of the trace.
        text_bytes: left for questions, answers and messages.
        limit_chars: the SDK's own limit on an attribute value, which would cut JSON in the middle; None = none.
        sent: texts that an earlier span of the trace carries.
    """

    document_bytes: int
    text_bytes: int
    limit_chars: int | None = None
    sent: set[str] = field(default_factory=set)


def content_hash(text: str) -> str:
    """Return 16 hex digits of a text's SHA-256: what stands for a text that is not sent.

    Example:
        >>> content_hash("Refunds take 5 days.")
        '558c378376e08651'
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def documents_json(passages: Sequence[Passage], room: Room, *, has_content: bool) -> Documents:
    """Return ``[{id, score, rank, content?, metadata?}]`` within the room that is left, and take it.

    A document without a score gets 1/rank and ``score_kind: "rank"``: Phoenix drops all documents when one
    score is null. A text that is not sent leaves its ``hash`` (16 hex digits of SHA-256).

    Args:
        passages: best first; none gives ``[]``.
        room: is reduced by what was written.
        has_content: whether texts and metadata may be written at all.

    Example:
        >>> from ragtrace.model import Passage
        >>> pool = [Passage(id="a", text="Oslo.", rank=1, score=0.5), Passage(id="b", text="Rome.", rank=2)]
        >>> documents_json(pool, Room(document_bytes=500, text_bytes=0), has_content=True).json
        '[{"id":"a","score":0.5,"rank":1,"content":"Oslo."},{"id":"b","score":0.5,"rank":2,"score_kind":"rank","content":"Rome."}]'
    """
    if not has_content:
        items = _without_content(passages)
        return _fitted(items, to_json(items), room, 0)
    wanted = _first_times(passages, room.sent)
    budget = room.document_bytes if room.limit_chars is None else min(room.document_bytes, room.limit_chars)
    is_hopeless = sum(len(p.text) for p, is_wanted in zip(passages, wanted, strict=True) if is_wanted) > budget
    kept = _ranks_that_fit(passages, wanted, budget) if is_hopeless else len(passages)
    items = _items(passages, wanted, kept)
    text = to_json(items, is_ascii=all(p.text.isascii() for p in passages))
    if not is_hopeless and size_bytes(text) > budget:
        kept = _ranks_that_fit(passages, wanted, budget)
        items = _items(passages, wanted, kept)
        text = to_json(items)
    room.sent.update(p.text for p, is_wanted in zip(passages[:kept], wanted, strict=False) if is_wanted)
    cut = sum(wanted[kept:]) + sum(
        1 for p, is_wanted in zip(passages[:kept], wanted, strict=False) if is_wanted and p.truncated
    )
    return _fitted(items, text, room, cut)


def _without_content(passages: Sequence[Passage]) -> list[dict[str, Any]]:
    """Return id, score, rank and hash of each."""
    try:
        is_scored = all(map(math.isfinite, [p.score for p in passages]))  # type: ignore[arg-type]
    except TypeError:  # a None among them
        is_scored = False
    if not is_scored or any(p.id.startswith("sha256:") or not p.text for p in passages):
        return [_hashed(_bare(p), p) for p in passages]
    # The common case in one comprehension: 50 passages of 800 characters in two thirds of the time.
    sha256 = hashlib.sha256
    return [
        {
            "id": p.id,
            "score": p.score,
            "rank": p.rank,
            "hash": sha256(p.text.encode("utf-8", "surrogatepass")).hexdigest()[:16],
        }
        for p in passages
    ]


def _items(passages: Sequence[Passage], wanted: Sequence[bool], kept: int) -> list[dict[str, Any]]:
    items = []
    for place, (passage, is_wanted) in enumerate(zip(passages, wanted, strict=True)):
        item = _bare(passage)
        if is_wanted and place < kept:
            item["content"] = passage.text
            if passage.metadata:
                item["metadata"] = passage.metadata
        else:
            _hashed(item, passage)
        items.append(item)
    return items


def _first_times(passages: Sequence[Passage], sent: set[str]) -> list[bool]:
    """Say of each passage whether its text is not on the wire yet."""
    seen = set(sent)
    wanted = []
    for passage in passages:
        is_new = bool(passage.text) and passage.text not in seen
        wanted.append(is_new)
        if is_new:
            seen.add(passage.text)
    return wanted


def _ranks_that_fit(passages: Sequence[Passage], wanted: Sequence[bool], budget: int) -> int:
    """Return how many top ranks may keep their text, when the rest leaves its hash."""
    left = budget - size_bytes(to_json([_hashed(_bare(p), p) for p in passages]))
    for place, (passage, is_wanted) in enumerate(zip(passages, wanted, strict=True)):
        if not is_wanted:
            continue
        left -= size_bytes(to_json(passage.text)) + _CONTENT_KEY_BYTES
        if passage.metadata:
            left -= size_bytes(to_json(passage.metadata)) + _CONTENT_KEY_BYTES
        if left < 0:
            return place
    return len(passages)


def _fitted(items: list[dict[str, Any]], text: str, room: Room, truncated: int) -> Documents:
    limit = room.limit_chars
    # Only here are documents left out: the SDK would cut the string there anyway, and break the JSON.
    while limit is not None and len(text) > limit and items:
        items = items[: min(len(items) - 1, len(items) * limit // len(text))]
        text = to_json(items)
    room.document_bytes = max(room.document_bytes - size_bytes(text), 0)
    return Documents(json=text, captured=len(items), truncated=truncated)


def _bare(passage: Passage) -> dict[str, Any]:
    score, rank = passage.score, passage.rank
    if score is None or not math.isfinite(score):
        return {"id": passage.id, "score": 1.0 / max(rank, 1), "rank": rank, "score_kind": "rank"}
    return {"id": passage.id, "score": score, "rank": rank}


def _hashed(item: dict[str, Any], passage: Passage) -> dict[str, Any]:
    # An id of ours is the hash of the text already.
    if passage.text and not passage.id.startswith("sha256:"):
        item["hash"] = content_hash(passage.text)
    return item


def reranked_json(candidates: Sequence[Passage], chosen: Sequence[Passage], room: Room) -> str:
    """Return ``[{id, score, rank, previous_rank, retrieval_score}]`` of a reranker's choice.

    `previous_rank` is the 1-based place among the candidates, 0 for one that was not there; `retrieval_score`
    is left out where the candidate had none.

    Example:
        >>> from ragtrace.model import Passage
        >>> pool = [Passage(id="a", text="", rank=1, score=0.5), Passage(id="b", text="", rank=2, score=0.4)]
        >>> best = [Passage(id="b", text="", rank=1, score=0.9)]
        >>> reranked_json(pool, best, Room(document_bytes=0, text_bytes=0))
        '[{"id":"b","score":0.9,"rank":1,"previous_rank":2,"retrieval_score":0.4}]'
    """
    before: dict[str, tuple[int, float | None]] = {}
    for place, passage in enumerate(candidates, start=1):
        before.setdefault(passage.id, (place, passage.score))
    items = []
    for passage in chosen:
        item = _bare(passage)
        item["previous_rank"], score = before.get(passage.id, (0, None))
        if score is not None:
            item["retrieval_score"] = score
        items.append(item)
    return _fitted(items, to_json(items), room, 0).json
