"""Write a model's messages as the conventions' JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from ragtrace import semconv
from ragtrace.telemetry.spans.budget import RESERVED_ATTRIBUTES, Limit, Said, bytes_of, says_cut
from ragtrace.telemetry.wire import clean_value, cut_value, json_bytes
from ragtrace.text import share_of, size_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry.util.types import AnyValue

    from ragtrace.model import Message

_ENVELOPE_BYTES = 96  # of one text of a message, with what is around it
_TOOL = "tool"
_INPUTS_SHARE = 0.75  # of the attributes of a span, where messages have one for each field


class Messages(Said):
    """Messages as ``[{role, parts: [{type: "text", content}], finish_reason?}]``.

    A call of a tool is a part of type ``tool_call``, and its result is one of type ``tool_call_response``. Over a
    limit the longest texts are cut, and each says so. Nothing is written where there are no messages, or so many
    that not even empty ones fit.

    Args:
        messages: in their order.
        share: of the texts that the trace has left that they may take.
        finish_reasons: of the first messages, in their order. The conventions no longer ask for them. Phoenix drops
            all outputs of a call when one has none; "" will do.
        by_field: the prefix under which each field is an attribute, as OpenInference has them; "" = one document.
            Where the span has no room for all these attributes it is one document all the same.

    Example:
        >>> from ragtrace.model import Message
        >>> Messages([Message(role="user", content="Where?")], 0.5).write("input.value", Limit())["input.value"]
        '[{"role":"user","parts":[{"type":"text","content":"Where?"}]}]'
    """

    def __init__(
        self,
        messages: Sequence[Message],
        share: float,
        *,
        finish_reasons: Sequence[str] = (),
        by_field: str = "",
    ) -> None:
        self.messages, self.share, self.finish_reasons = messages, share, finish_reasons
        self.by_field = by_field

    def most(self, left: int, reserve: int) -> int:  # noqa: ARG002
        """Return their share of what is left."""
        return int(left * self.share)

    def write(self, name: str, limit: Limit) -> dict[str, AnyValue]:
        """Return the messages."""
        self.is_cut = False
        if not self.messages:
            return {}
        texts = [text for said in self.messages for text in (said.content, *(it.arguments for it in said.calls))]
        form = self._document
        if self.by_field and len(self._fields(name, texts)) <= self._most_fields(limit):
            form = self._fields
        written = form(name, texts)
        share = 0
        if not self._fits(written, limit):
            most = min(limit.texts, limit.whole - len(name), limit.attribute)
            share = share_of(list(map(size_bytes, texts)), most - _ENVELOPE_BYTES * len(texts))
        # One round, unless JSON escapes blow a text up; each further round halves what a text may hold.
        while not self._fits(written, limit):
            if share <= 0:
                self.is_cut = True
                return {}
            shorter = [str(cut_value(text, share) or "") for text in texts]
            self.is_cut = not all(map(says_cut, texts, shorter))
            written = form(name, shorter)
            share //= 2
        return written

    def _fits(self, written: dict[str, AnyValue], limit: Limit) -> bool:
        size = bytes_of(written)
        values = [str(value) for value in written.values()]
        is_whole = len(values) > 1 or len(values[0]) <= limit.attribute  # of a document the SDK would leave half
        return is_whole and size <= limit.whole and sum(map(size_bytes, values)) <= limit.texts

    def _most_fields(self, limit: Limit) -> int:
        share = _INPUTS_SHARE if self.by_field == semconv.LLM_INPUT_MESSAGES else 1 - _INPUTS_SHARE
        return int((limit.attributes - RESERVED_ATTRIBUTES) * share)

    def _document(self, name: str, texts: Sequence[str]) -> dict[str, AnyValue]:
        left = iter(texts)
        rows = [_row(said, next(left), [next(left) for _ in said.calls]) for said in self.messages]
        for row, reason in zip(rows, self.finish_reasons, strict=False):
            row["finish_reason"] = reason
        return {name: json_bytes(rows).decode()}

    def _fields(self, name: str, texts: Sequence[str]) -> dict[str, AnyValue]:  # noqa: ARG002
        left = iter(texts)
        found: dict[str, AnyValue] = {}
        for place, said in enumerate(self.messages):
            prefix = f"{self.by_field}.{place}."
            fields: dict[str, str | None] = {
                semconv.MESSAGE_ROLE: said.role,
                semconv.MESSAGE_CONTENT: next(left) or None,
                semconv.MESSAGE_TOOL_CALL_ID: said.call_id,
            }
            for number, call in enumerate(said.calls):
                of = f"{semconv.MESSAGE_TOOL_CALLS}.{number}."
                fields[of + semconv.TOOL_CALL_ID] = call.id
                fields[of + semconv.TOOL_CALL_NAME] = call.name
                fields[of + semconv.TOOL_CALL_ARGUMENTS] = next(left)
            found.update(
                {prefix + field: clean_value(value) for field, value in fields.items() if value is not None}
            )
        return found


def _row(said: Message, content: str, arguments: Sequence[str]) -> dict[str, object]:
    parts: list[dict[str, object]] = []
    if said.role == _TOOL:
        identity = {} if said.call_id is None else {"id": said.call_id}
        parts.append({"type": "tool_call_response", **identity, "response": content})
    elif content or not said.calls:
        parts.append({"type": "text", "content": content})
    for call, given in zip(said.calls, arguments, strict=True):
        identity = {} if call.id is None else {"id": call.id}
        parts.append({"type": "tool_call", **identity, "name": call.name, "arguments": _loaded(given)})
    return {"role": said.role, "parts": parts}


def _loaded(arguments: str) -> object:
    """Return arguments as the object that they say; as text where they say none, or were cut."""
    try:
        return orjson.loads(arguments) if arguments.startswith(("{", "[")) else arguments
    except orjson.JSONDecodeError:
        return arguments
