"""Reads the values of attributes that many dialects share: JSON texts, documents, messages, flattened lists."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from ragtrace.capture import TEXT_KEYS, id_in, number_of, read_mapping, score_in, text_key
from ragtrace.ingest.dialects.base import SpanDocument
from ragtrace.model import Call, Message
from ragtrace.text import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

QUERY_BUNDLES = ("str_or_query_bundle", "query_bundle")  # arguments of LlamaIndex's retrievers and engines
_MOST_DEPTH = 8  # of containers that are looked into for a text
_QUESTION_KEYS = ("question", "query", "input", "user_input", "user_query", "query_str", "search_query", "prompt")
_ANSWER_KEYS = ("answer", "output", "result", "response", "final_answer", "generation", "output_text", "completion")
_ROLES = {
    "human": "user", "ai": "assistant", "model": "assistant", "AIMessage": "assistant",
    "AIMessageChunk": "assistant", "HumanMessage": "user", "SystemMessage": "system", "ToolMessage": "tool",
}  # fmt: skip
_UNSPOKEN = frozenset(
    {"tool_call", "tool_use", "function_call", "reasoning", "thinking", "image", "image_url", "blob"}
)
_SHOWN_NODE = re.compile(
    r"<NodeWithScore\(node=\w+\(id_=([^()]{1,256})\), score=(None|-?\d{1,20}(?:\.\d{1,20})?(?:e[+-]?\d{1,3})?)\)>"
)
_EVENT = re.compile(r"\w*(?:Start|Stop)Event\(")  # LlamaIndex's workflows show their events
_CLASS = re.compile(r"Runnable\w*(?:<.*>)?|LangGraph|unnamed|\w*(?:Query|Chat)Engine(?:\.\w+)?", re.DOTALL)
_OWN_FIELDS = frozenset({"rank", "score_kind", "hash", "previous_rank", "retrieval_score", "type", "metadata"})


def loaded(value: object) -> object:
    """Return the value of a JSON text of an object or a list; anything else as it is.

    Example:
        >>> loaded('{"a": 1}'), loaded("[broken"), loaded(7)
        ({'a': 1}, '[broken', 7)
    """
    if not isinstance(value, str) or value.lstrip()[:1] not in {"{", "["}:
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def decoded(value: object) -> object:
    """Return the value of any JSON text, a quoted one and a number too; anything else as it is.

    Example:
        >>> decoded('"Where?"'), decoded("Where?"), decoded("[1]")
        ('Where?', 'Where?', [1])
    """
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


def unwrapped(value: object, *names: str) -> object:
    """Return the value inside objects that have one of these names, the first that is there.

    Example:
        >>> unwrapped({"inputs": {"query_bundle": {"query_str": "Where?"}}}, "inputs", "query_bundle")
        {'query_str': 'Where?'}
    """
    while isinstance(value, dict) and (name := next((name for name in names if name in value), None)) is not None:
        value = value[name]
    return value


def text_in(value: object) -> str | None:
    """Return a text, None for anything else."""
    return value if isinstance(value, str) else None


def run_name(value: object) -> str | None:
    """Return the name that an application gave a run; the class names of LangChain and LlamaIndex are none.

    Example:
        >>> run_name("help-centre"), run_name("RunnableSequence"), run_name("RetrieverQueryEngine.query")
        ('help-centre', None, None)
    """
    name = text_in(value)
    return None if not name or _CLASS.fullmatch(name) else name


def count_in(value: object) -> int | None:
    """Return a whole number of 0 or more below 2**53, None for anything else."""
    return value if type(value) is int and 0 <= value < 1 << 53 else None


def texts_in(value: object) -> tuple[str, ...]:
    """Return the texts of a list or of a JSON list; a text alone is one.

    Example:
        >>> texts_in('["vip", "beta"]'), texts_in("vip"), texts_in([1, "a"])
        (('vip', 'beta'), ('vip',), ('a',))
    """
    found = loaded(value)
    if isinstance(found, str):
        return (found,)
    return tuple(item for item in found if isinstance(item, str)) if isinstance(found, list) else ()


def mapping_in(value: object) -> Mapping[str, object]:
    """Return a mapping or that of a JSON text, an empty one for anything else."""
    found = loaded(value)
    return found if isinstance(found, dict) else {}


def documents_in(value: object) -> tuple[tuple[SpanDocument, ...] | None, int]:
    """Return the documents of a list or its JSON text, and how many could not be read; None for no list at all.

    Example:
        >>> documents_in('[{"id": "a", "score": 0.5, "content": "Oslo."}, 7]')
        ((SpanDocument(id='a', text='Oslo.', score=0.5, metadata={}),), 1)
        >>> documents_in(None), documents_in("[{")
        ((None, 0), (None, 1))
    """
    found = loaded(value)
    if isinstance(found, dict) and isinstance(found.get("documents"), list):
        found = found["documents"]
    if not isinstance(found, list):
        return None, int(found is not None and found != "")
    return counted([document_in(loaded(item)) for item in found])


def counted(read: Sequence[SpanDocument | None]) -> tuple[tuple[SpanDocument, ...], int]:
    """Return the documents that could be read, and how many could not."""
    kept = tuple(document for document in read if document is not None)
    return kept, len(read) - len(kept)


def given_out(value: object, depth: int = 0) -> tuple[SpanDocument, ...] | None:
    """Return the documents in a chain's or a tool's output, None where it holds none.

    They are a list of documents, of (document, score) pairs or of LlamaIndex's shown nodes, also under a key or as
    a tool message's artifact.

    Example:
        >>> given_out('{"context": [{"id": "a", "page_content": "Oslo."}]}')[0].id
        'a'
        >>> given_out('["<NodeWithScore(node=TextNode(id_=a), score=9.0)>"]')[0].score
        9.0
        >>> given_out('["Oslo"]') is None
        True
    """
    found = loaded(value)
    if isinstance(found, list) and found:
        read = [_given_document(item) for item in found]
        return None if None in read else tuple(item for item in read if item is not None)
    if not isinstance(found, dict) or depth > 3:
        return None
    parts = [found[key] for key in ("artifact", "content") if found.get(key)] or list(found.values())
    inner = (given_out(part, depth + 1) for part in parts if isinstance(loaded(part), dict | list))
    return next((documents for documents in inner if documents), None)


def _given_document(item: object) -> SpanDocument | None:
    if isinstance(item, list) and len(item) == 2 and (score := number_of(item[1])) is not None:
        document = _given_document(item[0])
        return None if document is None else replace(document, score=score)
    if isinstance(item, str) and (node := _SHOWN_NODE.fullmatch(item)) is not None:
        return SpanDocument(id=node[1], score=None if node[2] == "None" else float(node[2]))
    if not isinstance(item, dict) or "role" in item or item.get("type", "Document") != "Document":
        return None
    is_document = "page_content" in item or ("id" in item and text_key(item) is not None)
    return document_in(item) if is_document else None


def document_in(item: object) -> SpanDocument | None:
    """Return one document, a text or a mapping; None for what has neither id nor text.

    Example:
        >>> document_in({"id": "a"}), document_in({"score": 0.5})
        (SpanDocument(id='a', text=None, score=None, metadata={}), None)
    """
    if isinstance(item, str):
        return SpanDocument(text=item) if item else None
    if not isinstance(item, dict):
        return None
    try:
        text, facts = read_mapping(item)
    except RecursionError:  # of JSON that is deeper than any document
        return None
    name = id_in(facts)
    if name is None and text is None:
        return None
    # A made-up score stands for a missing one, and says so.
    score = None if facts.get("score_kind") == "rank" else score_in(facts)
    given = item.get("metadata")
    metadata = given if isinstance(given, dict) else _rest(item)
    return SpanDocument(id=name, text=text, score=score, metadata=metadata)


def _rest(item: Mapping[str, object]) -> dict[str, object]:
    known = {"id", "score", *TEXT_KEYS, *_OWN_FIELDS}
    return {name: value for name, value in item.items() if name not in known and not isinstance(value, dict | list)}


def document_of(text: object, name: object, score: object, metadata: Mapping[str, object]) -> SpanDocument | None:
    """Return a document of its parts; an id and a score that are missing are looked for in its metadata.

    Example:
        >>> document_of("Oslo.", None, None, {"id": "a", "score": 0.5}).id
        'a'
        >>> document_of(None, None, 0.5, {}) is None
        True
    """
    known = shown(name) or id_in(metadata)
    words = text_in(text)
    if not known and words is None:
        return None
    number = number_of(score)
    return SpanDocument(
        id=known or None, text=words, score=score_in(metadata) if number is None else number, metadata=metadata
    )


def flattened(attributes: Mapping[str, object], prefix: str) -> list[dict[str, object]]:
    """Return the items of a list that is written as ``PREFIX.0.NAME``, ``PREFIX.1.NAME`` and so on.

    Example:
        >>> flattened({"d.1.id": "b", "d.0.id": "a", "d.x.id": "c"}, "d")
        [{'id': 'a'}, {'id': 'b'}]
    """
    found: defaultdict[int, dict[str, object]] = defaultdict(dict)
    start = f"{prefix}."
    for key, value in attributes.items():
        if key.startswith(start):
            place, _, name = key[len(start) :].partition(".")
            if len(place) < 7 and place.isascii() and place.isdigit():
                found[int(place)][name] = value
    return [found[place] for place in sorted(found)]


def content_text(value: object, depth: int = 0) -> str:
    """Return the text of a message's content: a text, or a list of parts; calls of tools and images are none.

    Example:
        >>> content_text([{"type": "text", "text": "Hi"}, {"type": "tool_call", "name": "search"}])
        'Hi'
    """
    if isinstance(value, str):
        return value
    if depth > _MOST_DEPTH:
        return ""
    if isinstance(value, list):
        return "\n".join(filter(None, (content_text(part, depth + 1) for part in value)))
    if not isinstance(value, dict) or value.get("type") in _UNSPOKEN:
        return ""
    for key in ("content", "text", "response", "result", "parts"):
        if value.get(key):
            return content_text(value[key], depth + 1)
    return ""


def messages_in(value: object, depth: int = 0) -> tuple[Message, ...]:
    """Return the messages of a list or its JSON text, in the forms of the conventions, providers and LangChain.

    A text alone is a user's message.

    Example:
        >>> messages_in('[{"role": "user", "parts": [{"type": "text", "content": "Where?"}]}]')
        (Message(role='user', content='Where?'),)
        >>> messages_in({"messages": [[{"id": ["x", "HumanMessage"], "kwargs": {"content": "Where?"}}]]})
        (Message(role='user', content='Where?'),)
    """
    found = loaded(value)
    if isinstance(found, str):
        return (Message(role="user", content=found),) if found else ()
    if depth > _MOST_DEPTH:
        return ()
    if isinstance(found, list):
        return tuple(message for item in found for message in messages_in(item, depth + 1))
    if not isinstance(found, dict):
        return ()
    for key in ("messages", "prompts"):
        if isinstance(found.get(key), list):
            return messages_in(found[key], depth + 1)
    message = message_in(found)
    return () if message is None else (message,)


def message_in(item: Mapping[str, object]) -> Message | None:
    """Return one message of a mapping, None where it has no role and no content."""
    inner = next((part for key in ("message", "kwargs", "data") if isinstance(part := item.get(key), dict)), item)
    role = next((r for key in ("role", "type") if isinstance(r := inner.get(key, item.get(key)), str)), "")
    kind = item.get("id")
    if role in {"", "constructor"} and isinstance(kind, list) and kind:  # LangChain's own JSON names the class
        role = shown(kind[-1])
    content = next((inner[key] for key in ("parts", "content", "contents", "blocks") if key in inner), None)
    if content is None and not role:
        return None
    parts = loaded_parts(content)
    return Message(role=_ROLES.get(role, role or "user"), content=content_text(parts), calls=_calls_in(parts))


def _calls_in(parts: object) -> tuple[Call, ...]:
    """Return the calls of tools among a message's parts, as the conventions write them."""
    called = (part for part in parts if isinstance(part, dict)) if isinstance(parts, list) else ()
    return tuple(
        Call(name=part["name"], arguments=_arguments(part.get("arguments")), id=text_in(part.get("id")))
        for part in called
        if part.get("type") == "tool_call" and isinstance(part.get("name"), str)
    )


def _arguments(given: object) -> str:
    return json.dumps(given, ensure_ascii=False) if isinstance(given, dict | list) else shown(given)


def loaded_parts(content: object) -> object:
    """Return content whose parts are written as JSON text; other texts stay as they are."""
    found = loaded(content)
    is_parts = isinstance(found, list) and any(isinstance(part, dict) and "type" in part for part in found)
    return found if is_parts else content


def last_of(messages: Iterable[Message], role: str) -> str | None:
    """Return the content of the last message of a role."""
    said = [message.content for message in messages if message.role == role]
    return said[-1] if said else None


def question_in(value: object) -> str | None:
    """Return the question in a chain's input: a text, messages, or an object with one of them in it.

    Example:
        >>> question_in('{"question": "Where?", "context": "..."}'), question_in("Where?"), question_in("{}")
        ('Where?', 'Where?', None)
    """
    found = loaded(value)
    if isinstance(found, str):
        return None if _EVENT.match(found) else found or None
    if isinstance(found, dict):
        for key in _QUESTION_KEYS:
            inner = found.get(key)
            if isinstance(inner, str) and inner and not _EVENT.match(inner):
                return inner
            if isinstance(inner, dict | list) and (said := last_of(messages_in(inner), "user")):
                return said
        if isinstance(arguments := found.get("args"), list):  # of a decorated function
            inner = (value for value in (*arguments, found.get("kwargs")) if "args" not in mapping_in(value))
            asked = (question_in(value) for value in inner)
            return next((text for text in asked if text), None)
        texts = [text for text in found.values() if isinstance(text, str)]
        if len(texts) == 1 and "role" not in found and "lc" not in found:  # lc: an object that LangChain serialized
            return texts[0] if texts[0] and not _EVENT.match(texts[0]) else None
    return last_of(messages_in(found), "user")


def answer_in(value: object, depth: int = 0) -> str | None:
    """Return the answer in a chain's output: a text, a message, generations, or an object with one of them in it.

    Example:
        >>> answer_in('{"answer": "In Oslo.", "context": []}'), answer_in("In Oslo."), answer_in('{"n": 1}')
        ('In Oslo.', 'In Oslo.', None)
    """
    found = loaded(value)
    if isinstance(found, str):
        return None if _EVENT.match(found) else found
    if depth > _MOST_DEPTH:
        return None
    if isinstance(found, list):
        is_message = any(isinstance(item, dict) and not _is_document(item) for item in found)
        return answer_in(found[-1], depth + 1) if is_message or (found and isinstance(found[-1], list)) else None
    if not isinstance(found, dict):
        return None
    for key in (*_ANSWER_KEYS, "generations", "messages", "text", "message"):
        if found.get(key) and (said := answer_in(found[key], depth + 1)) is not None:
            return said
    message = message_in(found)
    return message.content if message is not None and message.role in {"assistant", "tool"} else None


def _is_document(item: Mapping[str, object]) -> bool:
    inner = item.get("kwargs") if isinstance(item.get("kwargs"), dict) else item
    return "page_content" in inner or "metadata" in inner  # type: ignore[operator]
