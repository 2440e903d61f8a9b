"""Values of an application as events hold them: plain, and of no framework.

An integration translates documents, messages and states into these, in the application's thread. Texts are taken
by reference; what the application may change later is copied. None of them refers back to a run or a step, so that
the garbage collector need not look at them.
"""

from __future__ import annotations

import json
from array import array
from collections import ChainMap, UserDict, UserList, deque
from collections.abc import Callable, Iterable, Iterator, MappingView
from dataclasses import fields
from functools import lru_cache
from itertools import chain, islice
from numbers import Number
from types import MappingProxyType, MemberDescriptorType, SimpleNamespace
from typing import Any, ClassVar, Self

from msgspec import Struct

from ragtrace.capture.names import DRIVERS, ROW_CLASSES
from ragtrace.text import (
    MAX_FACTS,
    MAX_METADATA_ITEMS,
    MAX_NAME_CHARS,
    MAX_REDACTED_CHARS,
    clean_score,
    cut,
    first_items,
    is_vector,
    plain,
    shown,
)


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
    """An object that is none of the above, a vector, or a part for which no room was left.

    Attributes:
        kind: name of its class; `VECTOR` of a long list of numbers, or of many of them.
        text: what its ``str`` says, where somebody was shown it; of a vector its length.
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
VECTOR = "vector"
_DEPTH = 6
MOST_PARTS = 20_000  # of one value, numbers and texts too
_MANY = 100  # parts of one list or mapping; it then leaves room for what stands beside it, as a state's field does
MOST_SPARE = 5_000  # of that room: 10,000 passages fit into the rest
_MOST_FACTS = 100_000  # of all documents in one value
_MOST_KINDS = 1_024
_SHORT_CHARS = 256  # a shorter text is not counted
_NUMBERS = frozenset((int, float, bool, type(None)))
_REST = "…"  # the name under which a mapping says that it was cut
_PRINTED = (set, frozenset, deque, array, UserList, MappingView)  # their ``str`` has all that they hold
_PRINTED_FIELDS = (UserDict, MappingProxyType, ChainMap, SimpleNamespace)


def fields_of(value: Any) -> dict[Any, Any] | None:
    """Return the fields of a state: of a mapping, of an object with fields, of what a `Steer` writes; else None.

    Example:
        >>> fields_of({"docs": []}), fields_of(Steer(update={"docs": []})), fields_of("text")
        ({'docs': []}, {'docs': []}, None)
    """
    if isinstance(value, dict):
        return value
    return fields_of(value.update) if type(value) is Steer else None


def copied(value: Any) -> Any:
    """Return a value of lists, mappings and scalars as it is now; an object is `Opaque`, with its text.

    Example:
        >>> held = {"rows": [1, {2}], "vector": [0.5] * 1_536}
        >>> copied(held)["rows"][0], str(copied(held)["rows"][1]), str(copied(held)["vector"])
        (1, '{2}', '[1536 numbers]')
    """
    return _WithTexts().of(value)


class Walker:
    """Copies values of an application as they are now, as deep and as far as they are read.

    A value has a budget of parts, numbers and texts too, and nothing is asked for more, whatever it says of its
    length. What stands behind the budget is left out and counted. Of vectors a sign stays. What a framework's own
    types hold, a subclass says: its `_maker` returns what copies them. Thread-safe.
    """

    _site = "ragtrace.capture.values.copied"  # under which failures are counted
    _scalars: ClassVar[frozenset[object]] = _SCALARS
    _depth = _DEPTH  # of values in values, for cyclic ones
    _makers: ClassVar[dict[type, Callable[[Any, Any, int], Any]]] = {}  # of each class that walks, by type

    def __init__(self) -> None:
        self._room = MOST_PARTS
        self._facts_room = _MOST_FACTS
        self._signs: dict[tuple[int, bool], Opaque] = {}
        self._left_out = 0  # vectors, and what stands too deep
        self._too_long: dict[int, tuple[object, Any]] = {}  # what was cut, behind what it was made of, by id
        self._cut_at = 0  # `_cut` when the last of these was noted
        self._counted: dict[int, str] = {}  # longer texts, by identity
        self._chars = 0
        self._cut = 0

    def of(self, value: object) -> Any:
        """Return a value as a plain one."""
        self._begin()
        return self._part(value, 0)

    def facts(self, metadata: dict[Any, Any]) -> tuple[dict[Any, Any], dict[Any, Any]]:
        """Return metadata as they are now, and what they equal as long as nobody changes a part of these.

        What cannot be copied is left out, and so are vectors.

        Example:
            >>> given = {"page": 1, "authors": ["Ada"], "lock": object(), "embedding": [0.5] * 1_536}
            >>> facts, as_met = Walker().facts(given)
            >>> facts, facts["authors"] is given["authors"], as_met == given
            ({'page': 1, 'authors': ['Ada']}, False, True)
        """
        if self._facts_room <= 0:
            self._cut += bool(metadata)
            return {}, {}
        is_plain = type(metadata) is dict and len(metadata) <= MAX_FACTS
        facts = metadata.copy() if is_plain else first_items(metadata, MAX_FACTS)
        self._facts_room -= len(facts)
        for part in facts.values():
            if type(part) not in _SCALARS:
                return self._copied_facts(facts)
        return facts, facts

    def _copied_facts(self, facts: dict[Any, Any]) -> tuple[dict[Any, Any], dict[Any, Any]]:
        kept, as_met = {}, {}
        for key, part in facts.items():
            left_out = self._left_out
            made = self._part(part, 1)
            is_small = type(part) in {dict, list} and len(part) <= MAX_FACTS
            if type(made) is not Opaque and self._left_out == left_out:
                as_met[key] = made
            else:  # a vector is known again by its identity, and so is what holds one with its other parts
                as_met[key] = part.copy() if is_small and type(made) is not Opaque else part
            if type(made) is not Opaque:
                kept[key] = made
        return kept, as_met

    def taken_chars(self) -> int:
        """Return the characters of the texts that were met since the last call; each text counts once."""
        chars, self._chars = self._chars, 0
        return chars

    def taken_cut(self) -> int:
        """Return how many lists, mappings and objects were cut or left out since the last call; vectors are not."""
        cut, self._cut = self._cut, 0
        return cut

    def _begin(self) -> None:
        self._room, self._facts_room, self._cut_at = MOST_PARTS, _MOST_FACTS, 0

    def _count(self, text: str) -> None:
        if len(text) > _SHORT_CHARS and id(text) not in self._counted:
            self._counted[id(text)] = text
            self._chars += len(text)

    def _part(self, value: Any, depth: int) -> Any:
        self._room -= 1
        kind = type(value)
        if kind in self._scalars:
            if kind is str and len(value) > _SHORT_CHARS:
                self._count(value)
            return value
        if depth > self._depth or self._room < 0:
            if self._room < 0:
                self._cut += 1
            self._left_out += 1
            return Opaque(kind.__name__, is_framework=True)  # no value: it may hold itself
        try:
            make = self._makers.get(kind) or self._made_for(kind)
            return make(self, value, depth)
        except Exception as error:  # an application's object may raise anything; the rest of the value is read
            from ragtrace.capture.guard import record_internal_error  # noqa: PLC0415 - it knows redacted texts

            record_internal_error(self._site, error)
            return Opaque(kind.__name__)

    def __init_subclass__(cls) -> None:
        cls._makers = {}

    @staticmethod
    def _maker(kind: type) -> Callable[[Any, Any, int], Any]:
        """Return what copies values of a type: called with the walker, a value and its depth."""
        for known, make in ((list, Walker._list), (tuple, Walker._tuple), (dict, Walker._mapping)):
            if issubclass(kind, known):
                return make
        return Walker._other

    def _made_for(self, kind: type) -> Callable[[Any, Any, int], Any]:
        if len(self._makers) >= _MOST_KINDS:  # an application may make classes at run time
            self._makers.clear()
        make = self._makers[kind] = self._maker(kind)
        return make

    def _list(self, value: Any, depth: int) -> Any:
        if self._too_long and (known := self._too_long.get(id(value))) is not None:
            return known[1]
        cut, room, parts = self._cut, self._room, self._parts(value)
        if type(parts) is Opaque:
            return parts
        made = self._made(parts, depth)
        if self._cut > cut >= self._cut_at:
            self._note_cut(value, made, room)
        return self._met(value, made, parts)

    def _tuple(self, value: Any, depth: int) -> Any:
        parts = self._parts(value)
        return tuple(self._made(parts, depth)) if type(parts) is not Opaque else parts

    def _mapping(self, value: dict[Any, Any], depth: int) -> Any:
        if self._too_long and (known := self._too_long.get(id(value))) is not None:
            return known[1]
        is_plain = type(value) is dict and len(value) <= self._room
        return self._fields(value, value.copy() if is_plain else first_items(value, self._room + 1), depth)

    def _model(self, value: Any, depth: int) -> Any:
        return self._fields(value, Fields(vars(value)), depth)

    def _dataclass(self, value: Any, depth: int) -> Any:
        held = {one.name: getattr(value, one.name) for one in fields(value) if _is_stored(value, one.name)}
        return self._fields(value, Fields(held), depth)

    def _other(self, value: object, depth: int) -> Any:
        if isinstance(value, str):
            return str.__str__(value)
        if plain(value) is not None:  # a date, a number of another package: nobody can change it
            return value
        if (row := row_of(value)) is not None:
            return self._fields(value, row, depth) if isinstance(row, dict) else self._tuple(row, depth)
        return self._object(value, depth)

    def _object(self, value: Any, _depth: int) -> Any:
        number = None if isinstance(value, bytearray | memoryview) else clean_score(value)
        return Opaque(type(value).__name__) if number is None else number  # a tensor of one number

    def _parts(self, value: Any) -> Any:
        """Return the parts of a list as they are now, one more than there is room for; a sign for a vector."""
        kind = type(value)
        parts = value if kind is list or kind is tuple else list(islice(value, self._room + 1))
        if len(parts) > MAX_METADATA_ITEMS and is_vector(parts):
            return self._vector(len(parts), is_of_numbers=isinstance(parts[0], Number))
        return parts[: self._room + 1]

    def _vector(self, length: int, *, is_of_numbers: bool) -> Opaque:
        self._left_out += 1
        sign = self._signs.get((length, is_of_numbers))
        if sign is None:
            sign = Opaque(VECTOR, f"[{length} {'numbers' if is_of_numbers else 'vectors'}]")
            self._signs[length, is_of_numbers] = sign
        return sign

    def _made(self, parts: Any, depth: int) -> list[Any]:
        """Return the parts of a list, copied; behind them an object in place of those that were left out."""
        if len(parts) <= _MANY and len(parts) <= self._room and depth != 1:
            return [self._part(part, depth + 1) for part in parts]
        spare, made = self._spare(), []
        for part in parts:
            if self._room <= 0:
                self._cut += 1
                made.append(Opaque(type(part).__name__, is_framework=True))
                break
            made.append(self._part(part, depth + 1))
        self._room = max(self._room, 0) + spare
        return made

    def _fields(self, value: object, held: dict[Any, Any], depth: int) -> Any:
        """Return the fields of a mapping or an object, copied in place; a sign for a mapping of vectors."""
        cut, room, number, spare = self._cut, self._room, len(held), 0
        rest: tuple[Any, ...] = ()
        if number > MAX_METADATA_ITEMS:
            some = list(islice(held.values(), MAX_METADATA_ITEMS + 1))
            if not isinstance(some[0], Number) and is_vector(some):
                return self._vector(number, is_of_numbers=False)
        if number > _MANY or depth == 1:
            spare = self._spare()
        if number > self._room:
            rest = tuple(islice(held, max(self._room, 0), None))
            for key in rest:
                del held[key]
        for key, part in held.items():
            if type(part) in _NUMBERS:
                self._room -= 1
            else:
                held[key] = self._part(part, depth + 1)
        if rest:
            self._cut += 1
            held[_REST] = Opaque(_REST, is_framework=True)
        if spare:
            self._room = max(self._room, 0) + spare
        if self._cut > cut >= self._cut_at:
            self._note_cut(value, held, room)
        return self._met(value, held, ())

    def _met(self, value: object, made: Any, parts: Any) -> Any:  # noqa: ARG002 - of a subclass
        """Return what was made of a list with these parts, of a mapping or an object; a subclass may know it."""
        return made

    def _note_cut(self, value: object, made: object, room: int) -> None:
        """Note what took most of the room, and was cut: at the next step it costs nothing."""
        if room > MOST_PARTS // 2:
            self._too_long[id(value)] = (value, made)
            self._cut_at = self._cut  # what is around it is read again

    def _spare(self) -> int:
        """Keep some of the room for what stands beside a value."""
        spare = min(self._room // 2, MOST_SPARE)
        self._room -= spare
        return spare


class _WithTexts(Walker):
    """Copies values so that objects say what they are as text."""

    def _object(self, value: Any, depth: int) -> Any:
        made = super()._object(value, depth)
        return Opaque(made.kind, told(value)) if type(made) is Opaque else made


def told(value: object) -> str:
    """Return the text of anything, as `shown` does; of what holds vectors, or very much, its fields without them.

    Example:
        >>> told(["Oslo", 7]), told({"town": "Oslo", "vector": [0.5] * 1_536})
        ("['Oslo', 7]", '{"town": "Oslo", "vector": "[1536 numbers]"}')
    """
    if type(value) in _SCALARS or (bounded := within(value)) is value:
        return shown(value)
    return json.dumps(bounded, default=str, ensure_ascii=False, skipkeys=True)


def named(value: object) -> str:
    """Return the text of anything that stands as a name or an id, as long as one may be.

    Example:
        >>> named("d1"), named(7), len(named("a" * 10_000)) < 10_000
        ('d1', '7', True)
    """
    return cut(told(value), MAX_NAME_CHARS)[0]


def within(value: object) -> object:
    """Return a value that may be written out: itself, or a copy of its fields without vectors, and cut.

    Fields are what a text of lists, mappings, dataclasses, models of pydantic and exceptions would have. An object
    that writes its own text is left as it is.

    Example:
        >>> within(ValueError("No vector.")), within({"vectors": [[0.5] * 1_536] * 1_000})
        (ValueError('No vector.'), {'vectors': Opaque(kind='vector', text='[1000 vectors]')})
    """
    kind = type(value)
    is_container = issubclass(kind, (*HOLDERS, *_PRINTED, *_PRINTED_FIELDS))
    if not is_container and _printing(kind) is Walker._other:  # type: ignore[arg-type]  # noqa: SLF001 - a type is hashable
        return value
    if not (is_container or issubclass(kind, BaseException) or _is_generated(kind.__str__, kind)):
        return value
    walker = _Printed()
    made = walker.of(value)
    return made if walker.is_cut else value


class _Printed(Walker):
    """Copies what the texts of values have that do not write their own.

    Texts have a budget of characters too: as many as are read. A list that stands in many places is written in
    each.
    """

    _depth = 16

    def __init__(self) -> None:
        super().__init__()
        self._chars_room = MAX_REDACTED_CHARS

    def _part(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            value = str.__str__(value)
        elif type(value) is not bytes and type(value) is not bytearray:
            return super()._part(value, depth)
        self._room -= 1
        self._chars_room -= len(value)
        if self._chars_room >= 0:
            return value
        self._cut += 1
        kept, self._chars_room = value[: self._chars_room], 0
        return kept

    def _note_cut(self, value: object, made: object, room: int) -> None:
        """Cut it anew wherever it stands."""

    @staticmethod
    def _maker(kind: type) -> Callable[[Any, Any, int], Any]:
        return _printing(kind)

    @property
    def is_cut(self) -> bool:
        return bool(self._left_out or self._cut)

    def _exception(self, value: BaseException, depth: int) -> Any:
        return self._list(value.args, depth)

    def _chain(self, value: Any, depth: int) -> Any:
        return self._list(value.maps, depth)

    def _namespace(self, value: Any, depth: int) -> Any:
        return self._mapping(vars(value), depth)

    def _shown_fields(self, value: Any, depth: int) -> Any:
        known = getattr(type(value), "__dataclass_fields__", None) or type(value).model_fields
        names = [name for name, one in known.items() if one.repr and _is_stored(value, name)]
        return self._fields(value, Fields((name, getattr(value, name)) for name in names), depth)

    def _object(self, value: Any, _depth: int) -> Any:
        return Opaque(type(value).__name__, f"<{type(value).__name__}>")


@lru_cache(maxsize=1_024)
def _printing(kind: type) -> Callable[[Any, Any, int], Any]:
    """Return what copies the fields that the text of a value has; `Walker._other` where it writes its own."""
    if issubclass(kind, ChainMap):
        return _Printed._chain  # noqa: SLF001
    if issubclass(kind, SimpleNamespace):
        return _Printed._namespace  # noqa: SLF001
    if issubclass(kind, _PRINTED_FIELDS):
        return Walker._mapping  # noqa: SLF001
    if issubclass(kind, _PRINTED):
        return Walker._list  # noqa: SLF001
    if issubclass(kind, BaseException):
        is_of_args = kind.__str__ in {BaseException.__str__, KeyError.__str__}
        return _Printed._exception if is_of_args else Walker._other  # noqa: SLF001
    return _Printed._shown_fields if _is_generated(kind.__repr__, kind) else Walker._maker(kind)  # noqa: SLF001


def _is_generated(method: Any, kind: type) -> bool:
    """Tell whether a dataclass or pydantic made the method that writes a text; ``object``'s calls ``__repr__``."""
    if method is object.__str__:
        return True
    if hasattr(kind, "__dataclass_fields__"):
        return hasattr(method, "__wrapped__")
    return hasattr(kind, "model_fields") and method.__module__.startswith("pydantic.")


def _is_stored(value: object, name: str) -> bool:
    """Tell whether a field holds a value: no property of the application is called."""
    in_slot = isinstance(getattr(type(value), name, None), MemberDescriptorType)
    return hasattr(value, name) if in_slot else name in getattr(value, "__dict__", ())  # a slot may be empty


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
    if kind.__name__ not in ROW_CLASSES or kind.__module__.partition(".")[0] not in DRIVERS:
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


def is_resumption(inputs: object) -> bool:
    """Tell whether a graph is called to go on with its saved state: with ``None`` or a `Steer`.

    Example:
        >>> is_resumption(None), is_resumption({"question": "Where?"})
        (True, False)
    """
    return inputs is None or type(inputs) is Steer
