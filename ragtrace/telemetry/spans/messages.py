"""Write a model's messages as the conventions' JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.telemetry.spans.budget import Limit, Said
from ragtrace.telemetry.wire import json_bytes
from ragtrace.text import cut_bytes, share_of, size_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry.util.types import AnyValue

    from ragtrace.model import Message

_ENVELOPE_BYTES = 96  # of one message without its text


class Messages(Said):
    """Messages as ``[{role, parts: [{type: "text", content}], finish_reason?}]``.

    Over a limit the longest messages are cut, and each says so. Nothing is written where there are no messages, or
    so many that not even empty ones fit.

    Args:
        messages: in their order.
        share: of the texts that the trace has left that they may take.
        finish_reasons: of the first messages, in their order. The conventions no longer ask for them. Phoenix drops
            all outputs of a call when one has none; "" will do.

    Example:
        >>> from ragtrace.model import Message
        >>> Messages([Message(role="user", content="Where?")], 0.5).write("input.value", Limit())["input.value"]
        '[{"role":"user","parts":[{"type":"text","content":"Where?"}]}]'
    """

    def __init__(self, messages: Sequence[Message], share: float, *, finish_reasons: Sequence[str] = ()) -> None:
        self.messages, self.share, self.finish_reasons = messages, share, finish_reasons

    def most(self, left: int, reserve: int) -> int:  # noqa: ARG002
        """Return their share of what is left."""
        return int(left * self.share)

    def write(self, name: str, limit: Limit) -> dict[str, AnyValue]:
        """Return the messages."""
        if not self.messages:
            return {}
        most = min(limit.texts, limit.whole - len(name), limit.attribute)
        texts = [message.content for message in self.messages]
        data = self._array(texts)
        share = 0
        if len(data) > most:
            share = share_of([size_bytes(one) for one in texts], most - _ENVELOPE_BYTES * len(texts))
        # One round, unless JSON escapes blow a text up; each further round halves what a message may hold.
        while len(data) > most:
            if share <= 0:
                return {}
            data = self._array([cut_bytes(text, share) for text in texts])
            share //= 2
        return {name: data.decode()}

    def _array(self, texts: Sequence[str]) -> bytes:
        rows: list[dict[str, object]] = [
            {"role": message.role, "parts": [{"type": "text", "content": text}]}
            for message, text in zip(self.messages, texts, strict=True)
        ]
        for row, reason in zip(rows, self.finish_reasons, strict=False):
            row["finish_reason"] = reason
        return json_bytes(rows)
