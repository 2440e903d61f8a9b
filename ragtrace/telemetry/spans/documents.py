"""Write documents as one JSON string, or as one attribute for each field, within the room of a trace.

Over budget, texts go before ids, and those of the lowest ranks first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ragtrace import semconv
from ragtrace.model.passage import content_hash
from ragtrace.telemetry.wire import clean_value, json_bytes, to_json
from ragtrace.text import cut_bytes, size_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.model import Passage


RESERVED_ATTRIBUTES = 24  # for our own names, and a few that the application's span processors add
DEFAULT_ATTRIBUTES = 128  # the SDK's own default
MAX_ATTRIBUTES = 512  # where the SDK has no limit
_LONG_BYTES = 65_536  # to which the text of a document is cut where it does not fit
_NAME_BYTES = 32  # of a place, a field's name and a number


@dataclass(slots=True, kw_only=True)
class Room:
    """Bytes that one trace may still put on the wire; each text is sent once, and the total is bounded.

    Attributes:
        document_bytes: left for `gen_ai.retrieval.documents` of all spans of the trace.
        text_bytes: left for questions, answers and messages.
        limit_chars: the SDK's own limit on an attribute value, which would cut JSON in the middle; None = none.
        limit_attributes: the SDK's own limit on the attributes of a span, beyond which it drops the oldest.
        sent: texts that an earlier span of the trace carries.
    """

    document_bytes: int
    text_bytes: int
    limit_chars: int | None = None
    limit_attributes: int = DEFAULT_ATTRIBUTES
    sent: set[str] = field(default_factory=set)

    @property
    def list_bytes(self) -> int:
        """Bytes for one list of documents."""
        return self.document_bytes if self.limit_chars is None else min(self.document_bytes, self.limit_chars)

    @property
    def message_bytes(self) -> int:
        """Bytes for one list of messages: half of the room left for texts and documents."""
        whole = (self.text_bytes + self.document_bytes) // 2
        return whole if self.limit_chars is None else min(whole, self.limit_chars)

    def take_text(self, size: int) -> None:
        """Take bytes from the room for texts, then from the room for documents."""
        if size <= self.text_bytes:
            self.text_bytes -= size
            return
        self.document_bytes -= size - self.text_bytes
        self.text_bytes = 0


def documents_json(passages: Sequence[Passage], room: Room, *, has_content: bool) -> tuple[str, int]:
    """Return ``[{id, score, rank, content?, metadata?}]``, and how many texts are cut or left out for size.

    The room has texts of the first ranks; one that is not sent leaves its ``hash`` (16 hex digits of SHA-256). A
    document without a score gets 1/rank and ``score_kind: "rank"``: Phoenix drops all documents when one score is
    null.

    Args:
        passages: best first; none gives ``[]``.
        room: is reduced by what was written.
        has_content: whether texts and metadata may be written at all.

    Example:
        >>> from ragtrace.model import Passage
        >>> pool = [Passage(id="a", text="Oslo.", rank=1, score=0.5), Passage(id="b", text="Rome.", rank=2)]
        >>> documents_json(pool, Room(document_bytes=500, text_bytes=0), has_content=True)[0]
        '[{"id":"a","score":0.5,"rank":1,"content":"Oslo."},{"id":"b","score":0.5,"rank":2,"score_kind":"rank","content":"Rome."}]'
    """
    wanted: list[str | None] = [None] * len(passages)
    seen = room.sent | {""}
    for place, passage in enumerate(passages if has_content else ()):
        if passage.text not in seen:
            seen.add(passage.text)
            wanted[place] = passage.text
    texts = wanted
    data = json_bytes(list(map(_row, passages, texts)))
    if has_content and len(data) > room.list_bytes:
        texts = _fitting(passages, wanted, room.list_bytes)
        data = json_bytes(list(map(_row, passages, texts)))
    room.sent.update([p.text for p, text in zip(passages, texts, strict=True) if text is not None])
    room.document_bytes -= min(len(data), room.list_bytes)
    given = zip(passages, texts, wanted, strict=True)
    truncated = sum([p.truncated > 0 or text != whole for p, text, whole in given if whole is not None])
    return data.decode(), truncated


def _fitting(passages: Sequence[Passage], texts: Sequence[str | None], budget: int) -> list[str | None]:
    """Return the texts that fit, from the first on: a long one may be cut, and behind a gap there is none."""
    kept: list[str | None] = [None] * len(passages)
    bare = list(map(_row, passages, kept))
    left = budget - len(json_bytes(bare))
    for place, (passage, text) in enumerate(zip(passages, texts, strict=True)):
        if text is None:
            continue
        for form in (text, cut_bytes(text, _LONG_BYTES)):
            size = len(json_bytes(_row(passage, form))) - len(json_bytes(bare[place]))
            if size <= left:
                break
        else:
            break
        kept[place] = form
        left -= size
    return kept


def _row(passage: Passage, text: str | None) -> dict[str, object]:
    """Return a document with a text, or with a hash that stands for its text."""
    row = _ranked(passage)
    if text is not None:
        row["content"] = text
        if passage.metadata:
            row["metadata"] = passage.metadata
    elif passage.text and not passage.id.startswith("sha256:"):  # an id of ours is the hash already
        row["hash"] = content_hash(passage.text)
    return row


def _ranked(passage: Passage) -> dict[str, object]:
    score = passage.score
    if score is not None and math.isfinite(score):
        return {"id": passage.id, "score": float(score), "rank": passage.rank}
    return {"id": passage.id, "score": 1.0 / max(passage.rank, 1), "rank": passage.rank, "score_kind": "rank"}


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
    for passage in chosen:
        place = places.get(passage.id, 0)
        row = _ranked(passage)
        row["previous_rank"] = place
        found = candidates[place - 1].score if place else None
        if found is not None and math.isfinite(found):
            row["retrieval_score"] = float(found)
        rows.append(row)
    data = json_bytes(rows)
    room.document_bytes -= min(len(data), room.list_bytes)
    return data.decode()


def flattened_documents(
    passages: Sequence[Passage],
    prefix: str,
    room: Room,
    *,
    limit: int,
    has_content: bool,
    may_repeat: bool = False,
) -> dict[str, object]:
    """Return ``{prefix}.{i}.document.id``, ``.score``, ``.content`` and ``.metadata`` of the best passages.

    A document is written whole or not at all, as long as attributes and bytes last. Texts are taken from the room
    for documents, and noted there as sent.

    Args:
        passages: best first.
        prefix: ``retrieval.documents``, ``reranker.input_documents`` or ``reranker.output_documents``.
        room: is reduced by the texts.
        limit: attributes that may be written.
        has_content: whether texts and metadata may be written.
        may_repeat: whether a text may be written that another span of the trace carries.

    Example:
        >>> from ragtrace.model import Passage
        >>> room = Room(document_bytes=500, text_bytes=0)
        >>> pool = [Passage(id="a", text="Oslo.", rank=1, score=0.5)]
        >>> flattened_documents(pool, "retrieval.documents", room, limit=2, has_content=False)
        {'retrieval.documents.0.document.id': 'a', 'retrieval.documents.0.document.score': 0.5}
    """
    written: dict[str, object] = {}
    for place, passage in enumerate(passages):
        is_new = may_repeat or passage.text not in room.sent
        fields = _fields(passage, room.limit_chars, has_content=has_content and is_new)
        size = sum(
            len(prefix) + _NAME_BYTES + (size_bytes(value) if isinstance(value, str) else 0)
            for value in fields.values()
        )
        if len(written) + len(fields) > limit or size > room.document_bytes:
            break
        room.document_bytes -= size
        if has_content:
            room.sent.add(passage.text)
        written |= {f"{prefix}.{place}.{name}": value for name, value in fields.items()}
    return written


def _fields(passage: Passage, limit_chars: int | None, *, has_content: bool) -> dict[str, object]:
    fields: dict[str, object] = {semconv.DOCUMENT_ID: passage.id}
    if passage.score is not None:
        fields[semconv.DOCUMENT_SCORE] = passage.score
    if has_content and passage.text:
        fields[semconv.DOCUMENT_CONTENT] = clean_value(passage.text)
    if has_content and passage.metadata:
        metadata = to_json(passage.metadata)
        if limit_chars is None or len(metadata) <= limit_chars:  # the SDK would cut the JSON in the middle
            fields[semconv.DOCUMENT_METADATA] = metadata
    return fields
