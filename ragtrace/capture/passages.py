"""Reading of passages in every form that integrations and people hand over."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from itertools import islice
from math import isfinite
from secrets import token_bytes
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from ragtrace.capture.guard import record_internal_error
from ragtrace.capture.model_calls import said_in
from ragtrace.capture.names import ID_KEYS, INNER_KEYS, POOL_KEYS, SCORE_KEYS, TEXT_KEYS
from ragtrace.capture.pictures import PICTURE, picture_in_facts
from ragtrace.capture.values import Redacted, named, told
from ragtrace.model import Passage, content_id
from ragtrace.model.passage import IdKey
from ragtrace.text import (
    MAX_FACTS,
    MAX_NAME_CHARS,
    clean_metadata,
    clean_score,
    first_items,
    folded,
    is_vector,
    kept,
    shown,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

MOST_PASSAGES = 10_000  # of one list; more are not looked at

_MOST_INNER = 2  # of objects: a node in its result, and LlamaIndex's text in the node
_FIELDS = frozenset({*TEXT_KEYS, *ID_KEYS, *SCORE_KEYS, *INNER_KEYS})
_ITEMS = (str, bytes, Mapping, Passage)
PROCESS_KEY = IdKey(token_bytes(32))  # of ids made of texts, where no other is set; forked processes share it
_LISTS = (list, tuple)
_MOST_POOLS = 3  # one inside the other, as Elasticsearch's hits
_UNREAD = (
    "ragtrace: a {0} is no passage, and is left out: hand over texts, documents, or mappings with a text. Metrics "
    "over the contexts of such a run are na contexts_truncated"
)
T = TypeVar("T")


def text_key(mapping: Mapping[Any, object]) -> str | None:
    """Return the name under which a mapping keeps its text, None where no name is known.

    Example:
        >>> text_key({"id": 7, "snippet": "The lab is in Oslo."}), text_key({"id": 7})
        ('snippet', None)
    """
    return next((key for key in TEXT_KEYS if isinstance(mapping.get(key), str)), None)


def read_mapping(mapping: Mapping[Any, Any]) -> tuple[str | None, dict[Any, Any]]:
    """Return the text of a search result and its other facts; None and all facts where it has no text.

    The text may stand in a mapping inside, as in Qdrant's ``payload`` or Elasticsearch's ``_source``. The facts of
    ``metadata`` and of that mapping stand beside the others.

    Example:
        >>> read_mapping({"_id": "d1", "_score": 2.5, "_source": {"text": "Oslo.", "page": 3}})
        ('Oslo.', {'page': 3, '_id': 'd1', '_score': 2.5})
    """
    inner = [(key, part) for key in INNER_KEYS if isinstance(part := mapping.get(key), Mapping)]
    key = text_key(mapping)
    if key is not None:
        spread = {name for name, _ in inner if name == "metadata"}
        text = mapping[key]
    else:
        nested = [(name, read_mapping(part)) for name, part in inner]
        spread = {name for name, (found, _) in nested if found is not None or name == "metadata"}
        text = next((found for _, (found, _) in nested if found is not None), None)
        inner = [(name, rest) for name, (_, rest) in nested]
    facts: dict[Any, Any] = {}
    for name, part in inner:
        if name in spread:
            facts |= first_items(part, MAX_FACTS)
    own = first_items(mapping, MAX_FACTS)
    facts.update((fact, value) for fact, value in own.items() if fact != key and fact not in spread)
    return text, facts


def id_in(facts: Mapping[Any, object]) -> str | None:
    """Return a passage's id out of its facts, None where no name of an id has one.

    Example:
        >>> id_in({"chunk_id": 7, "page": 1}), id_in({"page": 1})
        ('7', None)
    """
    return next((name for key in ID_KEYS if (name := told(facts.get(key)))), None)


def score_in(facts: Mapping[Any, object], keys: Iterable[str] = SCORE_KEYS) -> float | None:
    """Return a passage's score out of its facts, by the names in turn; None where none has a number.

    Example:
        >>> score_in({"@search.score": 2.5}), score_in({"distance": 0.1}), score_in({"score": "HIGH"})
        (2.5, None, None)
    """
    for key in keys:
        if key in facts and (number := number_of(facts[key])) is not None:
            return number
    return _weaviate_score(facts["_additional"]) if "_additional" in facts else None


def _weaviate_score(additional: object) -> float | None:
    """Return the score that Weaviate's older client adds, as text."""
    score = additional.get("score", additional.get("certainty")) if isinstance(additional, Mapping) else None
    try:
        return float(score) if isinstance(score, str) else number_of(score)
    except ValueError:
        return None


def number_of(value: object) -> float | None:
    """Return the number that a value stands for, None for texts, truth values and what has none.

    Example:
        >>> number_of(3), number_of("3"), number_of(True)
        (3.0, None, None)
    """
    if isinstance(value, bool | str | bytes) or value is None:
        return None
    try:
        return float(value)  # type: ignore[arg-type]
    except Exception:  # an application's object may raise anything here; it is then no score
        return None


def first_passages(items: Iterable[T]) -> tuple[Sequence[T], int]:
    """Return at most 10,000 items, and how many were left out: 1 where an iterator has more and no length.

    An application's iterator may have no end.

    Example:
        >>> first_passages(["a", "b"]), first_passages(range(10_003))[1], first_passages(iter(int, 1))[1]
        ((['a', 'b'], 0), 3, 1)
    """
    if type(items) in _LISTS and len(items) <= MOST_PASSAGES:  # type: ignore[arg-type]
        return items, 0  # type: ignore[return-value]
    iterator = iter(items)
    found = list(islice(iterator, MOST_PASSAGES))
    if len(found) < MOST_PASSAGES:
        return found, 0
    if isinstance(items, Sized):
        return found, max(len(items) - MOST_PASSAGES, 0)
    return found, len(list(islice(iterator, 1)))


class ReadPassages(tuple[Passage, ...]):
    """Passages that a run's reader has read: clean, redacted, ranked from 1; no reader reads them again."""

    __slots__ = ()


def ranked(passages: Sequence[Passage]) -> ReadPassages:
    """Return passages with ranks from 1 in the order given; those that have theirs already are kept."""
    if type(passages) is ReadPassages:
        return passages
    return ReadPassages(
        [p if p.rank == rank else replace(p, rank=rank) for rank, p in enumerate(passages, start=1)]
    )


def distinct(passages: tuple[Passage, ...]) -> tuple[Passage, ...]:
    """Return each passage once, at its first place, as it stood there.

    Example:
        >>> first, again = (Passage(id="a", text="Oslo.", rank=rank) for rank in (1, 2))
        >>> [p.rank for p in distinct((first, again))]
        [1]
    """
    if len({p.id for p in passages}) == len(passages):
        return passages
    found: dict[tuple[str, str], Passage] = {}
    for passage in passages:
        found.setdefault((passage.id, passage.text), passage)
    return tuple(found.values())


def renamed(passages: Sequence[Passage], ids: Mapping[tuple[str, str], str]) -> ReadPassages:
    """Return passages with new ids, by their old id and their text.

    Example:
        >>> renamed([Passage(id="a", text="Oslo.", rank=1)], {("a", "Oslo."): "b"})[0].id
        'b'
    """
    return ReadPassages(p if (name := ids.get((p.id, p.text))) is None else replace(p, id=name) for p in passages)


def are_joined(ids: Iterable[str], lists: Iterable[Sequence[str]]) -> bool:
    """Tell whether ids are those of some lists, one behind the other, each once.

    Example:
        >>> are_joined(["c", "a", "b"], [["a", "b"], ["c", "a"]]), are_joined(["b", "a"], [["a", "b"]])
        (True, False)
    """
    keys = list(dict.fromkeys(ids))
    done: set[str] = set()
    at = 0
    while at < len(keys):
        rests = ([key for key in part if key not in done] for part in lists)
        rest = next((rest for rest in rests if rest and keys[at : at + len(rest)] == rest), None)
        if rest is None:
            return False
        done.update(rest)
        at += len(rest)
    return True


def object_fields(item: object) -> dict[str, object]:
    """Return the named fields of an object, and those of the objects in it; empty where they hold no text.

    Example:
        >>> from types import SimpleNamespace
        >>> object_fields(SimpleNamespace(page_content="Oslo.", id="d1", page=3))
        {'page_content': 'Oslo.', 'id': 'd1'}
    """
    found = _named_fields(item, _MOST_INNER)
    return {} if read_mapping(found)[0] is None else found


def _named_fields(item: object, depth: int) -> dict[str, object]:
    named = {key: value for key, value in getattr(item, "__dict__", {}).items() if key in _FIELDS}
    for key, value in named.items():
        if depth and key in INNER_KEYS and getattr(value, "__dict__", None):
            named[key] = _named_fields(value, depth - 1)
    return named


def _pool_in(value: object) -> object:
    """Return the list of passages that the result of a store, a chain or an engine holds; the value without one."""
    for _ in range(_MOST_POOLS):
        if isinstance(value, _ITEMS[:2]) or type(value) in _LISTS:
            break
        fields = value if isinstance(value, Mapping) else getattr(value, "__dict__", None) or {}
        if text_key(fields) is not None:
            break
        inner = next((fields[name] for name in POOL_KEYS if fields.get(name) is not None), None)
        if inner is None:
            break
        value = inner
    return value


def _text_of(value: object) -> str | None:
    """Return the text that a field of a passage stands for; None for an object that has only a repr."""
    if value is None or isinstance(value, str | bytes | int | float):
        return shown(value)
    said = said_in(value)
    if said is not None:
        return said.text
    is_text = type(value).__str__ is not object.__str__ and not isinstance(value, (*_LISTS, Mapping))
    is_data = any(hasattr(type(value), name) for name in ("model_fields", "__dataclass_fields__", "__array__"))
    return told(value) if is_text and not is_data else None


class PassageReader:
    """Reads passages of one run: clamps, redacts, and gives an id to those that came without one.

    The same text is cleaned once a run, whatever number of stages it passes through.

    Args:
        redact: applied to every text before it is kept; None keeps texts as they are.
        limit: characters kept of each text.
        id_key: key of the ids that are made of texts; None makes plain hashes.

    Attributes:
        left_out: passages that were not looked at, of lists that are too long.
        unread: values that hold no passage.
    """

    __slots__ = ("_cleaned", "_id_key", "_ids", "_limit", "_redact", "_sources", "left_out", "unread")

    def __init__(self, redact: Callable[[str], str] | None, limit: int, id_key: IdKey | None = None) -> None:
        self._redact = redact
        self._limit = limit
        self._id_key = id_key
        self._cleaned: dict[str, tuple[str, int]] = {}
        self._ids: dict[str, str] = {}
        self._sources: dict[str, str] = {}
        self.left_out = 0
        self.unread = 0

    def first(self, items: Iterable[T]) -> Sequence[T]:
        """Return at most 10,000 items, and count the others.

        Example:
            >>> reader = PassageReader(None, 100)
            >>> len(reader.first(range(10_003))), reader.left_out
            (10000, 3)
        """
        found, left_out = first_passages(items)
        self.left_out += left_out
        return found

    def read(self, items: object, source: str | None = None) -> ReadPassages:
        """Return passages ranked from 1 in the order given.

        An item is a `Passage`, a text, or a mapping with a text and optionally an id, a score and metadata, under
        the names in `TEXT_KEYS`, `ID_KEYS` and `SCORE_KEYS` (see `read_mapping`). An object with such fields, such
        as a document of LangChain or a node of LlamaIndex, is read like a mapping; so is the first part of a pair
        with a score. One item without a list around it is a list of one. The result of a store, a chain or an
        engine is the list in it. None is an empty pool. Anything else is left out and counted in `unread`, with one
        warning a process. What stands behind the first 10,000 is left out too. What a reader of the same run has
        read already comes back as it is.

        Example:
            >>> [p.id for p in PassageReader(None, 100).read([{"id": 7, "text": "a"}, "b"])]
            ['7', 'sha256:3e23e8160039594a']
        """
        if type(items) is ReadPassages:
            return items
        items = _pool_in(items)
        if isinstance(items, _ITEMS) or (type(items) not in _LISTS and object_fields(items)):
            items = (items,)
        found = self._listed(items)
        if is_vector(found):
            found = (items,)
        read = [self._one(item, rank, source) for rank, item in enumerate(found, start=1)]
        kept = [passage for passage in read if passage is not None]
        if len(kept) == len(read):
            return ReadPassages(kept)
        self.unread += len(read) - len(kept)
        odd = next(item for item, passage in zip(found, read, strict=True) if passage is None)
        record_internal_error("ragtrace.capture.passages.unread", line=_UNREAD.format(type(odd).__name__))
        return ranked(kept)

    def _listed(self, items: Iterable[object] | object) -> Sequence[object]:
        """Return the items of a list or an iterator; anything else, also a model of pydantic, is one odd item."""
        if items is None:
            return ()
        if type(items) not in _LISTS and (
            not hasattr(type(items), "__iter__") or hasattr(type(items), "model_fields")
        ):
            return (items,)
        return self.first(items)  # type: ignore[arg-type]

    def columns(
        self,
        texts: Sequence[object],
        ids: Sequence[object],
        scores: Sequence[object],
        metadata: Sequence[Mapping[Any, object] | None] | None = None,
        source: str | None = None,
    ) -> ReadPassages:
        """Return passages ranked from 1 out of columns of one length; the way of the integrations.

        The same as `make` for each row; columns that need no cleaning, as nearly all do, are looked at as a whole.
        `metadata` None: there is none.

        Example:
            >>> PassageReader(None, 100).columns(["a"], ["d1"], [0.5], [{"score": 0.5}])[0].score
            0.5
        """
        if self._redact is not None or not _are_clean(texts, ids, scores, self._limit):
            rest = metadata if metadata is not None else [None] * len(texts)
            rows = enumerate(zip(texts, ids, scores, rest, strict=True), start=1)
            return ReadPassages(
                self.make(text, rank, name, score, source, facts) for rank, (text, name, score, facts) in rows
            )
        facts: Iterable[dict[str, object]] = ({} for _ in texts)
        if metadata is not None:
            facts = (
                self._metadata(given) if given and not _repeats(given, score) else {}
                for given, score in zip(metadata, scores, strict=True)
            )
        name = self.source(source)
        clean: Iterable[Any] = zip(texts, ids, scores, facts, strict=True)
        return ReadPassages(
            Passage(id=key, text=text, rank=rank, score=score, source=name, metadata=said)
            for rank, (text, key, score, said) in enumerate(clean, start=1)
        )

    def source(self, given: object) -> str | None:
        """Return the name of a source, clamped and redacted; None stays None.

        Example:
            >>> PassageReader(lambda text: text.replace("Ada", "[name]"), 100).source("Ada's mail")
            "[name]'s mail"
        """
        if given is None:
            return None
        raw = given if type(given) is str else told(given)
        clean = self._sources.get(raw)
        if clean is None:
            clean = self._sources[raw] = kept(raw, MAX_NAME_CHARS, self._redact)[0]
        return clean

    def _one(self, item: object, rank: int, source: str | None) -> Passage | None:
        if isinstance(item, Passage):  # a person's: nothing says that it is clean
            return self.make(item.text, rank, item.id, item.score, item.source or source, item.metadata)
        if isinstance(item, Mapping):
            return self._of_mapping(item, rank, source)
        if isinstance(item, str | bytes):
            return self.make(_text_of(item), rank, None, None, source, None)
        if type(item) is tuple and len(item) == 2 and (score := number_of(item[1])) is not None:
            whole = self._one(item[0], rank, source)
            return None if whole is None else replace(whole, rank=rank, score=score)
        fields = object_fields(item)
        return self._of_mapping(fields, rank, source) if fields else None

    def _of_mapping(self, item: Mapping[Any, Any], rank: int, source: str | None) -> Passage | None:
        if type(item.get("text")) is str and "id" in item and "score" in item:  # the plain form costs no search
            return self.make(item["text"], rank, item["id"], item["score"], source, item.get("metadata"))
        text, facts = read_mapping(item)
        if text is None:
            text = _text_of(item.get("text", item.get("content")))
            if text is None or not (text or "text" in item or "content" in item or id_in(facts)):
                return None
        id_key = next((key for key in ID_KEYS if told(facts.get(key))), None)
        score_key = next((key for key in SCORE_KEYS if number_of(facts.get(key)) is not None), None)
        rest = {key: value for key, value in facts.items() if key not in {id_key, score_key}}
        return self.make(text, rank, id_in(facts), score_in(facts), source, rest)

    def make(
        self,
        text: object,
        rank: int,
        given_id: object = None,
        score: object = None,
        source: str | None = None,
        metadata: Mapping[Any, object] | None = None,
    ) -> Passage:
        """Return one passage; `given_id` None or "" gives it an id made of its original text."""
        raw = text if type(text) is str else told(text)
        cleaned = self._cleaned.get(raw)
        if cleaned is None:
            cleaned = self._cleaned[raw] = kept(raw, self._limit, self._redact)
        if given_id is None or given_id == "":  # of the whole text, so that no cut makes two passages one
            if type(text) is Redacted:
                name = text.mark
            else:
                form = folded(raw)
                if form not in self._ids:
                    self._ids[form] = content_id(raw, self._id_key)
                name = self._ids[form]  # a step may show the same text in another form of Unicode
        elif type(given_id) is str and len(given_id) <= MAX_NAME_CHARS and given_id.isascii():
            name = given_id
        else:
            name = named(given_id)
        # Metadata that only repeats the score (LangChain's one place for it) is not kept a second time.
        facts = self._metadata(metadata) if metadata and not _repeats(metadata, score) else {}
        number = None if score is None else clean_score(score)
        return Passage(
            id=name, text=cleaned[0], rank=rank, score=number, source=self.source(source), metadata=facts,
            truncated=cleaned[1],
        )  # fmt: skip

    def _metadata(self, metadata: Mapping[Any, object]) -> dict[str, object]:
        if len(metadata) > MAX_FACTS:
            metadata = first_items(metadata, MAX_FACTS)
        facts = clean_metadata(metadata, self._redact)
        picture = picture_in_facts(metadata)
        return facts if picture is None else {**facts, PICTURE: picture}


_TEXTS = {str}
_NUMBERS = {float}
_NONE = {type(None)}


def _are_clean(texts: Sequence[Any], ids: Sequence[Any], scores: Sequence[Any], limit: int) -> bool:
    """Tell whether columns can be kept as they are: short valid Unicode, given ids, finite scores or none."""
    if not texts or set(map(type, texts)) != _TEXTS or set(map(type, ids)) != _TEXTS:
        return False
    kinds = set(map(type, scores))
    if kinds != _NONE and (kinds != _NUMBERS or not isfinite(sum(scores))):
        return False
    if max(map(len, texts)) > limit or max(map(len, ids)) > MAX_NAME_CHARS or "" in ids:
        return False
    try:  # a lone surrogate has no UTF-8
        "".join(texts).encode()
        "".join(ids).encode()
    except UnicodeEncodeError:
        return False
    return True


def _repeats(metadata: Mapping[Any, object], score: object) -> bool:
    return score is not None and type(metadata) is dict and len(metadata) == 1 and metadata.get("score") is score
