"""Contract of a judge's language model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    """The text of a reply and its tokens.

    The text is what the model said, with thoughts and words around the JSON: `ragtrace.judges.llm.replies.read`
    finds the object. A count is 0 where the server did not say.

    Example:
        >>> ChatReply(text="{}", input_tokens=812).output_tokens
        0
    """

    text: str
    input_tokens: int = 0
    output_tokens: int = 0


@runtime_checkable
class ChatModel(Protocol):
    """A language model that replies with JSON.

    Coroutine-safe: many calls may run at once on one event loop.

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
        """Return model and parameters, for the judge's version. It holds no key and no address."""
        ...

    async def aclose(self) -> None:
        """Release connections."""
        ...


@runtime_checkable
class SeededModel(ChatModel, Protocol):
    """A chat model that can send another seed.

    At temperature 0 a repeat needs one. The seed is part of the request only: the fingerprint stays the same.
    """

    def with_seed(self, seed: int) -> ChatModel:
        """Return the same model, over the same connections, sending this seed."""
        ...
