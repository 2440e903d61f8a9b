"""A store's clock that a test sets."""

from __future__ import annotations

from itertools import count

import pytest

from ragtrace.stores import Owner

NOW = 1_800_000_000.0


def unpublished(store, limit=100):
    """Return what a claim would give, and keep it from nobody."""
    owner = Owner()
    try:
        return store.claim(owner, limit, next_seq=count(1).__next__)
    finally:
        store.leave(owner)


def marks(pending):
    return list(pending.entry.marks.values())


def age_until(store, wall, at):
    """Let the time pass, with a look at it twice a day."""
    while wall.at < at:
        wall.at = min(wall.at + 43_200.0, at)
        store.apply_retention()


class Wall:
    def __init__(self):
        self.at = NOW

    def __call__(self):
        return self.at


@pytest.fixture
def wall():
    return Wall()
