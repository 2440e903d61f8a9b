"""Write documents as one JSON document, or as one attribute for each field.

Over a limit, texts go before ids, and those of the lowest ranks first.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from ragtrace import semconv
from ragtrace.model.passage import content_hash, is_content_id
from ragtrace.telemetry.spans.budget import RESERVED_ATTRIBUTES, UNLIMITED, Limit, Value, bytes_of, ranks_within
from ragtrace.telemetry.wire import clean_value, json_bytes, to_json
from ragtrace.text import cut_bytes, size_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opentelemetry.util.types import AnyValue

    from ragtrace.model import Passage
    from ragtrace.model.passage import IdKey

Row = dict[str, object]

_FIELDS_SHARE = 0.75  # of a span's bytes that documents by field take at most
_LONG_BYTES = 65_536  # to which the text of a document is cut where it does not fit
_NAME_BYTES = 32  # of a place, a field's name and a number


class _OfDocuments(Value):
    def most(self, left: int, reserve: int) -> int:
        """Return what is left above the reserve."""
        return max(left - reserve, 0)

    def takes(self, written: Mapping[str, AnyValue], reserve: int) -> tuple[int, int]:
        """Return the bytes that were written; the reserve stays."""
        return bytes_of({name: value for name, value in written.items() if isinstance(value, str)}), reserve


class Documents(_OfDocuments):
    """The passages of a search as ``[{id, score, rank, content?, metadata?}]``, and how many of them are whole.

    A text that is not sent leaves its ``hash`` (16 hex digits of SHA-256, or with a key). A document without a
    score gets 1/rank and ``score_kind: "rank"``: Phoenix drops all documents when one score is null.

    Args:
        passages: best first; none gives ``[]``.
        has_content: whether texts and metadata may be written at all.
        by_field: whether the best documents have an attribute for each field, as OpenInference has them.
        id_key: of the hashes; None makes plain ones.

    Example:
        >>> from ragtrace.model import Passage
        >>> pool = [Passage(id="a", text="Oslo.", rank=1, score=0.5), Passage(id="b", text="Rome.", rank=2)]
        >>> written = Documents(pool, has_content=True).write("gen_ai.retrieval.documents", Limit())
        >>> written["gen_ai.retrieval.documents"]
        '[{"id":"a","score":0.5,"rank":1,"content":"Oslo."},{"id":"b","score":0.5,"rank":2,"score_kind":"rank","content":"Rome."}]'
    """

    def __init__(
        self,
        passages: Sequence[Passage],
        *,
        has_content: bool,
        by_field: bool = False,
        id_key: IdKey | None = None,
    ) -> None:
        self.passages, self.has_content, self.by_field = passages, has_content, by_field
        self._row = partial(_row, id_key=id_key)

    def write(self, name: str, limit: Limit) -> dict[str, AnyValue]:
        """Return the documents and the counts, first those with an attribute for each field."""
        passages, fields = self.passages, Fields(limit)
        if self.by_field:  # first: were the span too full for all, the SDK would drop these
            fields.add(self.passages, semconv.RETRIEVAL_DOCUMENTS, has_content=self.has_content)
        limit = limit._replace(texts=max(limit.texts - fields.size, 0), whole=limit.whole - fields.size - len(name))
        seen = {"", *limit.sent, *fields.texts}
        wanted: list[str | None] = [None] * len(passages)
        for place, passage in enumerate(passages if self.has_content else ()):
            if passage.text not in seen:
                seen.add(passage.text)
                wanted[place] = passage.text
        texts = wanted
        rows = list(map(self._row, passages, texts))
        data = json_bytes(rows)
        most = min(limit.whole, limit.attribute)
        if self.has_content and len(data) > min(limit.texts, most):
            texts = self._fitting(wanted, min(limit.texts, most))
            rows = list(map(self._row, passages, texts))
            data = json_bytes(rows)
        if len(data) > most:
            rows = rows[: ranks_within([rows], limit.whole, limit.attribute)]
            data = json_bytes(rows)
        self.is_cut = len(rows) < len(passages)
        self.texts = {*fields.texts, *(p.text for p, text in zip(passages, texts, strict=True) if text is not None)}
        given = zip(passages, texts, wanted, strict=True)
        truncated = sum([p.truncated > 0 or text != whole for p, text, whole in given if whole is not None])
        return {
            **fields.written,
            name: data.decode(),
            semconv.RETRIEVAL_DOCUMENT_COUNT: len(passages),
            semconv.RETRIEVAL_DOCUMENT_CAPTURED: len(rows),
            semconv.RETRIEVAL_DOCUMENT_TRUNCATED: truncated + fields.truncated,
        }

    def _fitting(self, texts: Sequence[str | None], budget: int) -> list[str | None]:
        """Return the texts that fit, from the first on: a long one may be cut, and behind a gap there is none."""
        kept: list[str | None] = [None] * len(self.passages)
        bare = list(map(self._row, self.passages, kept))
        left = budget - len(json_bytes(bare))
        for place, (passage, text) in enumerate(zip(self.passages, texts, strict=True)):
            if text is None:
                continue
            for form in (text, cut_bytes(text, _LONG_BYTES)):
                size = len(json_bytes(self._row(passage, form))) - len(json_bytes(bare[place]))
                if size <= left:
                    break
            else:
                break
            kept[place] = form
            left -= size
        return kept


class Reranked(_OfDocuments):
    """A reranker's choice as ``[{id, score, rank, previous_rank, retrieval_score}]``.

    `previous_rank` is the 1-based place among the candidates, 0 for one that was not there; `retrieval_score`
    is left out where the candidate had none.

    Args:
        candidates: what went in.
        chosen: what came out, best first.
        by_field: whether choice and candidates also have an attribute for each field.
        has_content: whether these hold texts.

    Example:
        >>> from ragtrace.model import Passage
        >>> pool = [Passage(id="a", text="", rank=1, score=0.5), Passage(id="b", text="", rank=2, score=0.4)]
        >>> best = [Passage(id="b", text="", rank=1, score=0.9)]
        >>> Reranked(pool, best).write("ragtrace.rerank.documents", Limit())["ragtrace.rerank.documents"]
        '[{"id":"b","score":0.9,"rank":1,"previous_rank":2,"retrieval_score":0.4}]'
    """

    def __init__(
        self,
        candidates: Sequence[Passage],
        chosen: Sequence[Passage],
        *,
        by_field: bool = False,
        has_content: bool = False,
    ) -> None:
        self.candidates, self.chosen = candidates, chosen
        self.by_field, self.has_content = by_field, has_content

    def write(self, name: str, limit: Limit) -> dict[str, AnyValue]:
        """Return the choice."""
        fields = Fields(limit)
        if self.by_field:
            fields.add(
                self.chosen, semconv.RERANKER_OUTPUT_DOCUMENTS, has_content=self.has_content, may_repeat=True
            )
            fields.add(self.candidates, semconv.RERANKER_INPUT_DOCUMENTS, has_content=False)
            self.texts = fields.texts
        rows = self._rows()
        data = json_bytes(rows)
        room = limit.whole - fields.size - len(name)
        self.is_cut = len(data) > min(room, limit.attribute)
        if self.is_cut:
            data = json_bytes(rows[: ranks_within([rows], room, limit.attribute)])
        return {**fields.written, name: data.decode()}

    def _rows(self) -> list[Row]:
        candidates, rows = self.candidates, []
        # From the last to the first, so that the first place of a doubled id stays.
        places = dict(zip([c.id for c in reversed(candidates)], range(len(candidates), 0, -1), strict=True))
        for passage in self.chosen:
            place = places.get(passage.id, 0)
            row = _ranked(passage)
            row["previous_rank"] = place
            found = candidates[place - 1].score if place else None
            if found is not None and math.isfinite(found):
                row["retrieval_score"] = float(found)
            rows.append(row)
        return rows


def _row(passage: Passage, text: str | None, *, id_key: IdKey | None) -> Row:
    """Return a document with a text, or with a hash that stands for its text."""
    row = _ranked(passage)
    if text is not None:
        row["content"] = text
        if passage.metadata:
            row["metadata"] = passage.metadata
    elif passage.text and not is_content_id(passage.id):  # an id of ours is the hash already
        row["hash"] = content_hash(passage.text, id_key)
    return row


def _ranked(passage: Passage) -> Row:
    score = passage.score
    if score is not None and math.isfinite(score):
        return {"id": passage.id, "score": float(score), "rank": passage.rank}
    return {"id": passage.id, "score": 1.0 / max(passage.rank, 1), "rank": passage.rank, "score_kind": "rank"}


class Fields:
    """Documents as ``{prefix}.{i}.document.id``, ``.score``, ``.content`` and ``.metadata``, the best of each list.

    A document is written whole or not at all, as long as attributes and bytes last.

    Attributes:
        written: the attributes.
        texts: those among them.
        size: bytes of them.
        truncated: texts that were cut when they were captured, or will be to the SDK's limit.

    Example:
        >>> from ragtrace.model import Passage
        >>> fields = Fields(Limit(attributes=26))
        >>> fields.add([Passage(id="a", text="Oslo.", rank=1, score=0.5)], "retrieval.documents", has_content=False)
        >>> fields.written
        {'retrieval.documents.0.document.id': 'a', 'retrieval.documents.0.document.score': 0.5}
    """

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        whole = limit.whole if limit.whole == UNLIMITED else int(limit.whole * _FIELDS_SHARE)
        self._room = min(limit.texts, whole)
        self.written: dict[str, AnyValue] = {}
        self.texts: set[str] = set()
        self.size = self.truncated = 0

    def add(self, passages: Sequence[Passage], prefix: str, *, has_content: bool, may_repeat: bool = False) -> None:
        """Add the best passages of a list, behind those that were added before.

        Args:
            passages: best first.
            prefix: ``retrieval.documents``, ``reranker.input_documents`` or ``reranker.output_documents``.
            has_content: whether texts and metadata may be written.
            may_repeat: whether a text may be written that another span of the trace carries.
        """
        found: dict[str, AnyValue] = {}
        for place, passage in enumerate(passages):
            is_new = may_repeat or (passage.text not in self._limit.sent and passage.text not in self.texts)
            fields = self._fields(passage, has_content=has_content and is_new)
            size = sum(
                len(prefix) + _NAME_BYTES + (size_bytes(value) if isinstance(value, str) else 0)
                for value in fields.values()
            )
            most = self._limit.attributes - RESERVED_ATTRIBUTES - len(self.written)
            if len(found) + len(fields) > most or self.size + size > self._room:
                break
            self.size += size
            if has_content:
                self.texts.add(passage.text)
            if semconv.DOCUMENT_CONTENT in fields:
                self.truncated += passage.truncated > 0 or len(passage.text) > self._limit.attribute
            found |= {f"{prefix}.{place}.{name}": value for name, value in fields.items()}
        self.written |= found

    def _fields(self, passage: Passage, *, has_content: bool) -> dict[str, AnyValue]:
        fields: dict[str, AnyValue] = {semconv.DOCUMENT_ID: clean_value(passage.id)}
        if passage.score is not None and (score := clean_value(passage.score)) is not None:
            fields[semconv.DOCUMENT_SCORE] = score
        if has_content and passage.text:
            fields[semconv.DOCUMENT_CONTENT] = clean_value(passage.text)
        if has_content and passage.metadata:
            fields[semconv.DOCUMENT_METADATA] = to_json(passage.metadata)
        return fields
