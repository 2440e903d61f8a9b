"""A judge that is away, and a queue that is full, move neither the mean nor its bounds off the truth."""

from __future__ import annotations

import pytest

from tests.cases.numbers.reading import sees

pytestmark = pytest.mark.slow


@sees("outage, errors", "outage, dropped connections", "outage, key refused", "outage, rate limited")
def test_an_outage_that_hits_bad_answers(seen):
    """Ten failures open the breaker, which outlasts the outage."""
    seen.check(due_within=0.2, is_mean_enough=True)


@sees("overflow")
def test_a_queue_that_is_full_in_a_worse_burst(seen):
    # Evicted units raise the weights of others: some 140 scores' worth, so that 0.12 is three standard errors.
    seen.check(due_within=0.3, is_mean_enough=True, tolerance=0.12)
