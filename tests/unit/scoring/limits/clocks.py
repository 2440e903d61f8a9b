"""A clock that a test turns, and a sleep that turns it."""

from __future__ import annotations

import asyncio

from ragtrace.host import Clock

NOON = 86_400.0 * 20_000 + 43_200.0


class HandClock(Clock):
    def __init__(self, at: float = 1_000.0, wall_at: float = NOON, boot: str = "boot-1") -> None:
        self.at, self.wall_at, self.boot = at, wall_at, boot
        self.slept: list[float] = []

    def now(self) -> float:
        return self.at

    def wall(self) -> float:
        return self.wall_at

    def epoch(self) -> str:
        return self.boot

    def turn(self, seconds: float) -> None:
        self.at += seconds
        self.wall_at += seconds

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.turn(seconds)
        await asyncio.sleep(0)
