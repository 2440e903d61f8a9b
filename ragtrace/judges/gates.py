"""What every attempt at a judge passes: a gate that lets it in, and is told how it went.

The gate itself (rates, budgets, breaker) stands above this room, in `ragtrace.scoring.limits`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from ragtrace.errors import JudgeFiltered, JudgeRateLimited, JudgeTimeout, JudgeUnavailable

if TYPE_CHECKING:
    from ragtrace.errors import JudgeError

Fate = Literal["answered", "rate_limited", "timed_out", "failed", "refused", "abandoned"]
_REFUSALS = frozenset({401, 402, 403, 404})


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What an attempt may take at most.

    Attributes:
        model: the model's name.
        request_bytes: size of the request; no tokenizer makes more tokens than bytes of it.
        max_output_tokens: the reply's limit; 0 for embeddings.
    """

    model: str
    request_bytes: int
    max_output_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """How an attempt went.

    Attributes:
        fate: ``answered`` (also with a bad reply), ``rate_limited`` (429), ``timed_out``, ``failed`` (5xx, broken
            connection), ``refused`` (key, money or model: the same for all calls), ``abandoned`` (cancelled by us).
        prompt_tokens: as the server counted; None where it did not say.
        completion_tokens: the same.
        reply_bytes: size of the reply.
        retry_after_s: how long the server wants to be left alone.
        reason: of a refusal: ``401``, ``402``, ``403``, ``404`` or ``quota``.
    """

    fate: Fate
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reply_bytes: int = 0
    retry_after_s: float | None = None
    reason: str = ""


class Pass(Protocol):
    """A permission for one attempt."""

    def leave(self, took: Took) -> None:
        """Say how the attempt went; exactly once, whatever happened. Never raises."""
        ...


class Gate(Protocol):
    """Lets attempts in. Coroutine-safe."""

    async def enter(self, need: Need) -> Pass:
        """Wait for a short while if need be, and return a permission.

        Raises:
            ragtrace.errors.JudgeError: not now; its ``retry_after_s`` says when to ask again.
        """
        ...


def took_of(error: JudgeError, *, is_quota: bool = False) -> Took:
    """Return how an attempt went that ended in an error, by its class and its ``status``.

    Example:
        >>> took_of(JudgeTimeout("45 s")).fate
        'timed_out'
        >>> refused = JudgeUnavailable("no such key")
        >>> refused.status = 401
        >>> took_of(refused).fate, took_of(refused).reason
        ('refused', '401')
    """
    status, spent = error.status, error.spent
    if is_quota:
        return Took(fate="refused", reason="quota")
    if isinstance(error, JudgeRateLimited):
        return Took(fate="rate_limited", retry_after_s=error.retry_after_s)
    if isinstance(error, JudgeTimeout):
        return Took(fate="timed_out")
    if status in _REFUSALS and not isinstance(error, JudgeFiltered):
        return Took(fate="refused", reason=str(status))
    if isinstance(error, JudgeUnavailable) and (status is None or status >= 500 or status == 408):
        return Took(fate="failed", retry_after_s=error.retry_after_s)
    if spent is not None:
        return Took(fate="answered", prompt_tokens=spent.prompt_tokens, completion_tokens=spent.completion_tokens)
    if status is not None:
        return Took(
            fate="answered", prompt_tokens=0, completion_tokens=0
        )  # a request that is refused costs nothing
    return Took(fate="answered")
