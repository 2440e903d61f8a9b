"""Gives units that wait for the limits back to the queue, without counting an attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.scoring.worker import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.model import Score
    from ragtrace.scoring.limits.blocked import Blocked

_RETRY_S = 300.0  # for calls larger than the budget of a day
_OURS = "budget_exceeded"  # never the reason of a judge's failure
_AWAY = frozenset({_OURS, "judge_unavailable", "judge_timeout"})


def postponed(blocked: Blocked | None, scores: Sequence[Score] = ()) -> Outcome | None:
    """Return the outcome of a unit that has to wait for the limits; None when it may go on.

    Call it before a unit is scored, without scores, and afterwards with them. A unit with one value is scored,
    whatever else failed. A unit with errors of an absent judge or a spent budget alone comes back when calls may
    pass. No attempt is counted, and the queue ends the unit at its age.

    Args:
        blocked: what `JudgeLimiter.blocked` says now.
        scores: the deciding scores of a scored unit (`ragtrace.scoring.Scorer.deciding`).

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
