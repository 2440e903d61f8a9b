"""LangChain documents as values: which stand in a chain's input or output, their ids and their scores."""

from __future__ import annotations

from dataclasses import fields
from itertools import islice, pairwise
from operator import attrgetter, is_
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.prompt_values import ChatPromptValue, StringPromptValue
from msgspec import Struct

from ragtrace.capture import (
    MOST_PASSAGES,
    RERANK_SCORE_KEYS,
    SCORE_KEYS,
    id_in,
    is_equal,
    number_of,
    score_in,
    shown,
)
from ragtrace.capture.chunks import chunks_of, is_form_of
from ragtrace.text import folded
from ragtrace_langchain.langgraph import is_command
from ragtrace_langchain.search_results import SearchResult, results_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ragtrace.capture import PassageReader, ReadPassages
    from ragtrace.model import Passage

_RERANKERS_OWN = len(RERANK_SCORE_KEYS) - len(SCORE_KEYS)  # names, which stand before the others

# A document as it was when it was met: the passage, and a copy of its metadata, which a reranker may change later.
Hit = tuple["Passage", "Mapping[str, object]"]


_LISTS = (list, tuple)  # a union is made anew for each question
# Most steps pass these on; they hold no documents.
PLAIN = frozenset((str, type(None), ChatPromptValue, StringPromptValue))
_HOLDERS = (list, tuple, dict)
_DEPTH = 3  # of lists in lists, for cyclic ones


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


class ReadDocument(Struct, eq=False):
    """A document as it was at one event: the application may change the document itself later."""

    id: object
    page_content: object
    metadata: dict[str, object]
    document: object


class Columns(NamedTuple):
    """Documents with their ids, texts and metadata as they were at one event, and the texts' characters."""

    documents: Sequence[Document]
    ids: list[object]
    texts: list[object]
    metadata: list[dict[str, object]]
    chars: int


def columns_of(documents: Sequence[Document]) -> Columns:
    """Return documents with their ids, texts and copies of their metadata as they are now; a loop in C for each.

    Items that are no documents are left out.

    Example:
        >>> columns_of([Document(id="d1", page_content="a", metadata={"score": 0.5})])[1:]
        (['d1'], ['a'], [{'score': 0.5}], 1)
    """
    some = documents[:MOST_PASSAGES]
    try:
        texts = list(map(_TEXT, some))
        metadata = list(map(dict.copy, map(_METADATA, some)))
        return Columns(some, list(map(_ID, some)), texts, metadata, sum(map(len, texts)))
    except (AttributeError, TypeError):
        found = [one for one in some if isinstance(getattr(one, "metadata", None), dict)]
        ids = [getattr(one, "id", None) for one in found]
        texts = [getattr(one, "page_content", None) for one in found]
        chars = sum(len(text) for text in texts if isinstance(text, str))
        return Columns(found, ids, texts, [dict(one.metadata) for one in found], chars)


def as_left(outputs: object) -> object:
    """Return a step's output as it is now: lists, a state's lists and messages copied."""
    if isinstance(outputs, list):
        return list(outputs)
    if isinstance(outputs, dict):
        return {key: list(part) if isinstance(part, list) else part for key, part in outputs.items()}
    return outputs.model_copy() if isinstance(outputs, BaseMessage) else outputs


class AsGiven(list[object]):
    """A list as a step was given it, and the list itself, which the step may change in place."""

    __slots__ = ("itself",)

    def __init__(self, itself: list[object]) -> None:
        super().__init__(itself)
        self.itself = itself

    def is_handed_on(self, part: object) -> bool:
        """Tell whether a step gave out the list that it was given, and left it as it was."""
        return part is self.itself and len(part) == len(self) and all(map(is_, part, self))


def as_given(inputs: object) -> tuple[object, list[Document] | None]:
    """Return a step's input as it is now, a state's lists copied, and the documents in it (see `documents_in`).

    Example:
        >>> state = {"docs": [Document(page_content="a")]}
        >>> given, documents = as_given(state)
        >>> state["docs"].clear()
        >>> given, documents
        ({'docs': [Document(metadata={}, page_content='a')]}, [Document(metadata={}, page_content='a')])
    """
    if isinstance(inputs, _LISTS):
        listed = _listed(inputs) or None
        if listed and isinstance(inputs[0], _LISTS):
            return [list(part) if isinstance(part, list) else part for part in inputs], listed
        return listed or (list(inputs) if isinstance(inputs, list) else inputs), listed
    state = fields_of(inputs)
    if state is None:
        return inputs, None
    given, documents = {}, []
    for key, value in state.items():
        part = given[key] = AsGiven(value) if isinstance(value, list) else value
        if isinstance(part, _HOLDERS):
            documents += _held(part, key)
    return given, documents or None


def fields_of(value: Any) -> dict[object, object] | None:
    """Return the fields of a chain's state: of a dict, a dataclass, a Pydantic model, a Command's update.

    None for what has none, and for LangChain's own messages and prompts. No property of the application is called.

    Example:
        >>> fields_of({"docs": []}), fields_of("text")
        ({'docs': []}, None)
    """
    if isinstance(value, dict):
        return value
    kind = type(value)
    if kind in PLAIN:
        return None
    if hasattr(kind, "__pydantic_validator__"):
        return None if hasattr(kind, "lc_id") else getattr(value, "__dict__", None)
    if not hasattr(kind, "__dataclass_fields__"):
        return None
    if is_command(value):
        return fields_of(value.update)
    return {field.name: getattr(value, field.name) for field in fields(value) if _is_stored(value, field.name)}


def _is_stored(value: object, name: str) -> bool:
    in_slot = isinstance(getattr(type(value), name, None), MemberDescriptorType)
    return in_slot or name in getattr(value, "__dict__", ())


def documents_in(value: object, name: str = "") -> list[Document] | None:
    """Return the documents in a chain's value: a list of them, or a state that holds such lists.

    The list may hold lists, one for each query, or pairs of a document and its score. Search results that are no
    documents are read as such (see `results_in`); `name` says of which function the value is. None when there are
    no documents; a value that is an empty list says nothing about documents.

    Example:
        >>> documents_in({"question": "?", "docs": [Document(page_content="a")]})
        [Document(metadata={}, page_content='a')]
        >>> documents_in([[Document(page_content="a")], []])
        [Document(metadata={}, page_content='a')]
        >>> documents_in("text") is None
        True
    """
    if isinstance(value, _LISTS):
        return _listed(value, name) or None
    state = fields_of(value)
    return (_held(state, name) or None) if state else None


def lists_in(value: object, name: object = "", depth: int = 0) -> list[list[Document]]:
    """Return the lists of documents in a chain's value, one by one; `name` is the field's.

    Example:
        >>> one, other = Document(page_content="a"), Document(page_content="b")
        >>> [len(part) for part in lists_in({"question": "?", "found": [[one, other], [one]], "web": [other]})]
        [2, 1, 1]
    """
    if isinstance(value, _LISTS):
        parts = [part for part in value if isinstance(part, _LISTS)] if is_nested(value) else [value]
        return [documents for part in parts if (documents := _listed(part, name))]
    state = None if depth > _DEPTH else fields_of(value)
    held = ((key, part) for key, part in (state or {}).items() if isinstance(part, _HOLDERS))
    return [documents for key, part in held for documents in lists_in(part, key, depth + 1)]


def is_nested(value: object) -> bool:
    """Tell whether a value, or a field of a state, is a list of several lists: one for each query or retriever."""
    if isinstance(value, _LISTS):
        return len(value) > 1 and isinstance(value[0], _LISTS) and not _is_pair(value[0])
    return any(is_nested(part) for part in (fields_of(value) or {}).values() if isinstance(part, _LISTS))


def new_documents(outputs: object, inputs: object, name: str = "") -> list[Document] | None:
    """Return the documents that a chain gave out, less the lists that it merely handed on from its input.

    An output list that is empty where the input had documents is an empty choice: ``[]``. A tool's message hands on
    its artifact.

    Example:
        >>> docs = [Document(page_content="a"), Document(page_content="b")]
        >>> new_documents({"docs": docs, "top": docs[:1]}, {"docs": docs})
        [Document(metadata={}, page_content='a')]
        >>> new_documents([], docs)
        []
    """
    if isinstance(outputs, _LISTS):
        is_empty_choice = not outputs and isinstance(inputs, _LISTS) and _listed(inputs)
        return [] if is_empty_choice else documents_in(outputs, name)
    made = fields_of(outputs)
    if made is None:
        return documents_in(outputs.artifact, name) if isinstance(outputs, ToolMessage) else None
    given = fields_of(inputs)
    return documents_in(made, name) if given is None else _new_in(made, given)


def _new_in(outputs: Mapping[object, object], inputs: Mapping[object, object]) -> list[Document] | None:
    found: list[Document] | None = None
    for key, part in outputs.items():
        given = inputs.get(key)
        if part is given or (type(given) is AsGiven and given.is_handed_on(part)):
            continue
        documents = _held(part, key)
        if documents or (isinstance(part, _HOLDERS) and not part and _held(given, key)):
            found = [*(found or ()), *documents]
    return found


def is_documents_only(value: object) -> bool:
    """Tell whether a value consists of documents alone: nothing a reader could take for an answer.

    Example:
        >>> is_documents_only({"docs": [Document(page_content="a")], "answer": "b"})
        False
    """
    state = fields_of(value)
    if state is None:
        return isinstance(value, _LISTS) and (not value or bool(_listed(value)))
    return all(isinstance(part, _LISTS) and (not part or bool(_listed(part, key))) for key, part in state.items())


def _held(part: object, name: object = "", depth: int = 0) -> list[Document]:
    """Return the documents in a list, or in the lists that a dict holds; `name` is the field's."""
    if isinstance(part, _LISTS):
        return _listed(part, name)
    if not isinstance(part, dict) or depth > _DEPTH:
        return []
    inner = [_held(value, key, depth + 1) for key, value in part.items() if isinstance(value, _HOLDERS)]
    return inner[0] if len(inner) == 1 else [document for documents in inner for document in documents]


def _listed(parts: Sequence[Any], name: object = "", depth: int = 0) -> list[Document]:
    """Return the documents that a list consists of, as its first part tells."""
    first = parts[0] if parts else None
    if isinstance(first, Document):
        return [] if len(parts) == 2 and _is_pair(parts) else list(parts)
    if not isinstance(first, _LISTS):
        return [] if isinstance(first, BaseMessage) else results_in(parts, name if isinstance(name, str) else "")
    if depth > _DEPTH:
        return []
    if _is_pair(first):
        return _scored([pair for pair in parts if _is_pair(pair)])
    if len(first) == 2 and number_of(first[1]) is not None:
        return [] if _are_rows(parts) else _scored_results(parts, name)
    return [document for part in parts if isinstance(part, _LISTS) for document in _listed(part, name, depth + 1)]


def _are_rows(parts: Sequence[Any]) -> bool:
    """Tell whether pairs of a text and a number are rows of a database: whole numbers are no scores."""
    pairs = [pair for pair in parts if isinstance(pair, _LISTS) and len(pair) == 2]
    return all(isinstance(one, str) and type(number) is int for one, number in pairs)


def _scored_results(parts: Sequence[object], name: object) -> list[Document]:
    """Return the passages of pairs of a text or mapping and its score."""
    pairs = [pair for pair in parts if isinstance(pair, _LISTS) and len(pair) == 2]
    documents = results_in([pair[0] for pair in pairs], name if isinstance(name, str) else "")
    scored = list(zip(documents, (pair[1] for pair in pairs), strict=False))
    return _scored(scored) if len(documents) == len(parts) else documents


def _is_pair(parts: object) -> bool:
    """Tell whether a value is a document and its score, as ``similarity_search_with_score`` returns them."""
    if not isinstance(parts, _LISTS) or len(parts) != 2:
        return False
    document, score = parts
    return isinstance(document, Document) and not isinstance(score, Document) and number_of(score) is not None


def _scored(pairs: Sequence[tuple[Document, object]]) -> list[Document]:
    """Return the documents of pairs, scored where their numbers fall: those that rise are distances."""
    numbers = [number_of(score) or 0.0 for _, score in pairs]
    documents = [document for document, _ in pairs]
    if not (numbers[0] > numbers[-1] and all(one >= other for one, other in pairwise(numbers))):
        return documents
    return [
        document.model_copy(update={"metadata": {**document.metadata, "score": number}})
        for document, number in zip(documents, numbers, strict=True)
    ]


def as_documents(items: Iterable[object]) -> list[Document]:
    """Return what an application names as its documents: documents, scored pairs, mappings, objects or texts.

    Example:
        >>> as_documents(["a", {"id": "d1", "text": "b"}])
        [SearchResult(metadata={}, page_content='a'), SearchResult(metadata={'id': 'd1'}, page_content='b')]
    """
    listed = list(islice(items, MOST_PASSAGES + 1))  # the run's reader leaves the last one out, and counts it
    if listed and all(isinstance(item, _LISTS) for item in listed):
        return _listed(listed, "documents")
    return [found for item in listed for found in _named(item)]


def _named(item: object) -> list[Document]:
    if isinstance(item, str):
        return [SearchResult(page_content=item)]
    return [item] if isinstance(item, Document) else results_in([item], "documents")


class KnownDocuments:
    """Ids and keys of the documents met in one run, by which later stages recognise them.

    A document without an id of its own takes the id that its text has already. The own id of a document
    (`Document.id`) replaces an id from the metadata or a hash of the text, whichever retriever answers first.

    Attributes:
        renamed: the own ids of documents that were first met without one, by key.

    Example:
        >>> known = KnownDocuments()
        >>> known.names([Document(page_content="a")]), known.names([Document(id="d1", page_content="a")])
        ([(None, 'a')], [('d1', 'a')])
        >>> known.names([Document(page_content="a", metadata={"id": 0})])
        [('d1', 'a')]
    """

    __slots__ = (
        "_as_read",
        "_by_text",
        "_clashes",
        "_forms",
        "_key_by_id",
        "_n_folded",
        "_nameless",
        "_text_by_id",
        "_unread",
        "renamed",
    )

    def __init__(self) -> None:
        self._as_read: dict[int, Document] = {}
        self._by_text: dict[str, tuple[str | None, str]] = {}
        self._clashes: dict[str, dict[str, str]] = {}  # keys of passages by their text, under an id of several
        self._forms: dict[str, str] = {}  # texts by their folded ones
        self._key_by_id: dict[str, str] = {}
        self._n_folded = 0
        self._nameless: dict[str, str] = {}  # keys of texts for which no own id is known yet
        self._text_by_id: dict[str, str] = {}
        self._unread: list[tuple[list[str], list[str]]] = []
        self.renamed: dict[str, str] = {}

    def take(self, columns: Columns) -> None:
        """Keep documents as they were at an event; `as_read` returns them so from now on."""
        read: Iterable[Any] = map(ReadDocument, columns.ids, columns.texts, columns.metadata, columns.documents)
        self._as_read.update(zip(map(id, columns.documents), read, strict=True))

    def as_read(self, documents: Sequence[Document]) -> Sequence[Document]:
        """Return documents as they were at the last event that showed them."""
        known = self._as_read
        return [known.get(id(document), document) for document in documents] if known else documents

    def note(self, texts: list[str], ids: list[str]) -> list[str]:
        """Return the keys of documents with own ids. Their texts are indexed when a document without one comes."""
        keys = self._join(texts, ids)
        self._unread.append((texts, ids))
        return keys

    def keys(self, documents: Sequence[Document]) -> list[str]:
        """Return the keys of documents, in their order."""
        documents = self.as_read(documents)
        ids = own_ids(documents)
        if ids is None:
            return [key for _, key in self.names(documents)]
        is_id_key = not (self._nameless or self._key_by_id or self._clashes)
        return ids if is_id_key else self._join(_texts(documents), ids)

    def part(self, documents: Sequence[Document], seen: Mapping[str, Hit]) -> None:
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

    def names(
        self, documents: Sequence[Document], texts: Sequence[str] | None = None
    ) -> list[tuple[str | None, str]]:
        """Return the id of each document (None: a hash of its text) and its key.

        Documents of this same list are not joined by their text: a store may hold one text under two ids.
        """
        texts = _texts(documents) if texts is None else texts
        self._read_up()
        names = [self._name(document, text) for document, text in zip(documents, texts, strict=True)]
        for text, name in zip(texts, names, strict=True):
            self._by_text.setdefault(text, name)
        return names

    def is_known(self, document: object) -> bool:
        """Tell whether a document has an id of its own, or a text that was met before."""
        self._read_up()
        return bool(shown(getattr(document, "id", None))) or text_of(document) in self._by_text

    def take_as(self, text: str, name: str, key: str) -> None:
        """Know a text as another form of a passage, under its id and key."""
        self._by_text.setdefault(text, (name, key))

    def _name(self, document: object, text: str) -> tuple[str | None, str]:
        given = getattr(document, "id", None)
        own = given if type(given) is str else shown(given)
        if own:
            (key,) = self.note([text], [own])
            return own, key
        noted = _id_in(getattr(document, "metadata", None))
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
                if text in self._nameless and own not in self._text_by_id:
                    key = self._key_by_id[own] = self._nameless.pop(text)
                    self._by_text[text] = (own, key)
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
                self._by_text.setdefault(text, (own, self._key_by_id.get(own, own)))
                self._text_by_id.setdefault(own, text)
        self._unread = []


def text_of(document: object) -> str:
    """Return a document's text; what is no document is shown as text.

    Example:
        >>> text_of(Document(page_content="a")), text_of("b"), text_of(None)
        ('a', 'b', '')
    """
    text = getattr(document, "page_content", document)
    if type(text) is str:
        return text
    return shown(text)


def _id_in(metadata: object) -> str | None:
    return id_in(metadata) if isinstance(metadata, dict) else None


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


_ID, _TEXT, _METADATA = attrgetter("id"), attrgetter("page_content"), attrgetter("metadata")


def own_ids(documents: Iterable[Document]) -> list[str] | None:
    """Return the documents' own ids, None when one has none that is a text.

    Example:
        >>> own_ids([Document(id="a", page_content="")]), own_ids([Document(page_content="")])
        (['a'], None)
    """
    try:
        ids = list(map(_ID, documents))
    except AttributeError:  # no Document
        return None
    return None if set(map(type, ids)) != {str} or "" in ids else ids


def read_documents(
    documents: Sequence[Document], known: KnownDocuments, reader: PassageReader, source: str | None = None
) -> Hits:
    """Read documents into passages, each with a copy of its metadata as it is now.

    Example:
        >>> from ragtrace.capture import PassageReader
        >>> docs = [Document(id="d1", page_content="a", metadata={"score": 0.5})]
        >>> read_documents(docs, KnownDocuments(), PassageReader(None, 100)).passages[0].score
        0.5
    """
    texts, facts = _texts(documents), _facts(documents)
    scores = [fact.get("score") for fact in facts]
    rest: list[dict[str, object]] | None = facts
    if set(map(type, scores)) != {float}:
        scores = [score_of(fact) for fact in facts]
    elif max(map(len, facts)) == 1:
        rest = None  # they hold the scores and nothing else
    ids = own_ids(documents)
    if ids is not None:
        return Hits(known.note(texts, ids), reader.columns(texts, ids, scores, rest, source), facts)
    named = known.names(documents, texts)
    names = [name for name, _ in named]
    return Hits([key for _, key in named], reader.columns(texts, names, scores, rest, source), facts)


def _texts(documents: Sequence[Document]) -> list[str]:
    try:
        texts = list(map(_TEXT, documents))
    except AttributeError:  # no Documents
        return list(map(text_of, documents))
    return texts if set(map(type, texts)) == {str} else list(map(text_of, documents))


def _facts(documents: Sequence[Document]) -> list[dict[str, object]]:
    """Return copies of the documents' metadata; {} for what is no mapping."""
    try:
        return list(map(dict.copy, map(_METADATA, documents)))
    except (AttributeError, TypeError):
        given = [getattr(document, "metadata", None) for document in documents]
        return [dict(metadata) if isinstance(metadata, dict) else {} for metadata in given]
