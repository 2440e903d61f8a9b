"""Values of an application as events hold them: plain, and of no framework.

An integration translates documents, messages and states into these, in the application's thread. Texts are taken
by reference; what the application may change later is copied. None of them refers back to a run or a step, so that
the garbage collector need not look at them.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ragtrace.text import shown


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


def fields_of(value: Any) -> dict[Any, Any] | None:
    """Return the fields of a state: of a mapping, of an object with fields, of what a `Steer` writes; else None.

    Example:
        >>> fields_of({"docs": []}), fields_of(Steer(update={"docs": []})), fields_of("text")
        ({'docs': []}, {'docs': []}, None)
    """
    if isinstance(value, dict):
        return value
    return fields_of(value.update) if type(value) is Steer else None


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
