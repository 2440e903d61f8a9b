"""The choice of anchors: over all bands, at random inside, and with honest shares."""

from __future__ import annotations

import random
from collections import Counter

from ragtrace.model import RagRecord
from ragtrace.scoring.anchors.choosing import Candidate, choose


def runs(n, level, weight=1.0, first=0):
    return [Candidate(record=RagRecord(id=str(first + i)), level=level, weight=weight) for i in range(n)]


def test_every_band_has_some_though_most_traffic_is_perfect():
    anchors, bands = choose(
        [*runs(900, 1.0), *runs(60, 0.6, first=1_000), *runs(40, 0.1, first=2_000)], 100, seed=1
    )
    assert len(anchors) == 100
    assert {band: it.share for band, it in bands.items()} == {4: 0.9, 2: 0.06, 0: 0.04}
    assert Counter(it.band for it in anchors) == {4: 76, 2: 13, 0: 11}


def test_a_record_that_was_kept_at_one_in_a_hundred_stands_for_a_hundred():
    anchors, bands = choose([*runs(50, 1.0, weight=100.0), *runs(50, 0.1, first=100)], 50, seed=1)
    assert round(bands[4].share, 3) == 0.99
    assert {it.share for it in anchors if it.band == 0} == {bands[0].share}


def test_a_band_of_few_runs_says_so_and_others_take_its_place():
    anchors, bands = choose([*runs(10, 1.0, weight=100.0), *runs(200, 0.1, first=100)], 100, seed=1)
    assert len(anchors) == 100
    assert (bands[4].kept, bands[4].missing > 50) == (10, True)


def test_the_order_is_random_and_the_seeds():
    found = [it.record.id for it in choose(runs(300, 1.0), 50, seed=3)[0]]
    assert found == [it.record.id for it in choose(runs(300, 1.0), 50, seed=3)[0]]
    assert found != sorted(found, key=int)
    assert found != [it.record.id for it in choose(runs(300, 1.0), 50, seed=4)[0]]


def test_inside_a_band_the_draw_goes_by_weight():
    rng, heavy = random.Random(7), 0
    for _ in range(200):
        members = [*runs(50, 1.0, weight=9.0), *runs(50, 1.0, first=100)]
        anchors, _bands = choose(members, 10, seed=rng.randrange(10**9))
        heavy += sum(int(it.record.id) < 100 for it in anchors)
    assert 0.84 <= heavy / 2_000 <= 0.93  # .9 with replacement; a little less without


def test_runs_without_a_score_are_one_band():
    anchors, bands = choose(runs(60, None), 50, seed=1)
    assert len(anchors) == 50
    assert [(band, it.share) for band, it in bands.items()] == [(4, 1.0)]
