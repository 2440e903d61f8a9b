"""What may become of a trace that was offered to the scorer."""

from __future__ import annotations

from typing import Literal, get_args

End = Literal["scored", "invalid", "dead", "skipped", "dropped", "failed", "spooled"]
ENDS: tuple[End, ...] = get_args(End)
SERVED: frozenset[End] = frozenset({"scored", "invalid", "dead", "failed"})
"""What a scorer worked off; what was skipped or dropped it did not have to."""
LOST = frozenset({"expired", "evicted", "no_metric"})
"""Why traces are ``skipped`` after they were drawn. Duplicates were counted before, forgotten ones wanted gone."""


def is_drawn(end: End, reason: str) -> bool:
    """Whether a trace that ended so was drawn to be scored; ``spooled`` is a way to its end, and none.

    Example:
        >>> is_drawn("dropped", "queue_full"), is_drawn("skipped", "expired"), is_drawn("skipped", "not_sampled")
        (True, True, False)
    """
    return reason in LOST if end == "skipped" else end != "spooled"
