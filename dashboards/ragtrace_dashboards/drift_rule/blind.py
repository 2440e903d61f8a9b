"""Too few scores to see a drop: the smallest one that the longest window finds in four of five cases.

It is (z of the alert + .84) sqrt(variance of the drop) + 1 / n. A watched series without a recorded variance, since
window or baseline hold too few scores, has that of its window alone and the wander that nothing has shown yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ragtrace import semconv
from ragtrace_dashboards.config import duration
from ragtrace_dashboards.drift import arms
from ragtrace_dashboards.drift_rule.raw import raw_limit
from ragtrace_dashboards.drift_rule.variances import THRESHOLD, VARIANCE, WANDER_FACTOR
from ragtrace_dashboards.expressions import (
    HELD,
    IDENTITY,
    MEASURED,
    SERIES,
    WHOSE,
    Sample,
    gauge_by,
    on,
    summed,
    watching,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace_dashboards.config import Config
    from ragtrace_dashboards.drift import Arm

POWER_Z: Final = 0.84
"""Quantile of the normal distribution at .8: the drop is found in four of five cases."""


def recorded_blind(config: Config) -> str:
    """Return the alert on too few scores over recorded variances."""
    arm = _longest(config)
    variance = f"({VARIANCE}:{arm.name}\n    or {_of_window(config, config.wander_prior)})"
    return _few(config, f"scalar({THRESHOLD}:{arm.name})", variance, config.detectable_drop)


def raw_blind(config: Config) -> str:
    """Return the same over raw counters; a scorer's baseline of too few scores is part of it."""
    where = watching(it.name for it in config.metrics)
    arm = _longest(config)
    few = _few(
        config,
        f"scalar({raw_limit(config, arm, where)})",
        f"({_of_window(config, config.wander_cap)})",
        config.raw_detectable_drop,
    )
    # In Grafana nothing stands in for a baseline of too few scores.
    size = gauge_by("avg", semconv.BASELINE_N, HELD, where)
    small = f"({size} < bool {config.min_baseline_n_eff}) > 0 and ({_counted(config, HELD)} > 0)"
    return f"{few}\nor {on(WHOSE)}\n({small})"


def _longest(config: Config) -> Arm:
    return next(arm for arm in arms(config) if arm.name == "week")


def _window(config: Config) -> Sample:
    return Sample(window=duration(config.week_window_s), where=watching(it.name for it in config.metrics))


def _of_window(config: Config, wander: float) -> str:
    sample = _window(config)
    return f"{sample.s2} / ({sample.n_eff}) + {WANDER_FACTOR * wander**2:g}"


def _few(config: Config, limit: str, variance: str, most: float) -> str:
    """Return the smallest drops that are too large, and 1 where a series that had scores has none."""
    smallest = f"({limit} + {POWER_Z:g}) * sqrt({variance})\n  + 1 / ({_window(config).n_eff})"
    window, today = duration(config.days_window_s), duration(config.day_window_s)
    before = _counted(config, IDENTITY, at=f"offset {window}")
    total, once = _counted(config, WHOSE), _counted(config, WHOSE, at=f"offset {window}")
    # A judge that was replaced runs out of scores, which is no gap.
    replaced = f"({before} > 0 unless {_counted(config, IDENTITY, today)} > 0) and {on(MEASURED)} "
    replaced += f"({_counted(config, MEASURED, today)} > 0)"
    return (
        f"((\n  {smallest}\n) > {most:g}\n"
        f"and ({before} > 0)\nunless ({replaced}))\n"
        f"or {on(WHOSE)}\n"
        f"(({total} == 0) + 1 and ({once} > 0))"
    )


def _counted(config: Config, by: Sequence[str], window: str = "", at: str = "") -> str:
    where = watching(it.name for it in config.metrics)
    return summed(SERIES[semconv.SCORE_N], window or duration(config.days_window_s), by, where, at)
