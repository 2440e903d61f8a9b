"""Write documents as one JSON string, or as one attribute for each field, within the room of a trace.

Over budget, texts go before ids, and those of the lowest ranks first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ragtrace import semconv
from ragtrace.capture.sanitize import clean_score
from ragtrace.model.passage import content_hash
from ragtrace.telemetry.wire import clean_value, cut_text, is_plain, quoted, scalars_json, size_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.model import Passage


RESERVED_ATTRIBUTES = 24  # for our own names, and a few that the application's span processors add
DEFAULT_ATTRIBUTES = 128  # the SDK's own default
MAX_ATTRIBUTES = 512  # where the SDK has no limit
_LONG_BYTES = 65_536  # to which the text of a document is cut where it does not fit
_WHOLE, _CUT = 1, 2
_MOST_CHARACTER_BYTES = 4  # in UTF-8
_NAME_BYTES = 32  # of a place, a field's name and a number


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
    """Bytes that one trace may still put on the wire; each text is sent once, and the total is bounded.

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
    limit_attributes: int = DEFAULT_ATTRIBUTES
    sent: set[str] = field(default_factory=set)
    shown: dict[int, list[str] | None] = field(default_factory=dict)

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

    def scores_of(self, passages: Sequence[Passage]) -> list[str] | None:
        """Return the scores of passages as JSON, None unless all have a finite one; worked out once a trace.

        The root's lists and the retrieval's documents write the same 50 numbers, at 0.3 us each.
        """
        key = id(passages)  # the passages of a run outlive its room
        if key not in self.shown:
            scores = [p.score for p in passages]
            is_usable = set(map(type, scores)) == {float} and math.isfinite(sum(scores))  # type: ignore[arg-type]
            self.shown[key] = list(map(repr, scores)) if is_usable else None
        return self.shown[key]


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
    nothing = [False] * len(passages)
    if not has_content:
        return _fitted(_rows(passages, nothing, room), room, 0)
    wanted = _first_times(passages, room.sent)
    full = _rows(passages, wanted, room)
    budget = room.document_bytes if room.limit_chars is None else min(room.document_bytes, room.limit_chars)
    chars = sum(map(len, full)) + len(full) + 1
    # A character takes four bytes at most: to count bytes is needed only near the limit.
    if chars > budget or (chars * _MOST_CHARACTER_BYTES > budget and _size(full) > budget):
        short = [replace(p, text=cut_text(p.text, _LONG_BYTES)) for p in passages]
        rows = (full, _rows(short, wanted, room), _rows(passages, nothing, room))
        room.shown.pop(id(short), None)  # it is gone with this call, and another list may take its place
        kept, full = _rows_that_fit(*rows, budget)
    else:
        kept = list(map(int, wanted))
    sent = [p for p, is_sent in zip(passages, kept, strict=True) if is_sent]
    room.sent.update([p.text for p in sent])
    cut = sum(p.truncated > 0 or is_sent == _CUT for p, is_sent in zip(passages, kept, strict=True) if is_sent)
    return _fitted(full, room, sum(wanted) - len(sent) + cut)


def _first_times(passages: Sequence[Passage], sent: set[str]) -> list[bool]:
    """Return for each passage whether its text is not on the wire yet."""
    texts = {p.text for p in passages}
    if not sent and "" not in texts and len(texts) == len(passages):
        return [True] * len(passages)
    seen = {"", *sent}
    wanted = []
    for passage in passages:
        wanted.append(passage.text not in seen)
        seen.add(passage.text)
    return wanted


def _rows_that_fit(
    full: Sequence[str], short: Sequence[str], bare: Sequence[str], budget: int
) -> tuple[list[int], list[str]]:
    """Return which rows keep their text, and the rows; a long text may be cut, and behind a gap none is kept."""
    left = budget - _size(bare)
    kept, rows = [0] * len(bare), list(bare)
    for place, (whole, cut, without) in enumerate(zip(full, short, bare, strict=True)):
        sizes = (size_bytes(whole) - size_bytes(without), size_bytes(cut) - size_bytes(without))
        form = next((form for form, size in zip((_WHOLE, _CUT), sizes, strict=True) if size <= left), 0)
        if not form:
            break
        if whole != without:
            kept[place], rows[place] = form, (whole, cut)[form - 1]
            left -= sizes[form - 1]
    return kept, rows


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
    """Return the beginnings of rows. By hand, since one C call for dictionaries takes twice as long."""
    scores = room.scores_of(passages)
    if scores is not None and is_plain([p.id for p in passages]):  # nearly every pool, in one go
        return [
            f'{{"id":"{p.id}","score":{score},"rank":{p.rank}' for p, score in zip(passages, scores, strict=True)
        ]
    heads = []
    for passage in passages:
        score, kind = passage.score if type(passage.score) is float else clean_score(passage.score), ""
        if score is None or not math.isfinite(score):
            score, kind = 1.0 / max(passage.rank, 1), ',"score_kind":"rank"'
        heads.append(f'{{"id":{quoted(passage.id)},"score":{score!r},"rank":{passage.rank:d}{kind}')
    return heads


def _rows(passages: Sequence[Passage], wanted: Sequence[bool], room: Room) -> list[str]:
    """Return rows, each with its text where that is wanted, else with a hash that stands for it.

    A pool of plain prose is written in one go, 70 us for 50 instead of 110.
    """
    scores = room.scores_of(passages) if all(wanted) else None
    if scores is not None and is_plain([p.id for p in passages]) and is_plain([p.text for p in passages]):
        return [
            f'{{"id":"{p.id}","score":{score},"rank":{p.rank},"content":"{p.text}"'
            f"{_metadata(p) if p.metadata else ''}}}"
            for p, score in zip(passages, scores, strict=True)
        ]
    rows = []
    for head, passage, is_wanted in zip(_heads(passages, room), passages, wanted, strict=True):
        end = ""
        if is_wanted:
            end = f',"content":{quoted(passage.text)}{_metadata(passage)}'
        elif passage.text and not passage.id.startswith("sha256:"):  # an id of ours is the hash already
            end = f',"hash":"{content_hash(passage.text)}"'
        rows.append(f"{head}{end}}}")
    return rows


def _metadata(passage: Passage) -> str:
    return f',"metadata":{scalars_json(passage.metadata)}' if passage.metadata else ""


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
        metadata = scalars_json(passage.metadata)
        if limit_chars is None or len(metadata) <= limit_chars:  # the SDK would cut the JSON in the middle
            fields[semconv.DOCUMENT_METADATA] = metadata
    return fields
