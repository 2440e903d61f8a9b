"""Estimates the tokens of an attempt before the server counts them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragtrace.judges.limiter import AttemptResult, JudgeRequest

USUAL = 0.25  # tokens a byte: English has about four bytes a token
_MARGIN = 1.25
_SHARE = 0.1


@dataclass(slots=True)
class TokenEstimate:
    """Tokens of prompts by their bytes, learnt from what servers count; not thread-safe.

    It begins at one token a byte, above which no byte-level tokenizer goes, and comes down to a quarter above what
    is seen; a denser prompt lifts it at once.

    Example:
        >>> from ragtrace.judges.limiter import JudgeRequest, AttemptResult
        >>> request, estimate = JudgeRequest(model="m", request_bytes=4_000, max_output_tokens=500), TokenEstimate()
        >>> estimate.most(request)
        (4000, 500)
        >>> for _ in range(60):
        ...     estimate.learn(request, AttemptResult(fate="answered", input_tokens=1_000, output_tokens=80))
        >>> 1_250 <= estimate.most(request)[0] < 1_260
        True
    """

    _tokens_per_byte: dict[str, float] = field(default_factory=dict)

    def most(self, request: JudgeRequest) -> tuple[int, int]:
        """Return (prompt, reply) tokens that an attempt may take."""
        share = self._tokens_per_byte.get(request.model, 1.0)
        prompt = int(request.request_bytes * share) + 1 if share < 1.0 else request.request_bytes
        return prompt, request.max_output_tokens

    def learn(self, request: JudgeRequest, result: AttemptResult) -> None:
        """Learn from what a server counted; nothing from one that did not."""
        if not result.input_tokens or not request.request_bytes:
            return
        seen = min(result.input_tokens / request.request_bytes * _MARGIN, 1.0)
        known = self._tokens_per_byte.get(request.model, 1.0)
        self._tokens_per_byte[request.model] = max(seen, known + _SHARE * (seen - known))


def charged(request: JudgeRequest, result: AttemptResult) -> tuple[int, int]:
    """Return (prompt, reply) tokens that an attempt took; a quarter of the bytes where the server did not count.

    A server that limits, fails or refuses charges nothing, unless it counts. One whose reply came too late, or was
    not waited for, may have charged the prompt.

    Example:
        >>> from ragtrace.judges.limiter import JudgeRequest, AttemptResult
        >>> request = JudgeRequest(model="m", request_bytes=4_000, max_output_tokens=500)
        >>> charged(request, AttemptResult(fate="answered", input_tokens=812, output_tokens=9))
        (812, 9)
        >>> charged(request, AttemptResult(fate="failed"))
        (0, 0)
        >>> charged(request, AttemptResult(fate="timed_out"))
        (1000, 0)
    """
    if result.fate in {"rate_limited", "failed", "refused", "rejected", "unfit"}:
        return result.input_tokens or 0, result.output_tokens or 0
    prompt = int(request.request_bytes * USUAL) if result.input_tokens is None else result.input_tokens
    reply = int(result.reply_bytes * USUAL) if result.output_tokens is None else result.output_tokens
    return prompt, reply
