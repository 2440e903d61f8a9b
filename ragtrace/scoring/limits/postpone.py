"""Units that the limits keep waiting: back into the queue, without an attempt being counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.scoring.worker import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.model import Score
    from ragtrace.scoring.limits.blocked import Blocked

_RETRY_S = 300.0  # for calls larger than the budget of a day
_OURS = "budget_exceeded"  # a reason that no judge's failure has
_AWAY = frozenset({_OURS, "judge_unavailable", "judge_timeout"})


def postponed(blocked: Blocked | None, scores: Sequence[Score] = ()) -> Outcome | None:
    """Return the outcome of a unit that has to wait for the limits; None when it has not.

    Ask before a unit is scored, without scores, and after it, with them. A unit with one value is scored, whatever
    else failed; one whose errors are the judge's absence, or ours for want of budget, comes back when calls may
    pass: no attempt is counted, and the queue ends it at its age.

    Args:
        blocked: what `JudgeLimiter.blocked` says now.
        scores: of the unit, when it has been scored: those that decide (`ragtrace.scoring.Scorer.deciding`).

    Example:
        >>> from ragtrace.scoring.limits import Blocked
        >>> postponed(Blocked(reason="held_401", wait_s=300.0)).retry_in_s
        300.0
        >>> postponed(None) is None
        True
    """
    errors = {score.result.reason for score in scores if score.result.state == "error"}
    has_value = any(score.result.state == "ok" for score in scores)
    if scores and (has_value or not errors or not errors <= _AWAY):
        return None
    if blocked is not None:
        return Outcome(reason=blocked.reason, retry_in_s=blocked.wait_s, is_spared=True)
    return Outcome(reason=_OURS, retry_in_s=_RETRY_S, is_spared=True) if _OURS in errors else None
