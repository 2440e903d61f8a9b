"""Draw a trace by a hash of its id, so that every process draws alike."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

_SALT = b"ragtrace:v1\0"
_BITS = 53  # what a float64 holds exactly


class Draw(Struct, frozen=True, kw_only=True):
    """Whether a trace is scored, and the probability with which it had to be.

    Attributes:
        decision: ``random`` (drawn), ``forced`` (taken for a reason of its own), ``none`` (not scored) or
            ``dropped`` (pressure left it a probability too small to speak of).
        probability: inclusion probability in [0, 1]; the weight of a drawn trace is 1 / probability.
        reason: why it was forced or not drawn.
        rates: the probability of each metric that is to be computed.
        factor: by which pressure lowered them; the trace stands for 1 / factor that wanted to be drawn.
        undrawn: metrics for which pressure left no probability, each with the share of all traces that gets as far;
            the trace counts as missing for them, with the weight 1 / share.
        undrawn_for: what left none: ``budget_exceeded`` or ``queue_full``.
    """

    decision: Literal["random", "forced", "none", "dropped"]
    probability: float
    reason: str | None = None
    rates: Mapping[str, float] = {}
    factor: float = 1.0
    undrawn: Mapping[str, float] = {}
    undrawn_for: str = ""


def uniform(trace_id: str, salt: bytes = _SALT) -> float:
    """Return the trace's own number in [0, 1): the first 53 bits of a salted SHA-256.

    It is the same in every process and for every metric, so that draws at a lower rate are nested in
    draws at a higher one. A draw for another end takes another salt: of traces drawn here it draws a share alike.

    Example:
        >>> 0.0 <= uniform("4bf92f3577b34da6a3ce929d0e0e4736") < 1.0
        True
    """
    digest = hashlib.sha256(salt + trace_id.encode("utf-8", "replace")).digest()
    return (int.from_bytes(digest[:8], "big") >> (64 - _BITS)) / (1 << _BITS)


def draw(trace_id: str, probability: float) -> Draw:
    """Draw one trace at a probability in [0, 1].

    Example:
        >>> draw("4bf92f3577b34da6a3ce929d0e0e4736", 1.0).decision
        'random'
        >>> draw("4bf92f3577b34da6a3ce929d0e0e4736", 0.0).decision
        'none'
    """
    if probability > 0.0 and uniform(trace_id) < probability:
        return Draw(decision="random", probability=probability)
    return Draw(decision="none", probability=probability, reason="not_sampled")
