"""LlamaIndex's nodes, messages and tool outputs as the plain values of an event.

A value is copied as far as the application may change it later. Texts are taken by reference.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.schema import BaseNode, NodeWithScore, TextNode
from llama_index.core.tools import ToolOutput

from ragtrace.capture import (
    ID_KEYS,
    MOST_PASSAGES,
    SCORE_KEYS,
    PassageReader,
    id_in,
    number_of,
    read_mapping,
    score_in,
)
from ragtrace.capture.events import Gave
from ragtrace.capture.met_values import MetValues, as_now
from ragtrace.capture.names import PICTURE_FIELDS
from ragtrace.capture.pictures import PICTURE, picture_key
from ragtrace.capture.values import Doc, Turn, Walker, copied, told
from ragtrace.model.passage import is_content_id
from ragtrace.text import MAX_RECORD_CHARS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from inspect import BoundArguments

    from ragtrace.model import Message


_NUMBER = re.compile(r"Source (\d{1,4}):\n")  # before each piece that a citation engine makes of a passage
_HANDOFF = "handoff"  # the tool by which one agent passes a question to another
_MOST_ROWS = 500  # written out while the application waits
_MOST_OFFERED = 2_000
_LONGEST_READ_CHARS = 1_000_000  # of a text that may be JSON
_MOST_COMPARED = 2_000  # parts of a message, which is else read anew
_DATA = {bytes, str}
_PLAIN = (str, int, float, bool, list, dict, type(None))


class Shown(NamedTuple):
    """A message of a prompt, and the same as a turn."""

    message: Message
    turn: Turn


class Values(Walker):
    """Translates the values of one run; a node that was met before, and is as it was, gives the same object."""

    def __init__(self) -> None:
        super().__init__()
        self._values = MetValues()
        self._copies = MetValues()  # of messages that a step gave out

    def documents(self, nodes: object, *, is_given: bool = False) -> list[Doc]:
        """Return nodes, with scores or without, as they are now; anything but a list is an empty one.

        Args:
            nodes: of the framework.
            is_given: a step is given them, and tells what it makes of them: of a long list not all are compared.

        Example:
            >>> Values().documents([NodeWithScore(node=TextNode(id_="d1", text="a"), score=0.5)])
            [Doc(text='a', id='d1', score=0.5)]
        """
        self._begin()
        some = nodes if isinstance(nodes, list | tuple) else ()
        return self._each(some, self._document, is_shown=not is_given)

    def shown(self, nodes: object) -> list[Doc]:
        """Return the nodes that a synthesizer is given; the numbered pieces of a citation engine have labels."""
        found = self.documents(nodes)
        if not found or _NUMBER.match(found[0].text) is None:
            return found
        return [_piece(one) for one in found]

    def found(self, value: object) -> list[Doc]:
        """Return the nodes or search results in a value, [] where it has none.

        Example:
            >>> Values().found('[{"id": "d1", "text": "Oslo."}]'), Values().found("Oslo.")
            ([Doc(text='Oslo.', id='d1')], [])
        """
        if isinstance(value, str):
            value = value_in_json(value)
        parts = list(islice(value, MOST_PASSAGES + 1)) if isinstance(value, list | tuple) else [value]
        return self.marked(parts) if parts and all(map(_is_passage, parts)) else []

    def marked(self, items: object) -> list[Doc]:
        """Return what an application names as its passages: nodes, scored pairs, mappings, objects or texts."""
        self._begin()
        return [document for document in self._each(_listed(items), self._named) if document is not None]

    def _each(
        self,
        items: Iterable[Any],
        make: Callable[[Any], Any],
        values: MetValues | None = None,
        *,
        is_shown: bool = False,
    ) -> list[Any]:
        """Return what is made of each part of a list, of which another list may have been the head."""
        values, parts = values or self._values, list(islice(items, MOST_PASSAGES + 1))
        head = values.head(parts, is_shown=is_shown)
        made = [*head.made, *map(make, parts[len(head.parts) :])]
        values.keep_head(parts, made, head)
        return made

    def offered(self, part: object) -> object:
        """Return a value that a step gave out and that may come from a search of its own; None for any other."""
        if isinstance(part, str):
            return part if part.startswith("[") and len(part) <= _LONGEST_READ_CHARS else None
        if not isinstance(part, list | tuple | dict):
            return None
        number = len(list(islice(part, _MOST_OFFERED + 1)))
        if not 0 < number <= _MOST_OFFERED:
            return None
        if found := self.found(part):
            return found
        if number > _MOST_ROWS:
            return None
        if isinstance(part, list) and all(type(one) is ChatMessage for one in part):
            return self._each(part, partial(self._read_once, self._copies, copied), self._copies)
        return copied(part)

    def given_by_tool(self, name: str, result: object) -> Gave:
        """Return what a tool gave out: passages, texts, or None for what is no result of a search."""
        text = result.content if isinstance(result, ToolOutput) else told(result)
        value = result.raw_output if isinstance(result, ToolOutput) else result
        self._count(text)
        if name == _HANDOFF or getattr(result, "is_error", False):
            return Gave(text=text)
        if found := self.found(value):
            return Gave(found, text=text)
        parts = list(islice(value, MOST_PASSAGES + 1)) if isinstance(value, list | tuple) else []
        texts = [part for part in parts if part.strip()] if all(isinstance(one, str) for one in parts) else []
        return Gave(texts or text, text=text)

    def _named(self, item: object) -> Doc | None:
        if isinstance(item, NodeWithScore | BaseNode):
            return self._document(item)
        if isinstance(item, dict):
            return self._of_mapping(item)
        if isinstance(item, str):
            self._count(item)
            return Doc(item)
        if type(item) is tuple and len(item) == 2 and (score := number_of(item[1])) is not None:
            one = self._named(item[0])
            return None if one is None else Doc(one.text, one.id, one.metadata, score)
        read = PassageReader(None, MAX_RECORD_CHARS).read([item])
        if not read:
            return None
        name = None if is_content_id(read[0].id) else read[0].id
        return Doc(read[0].text, name, dict(read[0].metadata), read[0].score)

    def _of_mapping(self, item: dict[Any, Any]) -> Doc:
        text, facts = read_mapping(item)
        id_key = next((key for key in ID_KEYS if told(facts.get(key))), None)
        score_key = next((key for key in SCORE_KEYS if number_of(facts.get(key)) is not None), None)
        rest = {
            key: value for key, value in facts.items() if isinstance(key, str) and key not in {id_key, score_key}
        }
        self._count(text or "")
        return Doc(text or "", id_in(facts), self.facts(rest)[0], score_in(facts))

    def _document(self, item: Any) -> Doc:
        known = self._values.made_of(item)
        if known is not None:
            return known  # type: ignore[no-any-return]
        node = getattr(item, "node", item)
        is_text = type(node) is TextNode
        text: Any = node.text if is_text else text_of(node)
        if type(text) is not str:
            text = told(text)
        score = getattr(item, "score", None)
        if score is not None and type(score) is not float:
            score = number_of(score)
        metadata: Any = getattr(node, "metadata", None)
        picture = None if is_text else picture_in(node)
        own = node.id_ if is_text and type(node.id_) is str else id_of(node)
        facts, as_met = self.facts(metadata) if isinstance(metadata, dict) else ({}, metadata)
        if picture is not None:
            facts = {PICTURE: picture, **facts}
        self._count(text)
        is_chunk = bool(getattr(node, "relationships", None)) and getattr(node, "source_node", None) is not None
        made = Doc(text, own or None, facts, score, is_chunk=is_chunk)
        return self._values.keep(item, made, *_held_by(item, as_met))  # type: ignore[no-any-return]

    def prompt(self, messages: Iterable[Any], read: Callable[[ChatMessage], Message]) -> list[Shown]:
        """Return the messages of a prompt; one that was met before, and is as it was, is read no more."""

        def shown(message: Any) -> Shown:
            one = read(message)
            return Shown(one, self.turn(one))

        return self._each(messages, partial(self._read_once, self._values, shown), is_shown=True)

    @staticmethod
    def _read_once(values: MetValues, read: Callable[[Any], Any], message: Any) -> Any:
        known = values.made_of(message)
        return values.keep(message, read(message), *_held_by(message)) if known is None else known

    def turns(self, messages: Iterable[Message]) -> list[Turn]:
        """Return messages as turns."""
        return [self.turn(message) for message in messages]

    def turn(self, message: Message) -> Turn:
        """Return a message as a turn."""
        self._count(message.content)
        calls = [{"name": call.name, "args": call.arguments, "id": call.id} for call in message.calls]
        return Turn(message.role, message.content, calls, message.call_id)


def _held_by(value: Any, metadata: object = None) -> tuple[list[Any] | None, list[Any]]:
    """Return the objects that a node or a message consists of, and their fields as they are now.

    None of one of another class, since an application's own may compute what is read of it, and of a message that
    is too large to be compared.
    """
    kind = type(value)
    if kind is TextNode:
        return [value], [{**vars(value), "metadata": metadata}]
    if kind is NodeWithScore and type(value.node) is TextNode:
        return [value, value.node], [vars(value).copy(), {**vars(value.node), "metadata": metadata}]
    if kind is ChatMessage:
        holders = [value, *value.blocks]
        states = as_now([*map(vars, holders)], _MOST_COMPARED)
        return None if states is None else holders, states or []
    return None, []


def _piece(document: Doc) -> Doc:
    numbered = _NUMBER.match(document.text)
    if numbered is None:
        return document
    text = document.text[numbered.end() :].strip()
    return Doc(text, document.id, document.metadata, document.score, label=numbered[1])


def _listed(items: object) -> Iterable[object]:
    is_one = isinstance(items, str | dict | BaseNode | NodeWithScore) or not hasattr(items, "__iter__")
    return [items] if is_one else items  # type: ignore[return-value]


def _is_passage(part: object) -> bool:
    if isinstance(part, NodeWithScore | BaseNode):
        return True
    return isinstance(part, dict) and "role" not in part and bool(read_mapping(part)[0])


def arguments_of(arguments: Mapping[str, Any]) -> object:
    """Return the arguments of a tool's call, less what is the framework's own, such as a workflow's context."""
    given = {name: value for name, value in arguments.items() if name not in {"args", "kwargs"}}
    given.update(arguments.get("kwargs") or {})
    named = {name: value for name, value in given.items() if isinstance(value, _PLAIN)}
    positional = [value for value in arguments.get("args") or () if isinstance(value, _PLAIN)]
    made: object = named
    if positional:
        made = [*positional, named] if named else positional
    return copied(made) if made else ""


def value_in_json(text: str) -> object:
    """Return the value of a text that is a JSON list or object; None for any other.

    Example:
        >>> value_in_json('{"a": 1}'), value_in_json("In Oslo.")
        ({'a': 1}, None)
    """
    if len(text) > _LONGEST_READ_CHARS or not text.lstrip().startswith(("[", "{")):
        return None
    try:
        read: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return read


def id_of(node: object) -> str:
    """Return a node's id, "" where it has none.

    Example:
        >>> id_of(TextNode(id_="d1")), id_of("text")
        ('d1', '')
    """
    name = getattr(node, "node_id", None)
    return name if type(name) is str else told(name)


def text_of(node: object) -> object:
    """Return a node's own text; of a node of another kind its content, of anything else the thing itself.

    Example:
        >>> text_of(TextNode(text="a")), text_of("b"), text_of(None)
        ('a', 'b', None)
    """
    if isinstance(node, TextNode):
        return node.text
    content = getattr(node, "get_content", None)
    if content is None:
        return node
    try:
        return content()
    except Exception:  # an image or an application's own class may have none
        return None


def picture_in(part: object) -> str | None:
    """Return the key of the picture of a node or of a message's block: of its data, link or file; None without one.

    Example:
        >>> from llama_index.core.schema import ImageNode
        >>> picture_in(ImageNode(image_url="https://a.example/b.png")) == picture_key("https://a.example/b.png")
        True
        >>> picture_in(TextNode(text="a")) is None
        True
    """
    holders = (part, getattr(part, "image_resource", None))
    held = (getattr(holder, name, None) for holder in holders for name in PICTURE_FIELDS)
    found = (
        one if type(one) in _DATA else str(one) for one in held if one is not None and not hasattr(one, "read")
    )
    return next((key for one in found if (key := picture_key(one)) is not None), None)


MAX_KNOWN = 1_024  # classes, which an application may make at run time


# -- attributes and arguments: a miss on a pydantic model costs 4 us --


def first_of(owner: object, names: tuple[str, ...]) -> object:
    """Return the first of these attributes that is there and not None; None where there is none.

    Example:
        >>> class Retriever:
        ...     top_k = 3
        >>> first_of(Retriever(), ("similarity_top_k", "top_k"))
        3
    """
    own = getattr(owner, "__dict__", None) or {}
    kind: type = type(owner)
    on_class = _names_on(kind, names)
    for name in names:
        value = own.get(name)
        if value is None and name in on_class and name not in own:
            value = getattr(owner, name, None)
        if value is not None:
            return value
    return None


def settings_of(owner: object, names: tuple[str, ...]) -> dict[str, object]:
    """Return those of these attributes that an object or its class has.

    Example:
        >>> class Model:
        ...     temperature = 0.1
        >>> settings_of(Model(), ("temperature", "top_p"))
        {'temperature': 0.1}
    """
    own = getattr(owner, "__dict__", None) or {}
    kind: type = type(owner)
    on_class = {name: getattr(owner, name, None) for name in _names_on(kind, names)}
    return {**on_class, **{name: own[name] for name in names if name in own}}


@lru_cache(maxsize=MAX_KNOWN)
def _names_on(kind: type, names: tuple[str, ...]) -> frozenset[str]:
    private = getattr(kind, "__private_attributes__", None)
    known = private.keys() if isinstance(private, dict) else ()
    return frozenset(name for name in names if name in known or any(name in base.__dict__ for base in kind.__mro__))


def argument(bound: BoundArguments, *names: str) -> object:
    """Return the first positional argument of a call, else the first of these keyword arguments.

    Looks into ``*args`` and ``**kwargs``, since LlamaIndex wraps what it decorates.

    Example:
        >>> from inspect import signature
        >>> argument(signature(lambda *args, **kwargs: None).bind(prompt="Where?"), "prompt")
        'Where?'
        >>> argument(signature(lambda nodes, query=None: None).bind(["a"]))
        ['a']
    """
    for name, value in bound.arguments.items():
        if type(value) is tuple and name == "args":
            if value:
                return value[0]
        elif type(value) is dict and name not in names:
            return next((value[key] for key in names if key in value), None)
        else:
            return value
    return None
