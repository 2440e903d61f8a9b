"""The reason that stops a judge's calls, and the error for it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ragtrace.errors import JudgeError, JudgeOverBudget, JudgeRateLimited, JudgeUnavailable
from ragtrace.model import JudgeUsage

OF_REQUEST = frozenset({"budget_exceeded", "requests_per_minute", "tokens_per_minute"})
"""The reasons for which a smaller call might pass."""
_HELD = "held_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """Reason and duration of a stop of all calls.

    Attributes:
        reason: ``budget_exceeded``, ``rate_limited`` (the server asked for a pause), ``breaker_open``,
            ``probing`` (a probe is under way), ``held_401``, ``held_402``, ``held_403``,
            ``held_404``, ``held_quota``, ``held_307`` (any redirect, by its status), ``requests_per_minute``,
            ``tokens_per_minute``, or ``limits_file`` (it cannot be written).
        wait_s: seconds until a call may pass; infinite when it never fits.
    """

    reason: str
    wait_s: float

    @property
    def is_held(self) -> bool:
        """True when the judge refuses all calls, until a probe passes."""
        return self.reason.startswith(_HELD)

    @property
    def refusal(self) -> str:
        """The judge's refusal, such as ``401`` or ``quota``; "" when it is not held."""
        return self.reason.removeprefix(_HELD) if self.is_held else ""

    @property
    def is_waited_for(self) -> bool:
        """True when the stop ends within the wait; calls during any other stop would fail."""
        return not self.is_held and self.reason not in {"breaker_open", "limits_file"}


def error_of(blocked: Blocked, host: str) -> JudgeError:
    """Return the error of a call that did not pass; its ``retry_after_s`` is the wait.

    Example:
        >>> error_of(Blocked(reason="held_401", wait_s=300.0), "judge").retry_after_s
        300.0
    """
    error: JudgeError
    if blocked.reason == "budget_exceeded":
        error = JudgeOverBudget("the judge's budget has nothing left for now")
        if math.isinf(blocked.wait_s):
            error = JudgeOverBudget(
                "one call of the judge may take more than the budget of a day: raise budget_usd_per_day or "
                "budget_tokens_per_day"
            )
    elif blocked.is_held:
        error = JudgeUnavailable(f"{host} refuses the judge's calls ({blocked.refusal})")
    elif blocked.reason == "breaker_open":
        error = JudgeUnavailable(f"{host} failed too often and is not called for {blocked.wait_s:.0f} s")
    elif blocked.reason == "limits_file":
        error = JudgeUnavailable("the file of the limits cannot be written: see the log")
    elif math.isinf(blocked.wait_s):
        error = JudgeRateLimited(
            "one call of the judge has more tokens than judge_tpm allows in a minute: raise it"
        )
    else:
        error = JudgeRateLimited(f"the rate of {host} is used up for {blocked.wait_s:.0f} s")
    error.retry_after_s, error.usage = blocked.wait_s, JudgeUsage()  # nobody was asked
    return error
