"""Which units wait for the limits, and which have an end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ragtrace.scoring import Blocked, postponed
from tests import make

if TYPE_CHECKING:
    from ragtrace.model import Score

SHUT = Blocked(reason="breaker_open", wait_s=30.0)


def scores(*reasons: str | None) -> list[Score]:
    """Make scores: None is a value, a reason an error."""
    return [
        make.score(metric=str(i), state="error" if reason else "ok", reason=reason)
        for i, reason in enumerate(reasons)
    ]


@pytest.mark.parametrize(
    ("closed", "reasons", "wait_s"),
    [
        (SHUT, (), 30.0),  # before it is scored
        (None, (), None),
        (SHUT, ("judge_unavailable", "judge_timeout"), 30.0),
        (SHUT, ("judge_unavailable", None), None),  # a value was paid for
        (SHUT, ("judge_refused",), None),  # would be the same again
        (SHUT, ("judge_refused", "judge_unavailable"), None),
        (None, ("judge_unavailable",), None),  # an attempt like any other
        (None, ("budget_exceeded", "judge_unavailable"), 300.0),
        (None, ("budget_exceeded", None), None),
    ],
)
def test_who_waits(closed: Blocked | None, reasons: tuple[str | None, ...], wait_s: float | None) -> None:
    outcome = postponed(closed, scores(*reasons))
    assert (outcome.retry_in_s if outcome else None) == wait_s
    assert outcome is None or outcome.is_spared
