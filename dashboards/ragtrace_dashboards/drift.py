"""The drift rule: three windows against what is normal for them, and the alerts that read them.

A window fires when its mean lies further on the bad side of normal than its limit:

    drop > max(tolerance, 1 / n + k' error), with k' = sqrt(k^2 + 2 ln(compared series))

`error` is the standard error of the drop. The week fires only while the last day is not back: with enough scores,
its drop is below half of the tolerance. `drift_rule` has the recording rules of each part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ragtrace_dashboards.expressions import WHOSE, on, watching

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace_dashboards.config import Config

MEAN: Final = "ragtrace:score_mean"
N_EFF: Final = "ragtrace:score_n_eff"
DROP: Final = "ragtrace:drift_drop"
ERROR: Final = "ragtrace:drift_error"
LIMIT: Final = "ragtrace:drift_limit"
"""Beginnings of the names of a window's recorded series; the name of the window follows."""

NORMAL: Final = "ragtrace:normal"
"""Beginning of the names of what a window is held against: mean, effective number and variance of one score."""

CHANGED: Final = "ragtrace:judge_changed:day"
"""Judges that score today and did not in the two weeks before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One window of the drift rule.

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
    """Return the windows of the drift rule, the shortest first.

    Example:
        >>> from ragtrace_dashboards.config import Config
        >>> [(arm.name, arm.window_s, arm.z) for arm in arms(Config())]
        [('fast', 21600, 4.0), ('day', 86400, 3.6), ('week', 604800, 2.85)]
    """
    fast = Arm(
        name="fast", window_s=config.fast_window_s, tolerance=config.fast_tolerance, z=config.fast_z,
        base="day", wander_cap=config.fast_wander_cap, block="quarter", block_s=config.fast_block_s,
    )  # fmt: skip

    def slow(name: str, window_s: int, z: float) -> Arm:
        return Arm(
            name=name, window_s=window_s, tolerance=config.tolerance, z=z,
            base=name, wander_cap=config.wander_cap, block="hour", block_s=config.block_s,
        )  # fmt: skip

    return fast, slow("day", config.day_window_s, config.z), slow("week", config.week_window_s, config.week_z)


def drift_alert(config: Config, names: Sequence[str]) -> str:
    """Return the alert: any window fires, and no judge or prompt has changed. Its value is the drop."""
    where = f"{{{watching(names)}}}"

    def fired(arm: Arm) -> str:
        beyond = f"{DROP}:{arm.name}{where} > {LIMIT}:{arm.name}"
        back = f" unless {DROP}:day < {back_below(config):g}"
        return f"({beyond}{back if is_long(arm, config) else ''})"

    every = "\n  or ".join(fired(arm) for arm in arms(config))
    return f"(\n  {every}\n)\nunless {on(WHOSE)} {CHANGED}"


def fall_alert(config: Config, names: Sequence[str]) -> str:
    """Return the alert that pages: a large drop in the shortest window."""
    where = f"{{{watching(names)}}}"
    return f"({DROP}:fast{where} > {LIMIT}:fast and {DROP}:fast > {config.fall:g})\nunless {on(WHOSE)} {CHANGED}"


def is_long(arm: Arm, config: Config) -> bool:
    """Return whether a window holds days of an incident that is over: it fires only while the day is not back."""
    return arm.window_s > config.day_window_s


def back_below(config: Config) -> float:
    """Return the drop of the day below which it is back at its baseline."""
    return config.tolerance / 2
