"""Too few scores to see a drop: the smallest one that the week finds in four of five cases.

It is the drop that fires, and .84 standard errors more. A watched series that is not compared, since window or
baseline hold too few scores, has the sampling error of its week and the wander that nothing has shown yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ragtrace import semconv
from ragtrace_dashboards.config import duration
from ragtrace_dashboards.drift import ERROR, LIMIT, N_EFF, NORMAL, arms
from ragtrace_dashboards.drift_rule.windows import WANDER_FACTOR, firing_errors
from ragtrace_dashboards.expressions import IDENTITY, JUDGE_MODEL, MEASURED, SERIES, WHOSE, on, summed, watching
from ragtrace_dashboards.shares import FLOW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace_dashboards.config import Config

POWER_Z: Final = 0.84
"""Quantile of the normal distribution at .8: the drop is found in four of five cases."""


def blind_alert(config: Config) -> str:
    """Return the smallest drops that are too large, and 1 where a series that had scores has none."""
    week = next(it for it in arms(config) if it.name == "week")
    error = f"sqrt({NORMAL}_s2:day / {N_EFF}:week + {WANDER_FACTOR * config.wander_prior**2:g})"
    smallest = (
        f"{LIMIT}:week + {POWER_Z:g} * {ERROR}:week\n"
        f"  or ({firing_errors(config, week)} + {POWER_Z:g}) * {error} + 1 / {N_EFF}:week"
    )
    window, today = duration(config.days_window_s), duration(config.day_window_s)
    before = _counted(config, IDENTITY, at=f"offset {window}")
    total, once = _counted(config, WHOSE), _counted(config, WHOSE, at=f"offset {window}")
    # A judge that was replaced runs out of scores, which is no gap.
    replaced = f"({before} > 0 unless {_counted(config, IDENTITY, today)} > 0) and {on(MEASURED)} "
    replaced += f"({_counted(config, MEASURED, today)} > 0)"
    # Nor is a metric that only the judge of before computed, where another one scores now.
    scorer = (*FLOW, JUDGE_MODEL)
    gone = (
        f"({_counted(config, (*WHOSE, JUDGE_MODEL), at=f'offset {window}')} > 0"
        f" unless {on(scorer)} ({_counted(config, scorer, today)} > 0))"
        f" and {on(FLOW)} ({_counted(config, FLOW, today)} > 0)"
    )
    return (
        f"((\n  {smallest}\n) > {config.detectable_drop:g}\n"
        f"and ({before} > 0)\nunless ({replaced}))\n"
        f"or {on(WHOSE)}\n"
        f"(({total} == 0) + 1 and ({once} > 0)\nunless {on(WHOSE)} ({gone}))"
    )


def _counted(config: Config, by: Sequence[str], window: str = "", at: str = "") -> str:
    where = watching(it.name for it in config.metrics)
    return summed(SERIES[semconv.SCORE_N], window or duration(config.days_window_s), by, where, at)
