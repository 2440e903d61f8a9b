"""Run a world in a process of its own, and read its mean and bounds as the boards do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
TOLERANCE = 0.03


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What the service exported about a metric, beside the truth.

    Attributes:
        runs: how many were eligible.
        truth: mean over all of them.
        sums: counters by the last part of their name; a missing one was not exported.
        more: what else the world tells.
    """

    runs: int
    truth: float
    sums: dict[str, float]
    more: dict[str, Any]

    @classmethod
    def of(cls, told: dict[str, Any]) -> Reading:
        """Read what a world printed."""
        more = {name: value for name, value in told.items() if name not in {"runs", "truth", "sums"}}
        return cls(runs=told["runs"], truth=told["truth"], sums=told["sums"], more=more)

    @property
    def mean(self) -> float | None:
        """The weighted mean of the scores; None without one."""
        weight = self.sums.get("w", 0.0)
        return self.sums["wx"] / weight if weight > 0.0 else None

    @property
    def part(self) -> float:
        """The share of the due weight that has no score."""
        missing = self.sums.get("missing.w", 0.0) - self.sums.get("recovered.w", 0.0)
        return missing / self.sums["due.w"]

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the most that the mean of all runs can be."""
        if self.mean is None:
            return 0.0, 1.0
        low = self.mean * (1.0 - self.part)
        return low, low + self.part

    def check(self, *, due_within: float = 0.1, is_mean_enough: bool = False, tolerance: float = TOLERANCE) -> None:
        """Fail where the bounds leave the truth out, or where eligible runs are not due."""
        assert self.sums.get("due.w", 0.0) > 0.0, f"no run is due: {self}"
        assert "missing.w" in self.sums, f"missing scores are not exported: {self}"
        assert -0.001 <= self.part <= 1.001, self
        low, high = self.bounds
        is_held = low - tolerance <= self.truth <= high + tolerance
        if is_mean_enough and self.mean is not None:
            is_held = is_held or abs(self.mean - self.truth) <= 0.05
        assert is_held, f"the truth {self.truth:.3f} lies outside {low:.3f} to {high:.3f}: {self}"
        share = self.sums["due.w"] / self.runs
        # Evicted units raise the weights of others; a slow machine evicts more of them.
        noise = 3.0 * max(self.sums.get("due.w2", 0.0) - self.sums["due.w"], 0.0) ** 0.5 / self.runs
        assert abs(share - 1.0) <= max(due_within, noise), f"due is {share:.2f} of the eligible runs: {self}"


def environment(**more: str) -> dict[str, str]:
    """The environment without settings of its own."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "RAGTRACE_"))}
    return {**ours, "PYTHONPATH": str(ROOT), **more}


def world(name: str, **more: str) -> Reading:
    """Run a world and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.cases.numbers.worlds", name],
        env=environment(**more), cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2_000:]
    return Reading.of(json.loads(done.stdout.splitlines()[-1]))
