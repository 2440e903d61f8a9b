"""The contract of a judge's language model: one prompt in, one text out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    """The text of a reply, and the tokens that the server counted; 0 where it did not say.

    Example:
        >>> ChatReply(text="{}", input_tokens=812).output_tokens
        0
    """

    text: str
    input_tokens: int = 0
    output_tokens: int = 0


@runtime_checkable
class ChatModel(Protocol):
    """A language model that replies with JSON. Coroutine-safe: many calls may run at once on one event loop.

    Attributes:
        name: the model's name, without a provider in front.
    """

    name: str

    async def complete(
        self,
        *,
        system: str,
        user: str,
        schema_name: str,
        schema: Mapping[str, object],
        max_output_tokens: int,
        temperature: float,
    ) -> ChatReply:
        """Return the model's reply to one prompt.

        A raised error may carry ``usage`` (`ragtrace.model.JudgeUsage`) where the failed call was charged.

        Raises:
            ragtrace.errors.JudgeError: refused, filtered, truncated, timed out, rate limited or unavailable.
        """
        ...

    def fingerprint(self) -> str:
        """Return what stands in the judge's version: model and parameters, never a key or an address."""
        ...

    async def aclose(self) -> None:
        """Release connections."""
        ...


@runtime_checkable
class SeededModel(ChatModel, Protocol):
    """A chat model that sends a seed, and can send another: at temperature 0 a repeat needs one to be a repeat.

    The seed is part of the request only: the fingerprint stays the same.
    """

    def with_seed(self, seed: int) -> ChatModel:
        """Return the same model, over the same connections, sending this seed."""
        ...
