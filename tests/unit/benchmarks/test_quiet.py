"""The benchmark of quiet months leaves out no headline, and finds what it should."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.investigations.quiet import (
    DAY_S,
    HISTORY_DAYS,
    LOOKS,
    Looker,
    Windows,
    drawn_parts,
    headline,
    month,
    timeline,
    worlds,
)
from ragtrace.stats.change.step import find_step
from tests.monitoring.drift_worlds.named_worlds import UNSEEN, USUAL, WORLDS

ROUGH = (
    replace(USUAL, wander=0.03),
    WORLDS["sessions of twelve turns"],
    WORLDS["nearly perfect scores"],
    UNSEEN["strata of weights 1 and 10"],
    replace(USUAL, fall_to=0.85),
)


@pytest.mark.parametrize("world", ROUGH)
@pytest.mark.parametrize("per_day", [50, 1_000])
def test_no_step_is_surer_than_what_is_possible(world, per_day):
    rng = np.random.default_rng(7)
    scores = timeline(next(replace(world, history=HISTORY_DAYS).draw_scores(rng, per_day))[0])
    looks, masks = LOOKS[::3], list(drawn_parts(rng, len(scores)).values())[:4]
    for own in (np.arange(len(scores)), *map(np.flatnonzero, masks)):
        part = scores.only(own)
        for look, most in zip(looks, Windows.of(scores, own, looks).surest(scores), strict=True):
            last = scores.at[scores.at < look][-1]
            step = find_step(part.only((part.at >= look - HISTORY_DAYS * DAY_S) & (part.at < look)), last=last)
            assert step is None or step.surety <= max(most, 0.0) + 1e-3


@pytest.mark.parametrize("world", ROUGH)
def test_the_looks_find_what_the_search_finds(world):
    rng = np.random.default_rng(8)
    scores = timeline(next(replace(world, history=HISTORY_DAYS).draw_scores(rng, 1_000))[0])
    parts, expected = drawn_parts(rng, len(scores)), {}
    for i, look in enumerate(LOOKS[:8]):
        own = (scores.at >= look - HISTORY_DAYS * DAY_S) & (scores.at < look)
        found = headline(scores.only(own), {part: mask[own] for part, mask in parts.items()})
        expected.update({} if found is None else {i: found.step})
    looker = Looker.of(scores, parts, LOOKS[:8], np.random.default_rng(9))
    assert {i: it.step for i, it in looker.headlines(scores).items()} == expected


def test_a_fall_is_a_headline_and_independent_scores_have_none():
    fallen, quiet = (
        month(world, 1_000, [1], metrics=2) for world in (replace(USUAL, fall_to=0.7), WORLDS["independent scores"])
    )
    assert fallen.all_traffic == fallen.with_parts == [True, True]
    assert all(it.kind.endswith("of all") for it in fallen.firsts)
    assert quiet.with_parts == [False, False]


def test_the_worlds_are_those_of_the_alerts_and_twelve_new_ones():
    assert len(worlds()) == len(WORLDS) + len(UNSEEN) + 12
    assert worlds() == worlds()
