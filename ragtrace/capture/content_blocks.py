"""Texts of values and of messages' content blocks, and documents in the forms of several providers."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from ragtrace.capture.names import (
    DOCUMENT_BLOCKS,
    HELD_TEXT_KEYS,
    PICTURE_BLOCKS,
    RESULT_BLOCKS,
    RESULT_KEYS,
    SERVER_TOOL_BLOCKS,
    SILENT_BLOCKS,
    TEXT_BLOCKS,
    TEXT_FORMATS,
    TITLE_KEYS,
)
from ragtrace.capture.pictures import picture_in_block
from ragtrace.capture.values import LISTS, Doc, Opaque, Prompt, Steer, Turn, fields_of, told
from ragtrace.text import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


PICTURE = "picture"  # of a block: the key that stands in place of its data
_LONGEST_DECODED_CHARS = 6_000_000  # in fours; more text than capture keeps, so that it sees a longer one as cut
_DEPTH = 3
_DEEPEST = 16  # of a value; none of what events hold stands deeper, but for plain JSON


def text_of(value: object) -> str:
    """Return the text of a value as events hold it, of every kind: what it says, and no class of ours.

    Example:
        >>> text_of(Doc("a")), text_of("b"), text_of(None), text_of({"said": Turn("assistant", "In Oslo.")})
        ('a', 'b', '', "{'said': 'In Oslo.'}")
        >>> text_of(Steer(update={"files": {"a": "..."}, "messages": [Turn("tool", "Kept.")]}))
        'Kept.'
    """
    return value if isinstance(value, str) else told(in_plain(value))


def json_of(value: object) -> str:
    """Return a value as events hold it as JSON, with what is no JSON as `text_of` has it."""
    return json.dumps(in_plain(value), default=str, ensure_ascii=False)


def in_plain(value: object, depth: int = 0) -> object:
    """Return a value with texts in place of the documents, messages, prompts, commands and objects in it."""
    if depth > _DEEPEST:
        return value
    if isinstance(value, dict):
        return {key: in_plain(part, depth + 1) for key, part in value.items()}
    if isinstance(value, LISTS):
        parts = [in_plain(part, depth + 1) for part in value]
        return parts if isinstance(value, list) else tuple(parts)
    if isinstance(value, Doc | Opaque):
        return value.text
    if isinstance(value, Turn):
        return content_text(value.content)
    if isinstance(value, Prompt | Steer):
        turns = value.turns if isinstance(value, Prompt) else tool_messages(value)
        return "\n\n".join(content_text(one.content) for one in turns)
    return value


def tool_messages(outputs: object) -> Iterator[Turn]:
    """Yield the messages that a tool gave out, itself or in what it writes into a state."""
    for part in outputs if isinstance(outputs, list) else [outputs]:
        if type(part) is Steer:
            messages = (fields_of(part) or {}).get("messages")
            for message in messages if isinstance(messages, LISTS) else [messages]:
                if type(message) is Turn and message.role == "tool":
                    yield message
        elif type(part) is Turn and part.role == "tool":
            yield part


def content_text(content: object, *, is_prompt: bool = False) -> str:
    """Return the text of a message's content; of blocks, the text blocks, and the others' types in brackets.

    In a prompt, the texts of documents and search results are among it.

    Example:
        >>> content_text([{"type": "text", "text": "Look: "}, {"type": "image_url", "image_url": "..."}])
        'Look: [image_url]'
    """
    if isinstance(content, str):
        return content
    if not isinstance(content, LISTS):
        return text_of(content)
    return "".join(map(prompt_block_text if is_prompt else block_text, content))


def said_text(content: object) -> str:
    """Return what the text blocks of a content say, without a sign for what stands beside them; "" without blocks.

    Example:
        >>> said_text([{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": "..."}])
        'What is this?'
    """
    return "".join(map(block_text, filter(is_text_block, content))) if isinstance(content, LISTS) else ""


def without_picture(block: dict[str, Any]) -> dict[str, Any]:
    """Return a block with the key of its picture in place of the data; another block as it is.

    Example:
        >>> without_picture({"type": "text", "text": "Where?"})
        {'type': 'text', 'text': 'Where?'}
        >>> without_picture({"type": "image_url", "image_url": "data:image/png;base64,iVBORw0KGgo="})
        {'type': 'image_url', 'picture': 'picture:eef0aa760531f96a'}
    """
    if not _is_picture(block):
        return block
    kind = {"type": block["type"]} if block.get("type") is not None else {"image": ""}
    return {**kind, PICTURE: picture_in_block(block)}


def _is_picture(block: Mapping[str, object]) -> bool:
    kind = block.get("type")
    return kind in PICTURE_BLOCKS if kind is not None else "image" in block


def is_text_block(block: object) -> bool:
    """Tell whether a block is text: a string, or a text block of any provider.

    Example:
        >>> is_text_block({"type": "output_text", "text": "Oslo."}), is_text_block({"type": "image"})
        (True, False)
    """
    return isinstance(block, str) or (isinstance(block, dict) and block.get("type") in TEXT_BLOCKS)


def block_text(block: object) -> str:
    """Return what a block says in a conversation: its text; the type in brackets of an image and the like.

    Documents beside a question and tools of the provider's are not said.

    Example:
        >>> block_text({"type": "text", "text": "Where?"}), block_text({"type": "image_url"})
        ('Where?', '[image_url]')
        >>> block_text({"type": "search_result", "title": "Labs", "content": []})
        ''
    """
    if isinstance(block, str):
        return block
    if not isinstance(block, dict):
        return ""
    kind = block.get("type")
    if kind in TEXT_BLOCKS or kind is None:  # Bedrock's blocks have no type
        return shown(block.get("text"))
    if kind == "refusal":
        return shown(block.get("refusal"))
    if kind in SILENT_BLOCKS or kind in SERVER_TOOL_BLOCKS or kind in DOCUMENT_BLOCKS or kind in RESULT_BLOCKS:
        return ""
    is_of_provider = isinstance(kind, str) and kind.endswith(("_call", "_tool_result"))
    return "" if is_of_provider else f"[{kind}]"


def prompt_block_text(block: object, depth: int = 0) -> str:
    """Return what a block shows to the model: as `block_text`, and the texts of documents under their titles.

    A picture has its key, by which the passage is found that is the same picture.

    Example:
        >>> block = {"type": "search_result", "title": "Labs", "content": [{"type": "text", "text": "In Oslo."}]}
        >>> prompt_block_text(block).splitlines()
        ['[search_result: Labs]', 'In Oslo.']
    """
    if not isinstance(block, dict) or depth > _DEPTH:
        return block_text(block)
    kind = block.get("type")
    if kind in DOCUMENT_BLOCKS or (kind is None and "document" in block):
        return "".join(_document_text(block, found) for found in _documents_in(block, depth)) or f"[{kind}]"
    if kind in RESULT_BLOCKS:
        inner = next((block[name] for name in RESULT_KEYS if name in block), None)
        return _inner_text(inner, depth)
    if _is_picture(block):
        key = block[PICTURE] if PICTURE in block else picture_in_block(block)
        return f"[{' '.join(filter(None, (kind or 'image', key)))}]"
    if kind == "non_standard":
        return prompt_block_text(block.get("value"), depth + 1)
    return block_text(block)


def documents_in_blocks(content: object) -> list[Doc]:
    """Return the documents among a message's blocks; [] where there are none with a text.

    Example:
        >>> documents_in_blocks([{"type": "document", "source": {"type": "text", "data": "In Oslo."}}])
        [Doc(text='In Oslo.')]
    """
    if not isinstance(content, LISTS):
        return []
    found = (document for block in content if isinstance(block, dict) for document in _documents_in(block, 0))
    return [document for document in found if document.text.strip()]


def _document_text(block: Mapping[str, object], document: Doc) -> str:
    title, context = document.metadata.get("title"), block.get("context")
    head = f"[{block.get('type') or 'document'}{f': {title}' if title else ''}]"
    return "".join(f"{part}\n" for part in (head, shown(context), document.text) if part)


def _documents_in(block: Mapping[str, Any], depth: int) -> list[Doc]:
    kind = block.get("type")
    if kind == "non_standard" and isinstance(block.get("value"), dict) and depth <= _DEPTH:
        return _documents_in(block["value"], depth + 1)
    if kind == "file_search_call":
        results = block.get("results")
        return [_made(one, shown(one.get("text"))) for one in results or () if isinstance(one, dict)]
    inner = block.get("file") if kind == "file" else block.get("document")
    held = inner if isinstance(inner, dict) else block  # OpenAI's file, Bedrock's document
    if kind in DOCUMENT_BLOCKS or held is not block:
        return [_made({**block, **held}, _held_text(held, depth))]
    return []


def _made(facts: Mapping[str, object], text: str) -> Doc:
    title = next((facts[name] for name in TITLE_KEYS if isinstance(facts.get(name), str)), None)
    source = facts.get("source")
    metadata = {
        "title": title,
        "source": source if isinstance(source, str) else None,
        "file_id": facts.get("file_id"),
        "score": facts.get("score"),
    }
    return Doc(text, metadata={key: value for key, value in metadata.items() if value is not None})


def _held_text(held: Mapping[str, Any], depth: int) -> str:
    """Return the text that a document block holds itself; "" for a link, an uploaded file, a picture, a PDF."""
    source = held.get("source")
    place = source if isinstance(source, dict) else held
    kind = place.get("media_type") or place.get("mime_type")
    for name in HELD_TEXT_KEYS:
        part = place.get(name)
        if name == "content" and part is not None:
            return _inner_text(part, depth)
        if isinstance(part, str) and place.get("type") != "base64":
            return part
    if isinstance(place.get("bytes"), bytes):
        return _decoded(place["bytes"]) if held.get("format") in TEXT_FORMATS else ""
    return _unpacked(place.get("file_data") or place.get("base64") or place.get("data"), kind)


def _inner_text(content: object, depth: int) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, LISTS):
        return "\n".join(filter(None, (prompt_block_text(block, depth + 1) for block in content)))
    return "" if content is None else json_of(content)


def _unpacked(data: object, kind: object) -> str:
    """Return the text in a base64 file, "" where its type is no text."""
    if not isinstance(data, str):
        return ""
    head, _, rest = data.rpartition(",")
    kind = head.removeprefix("data:") if head else kind
    if not isinstance(kind, str) or not kind.startswith("text/"):
        return ""
    try:
        return _decoded(base64.b64decode(rest[:_LONGEST_DECODED_CHARS]))
    except ValueError:
        return ""


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")
