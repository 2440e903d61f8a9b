"""Units that the limits keep waiting: back into the queue, without an attempt being counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.scoring.limits.slices import SLICE_S
from ragtrace.scoring.worker import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.model import Score
    from ragtrace.scoring.limits.blocked import Blocked

_OURS = "budget_exceeded"  # a reason that no judge's failure has
_AWAY = frozenset({_OURS, "judge_unavailable", "judge_timeout"})


def spared(closed: Blocked | None, scores: Sequence[Score] = ()) -> Outcome | None:
    """Return the outcome of a unit that has to wait for the limits; None when it has not.

    Ask before a unit is scored, without scores, and after it, with them. A unit with one value is scored, whatever
    else failed; one whose errors are the judge's absence, or ours for want of budget, comes back when calls may
    pass: no attempt is counted, and the queue ends it at its age.

    Args:
        closed: what `JudgeLimiter.closed` says now.
        scores: of the unit, when it has been scored: those that decide (`ragtrace.scoring.Scorer.deciding`).

    Example:
        >>> from ragtrace.scoring.limits import Blocked
        >>> spared(Blocked(reason="held_401", wait_s=300.0)).retry_in_s
        300.0
        >>> spared(None) is None
        True
    """
    errors = {score.result.reason for score in scores if score.result.state == "error"}
    has_value = any(score.result.state == "ok" for score in scores)
    if scores and (has_value or not errors or not errors <= _AWAY):
        return None
    if closed is not None:
        return Outcome(reason=closed.reason, retry_in_s=closed.wait_s, is_spared=True)
    # The next slice has begun while the unit was failing, or its calls are larger than a day's budget.
    return Outcome(reason=_OURS, retry_in_s=float(SLICE_S), is_spared=True) if _OURS in errors else None
