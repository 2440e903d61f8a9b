"""Documents as one JSON string: texts go first, lowest ranks first; ids as `ragtrace.telemetry.budget` says."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ragtrace.capture.sanitize import clean_score
from ragtrace.model.passage import content_hash
from ragtrace.telemetry.wire import is_plain, quoted, scalars_json, size_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.model import Passage


_MOST_CHARACTER_BYTES = 4  # in UTF-8


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
        limit_attributes: the SDK's own limit on the attributes of a span, beyond which it drops the oldest.
        sent: texts that an earlier span of the trace carries.
        shown: scores as JSON by the identity of their passages, None where one has none: see `scores_of`.
    """

    document_bytes: int
    text_bytes: int
    limit_chars: int | None = None
    limit_attributes: int = 128
    sent: set[str] = field(default_factory=set)
    shown: dict[int, list[str] | None] = field(default_factory=dict)

    @property
    def message_bytes(self) -> int:
        """Bytes that one list of messages may take: half of what is left, unused room for documents included."""
        whole = (self.text_bytes + self.document_bytes) // 2
        return whole if self.limit_chars is None else min(whole, self.limit_chars)

    def take_text(self, size: int) -> None:
        """Take bytes from the room for texts, then from the room for documents."""
        if size <= self.text_bytes:
            self.text_bytes -= size
            return
        self.document_bytes -= size - self.text_bytes
        self.text_bytes = 0

    def scores_of(self, passages: Sequence[Passage]) -> list[str] | None:
        """Return the scores of passages as JSON, None unless all have a finite one; worked out once a trace.

        The root's lists and the retrieval's documents write the same 50 numbers, at 0.3 us each.
        """
        key = id(passages)  # the passages of a run outlive its room
        if key not in self.shown:
            self.shown[key] = _shown_scores(passages)
        return self.shown[key]


def _shown_scores(passages: Sequence[Passage]) -> list[str] | None:
    scores = [p.score for p in passages]
    if set(map(type, scores)) != {float} or not math.isfinite(sum(scores)):  # type: ignore[arg-type]
        return None
    return list(map(repr, scores))


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
        return _fitted(_bare(passages, room), room, 0)
    wanted = _first_times(passages, room.sent)
    full = _full(passages, wanted, room)
    budget = room.document_bytes if room.limit_chars is None else min(room.document_bytes, room.limit_chars)
    kept = len(full)
    chars = sum(map(len, full)) + kept + 1
    # A character takes four bytes at most: to count bytes is needed only near the limit.
    if chars > budget or (chars * _MOST_CHARACTER_BYTES > budget and _size(full) > budget):
        bare = _bare(passages, room)
        kept = _ranks_that_fit(full, bare, budget)
        full[kept:] = bare[kept:]
    sent = [p for p, is_wanted in zip(passages[:kept], wanted, strict=False) if is_wanted]
    room.sent.update([p.text for p in sent])
    return _fitted(full, room, sum(wanted[kept:]) + sum([p.truncated > 0 for p in sent]))


def _first_times(passages: Sequence[Passage], sent: set[str]) -> list[bool]:
    """Say of each passage whether its text is not on the wire yet."""
    texts = {p.text for p in passages}
    if not sent and "" not in texts and len(texts) == len(passages):
        return [True] * len(passages)
    seen = {"", *sent}
    wanted = []
    for passage in passages:
        wanted.append(passage.text not in seen)
        seen.add(passage.text)
    return wanted


def _ranks_that_fit(full: Sequence[str], bare: Sequence[str], budget: int) -> int:
    """Return how many top ranks may keep their text, when the rest leaves its hash."""
    left = budget - _size(bare)
    for place, (row, short) in enumerate(zip(full, bare, strict=True)):
        left -= size_bytes(row) - size_bytes(short)
        if left < 0 and row != short:
            return place
    return len(full)


def _size(rows: Sequence[str]) -> int:
    """Bytes of the array: rows, commas, brackets."""
    return sum(map(size_bytes, rows)) + len(rows) + 1


def _fitted(rows: list[str], room: Room, truncated: int) -> Documents:
    text = f"[{','.join(rows)}]"
    limit = room.limit_chars
    # Only here are documents left out: the SDK would cut the string there anyway, and break the JSON.
    while limit is not None and len(text) > limit and rows:
        rows = rows[: min(len(rows) - 1, len(rows) * limit // len(text))]
        text = f"[{','.join(rows)}]"
    room.document_bytes = max(room.document_bytes - size_bytes(text), 0)
    return Documents(json=text, captured=len(rows), truncated=truncated)


def _heads(passages: Sequence[Passage], room: Room) -> list[str]:
    """Return the beginnings of rows, those of nearly every pool in one go."""
    scores = room.scores_of(passages)
    if scores is not None and is_plain([p.id for p in passages]):
        return [
            f'{{"id":"{p.id}","score":{score},"rank":{p.rank}' for p, score in zip(passages, scores, strict=True)
        ]
    return [_head(p) for p in passages]


def _bare(passages: Sequence[Passage], room: Room) -> list[str]:
    """Return rows without texts, each with what stands for its text."""
    return [f"{head}{_hash(p)}}}" for head, p in zip(_heads(passages, room), passages, strict=True)]


def _full(passages: Sequence[Passage], wanted: Sequence[bool], room: Room) -> list[str]:
    """Return rows with texts; a pool of plain prose is written in one go, 70 us for 50 instead of 110."""
    scores = room.scores_of(passages) if all(wanted) else None
    if scores is not None and is_plain([p.id for p in passages]) and is_plain([p.text for p in passages]):
        return [
            f'{{"id":"{p.id}","score":{score},"rank":{p.rank},"content":"{p.text}"'
            f"{_facts(p) if p.metadata else ''}}}"
            for p, score in zip(passages, scores, strict=True)
        ]
    return [
        f"{head}{_content(p) if is_wanted else _hash(p)}}}"
        for head, p, is_wanted in zip(_heads(passages, room), passages, wanted, strict=True)
    ]


def _head(passage: Passage) -> str:
    """Return the beginning of a row. By hand, since one C call for dictionaries takes twice as long."""
    score = passage.score if type(passage.score) is float else clean_score(passage.score)
    if score is None or not math.isfinite(score):
        shown = 1.0 / max(passage.rank, 1)
        return f'{{"id":{quoted(passage.id)},"score":{shown!r},"rank":{passage.rank:d},"score_kind":"rank"'
    return f'{{"id":{quoted(passage.id)},"score":{score!r},"rank":{passage.rank:d}'


def _content(passage: Passage) -> str:
    return f',"content":{quoted(passage.text)}{_facts(passage)}'


def _facts(passage: Passage) -> str:
    return f',"metadata":{scalars_json(passage.metadata)}' if passage.metadata else ""


def _hash(passage: Passage) -> str:
    # An id of ours is the hash of the text already.
    if not passage.text or passage.id.startswith("sha256:"):
        return ""
    return f',"hash":"{content_hash(passage.text)}"'  # what stands for a text that is not sent


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
    # From the last to the first, so that the first place of a doubled id stays.
    places = dict(zip([c.id for c in reversed(candidates)], range(len(candidates), 0, -1), strict=True))
    rows = []
    for head, passage in zip(_heads(chosen, room), chosen, strict=True):
        place = places.get(passage.id, 0)
        found = clean_score(candidates[place - 1].score) if place else None
        known = "" if found is None else f',"retrieval_score":{found!r}'
        rows.append(f'{head},"previous_rank":{place}{known}}}')
    return _fitted(rows, room, 0).json
