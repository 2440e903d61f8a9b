"""LangChain's and LangGraph's values as the plain ones of an event.

A value is copied as far as the application may change it later. Texts are taken by reference.
"""

from __future__ import annotations

import sys
from itertools import islice
from operator import is_
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document
from langchain_core.load import Serializable
from langchain_core.messages import BaseMessage
from langchain_core.prompt_values import PromptValue

from ragtrace.capture import MOST_PASSAGES, answer_field, is_equal
from ragtrace.capture.content_blocks import without_picture
from ragtrace.capture.guard import record_internal_error
from ragtrace.capture.turns import role_named
from ragtrace.capture.values import (
    HOLDERS,
    VECTOR,
    Doc,
    Fields,
    Opaque,
    Prompt,
    Steer,
    Turn,
    Walker,
    text_of,
    told,
)
from ragtrace.text import first_items, is_vector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_MOST_TOLD = 200  # objects of a value that say what they are
_DEPTH_TOLD = 3
_MOST_COMPARED = 2_000  # parts of a message, which is else translated anew
_PLAIN = frozenset((str, int, float, bool, type(None)))


class Values(Walker):
    """Translates the values of one run; a part that was met before, and is as it was, gives the same object.

    So a step that handed a list on is told from one that changed it in place; of one that is too long to be read
    nothing is looked at again. Thread-safe.
    """

    _site = "ragtrace_langchain.values.of"
    _scalars = _PLAIN
    _depth = 8

    def __init__(self) -> None:
        super().__init__()
        self._told = 0
        # What was made, behind the object that it was made of, by id; of a list its parts too.
        self._known: dict[int, tuple[Any, ...]] = {}
        self._metadata = Walker()

    def _begin(self) -> None:
        super()._begin()
        self._metadata._begin()  # noqa: SLF001 - a part of this one

    def taken_cut(self) -> int:
        """Return how many values were cut since the last call."""
        if not self._cut and not self._metadata._cut:  # noqa: SLF001 - as nearly always, at each event
            return 0
        return super().taken_cut() + self._metadata.taken_cut()

    @staticmethod
    def _maker(kind: type) -> Callable[[Any, Any, int], Any]:
        kinds: tuple[tuple[type, Callable[[Values, Any, int], Any]], ...] = (
            (Document, Values._document),
            (BaseMessage, Values._message),
            (list, Values._list),
            (dict, Values._mapping),
            (PromptValue, Values._prompt),
        )
        for known, make in kinds:
            if issubclass(kind, known):
                return make
        if hasattr(kind, "__pydantic_validator__") and not hasattr(kind, "__dataclass_fields__"):
            return Values._other if hasattr(kind, "lc_id") else Values._model
        if hasattr(kind, "__dataclass_fields__"):
            return Values._command if _is_command(kind) else Values._dataclass
        return Walker._maker(kind)  # noqa: SLF001 - the base of this class

    def handed_in(self, value: object) -> Any:
        """Return what a step is given; a list that was met before, with the same parts, is the one of then.

        What the application wrote into a part since then is told where a step gives it out.
        """
        if not isinstance(value, list) or (known := self._known.get(id(value))) is None:
            return self.of(value)
        _, made, parts = known
        return made if len(parts) == len(value) and all(map(is_, parts, value)) else self.of(value)

    def documents(self, items: Iterable[object]) -> list[Doc]:
        """Return documents; what is none, as a store that holds bare texts gives it, is one with its text."""
        some = self.of(items) if type(items) is list and len(items) <= MOST_PASSAGES else None
        if type(some) is not list:
            some = self.items(items)
        return [one if type(one) is Doc else Doc(text_of(one)) for one in some]

    def items(self, items: Iterable[object]) -> list[Any]:
        """Return at most 10,000 items of a list or an iterator as plain values."""
        self._begin()
        # The run's reader leaves the last one out, and counts it.
        return [self._part(item, 1) for item in islice(items, MOST_PASSAGES + 1)]

    def turns(self, messages: Iterable[object]) -> list[Turn]:
        """Return the messages of a prompt; a text is one of the user's."""
        self._begin()
        last_first = reversed(list(messages))  # where there is not room for all, the oldest go
        made = [Turn("user", one) if isinstance(one, str) else self._part(one, 1) for one in last_first]
        return [turn for turn in reversed(made) if type(turn) is Turn]

    def given(self, value: object) -> Any:
        """Return what a person or a model is shown, as a plain value; objects in it say what they say as text."""
        made = self.of(value)
        try:
            self._told = 0
            self._tell(value, made, 0)
        except Exception as error:  # as where it is read
            record_internal_error(self._site, error)
        return made

    def text(self, value: object, made: object) -> str | None:
        """Return what an object says as text; None for a plain value."""
        return told(value) if type(made) in {Fields, Opaque} else None

    def _document(self, document: Document, _depth: int) -> Doc:
        # What the types of a document promise, an application's own class may break.
        text: Any = document.page_content
        name: Any = document.id
        metadata: Any = document.metadata
        known = self._known.get(id(document), ())
        is_as_met = bool(known) and known[2] is text and known[3] == name
        if is_as_met and is_equal(known[4], metadata):
            return known[1]  # type: ignore[no-any-return]
        facts, as_given = self._metadata.facts(metadata) if isinstance(metadata, dict) else ({}, {})
        if is_as_met and is_equal(known[1].metadata, facts):  # objects and vectors are left out
            return known[1]  # type: ignore[no-any-return]
        own = text if type(text) is str else told(text)
        if not known or known[2] is not text:
            self._chars += len(own)
        made = Doc(own, name if type(name) is str or name is None else told(name), facts)
        self._known[id(document)] = (document, made, text, name, as_given)
        return made

    def _message(self, message: Any, depth: int) -> Turn:
        held = vars(message)  # a look for a field that it lacks costs 2 us
        content, calls, artifact = message.content, held.get("tool_calls") or (), held.get("artifact")
        parts = [message.id, content]
        if type(content) is not str or calls or artifact is not None:
            for part in (content, calls, artifact):
                _add_parts(parts, part, 0)
        known = self._known.get(id(message))
        if known is not None and len(parts) <= _MOST_COMPARED and _are_same(known[2], parts):
            return known[1]  # type: ignore[no-any-return]
        kind = message.type
        made = Turn(
            role=role_named(held.get("role") if kind == "chat" else kind),
            content=self._content(content, depth),
            calls=[
                {"name": call["name"], "args": self._part(call.get("args"), depth + 1), "id": call.get("id")}
                for call in calls
            ],
            call_id=held.get("tool_call_id"),
            name=message.name,
            id=message.id,
            artifact=self._part(artifact, depth + 1),
            is_error=held.get("status") == "error" or held["additional_kwargs"].get("is_error") is True,
        )
        self._known[id(message)] = (message, made, parts)
        return made

    def _content(self, content: object, depth: int) -> object:
        if not isinstance(content, list):
            return self._part(content, depth + 1)
        some = self._parts(content)
        blocks = [without_picture(block) if isinstance(block, dict) else block for block in some]
        return self._made(blocks, depth)

    def _met(self, value: object, made: Any, parts: Any) -> Any:
        known = self._known.get(id(value))
        if known is not None and len(before := known[1]) == len(made):
            if type(made) is list:
                if all(map(is_, before, made)):
                    return before
            elif before.keys() == made.keys() and all(map(is_, before.values(), made.values())):
                return before
        self._known[id(value)] = (value, made, parts)
        return made

    def _prompt(self, prompt: PromptValue, depth: int) -> Prompt:
        return Prompt([self._part(message, depth + 1) for message in prompt.to_messages()])

    def _command(self, command: Any, depth: int) -> Steer:
        update = self._part(command.update, depth + 1)
        goto = self._part(command.goto, depth + 1)
        return Steer(goto, update, self._part(command.graph, depth + 1))

    def _object(self, value: Any, _depth: int) -> Any:
        return Opaque(type(value).__name__, is_framework=isinstance(value, Serializable))

    def _tell(self, value: Any, made: Any, depth: int) -> None:
        """Write into the objects of a value what they say as a text and as a reply."""
        if type(made) is Opaque:
            self._told += 1
            if made.kind != VECTOR and not isinstance(value, HOLDERS) and self._told <= _MOST_TOLD:
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
    if isinstance(value, dict | list | tuple) and depth <= Values._depth and len(parts) <= _MOST_COMPARED:  # noqa: SLF001
        held: list[Any] = list(islice(value, _MOST_COMPARED + 1))
        if isinstance(value, dict):
            held += first_items(value, _MOST_COMPARED + 1).values()
        elif is_vector(held):  # a sign is kept of it
            parts.append(value)
            return
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
    return "" if is_data or kind.__str__ is object.__str__ else told(value)


def _is_command(kind: type) -> bool:
    module = sys.modules.get("langgraph.types")
    command = getattr(module, "Command", None) if module is not None else None
    return isinstance(command, type) and issubclass(kind, command)
