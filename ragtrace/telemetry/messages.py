"""Messages of a model as the conventions' JSON, without repeating the passages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace.telemetry.wire import cut_text, size_bytes, to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ragtrace.model import Message, Passage
    from ragtrace.telemetry.documents import Room

SHORTEST_PASSAGE_CHARS = 24  # a shorter text ("Oslo.") may stand in a prompt without being the passage
_ENVELOPE_BYTES = 96  # of one message without its text


class PassageMarks:
    """Replaces passages in a text by ``[passage ID]``: their text is on the retrieval span already.

    Only exact occurrences are replaced. A passage that a formatter rewrote stays in the prompt as it is, within
    the byte budget.

    Args:
        passages: the likeliest first (those that were delivered), since a prompt shrinks with each.

    Example:
        >>> from ragtrace.model import Passage
        >>> marks = PassageMarks([Passage(id="a", text="Refunds take five working days.", rank=1)])
        >>> marks.applied("Context: Refunds take five working days. Question: how long?")
        'Context: [passage a] Question: how long?'
    """

    def __init__(self, passages: Iterable[Passage]) -> None:
        self._marks: dict[str, str] = {}
        for passage in passages:
            if len(passage.text) >= SHORTEST_PASSAGE_CHARS:
                self._marks.setdefault(passage.text, f"[passage {passage.id}]")

    def applied(self, text: str) -> str:
        """Return the text with every passage replaced."""
        for passage, mark in self._marks.items():
            if len(passage) <= len(text):
                text = text.replace(passage, mark)
        return text


def messages_json(
    messages: Sequence[Message], room: Room, marks: PassageMarks, *, finish_reasons: Sequence[str] = ()
) -> str:
    """Return ``[{role, parts: [{type: "text", content}], finish_reason?}]`` within the room, and take it.

    The budget is shared evenly by the messages; a text that is cut says so.

    Example:
        >>> from ragtrace.model import Message
        >>> from ragtrace.telemetry.documents import Room
        >>> room = Room(document_bytes=0, text_bytes=1_000)
        >>> messages_json([Message(role="user", content="Where?")], room, PassageMarks([]))
        '[{"role":"user","parts":[{"type":"text","content":"Where?"}]}]'
    """
    texts = [marks.applied(message.content) for message in messages]
    text = to_json(_items(messages, texts, finish_reasons))
    budget = room.text_bytes if room.limit_chars is None else min(room.text_bytes, room.limit_chars)
    shown = len(messages)
    # Two tries suffice unless JSON escapes blow a text up; then each round halves what a message may hold.
    share = budget // max(shown, 1) - _ENVELOPE_BYTES
    while size_bytes(text) > budget and shown:
        if share < _ENVELOPE_BYTES:
            # Too many messages for the room: the oldest go, the question is the last one.
            shown //= 2
            share = budget // max(shown, 1) - _ENVELOPE_BYTES
            text = to_json(_items(messages[len(messages) - shown :], ["…"] * shown, finish_reasons))
            continue
        last = texts[len(texts) - shown :]
        text = to_json(
            _items(messages[len(messages) - shown :], [cut_text(t, share) for t in last], finish_reasons)
        )
        share //= 2
    room.text_bytes = max(room.text_bytes - size_bytes(text), 0)
    return text


def _items(
    messages: Sequence[Message], texts: Sequence[str], finish_reasons: Sequence[str]
) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for place, (message, text) in enumerate(zip(messages, texts, strict=True)):
        item: dict[str, Any] = {"role": message.role, "parts": [{"type": "text", "content": text}]}
        if place < len(finish_reasons):
            item["finish_reason"] = finish_reasons[place]
        items.append(item)
    return items
