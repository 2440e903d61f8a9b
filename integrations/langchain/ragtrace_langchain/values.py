"""LangChain's and LangGraph's values as the plain ones of an event.

A value is copied as far as the application may change it later. Texts are taken by reference.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from itertools import islice
from operator import is_
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document
from langchain_core.load import Serializable
from langchain_core.messages import BaseMessage
from langchain_core.prompt_values import PromptValue

from ragtrace.capture import MOST_PASSAGES, answer_field
from ragtrace.capture.content_blocks import text_of, without_picture
from ragtrace.capture.guard import record_internal_error
from ragtrace.capture.met_values import NONE, Met, MetValues, as_now
from ragtrace.capture.turns import role_named
from ragtrace.capture.values import (
    HOLDERS,
    MOST_SPARE,
    VECTOR,
    Doc,
    Fields,
    Opaque,
    Prompt,
    Steer,
    Turn,
    Walker,
    told,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_MOST_TOLD = 200  # objects of a value that say what they are
_DEPTH_TOLD = 3
_MOST_COMPARED = 2_000  # parts of a message, which is else translated anew
_PLAIN = frozenset((str, int, float, bool, type(None)))
_CHANGED_INSIDE = ("content", "tool_calls", "artifact")  # fields of a message that may be lists and mappings
_READ = frozenset(
    (*_CHANGED_INSIDE, "page_content", "metadata", "id", "name", "type", "role", "tool_call_id", "status")
)


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
        self._values = MetValues()
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
        made = self._values.list_as_met(value) if isinstance(value, list) else None
        return self.of(value) if made is None else made

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
        parts = list(messages)
        first = 1 if parts and getattr(parts[0], "type", None) == "system" else 0  # a state's list has none
        rest = parts[first:]
        head = self._values.head(rest, is_shown=True)
        behind = self._turns(rest[len(head.parts) :])
        if len(head.parts) > self._room:
            head, behind = NONE, [*self._turns(rest[: len(head.parts)]), *behind]
        self._room -= len(head.parts)
        made = [*head.made, *behind]
        self._values.keep_head(rest, made, head)
        return [turn for turn in (*self._turns(parts[:first]), *made) if type(turn) is Turn]

    def _turns(self, messages: list[Any]) -> list[Any]:
        last_first = reversed(messages)  # where there is not room for all, the oldest go
        made = [Turn("user", one) if isinstance(one, str) else self._part(one, 1) for one in last_first]
        return made[::-1]

    def given(self, value: object, *, is_last: bool = False) -> Any:
        """Return what a person or a model is shown, as a plain value; objects in it say what they say as text.

        Args:
            value: what a step gave out.
            is_last: the run ends with it, and every part is looked at.
        """
        if is_last:
            self._values.forget_heads()
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
        known = self._values.made_of(document)
        if known is not None:
            return known  # type: ignore[no-any-return]
        # What the types of a document promise, an application's own class may break.
        text: Any = document.page_content
        name: Any = document.id
        metadata: Any = document.metadata
        facts, as_given = self._metadata.facts(metadata) if isinstance(metadata, dict) else ({}, metadata)
        own = text if type(text) is str else told(text)
        made = Doc(own, name if type(name) is str or name is None else told(name), facts)
        before = self._values.objects.get(id(document))
        if before is None or before.made.text != own:
            self._chars += len(own)
        kind: type = type(document)
        if not _is_read_by_fields(kind):
            return self._values.keep(document, made)  # type: ignore[no-any-return]
        return self._values.keep(document, made, (document,), ({**vars(document), "metadata": as_given},))  # type: ignore[no-any-return]

    def _message(self, message: Any, depth: int) -> Turn:
        known = self._values.made_of(message)
        if known is not None:
            return known  # type: ignore[no-any-return]
        held = vars(message)  # a look for a field that it lacks costs 2 us
        state = _state_of(message)  # as it is before it is read
        content, calls, artifact = message.content, held.get("tool_calls") or (), held.get("artifact")
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
        return self._values.keep(message, made, None if state is None else (message,), (state,))  # type: ignore[no-any-return]

    def _content(self, content: object, depth: int) -> object:
        if not isinstance(content, list):
            return self._part(content, depth + 1)
        some = self._parts(content)
        blocks = [without_picture(block) if isinstance(block, dict) else block for block in some]
        return self._made(blocks, depth)

    def _made(self, parts: Any, depth: int) -> list[Any]:
        head = self._values.head(parts)
        if len(head.parts) + 2 * MOST_SPARE > self._room:  # what is cut does not depend on what was met
            head = NONE
        self._room -= len(head.parts)
        made = [*head.made, *super()._made(parts[len(head.parts) :] if head.parts else parts, depth)]
        self._values.keep_head(parts, made, head)
        return made

    def _met(self, value: object, made: Any, parts: Any) -> Any:
        if type(made) is list:
            before = self._values.list_made(value)
            if before is not None and len(before) == len(made) and all(map(is_, before, made)):
                return before
            self._values.keep_list(value, made, parts)
            return made
        known = self._values.objects.get(id(value))
        before = None if known is None else known.made
        if before is not None and before.keys() == made.keys() and all(map(is_, before.values(), made.values())):
            return before
        self._values.objects[id(value)] = Met(value, made)
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


def _state_of(message: object) -> dict[str, Any] | None:
    """Return the fields of a message as they are now; None of one that is read each time, as a large one."""
    kind: type = type(message)
    if not _is_read_by_fields(kind):
        return None
    held = vars(message)
    inner = as_now({name: held[name] for name in _CHANGED_INSIDE if name in held}, _MOST_COMPARED)
    return None if inner is None else {**held, **inner}


@lru_cache(maxsize=1_024)
def _is_read_by_fields(kind: type) -> bool:
    """Tell whether what is read of an object stands in its ``vars``: an application's own class may compute it."""
    return _READ.isdisjoint(name for base in kind.__mro__ for name in vars(base))


def _text_of(value: object) -> str:
    """Return what an object's own ``str`` says; "" of one that has none, and of arrays and tables."""
    kind = type(value)
    is_data = any(hasattr(kind, name) for name in ("__array__", "__dataframe__", "__len__"))
    return "" if is_data or kind.__str__ is object.__str__ else told(value)


def _is_command(kind: type) -> bool:
    module = sys.modules.get("langgraph.types")
    command = getattr(module, "Command", None) if module is not None else None
    return isinstance(command, type) and issubclass(kind, command)
