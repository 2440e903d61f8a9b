"""Runs that a judge refuses or will answer later are inside the bounds, from their first failed try on."""

from __future__ import annotations

import pytest

from tests.cases.numbers.reading import Reading, world

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("how", ["errors", "content filter", "refusal", "no JSON"])
def test_most_bad_answers_are_refused(how):
    seen = world(f"refused, {how}")
    seen.check(due_within=0.2)
    assert seen.part > 0.1, seen  # 70 % of a quarter


def test_scores_that_come_after_all_take_their_runs_out_of_the_bounds():
    seen = world("recovered")
    waiting = Reading.of(seen.more["waiting"])
    waiting.check()
    assert waiting.part > 0.05, waiting
    assert waiting.sums.get("recovered.w", 0.0) == 0.0
    seen.check()
    assert 0.0 < seen.sums.get("recovered.w", 0.0) <= seen.sums["missing.w"] + 1e-6, seen
    assert seen.part < 0.5 * waiting.part
    assert seen.sums["due.w"] == pytest.approx(waiting.sums["due.w"], rel=0.05)  # a run is due once
    # Once too: on a busy machine some runs are first tried after `waiting` was read.
    assert waiting.sums["missing.w"] <= seen.sums["missing.w"] <= 1.5 * waiting.sums["missing.w"]
    assert seen.mean == pytest.approx(seen.truth, abs=0.05)
