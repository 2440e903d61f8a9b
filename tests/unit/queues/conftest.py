"""A spool's time as a test has it."""

from __future__ import annotations

import pytest

from ragtrace.host import Clock


class HandClock(Clock):
    """A clock that a test turns."""

    def __init__(self):
        self.at, self.wall_at, self.boot = 1000.0, 1_700_000_000.0, "boot-1"
        self.name = "host-1"

    def now(self):
        return self.at

    def wall(self):
        return self.wall_at

    def epoch(self):
        return self.boot

    def host(self):
        return self.name


@pytest.fixture
def clock():
    return HandClock()
