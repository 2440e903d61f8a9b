"""Rule F as PromQL: four windows against a baseline that learns nothing of an incident.

A window fires when its drop D from the baseline exceeds the tolerance, and

    z = (D - 1 / n) / sqrt(max(S2, R2) + 1.5 T2) > sqrt(k^2 + 2 ln(watched series)).

A window of several days fires only while the last day is not back: with enough scores, its drop is below half of
the tolerance. S2 is the sampling variance, R2 the variance between hours, and T2 the service's own wander.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ragtrace import semconv
from ragtrace_dashboards.config import duration
from ragtrace_dashboards.drift_rule import variances
from ragtrace_dashboards.drift_rule.baselines import KNOWN, frozen_rules, normal_rules
from ragtrace_dashboards.expressions import (
    IDENTITY,
    JUDGE_MODEL,
    JUDGE_VERSION,
    SERIES,
    WHOSE,
    on,
    recording,
    summed,
    watching,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace_dashboards.config import Config

CHANGED: Final = "ragtrace:judge_changed:day"

_WINDOW_SUMS = {"w": semconv.SCORE_W, "wx": semconv.SCORE_WX, "w2": semconv.SCORE_W2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One window of rule F.

    Attributes:
        name: in the names of recorded series, the same in every profile.
        window_s: its length.
        tolerance: the fall that is not worth an alert.
        z: standard errors at which it fires where one series is watched.
        base: name of the baseline it is held against: the one that ends where the window begins, or a day ago.
        wander_cap: the largest wander that is believed, whatever the sampling error.
        block: name of the blocks of which it is made, in the names of recorded series.
        block_s: their length.
    """

    name: str
    window_s: int
    tolerance: float
    z: float
    base: str
    wander_cap: float
    block: str
    block_s: int


def arms(config: Config) -> tuple[Arm, ...]:
    """Return the windows of rule F, the slow ones first.

    Example:
        >>> from ragtrace_dashboards.config import Config
        >>> [(arm.name, arm.window_s, arm.z) for arm in arms(Config())]
        [('day', 86400, 3.65), ('days', 259200, 3.35), ('week', 604800, 2.8), ('fast', 21600, 4.15)]
    """

    def slow(name: str, window_s: int, z: float) -> Arm:
        return Arm(
            name=name, window_s=window_s, tolerance=config.tolerance, z=z,
            base=name, wander_cap=config.wander_cap, block="hour", block_s=config.block_s,
        )  # fmt: skip

    fast = Arm(
        name="fast", window_s=config.fast_window_s, tolerance=config.fast_tolerance, z=config.fast_z,
        base="day", wander_cap=config.fast_wander_cap, block="quarter", block_s=config.fast_block_s,
    )  # fmt: skip
    return (
        slow("day", config.day_window_s, config.z),
        slow("days", config.days_window_s, config.days_z),
        slow("week", config.week_window_s, config.week_z),
        fast,
    )


def window_rules(config: Config) -> list[dict[str, str]]:
    """Return the recording rules of each window: mean, effective number, normal, drop, variances, z, limit."""
    every = arms(config)
    rules = [*frozen_rules(config), *variances.block_rules(config, every)]
    for arm in every:
        rules += [
            *_mean_rules(config, arm),
            *(normal_rules(config, arm) if arm.name == arm.base else ()),
            *variances.z_rules(config, arm),
        ]
    return [
        *rules,
        *(variances.threshold_rule(config, arm) for arm in every),
        recording(CHANGED, _recorded_change(config)),
    ]


def wander_rules(config: Config) -> list[dict[str, str]]:
    """Return the recording rules of the wander that each window has learnt."""
    return [rule for arm in arms(config) for rule in variances.wander_rules(config, arm)]


def recorded_drift(config: Config, names: Sequence[str]) -> str:
    """Return the drift alert over recorded series: any arm, but not while the judge or its prompt has changed."""
    where = watching(names)

    def fired(arm: Arm) -> str:
        above = f"{variances.Z}:{arm.name}{{{where}}} > scalar({variances.THRESHOLD}:{arm.name})"
        drop = f"({above} and {variances.DROP}:{arm.name} > {arm.tolerance:g})"
        return f"{drop}\n    unless {_back(config)}" if is_long(arm, config) else drop

    every = "\n  or ".join(fired(arm) for arm in arms(config))
    return f"(\n  {every}\n)\nunless {on(WHOSE)} {CHANGED}"


def is_long(arm: Arm, config: Config) -> bool:
    """Return whether a window holds days of an incident that is over: it fires only while the day is not back."""
    return arm.window_s > config.day_window_s


def back_below(config: Config) -> float:
    """Return the drop of the day below which it is back at its baseline."""
    return config.tolerance / 2


def _back(config: Config) -> str:
    return f"({variances.DROP}:day < {back_below(config):g} and {variances.S2}:day)"


def _mean_rules(config: Config, arm: Arm) -> list[dict[str, str]]:
    where = watching(it.name for it in config.metrics)
    sums = {key: f"ragtrace:score_{key}:{arm.name}" for key in _WINDOW_SUMS}
    return [
        *(
            recording(sums[key], summed(SERIES[name], duration(arm.window_s), IDENTITY, where))
            for key, name in _WINDOW_SUMS.items()
        ),
        recording(f"ragtrace:score_mean:{arm.name}", f"{sums['wx']} / ({sums['w']} > 0)"),
        recording(f"ragtrace:score_n_eff:{arm.name}", f"{sums['w']} ^ 2 / ({sums['w2']} > 0)"),
    ]


def _recorded_change(config: Config) -> str:
    before = f"last_over_time({KNOWN}[{duration(config.gate_s)}])"
    return (
        f"({_scored_now(config.day_window_s)} > 0)\nunless ({before} > 0)\n"
        f"and {on(WHOSE)} (sum by ({', '.join(WHOSE)}) ({before}) > 0)"
    )


def _scored_now(window_s: int) -> str:
    by = (*WHOSE, JUDGE_MODEL, JUDGE_VERSION)
    return summed(SERIES[semconv.SCORE_N], duration(window_s), by, f'{JUDGE_VERSION}!=""')
