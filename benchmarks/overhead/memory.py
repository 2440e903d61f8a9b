"""What a long-lived handler keeps: the slope of the process's memory, and the objects that are there afterwards."""

from __future__ import annotations

import gc
import math
import os
import sys
from pathlib import Path
from typing import Any

STATM = Path("/proc/self/statm")
# Of ten runs three do not end well.
_FAILING = {3: "retriever", 6: "model", 9: "abandoned"}
RETAINED_RUNS = 10_000


def resident_bytes() -> int:
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measure(app: Any, *, warm_up: int, runs: int, every: int) -> dict[str, Any]:
    """Return slope and 95 % interval in bytes a run, and the objects kept a run over `RETAINED_RUNS` more.

    Memory is read after a collection, so that what waits for the collector is not taken for a leak.
    """
    _some(app, warm_up)
    at, sizes = [], []
    for done in range(0, runs + 1, every):
        if done:
            _some(app, every)
        gc.collect()
        at.append(float(done))
        sizes.append(float(resident_bytes()))
        if done % 5_000 == 0:
            print(f"{done} runs: {sizes[-1] / 1e6:.1f} MB", file=sys.stderr, flush=True)
    slope, half = line_through(at, sizes)
    counted = min(RETAINED_RUNS, runs)
    kept = _objects()
    _some(app, counted)
    kept = _objects() - kept
    return {
        "slope": slope,
        "low": slope - half,
        "high": slope + half,
        "retained_a_run": kept / counted,
        "retained": kept,
        "runs": runs,
    }


def _some(app: Any, runs: int) -> None:
    run = next(iter(app.scenarios.values()))
    for number in range(runs):
        failing = _FAILING.get(number % 10)
        if failing is None:
            run()
        else:
            app.fail(failing)


def _objects() -> int:
    for _ in range(3):  # a generator that is collected may free what only the next collection finds
        gc.collect()
    return len(gc.get_objects())


def line_through(at: list[float], values: list[float]) -> tuple[float, float]:
    """Return the least-squares slope and half of its 95 % interval.

    1.99 is Student's t for the 79 degrees of freedom of a whole measurement; shorter ones are trials.
    """
    count = len(at)
    mean_at, mean_value = sum(at) / count, sum(values) / count
    spread = sum((x - mean_at) ** 2 for x in at)
    slope = sum((x - mean_at) * (y - mean_value) for x, y in zip(at, values, strict=True)) / spread
    residuals = (y - mean_value - slope * (x - mean_at) for x, y in zip(at, values, strict=True))
    if count < 3:
        return slope, math.inf
    return slope, 1.99 * math.sqrt(sum(r * r for r in residuals) / (count - 2) / spread)
