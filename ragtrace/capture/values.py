"""Values of an application as events hold them: plain, and of no framework.

An integration translates documents, messages and states into these, in the application's thread. Texts are taken
by reference; what the application may change later is copied. None of them refers back to a run or a step, so that
the garbage collector need not look at them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, Self

from msgspec import Struct

from ragtrace.text import clean_score, plain, shown


class Redacted(str):
    """A text of which `redact` took something out, with what is known of the text as it was.

    Attributes:
        mark: a keyed hash of the whole text: texts that became alike are told apart by it.
        is_begin: a model's reply began with the text as it was, and went on.
        is_end: a model's reply ended with it.
    """

    __slots__ = ("is_begin", "is_end", "mark")

    mark: str
    is_begin: bool
    is_end: bool

    def __new__(cls, text: str, mark: str) -> Self:
        """Make one; nothing is known of replies yet."""
        made = super().__new__(cls, text)
        made.mark, made.is_begin, made.is_end = mark, False, False
        return made


def identity_of(text: str) -> str:
    """Return by what a text is known again: itself; the mark of what it was, where it was redacted.

    Example:
        >>> identity_of("Room 2"), identity_of(Redacted("Room #", "salted:1"))
        ('Room 2', 'salted:1')
    """
    return text.mark if type(text) is Redacted else text


class Doc(Struct, gc=False, repr_omit_defaults=True):
    """A passage as an application holds it: LangChain's document, LlamaIndex's node, a search result.

    Attributes:
        text: its text.
        id: its own id; None where it has none.
        metadata: a copy of its metadata; the scores may stand among them.
        score: its score, where the framework keeps it apart.
        lost: characters of a text that the run had no room for.
        label: by which an answer may cite it, as a numbered piece of a passage.
        is_chunk: an index knows it as a part of a document, so that it is a passage of its own.
    """

    text: str
    id: str | None = None
    metadata: dict[str, Any] = {}
    score: float | None = None
    lost: int = 0
    label: str | None = None
    is_chunk: bool = False

    @property
    def facts(self) -> dict[str, Any]:
        """Return what may tell a reranker's score: the metadata, and a score that is kept apart."""
        return self.metadata if self.score is None else {**self.metadata, "score": self.score}


class Turn(Struct, gc=False, repr_omit_defaults=True):
    """A message of a conversation.

    Attributes:
        role: user, assistant, system, tool, or another name.
        content: a text, or blocks as the provider has them; a picture's block has its key in place of its data.
        calls: tools that the model asks for, each with name, args and id.
        call_id: the id of the call that a tool's message answers.
        name: of the speaker.
        id: of the message.
        artifact: what a tool gave beside its text.
        is_error: the tool failed.
    """

    role: str
    content: Any = ""
    calls: list[dict[str, Any]] = []
    call_id: str | None = None
    name: str | None = None
    id: str | None = None
    artifact: Any = None
    is_error: bool = False


class Prompt(Struct, gc=False, repr_omit_defaults=True):
    """A rendered prompt that a step handed on."""

    turns: list[Turn] = []


class Steer(Struct, gc=False, repr_omit_defaults=True):
    """A step's word on where a graph goes on, and what it writes into the state: LangGraph's ``Command``."""

    goto: Any = None
    update: Any = None
    graph: Any = None


class Opaque(Struct, gc=False, repr_omit_defaults=True):
    """An object that is none of the above; `text` is what its ``str`` says, where somebody was shown it.

    Attributes:
        kind: name of its class.
        answer: what it says as a reply of a model or an engine, see `answer_field`.
        is_framework: it is an object of the framework's, and no value.
    """

    kind: str
    text: str = ""
    answer: str | None = None
    is_framework: bool = False

    def __str__(self) -> str:
        return self.text


class Fields(dict[str, Any]):
    """The fields of a dataclass or a model of pydantic: a state or an answer, and no mapping."""

    __slots__ = ()


LISTS = (list, tuple)
HOLDERS = (list, tuple, dict)
_SCALARS = frozenset((str, int, float, bool, bytes, type(None)))  # types of which nobody can change a value
_ROWS = frozenset(("Row", "RowMapping", "Record"))  # classes of the drivers' packages
_DRIVERS = frozenset(("sqlite3", "sqlalchemy", "asyncpg", "pyodbc"))
_DEPTH = 6
_MOST_PARTS = 2_000  # of one value that is copied; what stands behind them is left out
_MOST_ITEMS = 500  # of one list or mapping


def fields_of(value: Any) -> dict[Any, Any] | None:
    """Return the fields of a state: of a mapping, of an object with fields, of what a `Steer` writes; else None.

    Example:
        >>> fields_of({"docs": []}), fields_of(Steer(update={"docs": []})), fields_of("text")
        ({'docs': []}, {'docs': []}, None)
    """
    if isinstance(value, dict):
        return value
    return fields_of(value.update) if type(value) is Steer else None


def facts_of(metadata: dict[Any, Any]) -> dict[Any, Any]:
    """Return metadata as they are now, which the application may change later; what cannot be copied is left out.

    Example:
        >>> facts = {"page": 1, "authors": ["Ada"], "lock": object()}
        >>> facts_of(facts), facts_of(facts)["authors"] is facts["authors"]
        ({'page': 1, 'authors': ['Ada']}, False)
    """
    facts = dict(metadata)
    for part in facts.values():
        if type(part) not in _SCALARS:
            copied = _Copy()
            made = ((key, copied.of(one, 1)) for key, one in facts.items())
            return {key: one for key, one in made if type(one) is not Opaque}
    return facts


def copied(value: Any) -> Any:
    """Return a value of lists, mappings and scalars as it is now; an object is `Opaque`, with its text.

    Example:
        >>> held = {"rows": [1, {2}]}
        >>> copied(held)["rows"][0], str(copied(held)["rows"][1])
        (1, '{2}')
    """
    return _Copy(is_told=True).of(value, 0)


class _Copy:
    """Copies one value, as deep and as far as it is read.

    Args:
        is_told: objects say what they are as text.
    """

    def __init__(self, *, is_told: bool = False) -> None:
        self._is_told = is_told
        self._room = _MOST_PARTS

    def of(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind in _SCALARS:
            return value
        try:
            return self._made(value, depth)
        except Exception as error:  # an application's object may raise anything; the rest of the value is read
            from ragtrace.capture.guard import record_internal_error  # noqa: PLC0415 - it knows redacted texts

            record_internal_error("ragtrace.capture.values.copied", error)
            return Opaque(kind.__name__)

    def _made(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, HOLDERS):
            most = min(self._room, _MOST_ITEMS)
            if depth > _DEPTH or not most:
                return Opaque(type(value).__name__)
            held: Any = dict(value) if isinstance(value, dict) else value  # in one call: threads may change it
            self._room -= min(len(held), most)
            if isinstance(value, dict):
                return {key: self.of(part, depth + 1) for key, part in islice(held.items(), most)}
            made = [self.of(part, depth + 1) for part in held[:most]]
            return made if isinstance(value, list) else tuple(made)
        if plain(value) is not None:  # a date, a number of another package: nobody can change it
            return value
        if (row := row_of(value)) is not None:
            return self.of(row, depth)
        number = None if isinstance(value, bytearray | memoryview) else clean_score(value)
        if number is not None:  # a tensor of one number
            return number
        return Opaque(type(value).__name__, shown(value) if self._is_told else "")


def row_of(value: Any) -> dict[str, Any] | tuple[Any, ...] | None:
    """Return a row as the driver of a database gives it: a mapping, or a tuple where it has no names; else None.

    Example:
        >>> import sqlite3
        >>> database = sqlite3.connect(":memory:")
        >>> database.row_factory = sqlite3.Row
        >>> row_of(database.execute("select 'Oslo' as town, 12 as rooms").fetchone()), row_of({"town": "Oslo"})
        ({'town': 'Oslo', 'rooms': 12}, None)
    """
    kind = type(value)
    if kind.__name__ not in _ROWS or kind.__module__.partition(".")[0] not in _DRIVERS:
        return None
    named = getattr(value, "_mapping", value)  # of SQLAlchemy's, which is a tuple too
    return {str(key): named[key] for key in named.keys()} if hasattr(named, "keys") else tuple(value)  # noqa: SIM118


def read_once(items: Iterable[Any], most: int) -> tuple[Iterable[Any], Iterable[Any]]:
    """Return at most so many items to look at, and what yields all of them still, where they can be read only once.

    Example:
        >>> some, left = read_once(iter("abc"), 2)
        >>> some, list(left)
        (['a', 'b'], ['a', 'b', 'c'])
    """
    if not isinstance(items, Iterator):
        return items, items
    some = list(islice(items, most))
    return some, chain(some, items)


def mapping_of(value: Any) -> dict[Any, Any] | None:
    """Return a mapping of the application's; None for everything else, also for an object with fields.

    Example:
        >>> mapping_of({"a": 1}), mapping_of(Fields(a=1))
        ({'a': 1}, None)
    """
    return value if isinstance(value, dict) and type(value) is not Fields else None


def text_of(document: object) -> str:
    """Return a passage's text; what is none is shown as text.

    Example:
        >>> text_of(Doc("a")), text_of("b"), text_of(None)
        ('a', 'b', '')
    """
    return document.text if type(document) is Doc else shown(document)


def is_resumption(inputs: object) -> bool:
    """Tell whether a graph is called to go on with its saved state: with ``None`` or a `Steer`.

    Example:
        >>> is_resumption(None), is_resumption({"question": "Where?"})
        (True, False)
    """
    return inputs is None or type(inputs) is Steer
