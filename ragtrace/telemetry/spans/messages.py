"""Write a model's messages as the conventions' JSON, within a byte budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.telemetry.wire import json_bytes
from ragtrace.text import cut_bytes, share_of, size_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.model import Message
    from ragtrace.telemetry.spans.documents import Room

_ENVELOPE_BYTES = 96  # of one message without its text


def messages_json(
    messages: Sequence[Message],
    room: Room,
    *,
    finish_reasons: Sequence[str] = (),
) -> str | None:
    """Return ``[{role, parts: [{type: "text", content}], finish_reason?}]`` in half of the room, and take it.

    Over budget the longest messages are cut, and each says so. None when there are no messages, or so many that
    not even empty ones fit.

    Args:
        messages: in their order.
        room: is reduced by what was written.
        finish_reasons: of the first messages, in their order. The conventions no longer ask for them. Phoenix drops
            all outputs of a call when one has none; "" will do.

    Example:
        >>> from ragtrace.model import Message
        >>> from ragtrace.telemetry.spans.documents import Room
        >>> room = Room(document_bytes=0, text_bytes=1_000)
        >>> messages_json([Message(role="user", content="Where?")], room)
        '[{"role":"user","parts":[{"type":"text","content":"Where?"}]}]'
    """
    if not messages:
        return None
    budget = room.message_bytes
    texts = [message.content for message in messages]
    data = _array(messages, texts, finish_reasons)
    share = 0
    if len(data) > budget:
        share = share_of([size_bytes(one) for one in texts], budget - _ENVELOPE_BYTES * len(texts))
    # One round, unless JSON escapes blow a text up; each further round halves what a message may hold.
    while len(data) > budget:
        if share <= 0:
            return None
        data = _array(messages, [cut_bytes(text, share) for text in texts], finish_reasons)
        share //= 2
    room.take_text(len(data))
    return data.decode()


def _array(messages: Sequence[Message], texts: Sequence[str], reasons: Sequence[str]) -> bytes:
    rows: list[dict[str, object]] = [
        {"role": message.role, "parts": [{"type": "text", "content": text}]}
        for message, text in zip(messages, texts, strict=True)
    ]
    for row, reason in zip(rows, reasons, strict=False):
        row["finish_reason"] = reason
    return json_bytes(rows)
