"""How many tokens an attempt may take, before anyone has counted them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragtrace.judges.gates import Need, Took

USUAL = 0.25  # tokens a byte: English has about four bytes a token
_MARGIN = 1.25
_SHARE = 0.1


@dataclass(slots=True)
class Estimate:
    """Tokens of prompts by their bytes, learnt from what servers count; not thread-safe.

    It begins at one token a byte, above which no byte-level tokenizer goes, and comes down to a quarter above what
    is seen; a denser prompt lifts it at once.

    Example:
        >>> from ragtrace.judges.gates import Need, Took
        >>> need, estimate = Need(model="m", request_bytes=4_000, max_output_tokens=500), Estimate()
        >>> estimate.most(need)
        (4000, 500)
        >>> for _ in range(60):
        ...     estimate.learn(need, Took(fate="answered", input_tokens=1_000, output_tokens=80))
        >>> 1_250 <= estimate.most(need)[0] < 1_260
        True
    """

    _tokens_per_byte: dict[str, float] = field(default_factory=dict)

    def most(self, need: Need) -> tuple[int, int]:
        """Return (prompt, reply) tokens that an attempt may take."""
        share = self._tokens_per_byte.get(need.model, 1.0)
        return int(need.request_bytes * share) + 1 if share < 1.0 else need.request_bytes, need.max_output_tokens

    def learn(self, need: Need, took: Took) -> None:
        """Learn from what a server counted; nothing from one that did not."""
        if not took.input_tokens or not need.request_bytes:
            return
        seen = min(took.input_tokens / need.request_bytes * _MARGIN, 1.0)
        known = self._tokens_per_byte.get(need.model, 1.0)
        self._tokens_per_byte[need.model] = max(seen, known + _SHARE * (seen - known))


def taken(need: Need, took: Took) -> tuple[int, int]:
    """Return (prompt, reply) tokens that an attempt took; a quarter of the bytes where the server did not count.

    A server that limits, fails or refuses charges nothing, unless it counts. One whose reply came too late, or was
    not waited for, may have charged the prompt.

    Example:
        >>> from ragtrace.judges.gates import Need, Took
        >>> need = Need(model="m", request_bytes=4_000, max_output_tokens=500)
        >>> taken(need, Took(fate="answered", input_tokens=812, output_tokens=9))
        (812, 9)
        >>> taken(need, Took(fate="failed"))
        (0, 0)
        >>> taken(need, Took(fate="timed_out"))
        (1000, 0)
    """
    if took.fate in {"rate_limited", "failed", "refused"}:
        return took.input_tokens or 0, took.output_tokens or 0
    prompt = int(need.request_bytes * USUAL) if took.input_tokens is None else took.input_tokens
    reply = int(took.reply_bytes * USUAL) if took.output_tokens is None else took.output_tokens
    return prompt, reply
