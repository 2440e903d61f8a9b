"""The contract between a judge's calls and their limits: request, permit, result.

Rates, budgets and breaker stand above this room, in `ragtrace.scoring.limits`.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, Protocol

from ragtrace.capture import record_internal_error
from ragtrace.model import Usage

Fate = Literal["answered", "unfit", "rejected", "rate_limited", "timed_out", "failed", "refused", "abandoned"]
# Tokens that neither the request's bytes nor the output limit hold: chat templates and system prompts of the server
# (Harmony's has about 100 tokens, those for tools up to 500), and an output limit that is passed by a little.
ALLOWANCE_TOKENS = 1_024
USAGE_INVALID = "usage_invalid"
"""The site under which ``ragtrace.internal.losses`` counts replies with an impossible ``usage``."""
JUDGED: ContextVar[str] = ContextVar("ragtrace.judges.limiter.JUDGED", default="")
"""The id of the record that is judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRequest:
    """Bounds of an attempt.

    Attributes:
        model: the model's name.
        request_bytes: size of the request; no tokenizer makes more tokens than bytes of it.
        max_output_tokens: the reply's limit; 0 for embeddings.
        unit: id of the record that is judged; "" where it is not known.
    """

    model: str
    request_bytes: int
    max_output_tokens: int = 0
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptResult:
    """End of an attempt.

    Attributes:
        fate: ``answered`` (also with a bad reply), ``unfit`` (this input is filtered, too long or not readable:
            it says nothing of the judge), ``rejected`` (400, 404 or a page with 403, without a reason),
            ``rate_limited`` (429), ``timed_out``, ``failed`` (5xx, broken connection, 200 without a message),
            ``refused`` (key, money, model or a redirect: the same for all calls), ``abandoned`` (cancelled by us).
        input_tokens: as the server counted, see `counted`; None where it did not say.
        output_tokens: the same.
        reply_bytes: size of the reply.
        retry_after_s: the pause that the server asks for, in seconds.
        is_busy: whether all calls should pause: 429, 503, or a failure with a pause to keep.
        rejections: of ``rejected``, the requests that this call made in vain, in one form after the other; 0 where
            another form follows.
        reason: of a refusal: ``401``, ``402``, ``403``, ``404``, ``quota``, or the status of a redirect; of another
            failure its status, ``connection`` or ``reply``.
        message: why there is no verdict, in a clause for the log that quotes nothing that the server said; ""
            where there is one, and where another prompt may have one.
    """

    fate: Fate
    input_tokens: int | None = None
    output_tokens: int | None = None
    reply_bytes: int = 0
    retry_after_s: float | None = None
    is_busy: bool = False
    rejections: int = 1
    reason: str = ""
    message: str = ""


class Permit(Protocol):
    """Permission for one attempt."""

    def release(self, result: AttemptResult) -> None:
        """Say how the attempt went; exactly once, whatever happened. Never raises."""
        ...


class RateLimiter(Protocol):
    """Limits attempts, and holds the next ones back after a busy one. Coroutine-safe."""

    async def acquire(self, request: JudgeRequest) -> Permit:
        """Wait for a short while if need be, and return a permission.

        Raises:
            ragtrace.errors.JudgeError: not now; its ``retry_after_s`` says when to ask again.
        """
        ...


def counted(usage: object, request: JudgeRequest, reply_bytes: int) -> Usage:
    """Read the ``usage`` of a reply.

    A count that the call cannot have taken is left out and counted as a loss. A count is a whole number from 0.
    A prompt has at most one token a byte of the request. A completion has at most the output limit, or one token
    a byte of the reply if that is more, since some servers ignore the limit. Both bounds may be passed by
    `ALLOWANCE_TOKENS`. The thoughts of a reasoning model count in its output limit.

    Args:
        usage: the reply's ``usage``.
        request: the call.
        reply_bytes: size of the reply; 0 for embeddings.

    Example:
        >>> request = JudgeRequest(model="m", request_bytes=4_000, max_output_tokens=500)
        >>> usage = counted({"prompt_tokens": 812, "completion_tokens": 9.0}, request, 400)
        >>> usage.input_tokens, usage.output_tokens
        (812, 9)
        >>> counted({"prompt_tokens": 2**62, "completion_tokens": -1}, request, 400) == Usage()
        True
    """
    said = usage if isinstance(usage, dict) else {}
    bounds = (request.request_bytes, max(request.max_output_tokens, reply_bytes))
    tokens = [said.get("prompt_tokens"), said.get("completion_tokens")]
    sound = [_whole(count, most) for count, most in zip(tokens, bounds, strict=True)]
    is_odd = any(count is not None and read is None for count, read in zip(tokens, sound, strict=True))
    if is_odd or not (usage is None or isinstance(usage, dict)):
        record_internal_error(USAGE_INVALID, reason="the judge counts tokens that the call cannot have taken")
    return Usage(input_tokens=sound[0], output_tokens=sound[1])


def _whole(said: object, most: int) -> int | None:
    if isinstance(said, bool) or not isinstance(said, int | float) or said != said // 1:
        return None
    return int(said) if 0 <= said <= most + ALLOWANCE_TOKENS else None
