"""Declarations: lines by which an application says where something stands in its values, or what counts.

A `Place` is such a where, `Declared` is what one layer says, and `Declarations` is what all layers say of one run,
nearest first: see `How`. They are values that a file of events holds, so that a run is read again as it was.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from msgspec import Struct

from ragtrace.capture.met_names import met_of
from ragtrace.capture.values import LISTS, Doc, Prompt, Steer, Turn, fields_of
from ragtrace.errors import ConfigError
from ragtrace.model.reading import How
from ragtrace.text import MAX_NAME_CHARS, cut

if TYPE_CHECKING:
    from ragtrace.capture.events import Event

T = TypeVar("T")
HEADS = ("input", "output", "state")
MOST_FOUND = 1_000  # values at one place
_MOST_STEPS = 16
_MOST_NAMES = 1_000  # of one declaration, and of those that are noted in a process
_MOST_SHOWN = 64  # characters of a wrong value
_LONGEST_READ_CHARS = 1_000_000  # of a text that is JSON
_HEAD = re.compile(r"(?:input|output|state)(?=[.\[]|$)")
_STEP = re.compile(
    r"""\.(?P<name>\w+)|\[(?:(?P<index>-?\d{1,9})|(?P<all>\*)|(?P<json>"(?:[^"\\]|\\.)*")|'(?P<quoted>[^'\\]*)')\]"""
)
_PLAIN = re.compile(r"\w+")
_STEPS = 'go on with .name, [0], [-1], [*] or ["my key"]'
# Names of the frameworks' own for fields of ours.
_ALIASES: dict[type, dict[str, str]] = {
    Doc: {"page_content": "text"},
    Turn: {"tool_calls": "calls"},
    Prompt: {"messages": "turns"},
}
_FACTS = ("question", "answer", "selected")
_NEAR = {"question": "state", "answer": "output", "selected": "state"}  # the head that is offered for each


class Place(Struct, frozen=True):
    """A place in the values of a run.

    Attributes:
        head: ``input`` or ``output`` of a step, or ``state`` of a graph or a workflow.
        steps: the way from there: a name, the number of an item, or None for every item.

    Example:
        >>> place = Place.parse('output.pages[*]["plain text"]')
        >>> place.head, place.steps, str(place)
        ('output', ('pages', None, 'plain text'), 'output.pages[*]["plain text"]')
        >>> place.in_({"pages": [{"plain text": "Oslo."}, {"plain text": "Bergen."}]})
        ['Oslo.', 'Bergen.']
    """

    head: str
    steps: tuple[str | int | None, ...] = ()

    @classmethod
    def parse(cls, text: str, near: str = "state") -> Place:
        """Return the place that a text names.

        Args:
            text: the text.
            near: the head that is offered where it has none.

        Raises:
            ConfigError: it names none; the line says why, and what to write.
        """
        if len(text) > MAX_NAME_CHARS:
            raise ConfigError(f"is longer than {MAX_NAME_CHARS} characters")
        head = _HEAD.match(text)
        if head is None:
            offered = f"; write {f'{near}.{text}'!r}" if _is_way(f"state.{text}") else ""
            raise ConfigError(f"begins with none of {', '.join(HEADS)}{offered}")
        steps: list[str | int | None] = []
        at = head.end()
        while at < len(text):
            found = _STEP.match(text, at)
            if found is None:
                raise ConfigError(f"cannot be read from {text[at:]!r} on; {_STEPS}")
            steps.append(_step(found, text))
            at = found.end()
        if len(steps) > _MOST_STEPS:
            raise ConfigError(f"has more than {_MOST_STEPS} steps")
        return cls(head[0], tuple(steps))

    @classmethod
    def of(cls, given: object, near: str = "state") -> Place:
        """Return the place that a person wrote.

        Raises:
            ConfigError: it is none.
        """
        if isinstance(given, Place):
            return given
        if callable(given):
            raise ConfigError("is a function: a recorded run is read again from a file; name a place")
        if not isinstance(given, str):
            raise ConfigError("is no place; write one such as 'input.question'")
        return cls.parse(given.strip(), near)

    def in_(self, value: object) -> list[object]:
        """Return what stands at the steps behind the head, in its order; nothing where there is no such place.

        A name is a key of a mapping, or a field of a document, a message or another value that events hold. A text
        that is JSON is read where a step goes into it, and so is a message's. What is None is not there. At most
        1,000 values; never raises.
        """
        found: list[object] = [value]
        try:
            for step in self.steps:
                found = list(islice((part for one in found for part in _behind(one, step)), MOST_FOUND))
        except Exception:  # an application's own key may raise anything when it is compared
            return []
        return [one for one in found if one is not None]

    def renamed(self, name: Callable[[str], str]) -> Place:
        """Return the place with other names of fields, as a masked file has them."""
        return Place(self.head, tuple(name(step) if isinstance(step, str) else step for step in self.steps))

    def __str__(self) -> str:
        return self.head + "".join(map(_written, self.steps))


def is_place(text: str) -> bool:
    """Tell whether a text begins as a place does, so that it is no name of a tool.

    Example:
        >>> is_place("state.rows"), is_place("web_search"), is_place("state_of_art")
        (True, False, False)
    """
    return _HEAD.match(text) is not None


def _is_way(text: str) -> bool:
    at = len("state")
    while (found := _STEP.match(text, at)) is not None:
        at = found.end()
    return at == len(text)


def _step(found: re.Match[str], text: str) -> str | int | None:
    if found["all"] is not None:
        return None
    if found["index"] is not None:
        return int(found["index"])
    if found["json"] is None:
        return found["name"] if found["name"] is not None else found["quoted"]
    try:
        return str(json.loads(found["json"]))
    except ValueError:
        raise ConfigError(f"cannot be read from {text[found.start() :]!r} on; {_STEPS}") from None


def _written(step: str | int | None) -> str:
    if step is None:
        return "[*]"
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _PLAIN.fullmatch(step) else f"[{json.dumps(step, ensure_ascii=False)}]"


def _behind(value: object, step: str | int | None) -> Iterable[object]:
    """Return what is one step further."""
    if isinstance(value, str):
        value = _read(value)
    if isinstance(step, str):
        return _named(value, step)
    parts: Any = value.turns if type(value) is Prompt else value
    if step is None:
        return parts.values() if isinstance(parts, dict) else parts if isinstance(parts, LISTS) else ()
    is_there = isinstance(parts, LISTS) and -len(parts) <= step < len(parts)
    return (parts[step],) if is_there else ()


def _named(value: object, name: str) -> tuple[object, ...]:
    if isinstance(value, dict):
        return (value[name],) if name in value else ()
    if not isinstance(value, Struct):
        return ()
    own = _ALIASES.get(type(value), {}).get(name, name)
    if own in value.__struct_fields__:
        return (getattr(value, own),)
    inner = value.update if type(value) is Steer else value.content if type(value) is Turn else None
    held = _read(inner) if isinstance(inner, str) else inner
    return (held[name],) if isinstance(held, dict) and name in held else ()


def _read(text: str) -> object:
    """Return the value that a text has as JSON; None of any other text."""
    if len(text) > _LONGEST_READ_CHARS or text.lstrip()[:1] not in {"{", "["}:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


Evidence = Mapping[str, "bool | str"] | Iterable[str]
"""What a person writes for evidence: what each name is, or the names of what is evidence."""


class Declared(Struct, frozen=True, omit_defaults=True):
    """Declarations of one layer.

    Attributes:
        question: where the question stands; None where nothing is said of it, and so with the others.
        answer: where the answer stands.
        selected: where the chosen passages stand.
        evidence: names of tools, retrievers and functions, or places; True of evidence, False of none, or where in
            the output the evidence stands.
        roots: names of the calls that are runs; others are none.
        follows: whether a run that asks nothing new follows the one before it.
    """

    question: Place | None = None
    answer: Place | None = None
    selected: Place | None = None
    evidence: tuple[tuple[str, bool | Place], ...] = ()
    roots: frozenset[str] | None = None
    follows: bool | None = None

    @classmethod
    def of(
        cls,
        *,
        question: object = None,
        answer: object = None,
        selected: object = None,
        evidence: object = None,
        roots: object = None,
        follows: object = None,
    ) -> Declared:
        """Return what a person declares.

        Raises:
            ConfigError: a value is wrong; the line says what, where and what to write.

        Example:
            >>> Declared.of(question="input.ticket.body", evidence={"web_search": True}).said()
            {'question': 'input.ticket.body', 'evidence': {'web_search': True}}
            >>> Declared.of(question="messages[-1]")
            Traceback (most recent call last):
            ...
            ragtrace.errors.ConfigError: question='messages[-1]' begins with none of input, output, state; write \
'state.messages[-1]'
        """
        if follows is not None and not isinstance(follows, bool):
            raise ConfigError(f"follows={_shown(follows)} is neither True nor False")
        given = zip(_FACTS, (question, answer, selected), strict=True)
        places = {
            name: None if one is None else _place(one, f"{name}={_shown(one)}", _NEAR[name]) for name, one in given
        }
        said = cls(
            **places,
            evidence=() if evidence is None else _evidence(evidence),
            roots=None if roots is None else frozenset(_names(roots, "roots")),
            follows=follows,
        )
        return NOTHING if said == NOTHING else said

    def said(self) -> dict[str, Any]:
        """Return what `of` takes, of plain values."""
        found: dict[str, Any] = {name: str(place) for name in _FACTS if (place := getattr(self, name)) is not None}
        if self.evidence:
            found["evidence"] = {name: one if isinstance(one, bool) else str(one) for name, one in self.evidence}
        if self.roots is not None:
            found["roots"] = sorted(self.roots)
        if self.follows is not None:
            found["follows"] = self.follows
        return found

    def renamed(self, name: Callable[[str], str]) -> Declared:
        """Return it with other names of fields, tools and roots, as a masked file has them."""
        places = {one: None if (at := getattr(self, one)) is None else at.renamed(name) for one in _FACTS}
        evidence = tuple(
            (
                str(Place.parse(key).renamed(name)) if is_place(key) else name(key),
                one if isinstance(one, bool) else one.renamed(name),
            )
            for key, one in self.evidence
        )
        roots = None if self.roots is None else frozenset(map(name, self.roots))
        return Declared(**places, evidence=evidence, roots=roots, follows=self.follows)

    def over(self, other: Declared) -> Declared:
        """Return what both say; this one comes first, field by field, and in `evidence` name by name."""
        told = {
            name: getattr(other, name) if getattr(self, name) is None else getattr(self, name)
            for name in (*_FACTS, "roots", "follows")
        }
        return Declared(**told, evidence=tuple({**dict(other.evidence), **dict(self.evidence)}.items()))


NOTHING = Declared()
_ITEM = re.compile(r"(?:[^,\[]|\[[^\]]*\]?)+")  # of a list with commas; a name in brackets may have one
_WITH_PLACE = re.compile(r"(?P<name>.+?)=(?P<place>(?:input|output|state)(?:[.\[].*)?)")


def evidence_items(given: object) -> tuple[str, ...]:
    """Return what a person writes for evidence as the items of a variable; each is checked.

    Raises:
        ConfigError: a value is wrong.

    Example:
        >>> evidence_items("web_search, -think_tool,fetch_page=output.pages[*].text")
        ('web_search', '-think_tool', 'fetch_page=output.pages[*].text')
        >>> evidence_items({"web_search": True, "think_tool": False})
        ('web_search', '-think_tool')
    """
    if isinstance(given, Mapping):
        found = Declared.of(evidence=given).evidence
    else:
        items = _ITEM.findall(given) if isinstance(given, str) else _listed(given, "evidence")
        found = evidence_of(item for item in items if not isinstance(item, str) or item.strip())
    return tuple(f"{name}={one}" if isinstance(one, Place) else name if one else f"-{name}" for name, one in found)


def evidence_of(items: Iterable[object]) -> tuple[tuple[str, bool | Place], ...]:
    """Return the evidence that items say: a name, ``-`` and the name of what is none, or ``name=place``.

    Raises:
        ConfigError: an item is wrong.
    """
    given: dict[object, object] = {}
    for one in items:
        item = one.strip() if isinstance(one, str) else one
        if isinstance(item, str) and (found := _WITH_PLACE.fullmatch(item)):
            given[found["name"].strip()] = found["place"]
        elif isinstance(item, str) and item.startswith("-"):
            given[item[1:].strip()] = False
        elif isinstance(item, str) and "=" in item and not is_place(item):
            name, _, place = item.partition("=")
            given[name] = place  # which is none
        else:
            given[item] = True
    return _evidence(given)


def _place(given: object, where: str, near: str = "state") -> Place:
    try:
        return Place.of(given, near)
    except ConfigError as error:
        raise ConfigError(f"{where} {error}") from None


def _shown(value: object) -> str:
    if callable(value):
        return str(getattr(value, "__name__", type(value).__name__))
    return cut(repr(value), _MOST_SHOWN)[0] if isinstance(value, str | int | float) else type(value).__name__


def _evidence(given: object) -> tuple[tuple[str, bool | Place], ...]:
    if not isinstance(given, Mapping):
        return tuple((_key(name), True) for name in _names(given, "evidence"))
    found: dict[str, bool | Place] = {}
    for name, one in islice(given.items(), _MOST_NAMES):
        (told,) = _names((name,), "evidence")
        where = f"evidence: {told!r} = {_shown(one)}:"
        if not isinstance(one, bool | str | Place) and not callable(one):
            raise ConfigError(f"{where} is neither True nor False nor a place in its output")
        found[_key(told)] = one if isinstance(one, bool) else _place(one, where, "output")
    return tuple(found.items())


def _key(name: str) -> str:
    """Return the name of a tool as it is, and a place as `Place` writes it."""
    is_way = is_place(name) or ("[" in name and _is_way(f"state.{name}"))
    return str(_place(name, f"evidence: {name!r}")) if is_way else name


def _listed(given: object, what: str) -> list[Any]:
    if callable(given):
        raise ConfigError(f"{what}={_shown(given)} is a function; write its name")
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ConfigError(f"{what}={_shown(given)} is no list of names; write {what}=[{_shown(given)}]")
    return list(islice(given, _MOST_NAMES))


def _names(given: object, what: str) -> list[str]:
    found = _listed(given, what)
    for name in found:
        if not isinstance(name, str):
            hint = "; write its name" if callable(name) else ""
            raise ConfigError(f"{what}: {_shown(name)} is no name{hint}")
        if not name.strip() or name[0] == "-" or len(name) > MAX_NAME_CHARS:
            raise ConfigError(f"{what}: {_shown(name)} is no name of a tool, a retriever or a function")
    return found


class _Noted:
    """Names that were decorated in this process."""

    def __init__(self) -> None:
        self.declared = NOTHING
        self._lock = threading.Lock()

    def add(self, name: str, *, is_evidence: bool) -> None:
        with self._lock:
            known = dict(self.declared.evidence)
            if known.get(name) is is_evidence:
                return  # a factory makes its tools anew for each request
            known.pop(name, None)
            kept = list(known.items())[-_MOST_NAMES + 1 :]
            self.declared = Declared(evidence=((name, is_evidence), *kept))


_noted = _Noted()


def note(name: str, *, is_evidence: bool) -> None:
    """Note what a decorator says of a tool or a function, for this process."""
    _noted.add(name, is_evidence=is_evidence)


def noted() -> Declared:
    """Return what the decorators of this process have said so far; the same object until they say more."""
    return _noted.declared


class _Layer(Struct):
    how: How
    declared: Declared = NOTHING
    question: str | None = None  # a text, which the request gave


class Declarations:
    """Declarations of one run from all layers, nearest first; whoever reads the run asks them.

    Example:
        >>> said = Declarations()
        >>> said.add(Declared.of(question="input.text", evidence={"kb": False, "web": True}), "settings")
        >>> said.add(Declared.of(evidence={"kb": True}), "handler")
        >>> str(said.question()[0]), said.evidence("kb"), said.evidence("web"), said.evidence("notes")
        ('input.text', (True, 'handler'), (True, 'settings'), None)
    """

    def __init__(self) -> None:
        self._layers: list[_Layer] = []
        self._evidence: dict[str, tuple[bool | Place, How]] = {}
        self._met: set[str] = set()  # names of steps
        self._fields: set[str] = set()
        self._places: dict[str, bool] = {}  # that were looked at, and whether they held something

    def __bool__(self) -> bool:
        return bool(self._layers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Declarations) and self._layers == other._layers

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        said = [(layer.how, layer.question or layer.declared.said()) for layer in self._layers]
        return f"{type(self).__name__}({said!r})"

    def add(self, declared: Declared, how: How) -> None:
        """Take what a layer says; what is added later comes before what the same layer said."""
        self._add(_Layer(how, declared))

    def ask(self, question: str) -> None:
        """Take a question that the request gave as a text."""
        self._add(_Layer("metadata", question=question))

    def _add(self, layer: _Layer) -> None:
        order = get_args(How)
        self._layers = sorted([layer, *self._layers], key=lambda one: order.index(one.how))
        self._evidence = {
            name: (one, of.how) for of in reversed(self._layers) for name, one in of.declared.evidence
        }

    # -- what is declared --

    def question(self) -> tuple[Place | str, How] | None:
        """Return where the question stands, or the question itself as a text."""
        for layer in self._layers:
            if (told := layer.question or layer.declared.question) is not None:
                return told, layer.how
        return None

    def answer(self) -> tuple[Place, How] | None:
        """Return where the answer stands."""
        return self._first(lambda said: said.answer)

    def selected(self) -> tuple[Place, How] | None:
        """Return where the chosen passages stand."""
        return self._first(lambda said: said.selected)

    def roots(self) -> tuple[frozenset[str], How] | None:
        """Return the names of the calls that are runs."""
        return self._first(lambda said: said.roots)

    def follows(self) -> tuple[bool, How] | None:
        """Return whether a run that asks nothing new follows the one before it."""
        return self._first(lambda said: said.follows)

    def evidence(self, name: str) -> tuple[bool | Place, How] | None:
        """Return what a tool, a retriever or a function of this name is: evidence, none, or where it stands."""
        return self._evidence.get(name)

    def evidence_places(self) -> list[tuple[Place, bool | Place, How]]:
        """Return the places that are evidence or none."""
        return [(Place.parse(name), *told) for name, told in self._evidence.items() if is_place(name)]

    def _first(self, of: Callable[[Declared], T | None]) -> tuple[T, How] | None:
        for layer in self._layers:
            if (told := of(layer.declared)) is not None:
                return told, layer.how
        return None

    # -- what was met of it --

    def at(self, place: Place, value: object) -> list[object]:
        """Return what stands at a declared place in a value, and note whether there was something."""
        found = place.in_(value)
        name = str(place)
        self._places[name] = self._places.get(name, False) or any(one not in ("", [], {}, ()) for one in found)
        return found

    def met(self, names: Iterable[object], fields: Iterable[object] = ()) -> None:
        """Note names of tools, retrievers, functions and roots, and of the fields of what these hand on."""
        for new, known in ((names, self._met), (fields, self._fields)) if self._layers else ():
            if len(known) < MOST_MET:
                known.update(islice((name for name in new if isinstance(name, str)), MOST_MET))

    def take(self, event: Event) -> None:
        """Note the names in an event: of its step, and of the fields of what that was given or gave."""
        if self._layers and event.kind in _NAMED:
            self.met(
                (event.name, getattr(event.data, "source", None)),
                fields_of(getattr(event.data, "value", None)) or (),
            )
        elif event.kind == "mark":
            self.met((event.data.source,))
        elif event.kind == "offer":
            self.met((), event.data)

    def conclude(self, *, is_kept: bool) -> None:
        """Count a run that was read: names that no run meets are told once, see `MetNames`.

        Args:
            is_kept: it was a question. Others count where `roots` says which calls are one.
        """
        own = [layer for layer in self._layers if layer.how in {"handler", "settings"}]
        if not own or not self._met:
            return
        said = own[0].declared
        for layer in own[1:]:
            said = said.over(layer.declared)
        is_counted = is_kept or said.roots is not None
        met_of(said).count(_looked_for(said), self._met, self._fields, self._places, is_counted=is_counted)


MOST_MET = 256
_NAMED = frozenset({"chain", "tool", "search"})


def _looked_for(declared: Declared) -> list[tuple[str, str, bool]]:
    """Return what a declaration hopes to meet: the argument, the name or the place, and whether it is a place."""
    found = [(name, str(place), True) for name in _FACTS if (place := getattr(declared, name)) is not None]
    for name, one in declared.evidence:
        found.append(("evidence", name, is_place(name)))
        if isinstance(one, Place):
            found.append(("evidence", str(one), True))
    return found + [("roots", name, False) for name in sorted(declared.roots or ())]
