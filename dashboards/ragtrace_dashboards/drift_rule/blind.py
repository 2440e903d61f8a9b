"""Too few scores to see a drop: the smallest one that the longest window finds in four of five cases.

It is (z of the alert + .84) sqrt(variance of the drop) + 1 / n. A watched series without a recorded variance, since
window or baseline hold too few scores, has that of its window alone and the wander that nothing has shown yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ragtrace import semconv
from ragtrace_dashboards.config import duration
from ragtrace_dashboards.drift import arms
from ragtrace_dashboards.drift_rule.variances import THRESHOLD, VARIANCE, WANDER_FACTOR
from ragtrace_dashboards.expressions import (
    IDENTITY,
    MEASURED,
    SERIES,
    WHOSE,
    Sample,
    on,
    summed,
    watching,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace_dashboards.config import Config

POWER_Z: Final = 0.84
"""Quantile of the normal distribution at .8: the drop is found in four of five cases."""


def recorded_blind(config: Config) -> str:
    """Return the smallest drops that are too large, and 1 where a series that had scores has none."""
    arm = next(it for it in arms(config) if it.name == "week")
    sample = Sample(window=duration(arm.window_s), where=watching(it.name for it in config.metrics))
    of_window = f"{sample.s2} / ({sample.n_eff}) + {WANDER_FACTOR * config.wander_prior**2:g}"
    smallest = (
        f"(scalar({THRESHOLD}:{arm.name}) + {POWER_Z:g}) * sqrt(({VARIANCE}:{arm.name}\n    or {of_window}))\n"
        f"  + 1 / ({sample.n_eff})"
    )
    window, today = duration(config.days_window_s), duration(config.day_window_s)
    before = _counted(config, IDENTITY, at=f"offset {window}")
    total, once = _counted(config, WHOSE), _counted(config, WHOSE, at=f"offset {window}")
    # A judge that was replaced runs out of scores, which is no gap.
    replaced = f"({before} > 0 unless {_counted(config, IDENTITY, today)} > 0) and {on(MEASURED)} "
    replaced += f"({_counted(config, MEASURED, today)} > 0)"
    return (
        f"((\n  {smallest}\n) > {config.detectable_drop:g}\n"
        f"and ({before} > 0)\nunless ({replaced}))\n"
        f"or {on(WHOSE)}\n"
        f"(({total} == 0) + 1 and ({once} > 0))"
    )


def _counted(config: Config, by: Sequence[str], window: str = "", at: str = "") -> str:
    where = watching(it.name for it in config.metrics)
    return summed(SERIES[semconv.SCORE_N], window or duration(config.days_window_s), by, where, at)
