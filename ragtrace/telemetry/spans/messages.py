"""Write a model's messages as the conventions' JSON, within a byte budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.capture.attribution import place_of
from ragtrace.telemetry.wire import cut_text, quoted, share_of, size_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.model import Message, Passage
    from ragtrace.telemetry.spans.documents import Room

SHORTEST_PASSAGE_CHARS = 24  # a shorter text ("Oslo.") may stand in a prompt without being the passage
_MOST_ROUNDS = 4
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

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = passages
        self._shortest = max(min((len(p.text) for p in passages if p.text), default=0), SHORTEST_PASSAGE_CHARS)

    def applied(self, text: str) -> str:
        """Return the text with every passage replaced."""
        # Once the delivered passages are gone, what is left is mostly shorter than any passage. Where it is not,
        # one may stand there twice. Bounded, since a mark may itself contain a passage (an id that is a text).
        for _ in range(_MOST_ROUNDS):
            marked = self._once(text)
            if len(marked) >= len(text):
                return marked
            text = marked
        return text

    def _once(self, text: str) -> str:
        near = 0
        for passage in self._passages:
            if len(text) < self._shortest:
                break
            length = len(passage.text)
            if not SHORTEST_PASSAGE_CHARS <= length <= len(text):
                continue
            at = place_of(passage.text, text, near)
            if at >= 0:
                mark = f"[passage {passage.id}]"
                text = f"{text[:at]}{mark}{text[at + length :]}"
                near = at + len(mark)
        return text


def messages_json(
    messages: Sequence[Message],
    room: Room,
    marks: PassageMarks | None,
    *,
    finish_reasons: Sequence[str] = (),
) -> str | None:
    """Return ``[{role, parts: [{type: "text", content}], finish_reason?}]`` in half of the room, and take it.

    Over budget the longest messages are cut, and each says so. None when there are no messages, or so many that
    not even empty ones fit.

    Args:
        messages: in their order.
        room: is reduced by what was written.
        marks: replaces passages; None leaves them.
        finish_reasons: of the first messages, in their order. The conventions no longer ask for them. Phoenix drops
            all outputs of a call when one has none; "" will do.

    Example:
        >>> from ragtrace.model import Message
        >>> from ragtrace.telemetry.spans.documents import Room
        >>> room = Room(document_bytes=0, text_bytes=1_000)
        >>> messages_json([Message(role="user", content="Where?")], room, None)
        '[{"role":"user","parts":[{"type":"text","content":"Where?"}]}]'
    """
    if not messages:
        return None
    budget = room.message_bytes
    texts = [marks.applied(message.content) if marks else message.content for message in messages]
    text = _array(messages, texts, finish_reasons)
    share = 0
    if size_bytes(text) > budget:
        share = share_of([size_bytes(one) for one in texts], budget - _ENVELOPE_BYTES * len(texts))
    # One round, unless JSON escapes blow a text up; each further round halves what a message may hold.
    while size_bytes(text) > budget:
        if share <= 0:
            return None
        text = _array(messages, [cut_text(t, share) for t in texts], finish_reasons)
        share //= 2
    room.take_text(size_bytes(text))
    return text


def _array(messages: Sequence[Message], texts: Sequence[str], reasons: Sequence[str]) -> str:
    """Return the messages as JSON; written by hand in a third of the general encoder's time."""
    ends = [f',"finish_reason":{quoted(reason)}' for reason in reasons]
    ends += [""] * (len(messages) - len(ends))
    rows = [
        f'{{"role":{quoted(message.role)},"parts":[{{"type":"text","content":{quoted(text)}}}]{end}}}'
        for message, text, end in zip(messages, texts, ends, strict=True)
    ]
    return f"[{','.join(rows)}]"
