"""What every attempt at a judge passes: a limiter that lets it in, and is told how it went.

The limiter itself (rates, budgets, breaker) stands above this room, in `ragtrace.scoring.limits`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from ragtrace.capture import record_internal_error
from ragtrace.errors import JudgeFiltered, JudgeRateLimited, JudgeTimeout, JudgeUnavailable

if TYPE_CHECKING:
    from ragtrace.errors import JudgeError

Fate = Literal["answered", "rate_limited", "timed_out", "failed", "refused", "abandoned"]
_REFUSALS = frozenset({401, 402, 403, 404})
# Tokens that neither the request's bytes nor the output limit hold: chat templates and system prompts of the server
# (Harmony's has about 100 tokens, those for tools up to 500), and an output limit that is passed by a little.
ALLOWANCE_TOKENS = 1_024
USAGE_INVALID = "usage_invalid"
"""The site under which ``ragtrace.internal.losses`` counts replies with an impossible ``usage``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
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
class AttemptResult:
    """How an attempt went.

    Attributes:
        fate: ``answered`` (also with a bad reply), ``rate_limited`` (429), ``timed_out``, ``failed`` (5xx, broken
            connection, 200 without a message), ``refused`` (key, money, model or a redirect: the same for all
            calls), ``abandoned`` (cancelled by us).
        input_tokens: as the server counted, see `counted`; None where it did not say.
        output_tokens: the same.
        reply_bytes: size of the reply.
        retry_after_s: how long the server wants to be left alone.
        reason: of a refusal: ``401``, ``402``, ``403``, ``404``, ``quota``, or the status of a redirect.
        message: of a refusal: one sentence for the log, which quotes nothing that the server said.
    """

    fate: Fate
    input_tokens: int | None = None
    output_tokens: int | None = None
    reply_bytes: int = 0
    retry_after_s: float | None = None
    reason: str = ""
    message: str = ""


class Tokens(NamedTuple):
    """Tokens of one call as the server counted them; None where it did not say, or said something impossible."""

    prompt: int | None = None
    completion: int | None = None


def counted(usage: object, request: Request, reply_bytes: int) -> Tokens:
    """Read the ``usage`` of a reply; a count that the call cannot have taken is left out and counted.

    A count is a whole number from 0. A prompt has at most one token a byte of the request. A completion has at most
    the output limit, or one token a byte of the reply if that is more, since some servers ignore the limit. Both
    bounds may be passed by `ALLOWANCE_TOKENS`. The thoughts of a reasoning model count in its output limit.

    Args:
        usage: what stands in the reply.
        request: the call.
        reply_bytes: size of the reply; 0 for embeddings.

    Example:
        >>> need = Request(model="m", request_bytes=4_000, max_output_tokens=500)
        >>> counted({"prompt_tokens": 812, "completion_tokens": 9.0}, request, 400)
        Tokens(prompt=812, completion=9)
        >>> counted({"prompt_tokens": 2**62, "completion_tokens": -1}, request, 400)
        Tokens(prompt=None, completion=None)
        >>> counted(None, request, 400)
        Tokens(prompt=None, completion=None)
    """
    if usage is None:
        return Tokens()
    if not isinstance(usage, dict):
        record_internal_error(USAGE_INVALID)
        return Tokens()
    prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
    tokens = Tokens(
        prompt=_whole(prompt, request.request_bytes),
        completion=_whole(completion, max(request.max_output_tokens, reply_bytes)),
    )
    if (prompt is not None and tokens.prompt is None) or (completion is not None and tokens.completion is None):
        record_internal_error(USAGE_INVALID)
    return tokens


def _whole(said: object, most: int) -> int | None:
    is_whole = type(said) is int or (isinstance(said, float) and said.is_integer())
    return int(said) if is_whole and 0 <= said <= most + ALLOWANCE_TOKENS else None  # type: ignore[call-overload, operator]


class Permit(Protocol):
    """A permission for one attempt."""

    def release(self, result: AttemptResult) -> None:
        """Say how the attempt went; exactly once, whatever happened. Never raises."""
        ...


class RateLimiter(Protocol):
    """Lets attempts in. Coroutine-safe."""

    async def acquire(self, request: Request) -> Permit:
        """Wait for a short while if need be, and return a permission.

        Raises:
            ragtrace.errors.JudgeError: not now; its ``retry_after_s`` says when to ask again.
        """
        ...


def result_of(error: JudgeError, *, is_quota: bool = False) -> AttemptResult:
    """Return how an attempt went that ended in an error, by its class and its ``status``.

    Example:
        >>> result_of(JudgeTimeout("45 s")).fate
        'timed_out'
        >>> refused = JudgeUnavailable("no such key")
        >>> refused.status = 401
        >>> result_of(refused).fate, result_of(refused).reason
        ('refused', '401')
    """
    status, spent = error.status, error.usage
    if is_quota:
        return AttemptResult(fate="refused", reason="quota")
    if isinstance(error, JudgeRateLimited):
        return AttemptResult(fate="rate_limited", retry_after_s=error.retry_after_s)
    if isinstance(error, JudgeTimeout):
        return AttemptResult(fate="timed_out")
    if status is not None and (status in _REFUSALS or 300 <= status < 400) and not isinstance(error, JudgeFiltered):
        return AttemptResult(fate="refused", reason=str(status))
    if isinstance(error, JudgeUnavailable) and (status is None or status >= 500 or status < 200 or status == 408):
        tokens = Tokens() if spent is None else Tokens(spent.input_tokens, spent.output_tokens)
        return AttemptResult(
            fate="failed",
            input_tokens=tokens.prompt,
            output_tokens=tokens.completion,
            retry_after_s=error.retry_after_s,
        )
    if spent is not None:
        return AttemptResult(fate="answered", input_tokens=spent.input_tokens, output_tokens=spent.output_tokens)
    if status is not None:
        return AttemptResult(
            fate="answered", input_tokens=0, output_tokens=0
        )  # a request that is refused costs nothing
    return AttemptResult(fate="answered")
