"""Whether a unit is scored, is to be tried again, or got no usable verdict."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from ragtrace.queues.base import MAX_ATTEMPTS
from ragtrace.scoring.worker import Outcome

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

    from ragtrace.model import Score

# What passes by itself. A refusal or a reply of a wrong form would be the same again.
TRANSIENT = frozenset({"judge_timeout", "judge_unavailable", "judge_error"})
PASSING = TRANSIENT | {"budget_exceeded"}
_WAITS_S = (2.0, 60.0, 300.0, 1_200.0)  # attempts of one call repeat within seconds; these outlast an outage


def verdict_of(
    scores: Sequence[Score],
    attempt: int,
    *,
    write: Callable[[], None] | None = None,
    also: Callable[[sqlite3.Connection], None] | None = None,
    then: Callable[[], None] | None = None,
    random_of: Callable[[float, float], float] = random.uniform,
) -> Outcome:
    """Return what becomes of a unit with these scores.

    One value, or nothing but ``na``, is a scored unit. Errors alone are tried again while one of them may pass and
    attempts are left; otherwise the unit is ``invalid``, and its errors are published as such.

    Args:
        scores: of one unit, those that decide (`ragtrace.scoring.Scorer.deciding`).
        attempt: which try this was, from 1.
        write: writes the scores before the end.
        also: for the transaction of the end.
        then: publishes.
        random_of: uniform in two bounds.

    Example:
        >>> from ragtrace.model import MetricResult, Score, ScoreKey
        >>> def failed(reason):
        ...     result = MetricResult(name="faithfulness", state="error", reason=reason)
        ...     key = ScoreKey(trace_id="t", span_id="s", metric="faithfulness", version="")
        ...     return Score(key=key, result=result)
        >>> verdict_of([failed("judge_refused")], 1).state
        'invalid'
        >>> verdict_of([failed("judge_timeout")], 1).retry_in_s is None
        False
    """
    errors = {score.result.reason for score in scores if score.result.state == "error"}
    if not errors or any(score.result.state == "ok" for score in scores):
        return Outcome(state="scored", write=write, also=also, then=then)
    reason = min(str(error) for error in errors)
    if errors & PASSING and attempt < MAX_ATTEMPTS:
        most_s = _WAITS_S[min(attempt - 1, len(_WAITS_S) - 1)]
        return Outcome(reason=reason, retry_in_s=random_of(0.0, most_s))
    return Outcome(state="invalid", reason=reason, write=write, also=also, then=then)
