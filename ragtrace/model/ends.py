"""Final states of a trace that was offered to the scorer."""

from __future__ import annotations

from typing import Literal, get_args

End = Literal["scored", "invalid", "dead", "skipped", "dropped", "failed", "spooled"]
ENDS: tuple[End, ...] = get_args(End)
SERVED: frozenset[End] = frozenset({"scored", "invalid", "dead", "failed"})
"""States that cost a scorer work; a skipped or dropped trace cost none."""
LOST = frozenset({"expired", "evicted", "no_metric"})
"""Reasons for which a drawn trace is ``skipped``; duplicates and erased traces do not count as lost."""


def is_drawn(end: str, reason: str) -> bool:
    """Return whether a trace with this end was drawn to be scored; ``spooled`` is no end yet.

    Example:
        >>> is_drawn("dropped", "queue_full"), is_drawn("skipped", "expired"), is_drawn("skipped", "not_sampled")
        (True, True, False)
    """
    return reason in LOST if end == "skipped" else end != "spooled"
