"""Judge or system, in 200 worlds, and how often a judge that did not change is called changed."""

from __future__ import annotations

import itertools
import sys
from collections import Counter

import numpy as np
import pytest

from ragtrace.stats import AnchorPair, judge_change
from tests.monitoring.judge_worlds import ATOMS, CHANCES, EDGES, Anchors, World, named, noisy

pytestmark = pytest.mark.slow

KINDS = ("judge", "system", "both", "none")
CHANGES, NOISES, SIZES, VOLUMES = (
    ("shift", "part", "mixed"),
    ("none", "flips", "temperature"),
    (0.07, 0.1),
    (1_000, 5_000),
)


def first_word(words):
    return next((word for _, word in words if word != "unknown"), "unknown")


@pytest.fixture(scope="module")
def tried():
    """For each kind, 50 worlds over all changes, noises, sizes and volumes: world and words from the alert on."""
    chosen = list(itertools.product(CHANGES, NOISES, SIZES, VOLUMES))
    found = {}
    for kind in KINDS:
        worlds = [
            World(kind=kind, seed=1_000 * KINDS.index(kind) + place, change=c, noise=n, size=s, volume=v)
            for place, (c, n, s, v) in zip(range(50), itertools.cycle(chosen))
        ]
        found[kind] = [(world, named(world)) for world in worlds]
    return found


def test_the_table(tried, capsys):
    rows = []
    for kind in KINDS:
        fired = [words for _, words in tried[kind] if words]
        first, last = Counter(map(first_word, fired)), Counter(words[-1][1] for words in fired)
        waits = [next((hour - words[0][0] for hour, word in words if word != "unknown"), 24) for words in fired]
        rows.append((kind, len(fired), dict(first), float(np.median(waits)) if waits else 0.0, dict(last)))
    with capsys.disabled():
        sys.stdout.write("\nworld, alerts, first word, hours from alert to word (median), a day later\n")
        sys.stdout.writelines(f"{row}\n" for row in rows)
    fired = [(kind, words) for kind in KINDS for _, words in tried[kind] if words]
    assert len(fired) >= 140, "nearly every change is seen by the drift rule, else this says little"
    right = sum(first_word(words) == kind for kind, words in fired)
    assert right >= 0.95 * len(fired)


def test_the_judge_is_hardly_ever_blamed_where_it_did_not_change(tried):
    stable = [words for kind in ("system", "none") for _, words in tried[kind]]
    blamed = sum(any(word in {"judge", "both"} for _, word in words) for words in stable)
    assert blamed <= 0.02 * len(stable)


@pytest.mark.parametrize("noise", ["flips", "temperature"])
@pytest.mark.parametrize("anchors", [50, 200])
def test_a_stable_judge_hardly_ever_alarms(noise, anchors):
    """Eight looks a day at the last round, 40 months each: the promise is 1 % of months, so one may be by chance."""
    assert sum(_alarms(seed, noise, anchors) for seed in range(40)) <= 1


def _alarms(seed, noise, anchors):
    rng = np.random.default_rng(seed)
    runs = rng.choice(ATOMS, anchors, p=CHANCES)
    bands = np.digitize(noisy(rng, runs, noise), EDGES)
    shares = np.bincount(bands, minlength=5) / anchors
    reference = np.array([noisy(rng, runs, noise) for _ in range(3)]).T
    now = noisy(rng, runs, noise)
    for place in np.array_split(rng.permutation(anchors), 8) * 30:
        now[place] = noisy(rng, runs[place], noise)
        columns = zip(bands, reference, now, strict=True)
        found = judge_change([AnchorPair(int(b), float(shares[b]), tuple(r), float(x)) for b, r, x in columns])
        if found.state == "alarm":
            return True
    return False


@pytest.mark.parametrize(("change", "least"), [("shift", 0.95), ("part", 0.95)])
def test_a_changed_judge_is_seen_after_one_round(change, least):
    """A change of .07 in either direction alarms, with 200 anchors, in nearly all of 40 worlds."""
    seen = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        runs, keys = rng.choice(ATOMS, 20_000, p=CHANCES), rng.random(20_000)
        world = World(kind="judge", seed=seed, change=change)
        seen += Anchors(rng, world, runs, keys, 100.0).change(124.0).state in {"warning", "alarm"}
    assert seen >= least * 40
