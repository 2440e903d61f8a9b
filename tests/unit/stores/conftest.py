"""A store's clock that a test sets."""

from __future__ import annotations

import pytest

NOW = 1_800_000_000.0


def unpublished(store, limit=100):
    """Return what a claim would give, and keep it from nobody."""
    return store.claim(limit, before=NOW + 60.0, for_s=0.0)


class Wall:
    def __init__(self):
        self.at = NOW

    def __call__(self):
        return self.at


@pytest.fixture
def wall():
    return Wall()
