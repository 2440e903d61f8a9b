"""Tokens and calls: of the application's own model, and of a judge."""

from __future__ import annotations

from msgspec import Struct


class Usage(Struct, frozen=True, kw_only=True):
    """Tokens of one model call; None where the provider did not say.

    Attributes:
        input_tokens: all input tokens, cached ones included.
        output_tokens: all output tokens, reasoning included.
        cache_read_tokens: input tokens that came from the provider's cache.
        cache_write_tokens: input tokens that were written to it.
        reasoning_tokens: output tokens of reasoning.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


def added_usage(one: Usage | None, other: Usage | None) -> Usage | None:
    """Return the tokens of two calls together; an unknown count is left out of the sum.

    Example:
        >>> added_usage(Usage(input_tokens=3), Usage(input_tokens=2, output_tokens=1)).input_tokens
        5
    """
    if one is None or other is None:
        return one or other
    return Usage(**{name: _sum(getattr(one, name), getattr(other, name)) for name in Usage.__struct_fields__})


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else one + other


class JudgeUsage(Struct, frozen=True, kw_only=True):
    """Calls and tokens of a judge's task; calls whose tokens nobody counted add none.

    Example:
        >>> (JudgeUsage(llm_calls=1, input_tokens=9) + JudgeUsage(llm_calls=1)).llm_calls
        2
    """

    llm_calls: int = 0
    embed_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: JudgeUsage) -> JudgeUsage:
        return JudgeUsage(
            llm_calls=self.llm_calls + other.llm_calls,
            embed_calls=self.embed_calls + other.embed_calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
        )
