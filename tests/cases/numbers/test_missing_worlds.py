"""A judge that is away, and a queue that is full, move neither the mean nor its bounds off the truth."""

from __future__ import annotations

import pytest

from tests.cases.numbers.reading import world

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("how", ["errors", "dropped connections", "key refused", "rate limited"])
def test_an_outage_that_hits_bad_answers(how):
    """Ten failures open the breaker, which outlasts the outage."""
    world(f"outage, {how}").check(due_within=0.2, is_mean_enough=True)


def test_a_queue_that_is_full_in_a_worse_burst():
    # Evicted units raise the weights of others: some 140 scores' worth, so that 0.12 is three standard errors.
    world("overflow").check(due_within=0.3, is_mean_enough=True, tolerance=0.12)
