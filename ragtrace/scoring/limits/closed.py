"""Why no call of a judge passes, and the error that says so."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ragtrace.errors import JudgeError, JudgeOverBudget, JudgeRateLimited, JudgeUnavailable
from ragtrace.judges.base import Spent


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """Why no call passes at present.

    Attributes:
        reason: ``budget_exceeded``, ``rate_limited`` (the server asked to be left alone), ``breaker_open``,
            ``probing`` (one call is under way that decides), ``held_401``, ``held_402``, ``held_403``,
            ``held_404``, ``held_quota``, ``requests_per_minute``, ``tokens_per_minute``, or ``limits_file`` (it
            cannot be written).
        wait_s: when to look again; infinite when the call never fits.
    """

    reason: str
    wait_s: float

    @property
    def is_of_need(self) -> bool:
        """Whether a smaller call might pass."""
        return self.reason in {"budget_exceeded", "requests_per_minute", "tokens_per_minute"}

    @property
    def is_waited_for(self) -> bool:
        """Whether it passes by itself within the wait; another's calls would fail all the same."""
        return not self.reason.startswith("held_") and self.reason not in {"breaker_open", "limits_file"}


def error_of(closed: Closed, host: str) -> JudgeError:
    """Return the error of a call that did not pass; its ``retry_after_s`` is the wait.

    Example:
        >>> error_of(Closed(reason="held_401", wait_s=300.0), "judge").retry_after_s
        300.0
    """
    error: JudgeError
    if closed.reason == "budget_exceeded":
        error = JudgeOverBudget("the judge's budget has nothing left for now")
        if math.isinf(closed.wait_s):
            error = JudgeOverBudget("one call of the judge may cost more than the budget of a day: raise it")
    elif closed.reason.startswith("held_"):
        error = JudgeUnavailable(f"{host} refuses the judge's calls ({closed.reason.removeprefix('held_')})")
    elif closed.reason == "breaker_open":
        error = JudgeUnavailable(f"{host} failed too often and is left alone for {closed.wait_s:.0f} s")
    elif closed.reason == "limits_file":
        error = JudgeUnavailable("the file of the limits cannot be written: see the log")
    elif math.isinf(closed.wait_s):
        error = JudgeRateLimited(
            "one call of the judge has more tokens than judge_tpm allows in a minute: raise it"
        )
    else:
        error = JudgeRateLimited(f"the rate of {host} is used up for {closed.wait_s:.0f} s")
    vars(error).update(retry_after_s=closed.wait_s, spent=Spent())  # nobody was asked
    return error
