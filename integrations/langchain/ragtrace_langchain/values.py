"""LangChain's and LangGraph's values as the plain ones of an event.

A value is copied as far as the application may change it later. Texts are taken by reference.
"""

from __future__ import annotations

import sys
from dataclasses import fields
from functools import lru_cache
from operator import is_
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document
from langchain_core.load import Serializable
from langchain_core.messages import BaseMessage
from langchain_core.prompt_values import PromptValue

from ragtrace.capture import MOST_PASSAGES, answer_field, is_equal, shown
from ragtrace.capture.content_blocks import without_picture
from ragtrace.capture.guard import record_internal_error
from ragtrace.capture.turns import role_named
from ragtrace.capture.values import Doc, Fields, Opaque, Prompt, Steer, Turn, facts_of, row_of, text_of
from ragtrace.text import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_DEPTH = 8  # of values in values, for cyclic ones
_DEPTH_TOLD = 3
_MOST_PARTS = 20_000  # of one value; what stands behind them is left out
_SHORT_CHARS = 256  # a shorter text is not counted
_PLAIN = frozenset((str, int, float, bool, type(None)))


class Values:
    """Translates the values of one run; a part that was met before, and is as it was, gives the same object.

    So a step that handed a list on is told from one that changed it in place. Thread-safe.
    """

    def __init__(self) -> None:
        # What was made, behind the object that it was made of, by id; of a list its parts too.
        self._known: dict[int, tuple[Any, ...]] = {}
        self._counted: dict[int, str] = {}  # longer texts, by identity
        self._chars = 0
        self._parts = 0

    def taken_chars(self) -> int:
        """Return the characters of the texts that were met since the last call; each text counts once."""
        chars, self._chars = self._chars, 0
        return chars

    def of(self, value: object) -> Any:
        """Return a value as a plain one."""
        self._parts = 0
        return self._of(value, 0)

    def handed_in(self, value: object) -> Any:
        """Return what a step is given; a list that was met before, with the same parts, is the one of then.

        What the application wrote into a part since then is told where a step gives it out.
        """
        if not isinstance(value, list) or len(known := self._known.get(id(value), ())) < 3:
            return self.of(value)
        _, made, parts = known
        return made if len(parts) == len(value) and all(map(is_, parts, value)) else self.of(value)

    def documents(self, items: Iterable[object]) -> list[Doc]:
        """Return documents; what is none, as a store that holds bare texts gives it, is one with its text."""
        some = self.of(items) if type(items) is list and len(items) <= MOST_PASSAGES else self.items(items)
        return [one if type(one) is Doc else Doc(text_of(one)) for one in some]

    def items(self, items: Iterable[object]) -> list[Any]:
        """Return at most 10,000 items of a list or an iterator as plain values."""
        found = []
        for item in items:
            found.append(self._of(item, 1))
            if len(found) > MOST_PASSAGES:  # the run's reader leaves the last one out, and counts it
                break
        return found

    def turns(self, messages: Iterable[object]) -> list[Turn]:
        """Return the messages of a prompt; a text is one of the user's."""
        made = (Turn("user", one) if isinstance(one, str) else self._of(one, 1) for one in messages)
        return [turn for turn in made if type(turn) is Turn]

    def given(self, value: object) -> Any:
        """Return what a person or a model is shown, as a plain value; objects in it say what they say as text."""
        made = self.of(value)
        try:
            self._tell(value, made, 0)
        except Exception as error:  # as where it is read
            record_internal_error("ragtrace_langchain.values.of", error)
        return made

    def text(self, value: object, made: object) -> str | None:
        """Return what an object says as text; None for a plain value."""
        return shown(value) if type(made) in {Fields, Opaque} else None

    def _of(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind in _PLAIN:
            if kind is not str:
                return value
            if len(value) > _SHORT_CHARS:
                self._count(value)
            return value
        self._parts += 1
        if depth > _DEPTH or self._parts > _MOST_PARTS:
            return Opaque(kind.__name__, is_framework=True)  # no value: it may hold itself
        try:
            return _maker(kind)(self, value, depth)  # type: ignore[arg-type]  # a type is hashable
        except Exception as error:  # an application's object may raise anything; the rest of the value is read
            record_internal_error("ragtrace_langchain.values.of", error)
            return Opaque(kind.__name__)

    def _count(self, text: str) -> None:
        if id(text) not in self._counted:
            self._counted[id(text)] = text
            self._chars += len(text)

    def _document(self, document: Document, _depth: int) -> Doc:
        # What the types of a document promise, an application's own class may break.
        text: Any = document.page_content
        name: Any = document.id
        metadata: Any = document.metadata
        known = self._known.get(id(document), ())
        is_as_met = bool(known) and known[2] is text and known[3] == name
        if is_as_met and is_equal(known[4], metadata):
            return known[1]  # type: ignore[no-any-return]
        facts = facts_of(metadata) if isinstance(metadata, dict) else {}
        if is_as_met and is_equal(known[4], facts):  # objects are left out
            return known[1]  # type: ignore[no-any-return]
        own = text if type(text) is str else shown(text)
        if not known or known[2] is not text:
            self._chars += len(own)
        made = Doc(own, name if type(name) is str or name is None else shown(name), facts)
        self._known[id(document)] = (document, made, text, name, facts)
        return made

    def _message(self, message: Any, depth: int) -> Turn:
        held = vars(message)  # a look for a field that it lacks costs 2 us
        content, calls, artifact = message.content, held.get("tool_calls") or (), held.get("artifact")
        parts = [message.id, content]
        if type(content) is not str or calls or artifact is not None:
            for part in (content, calls, artifact):
                _add_parts(parts, part, 0)
        known = self._known.get(id(message))
        if known is not None and len(parts) <= _MOST_PARTS and _are_same(known[2], parts):
            return known[1]  # type: ignore[no-any-return]
        kind = message.type
        made = Turn(
            role=role_named(held.get("role") if kind == "chat" else kind),
            content=self._content(content, depth),
            calls=[
                {"name": call["name"], "args": self._of(call.get("args"), depth + 1), "id": call.get("id")}
                for call in calls
            ],
            call_id=held.get("tool_call_id"),
            name=message.name,
            id=message.id,
            artifact=self._of(artifact, depth + 1),
            is_error=held.get("status") == "error" or held["additional_kwargs"].get("is_error") is True,
        )
        self._known[id(message)] = (message, made, parts)
        return made

    def _content(self, content: object, depth: int) -> object:
        if not isinstance(content, list):
            return self._of(content, depth + 1)
        blocks = (without_picture(block) if isinstance(block, dict) else block for block in content)
        return [self._of(block, depth + 1) for block in blocks]

    def _list(self, value: list[Any], depth: int) -> list[Any]:
        made = [self._of(part, depth + 1) for part in value]
        known = self._known.get(id(value))
        if known is not None and len(known[1]) == len(made) and all(map(is_, known[1], made)):
            return known[1]  # type: ignore[no-any-return]
        self._known[id(value)] = (value, made, value.copy())
        return made

    def _tuple(self, value: tuple[Any, ...], depth: int) -> tuple[Any, ...]:
        return tuple([self._of(part, depth + 1) for part in value])

    def _mapping(self, value: dict[Any, Any], depth: int) -> dict[Any, Any]:
        return self._fields(value, dict(value), depth)

    def _fields(self, value: object, held: dict[Any, Any], depth: int) -> dict[Any, Any]:
        for key, part in held.items():
            if type(part) not in _PLAIN or type(part) is str:
                held[key] = self._of(part, depth + 1)
        known = self._known.get(id(value))
        if known is not None and known[1].keys() == held.keys() and all(map(is_, known[1].values(), held.values())):
            return known[1]  # type: ignore[no-any-return]
        self._known[id(value)] = (value, held)
        return held

    def _model(self, value: Any, depth: int) -> dict[Any, Any]:
        return self._fields(value, Fields(vars(value)), depth)

    def _dataclass(self, value: Any, depth: int) -> dict[Any, Any]:
        held = {one.name: getattr(value, one.name) for one in fields(value) if _is_stored(value, one.name)}
        return self._fields(value, Fields(held), depth)

    def _prompt(self, prompt: PromptValue, depth: int) -> Prompt:
        return Prompt([self._of(message, depth + 1) for message in prompt.to_messages()])

    def _command(self, command: Any, depth: int) -> Steer:
        update = self._of(command.update, depth + 1)
        goto = self._of(command.goto, depth + 1)
        return Steer(goto, update, self._of(command.graph, depth + 1))

    def _other(self, value: object, depth: int) -> object:
        if isinstance(value, str):
            return str.__str__(value)
        if plain(value) is not None:  # a date, a number of another package: nobody can change it
            return value
        if (row := row_of(value)) is not None:
            return self._fields(value, row, depth) if isinstance(row, dict) else self._tuple(row, depth)
        return Opaque(type(value).__name__, is_framework=isinstance(value, Serializable))

    def _tell(self, value: Any, made: Any, depth: int) -> None:
        """Write into the objects of a value what they say as a text and as a reply."""
        if type(made) is Opaque:
            made.text, made.answer = _text_of(value), answer_field(value)
        elif depth > _DEPTH_TOLD:
            return
        elif isinstance(made, dict):
            held = value if isinstance(value, dict) else getattr(value, "__dict__", {})
            for key, part in made.items():
                if type(part) not in _PLAIN and key in held:
                    self._tell(held[key], part, depth + 1)
        elif isinstance(made, list) and isinstance(value, list):
            for one, part in zip(value, made, strict=False):
                if type(part) not in _PLAIN:
                    self._tell(one, part, depth + 1)


def _add_parts(parts: list[object], value: object, depth: int) -> None:
    """Add what an application may change in a value of lists and mappings: these, and what they hold."""
    if isinstance(value, dict | list | tuple) and depth <= _DEPTH and len(parts) <= _MOST_PARTS:
        held: list[Any] = [*value, *value.values()] if isinstance(value, dict) else list(value)
        parts.append(len(held))
        parts += held
        for part in held:
            _add_parts(parts, part, depth + 1)


def _are_same(some: list[object], others: list[object]) -> bool:
    return len(some) == len(others) and all(map(is_, some, others))


def _text_of(value: object) -> str:
    """Return what an object's own ``str`` says; "" of one that has none, and of arrays and tables."""
    kind = type(value)
    is_data = any(hasattr(kind, name) for name in ("__array__", "__dataframe__", "__len__"))
    return "" if is_data or kind.__str__ is object.__str__ else shown(value)


@lru_cache(maxsize=1_024)
def _maker(kind: type) -> Callable[[Values, Any, int], Any]:
    """Return what translates values of a type."""
    kinds: tuple[tuple[type, Callable[[Values, Any, int], Any]], ...] = (
        (Document, Values._document),  # noqa: SLF001
        (BaseMessage, Values._message),  # noqa: SLF001
        (list, Values._list),  # noqa: SLF001
        (tuple, Values._tuple),  # noqa: SLF001
        (dict, Values._mapping),  # noqa: SLF001
        (PromptValue, Values._prompt),  # noqa: SLF001
    )
    for known, make in kinds:
        if issubclass(kind, known):
            return make
    if hasattr(kind, "__pydantic_validator__") and not hasattr(kind, "__dataclass_fields__"):
        return Values._other if hasattr(kind, "lc_id") else Values._model  # noqa: SLF001
    if hasattr(kind, "__dataclass_fields__"):
        return Values._command if _is_command(kind) else Values._dataclass  # noqa: SLF001
    return Values._other  # noqa: SLF001


def _is_command(kind: type) -> bool:
    module = sys.modules.get("langgraph.types")
    command = getattr(module, "Command", None) if module is not None else None
    return isinstance(command, type) and issubclass(kind, command)


def _is_stored(value: object, name: str) -> bool:
    """Tell whether a field holds a value: no property of the application is called."""
    in_slot = isinstance(getattr(type(value), name, None), MemberDescriptorType)
    return hasattr(value, name) if in_slot else name in getattr(value, "__dict__", ())  # a slot may be empty
