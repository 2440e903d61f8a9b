"""A mean that seems to fall has the anchors scored at once."""

from __future__ import annotations

import random

import pytest

from ragtrace.model import SeriesKey
from ragtrace.service.anchors.falls import Falls
from ragtrace.stats import Baseline

KEY = SeriesKey("faithfulness", "rag", version="v")
NORMAL = Baseline(mean=0.9, sd=0.1, n=500)
NOW = 1_000_000.0
HOUR = 3_600.0


class Anchors:
    """Stands for `AnchorMonitor`."""

    def __init__(self, *, is_due=True):
        self.hurried = 0
        self._is_due = is_due

    def refresh(self):
        return self._is_due

    def hurry(self):
        self.hurried += 1


def hurried(means, *, anchors=None, n=400):
    """Return whether a day of scores with a mean for each hour hurries a round."""
    draw, falls = random.Random(3), Falls(anchors or Anchors(), clock=lambda: NOW)
    for i in range(n):
        hours_ago = 24.0 * (1.0 - i / n)
        falls.add(KEY, means(hours_ago) + draw.uniform(-0.05, 0.05), 1.0, NOW - hours_ago * HOUR)
    falls.look([(KEY, NORMAL)])
    return bool(falls.anchors.hurried)


@pytest.mark.parametrize(
    ("means", "asks"),
    [
        pytest.param(lambda _: 0.9, False, id="as ever"),
        pytest.param(lambda _: 0.89, False, id="a fall that is not worth a round"),
        pytest.param(lambda _: 0.8, True, id="lower all day"),
        pytest.param(lambda hours: 0.7 if hours < 4 else 0.9, True, id="lower since four hours"),
        pytest.param(lambda _: 0.95, False, id="better"),
    ],
)
def test_a_round_is_asked_for_where_a_mean_seems_to_fall(means, asks):
    assert hurried(means) == asks


def test_few_scores_ask_for_nothing():
    assert not hurried(lambda _: 0.5, n=25)


def test_it_looks_as_often_as_the_anchors_are_read():
    assert not hurried(lambda _: 0.5, anchors=Anchors(is_due=False))


def test_a_series_without_scores_asks_for_nothing():
    falls = Falls(Anchors())
    falls.look([(KEY, NORMAL)])
    assert not falls.anchors.hurried
