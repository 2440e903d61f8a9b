"""Documents of a run as passages: their ids, their scores, and by which keys later stages know them again."""

from __future__ import annotations

from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from ragtrace.capture.chunks import chunks_of, is_form_of
from ragtrace.capture.guard import is_equal
from ragtrace.capture.names import RERANK_SCORE_KEYS, SCORE_KEYS
from ragtrace.capture.passages import ReadPassages, id_in, number_of, score_in
from ragtrace.capture.values import Redacted, identity_of
from ragtrace.text import folded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ragtrace.capture.passages import PassageReader
    from ragtrace.capture.values import Doc
    from ragtrace.model import Passage

_RERANKERS_OWN = len(RERANK_SCORE_KEYS) - len(SCORE_KEYS)  # names, which stand before the others

# A document as it was when it was met: the passage, and its metadata, which a reranker may change later.
Hit = tuple["Passage", "Mapping[str, object]"]


class Hits(NamedTuple):
    """Documents read together, in their order; `keys` join them over the stages of a run."""

    keys: list[str]
    passages: ReadPassages
    facts: list[dict[str, object]]

    def by_key(self) -> dict[str, Hit]:
        """Return each document once, as it stood first."""
        hits = zip(self.passages, self.facts, strict=True)
        if len(set(self.keys)) == len(self.keys):
            return dict(zip(self.keys, hits, strict=True))
        found: dict[str, Hit] = {}
        for key, hit in zip(self.keys, hits, strict=True):
            found.setdefault(key, hit)
        return found


class KnownDocuments:
    """Ids and keys of the documents met in one run, by which later stages recognise them.

    A document without an id of its own takes the id that its text has already. The own id of a document
    (`Doc.id`) replaces an id from the metadata or a hash of the text, whichever retriever answers first. A text
    that was redacted is known by what it was, see `identity_of`.

    Attributes:
        renamed: the own ids of documents that were first met without one, by key.

    Example:
        >>> from ragtrace.capture.values import Doc
        >>> known = KnownDocuments()
        >>> known.names([Doc("a")]), known.names([Doc("a", "d1")])
        ([(None, 'a')], [('d1', 'a')])
        >>> known.names([Doc("a", metadata={"id": 0})])
        [('d1', 'a')]
    """

    __slots__ = (
        "_by_text",
        "_clashes",
        "_forms",
        "_key_by_id",
        "_marks",
        "_n_folded",
        "_nameless",
        "_text_by_id",
        "_unread",
        "renamed",
    )

    def __init__(self) -> None:
        self._by_text: dict[str, tuple[str | None, str]] = {}
        self._clashes: dict[str, dict[str, str]] = {}  # keys of passages by their text, under an id of several
        self._forms: dict[str, str] = {}  # texts by their folded ones
        self._key_by_id: dict[str, str] = {}
        self._marks: dict[str, str] = {}  # of redacted texts, by key
        self._n_folded = 0
        self._nameless: dict[str, str] = {}  # keys of texts for which no own id is known yet
        self._text_by_id: dict[str, str] = {}
        self._unread: list[tuple[list[str], list[str]]] = []
        self.renamed: dict[str, str] = {}

    def note(self, texts: list[str], ids: list[str]) -> list[str]:
        """Return the keys of documents with own ids. Their texts are indexed when a document without one comes."""
        keys = self._join(texts, ids)
        self._unread.append((texts, ids))
        self._mark(keys, texts)
        return keys

    def keys(self, documents: Sequence[Doc]) -> list[str]:
        """Return the keys of documents, in their order."""
        ids = own_ids(documents)
        if ids is None:
            return [key for _, key in self.names(documents)]
        is_id_key = not (self._nameless or self._key_by_id or self._clashes)
        return ids if is_id_key else self._join(_texts(documents), ids)

    def part(self, documents: Sequence[Doc], seen: Mapping[str, Hit]) -> None:
        """Tell passages apart that searches found under one id, in one list or in those of two collections."""
        ids = own_ids(documents)
        if ids is None or (len(set(ids)) == len(ids) and seen.keys().isdisjoint(ids)):
            return
        firsts: dict[str, str] = {}
        for own, text in zip(ids, _texts(documents), strict=True):
            hit = seen.get(own)
            first = firsts.setdefault(own, text)
            is_other = first != text or (
                hit is not None and hit[0].text != text and not is_form_of(hit[0].text, text)
            )
            if is_other:
                chunks = self._clashes.setdefault(own, {first if hit is None else hit[0].text: own})
                chunks.setdefault(text, f"{own}\0{text}")

    def names(self, documents: Sequence[Doc], texts: Sequence[str] | None = None) -> list[tuple[str | None, str]]:
        """Return the id of each document (None: a hash of its text) and its key.

        Documents of this same list are not joined by their text: a store may hold one text under two ids.
        """
        texts = _texts(documents) if texts is None else texts
        self._read_up()
        names = [self._name(document, text) for document, text in zip(documents, texts, strict=True)]
        for text, name in zip(texts, names, strict=True):
            self._by_text.setdefault(identity_of(text), name)
        self._mark([key for _, key in names], texts)
        return names

    def identity(self, key: str, text: str) -> str:
        """Return by what the text of a passage is known again, see `identity_of`; `text` is the passage's."""
        return self._marks.get(key, text)

    def as_met(self, key: str, text: str) -> str:
        """Return the text of a passage, with the mark of the one that it was made of where it was redacted."""
        return Redacted(text, self._marks[key]) if key in self._marks else text

    def _mark(self, keys: Iterable[str], texts: Sequence[str]) -> None:
        if Redacted in set(map(type, texts)):
            for key, text in zip(keys, texts, strict=True):
                if type(text) is Redacted:
                    self._marks.setdefault(key, text.mark)

    def is_known(self, document: Doc) -> bool:
        """Tell whether a document has an id of its own, or a text that was met before."""
        if document.id:
            return True
        self._read_up()
        return identity_of(document.text) in self._by_text

    def take_as(self, text: str, name: str, key: str) -> None:
        """Know a text as another form of a passage, under its id and key."""
        self._by_text.setdefault(identity_of(text), (name, key))

    def _name(self, document: Doc, text: str) -> tuple[str | None, str]:
        if document.id:
            (key,) = self.note([text], [document.id])
            return document.id, key
        text = identity_of(text)
        noted = id_in(document.metadata)
        known = self._by_text.get(text) or self._in_another_form(text)
        # Rerankers may write a place in their input into `metadata["id"]`: the id that the text has already wins.
        if known is not None and (noted is None or self._text_by_id.get(noted) != text):
            return known
        # Chunks of one source may share an id in the metadata: a second text of that id gets a key of its own.
        is_shared = noted is not None and self._text_by_id.setdefault(noted, text) != text
        key = f"{noted}\0{text}" if is_shared else noted or text
        if known is None:
            self._nameless.setdefault(text, key)
        return noted, key

    def _in_another_form(self, text: str) -> tuple[str | None, str] | None:
        """Return the name of a text that is this one in another form of Unicode or another case."""
        for met in islice(self._by_text, self._n_folded, None):
            self._forms.setdefault(folded(met), met)
        self._n_folded = len(self._by_text)
        known = self._forms.get(folded(text)) if self._forms else None
        return None if known is None else self._by_text[known]

    def _join(self, texts: Sequence[str], ids: list[str]) -> list[str]:
        """Return the keys of own ids. A text that was met without an id keeps its key and takes the id."""
        if self._nameless:
            self._read_up()
            for text, own in zip(texts, ids, strict=True):
                known = identity_of(text)
                if known in self._nameless and own not in self._text_by_id:
                    key = self._key_by_id[own] = self._nameless.pop(known)
                    self._by_text[known] = (own, key)
                    self.renamed[key] = own
        keys = [self._key_by_id.get(own, own) for own in ids] if self._key_by_id else ids
        return self._chunk_keys(texts, ids, keys) if not self._clashes.keys().isdisjoint(ids) else keys

    def _chunk_keys(self, texts: Sequence[str], ids: Sequence[str], keys: Sequence[str]) -> list[str]:
        """Return keys with those of the chunks under one id; what was made of one has the chunk's key."""
        found = list(keys)
        for own in self._clashes.keys() & set(ids):
            chunks = self._clashes[own]
            places = [place for place, name in enumerate(ids) if name == own]
            some = [texts[place] for place in places]
            for place, text, chunk in zip(places, some, chunks_of(some, list(chunks)), strict=True):
                found[place] = f"{own}\0{text}" if chunk is None else chunks[chunk]
        return found

    def _read_up(self) -> None:
        for texts, ids in self._unread:
            for text, own in zip(texts, ids, strict=True):
                known = identity_of(text)
                self._by_text.setdefault(known, (own, self._key_by_id.get(own, own)))
                self._text_by_id.setdefault(own, known)
        self._unread = []


_ID, _TEXT = attrgetter("id"), attrgetter("text")


def score_of(metadata: Mapping[str, object]) -> float | None:
    """Return a retriever's score out of a document's metadata; None where there is none.

    Example:
        >>> score_of({"score": 0.5}), score_of({"distance": 0.1})
        (0.5, None)
    """
    score = metadata.get("score")
    return score if type(score) is float else score_in(metadata)


def rerank_score_of(metadata: Mapping[str, object], before: Mapping[str, object] | None) -> float | None:
    """Return the score a reranker wrote: one that was not there before, or is another now.

    The retriever's score, which most rerankers carry along, is thus never taken for the reranker's.

    Example:
        >>> rerank_score_of({"score": 0.5, "relevance_score": 0.9}, {"score": 0.5})
        0.9
        >>> rerank_score_of({"score": 0.5}, {"score": 0.5}) is None
        True
    """
    if before is None:
        return score_in(metadata, RERANK_SCORE_KEYS)
    if is_equal(metadata, before):  # most rerankers leave the metadata as they are
        return None
    for key in RERANK_SCORE_KEYS:
        number = number_of(metadata[key]) if key in metadata else None
        if number is not None and not is_equal(before.get(key), number):
            return number
    return None


def is_reranked(metadata: Mapping[str, object], before: Mapping[str, object]) -> bool:
    """Tell whether metadata hold a new score under a name that only rerankers use.

    Example:
        >>> is_reranked({"rerank_score": 0.9}, {}), is_reranked({"score": 0.9}, {})
        (True, False)
    """
    names = (key for key in RERANK_SCORE_KEYS[:_RERANKERS_OWN] if key in metadata)
    return any(not is_equal(before.get(key), metadata[key]) for key in names)


def own_ids(documents: Iterable[Doc]) -> list[str] | None:
    """Return the documents' own ids, None when one has none.

    Example:
        >>> from ragtrace.capture.values import Doc
        >>> own_ids([Doc("", "a")]), own_ids([Doc("")])
        (['a'], None)
    """
    ids = list(map(_ID, documents))
    return None if None in ids or "" in ids else ids


def read_documents(
    documents: Sequence[Doc], known: KnownDocuments, reader: PassageReader, source: str | None = None
) -> Hits:
    """Read documents into passages.

    Example:
        >>> from ragtrace.capture.passages import PassageReader
        >>> from ragtrace.capture.values import Doc
        >>> docs = [Doc("a", "d1", {"score": 0.5})]
        >>> read_documents(docs, KnownDocuments(), PassageReader(None, 100)).passages[0].score
        0.5
    """
    texts, facts = _texts(documents), [document.facts for document in documents]
    scores = [fact.get("score") for fact in facts]
    rest: list[dict[str, object]] | None = [document.metadata for document in documents]
    if set(map(type, scores)) != {float}:
        scores = [score_of(fact) for fact in facts]
    elif max(map(len, facts)) == 1:
        rest = None  # they hold the scores and nothing else
    ids = own_ids(documents)
    if ids is not None:
        keys: list[str] = known.note(texts, ids)
        passages = reader.columns(texts, ids, scores, rest, source)
    else:
        named = known.names(documents, texts)
        keys = [key for _, key in named]
        passages = reader.columns(texts, [name for name, _ in named], scores, rest, source)
    if any(document.lost for document in documents):
        pairs = zip(passages, documents, strict=True)
        passages = ReadPassages(replace(p, truncated=max(p.truncated, one.lost)) for p, one in pairs)
    return Hits(keys, passages, facts)


def _texts(documents: Iterable[Doc]) -> list[str]:
    return list(map(_TEXT, documents))
