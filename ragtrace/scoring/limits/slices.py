"""The day in slices of five minutes: how much of a budget may be gone by now, so that none is burnt by 3 a.m."""

from __future__ import annotations

DAY_S = 86_400
SLICE_S = 300
SLICES = DAY_S // SLICE_S


def day_of(wall_s: float) -> int:
    """Return the day of a time, in UTC, counted from 1970.

    Example:
        >>> day_of(86_400.0 * 20_000 + 5)
        20000
    """
    return int(wall_s // DAY_S)


def allowed(budget: int, wall_s: float) -> int:
    """Return what may be spent and reserved from midnight (UTC) to the end of the present slice.

    Slice by slice 1/288 of the budget is added; what a slice leaves over stays for the rest of its day.

    Args:
        budget: of the whole day, in whole units (tokens, nano-dollars).
        wall_s: Unix seconds.

    Example:
        >>> allowed(28_800, wall_s=0.0), allowed(28_800, wall_s=299.9), allowed(28_800, wall_s=300.0)
        (100, 100, 200)
        >>> allowed(28_800, wall_s=86_399.0)
        28800
    """
    return budget * (_slice_of(wall_s) + 1) // SLICES


def wait_s(budget: int, wanted: int, wall_s: float) -> float:
    """Return the seconds until a budget allows `wanted` in all; until midnight when this day never does.

    Example:
        >>> wait_s(28_800, 150, wall_s=10.0)
        290.0
        >>> wait_s(28_800, 50_000, wall_s=80_000.0)
        6400.0
    """
    into_day_s = wall_s % DAY_S
    if wanted > budget:
        return DAY_S - into_day_s
    # The slice that allows it is the first i with budget * (i + 1) // SLICES >= wanted.
    first = -(-wanted * SLICES // max(budget, 1)) - 1
    return max(first * SLICE_S - into_day_s, 0.0)


def _slice_of(wall_s: float) -> int:
    return int(wall_s % DAY_S) // SLICE_S
