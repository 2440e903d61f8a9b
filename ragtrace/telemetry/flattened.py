"""Documents as one attribute for each field, as readers of OpenInference expect them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace import semconv
from ragtrace.telemetry.wire import clean_value, scalars_json, size_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.model import Passage
    from ragtrace.telemetry.documents import Room

RESERVED_ATTRIBUTES = 24  # for our own names, and a few that the application's span processors add
DEFAULT_ATTRIBUTES = 128  # the SDK's own default
MAX_ATTRIBUTES = 512  # where the SDK has no limit
_NAME_BYTES = 32  # of a place, a field's name and a number


def flattened_documents(
    passages: Sequence[Passage],
    prefix: str,
    room: Room,
    *,
    limit: int,
    has_content: bool,
    may_repeat: bool = False,
) -> dict[str, Any]:
    """Return ``{prefix}.{i}.document.id``, ``.score``, ``.content`` and ``.metadata`` of the best passages.

    A document is written whole or not at all, as long as attributes and bytes last. Texts are taken from the room
    for documents, and noted there as sent.

    Args:
        passages: best first.
        prefix: ``retrieval.documents``, ``reranker.input_documents`` or ``reranker.output_documents``.
        room: is reduced by the texts.
        limit: attributes that may be written.
        has_content: whether texts and metadata may be written.
        may_repeat: whether a text may be written that another span of the trace carries.

    Example:
        >>> from ragtrace.model import Passage
        >>> from ragtrace.telemetry.documents import Room
        >>> room = Room(document_bytes=500, text_bytes=0)
        >>> pool = [Passage(id="a", text="Oslo.", rank=1, score=0.5)]
        >>> flattened_documents(pool, "retrieval.documents", room, limit=2, has_content=False)
        {'retrieval.documents.0.document.id': 'a', 'retrieval.documents.0.document.score': 0.5}
    """
    written: dict[str, Any] = {}
    for place, passage in enumerate(passages):
        is_new = may_repeat or passage.text not in room.sent
        fields = _fields(passage, room.limit_chars, has_content=has_content and is_new)
        size = sum(
            len(prefix) + _NAME_BYTES + (size_bytes(value) if isinstance(value, str) else 0)
            for value in fields.values()
        )
        if len(written) + len(fields) > limit or size > room.document_bytes:
            break
        room.document_bytes -= size
        if has_content:
            room.sent.add(passage.text)
        written |= {f"{prefix}.{place}.{name}": value for name, value in fields.items()}
    return written


def _fields(passage: Passage, limit_chars: int | None, *, has_content: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {semconv.DOCUMENT_ID: passage.id}
    if passage.score is not None:
        fields[semconv.DOCUMENT_SCORE] = passage.score
    if has_content and passage.text:
        fields[semconv.DOCUMENT_CONTENT] = clean_value(passage.text)
    if has_content and passage.metadata:
        metadata = scalars_json(passage.metadata)
        if limit_chars is None or len(metadata) <= limit_chars:  # the SDK would cut the JSON in the middle
            fields[semconv.DOCUMENT_METADATA] = metadata
    return fields
