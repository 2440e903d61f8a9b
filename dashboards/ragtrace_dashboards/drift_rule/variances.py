"""Recording rules of a drop, of the three variances that it is held against, and of z.

- S2, sampling: s2 of the baseline times (1 / n of the window + 1 / n of the baseline).
- R2, between blocks (hours, or quarters of an hour in the fast window): the sum of (WX_h - mean W_h)^2 over the
  blocks, divided by W times their weight, plus s2 / n of the baseline. The blocks are the last whole ones of the
  clock, since Prometheus aligns the steps of a subquery. Scores that come in sessions or bursts raise it.
- T2, wander: the mean of D^2 - S2 over `wander_s` that ended `wander_rest_s` ago, shrunk to `wander_prior`^2 with
  a weight of `wander_weight_s`. It is at least a share of the prior, and at most the larger of the window's cap and
  `wander_sampling` S2, since scores in sessions that nobody declares move the mean as a wander does. The windows of
  several days take the day's, up to its cap, where that is larger.

A reading of D^2 - S2 counts for the wander only when no drift alert of its series fired near it, and no baseline
was frozen or accepted near it: a drop that was mended or accepted is an incident. A frozen baseline does not follow
the service, so the smaller of its D^2 and the rolling baseline's is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ragtrace import semconv
from ragtrace_dashboards.config import duration
from ragtrace_dashboards.drift_rule.baselines import FROZEN, NORMAL, fired, rolling
from ragtrace_dashboards.expressions import HELD, IDENTITY, METRIC, SERIES, on, recording, summed, watching

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace_dashboards.config import Config
    from ragtrace_dashboards.drift import Arm

DROP: Final = "ragtrace:drift_drop"
S2: Final = "ragtrace:drift_s2"
R2: Final = "ragtrace:drift_r2"
T2: Final = "ragtrace:drift_t2"
VARIANCE: Final = "ragtrace:drift_variance"
Z: Final = "ragtrace:drift_z"
THRESHOLD: Final = "ragtrace:drift_threshold"
"""Beginnings of the names of recorded series; the name of the window follows."""

WANDER: Final = "ragtrace:drift_wander"
"""Readings of D^2 - S2, recorded `wander_rest_s` late."""

LEARNT: Final = "ragtrace:drift_learnt"
"""Their mean, shrunk to the prior: T2 before it is capped."""

WANDER_FACTOR: Final = 1.5
"""T2 in the variance of a drop: both its window and its baseline wander."""

_BLOCK_SUMS = {"w": semconv.SCORE_W, "wx": semconv.SCORE_WX}


def block_rules(config: Config, arms: Sequence[Arm]) -> list[dict[str, str]]:
    """Return the recording rules of the sums of the last block, for each length of a block."""
    where = watching(it.name for it in config.metrics)
    lengths = {arm.block: arm.block_s for arm in arms}
    return [
        recording(f"ragtrace:score_{key}:{block}", summed(SERIES[name], duration(length_s), IDENTITY, where))
        for block, length_s in lengths.items()
        for key, name in _BLOCK_SUMS.items()
    ]


def z_rules(config: Config, arm: Arm) -> list[dict[str, str]]:
    """Return the recording rules of the drop, its variances and z; none where window or baseline hold too few."""
    s2, r2, t2 = f"{S2}:{arm.name}", f"{R2}:{arm.name}", f"{T2}:{arm.name}"
    learnt = f"last_over_time({t2}[{duration(config.fast_window_s)}])"
    larger = f"({r2} > {s2} or {s2})"
    one = f"1 / ragtrace:score_n_eff:{arm.name}"
    return [
        recording(f"{DROP}:{arm.name}", _drop(config, arm)),
        recording(s2, _sampling(config, arm)),
        recording(r2, _between_blocks(arm)),
        recording(f"{VARIANCE}:{arm.name}", f"{larger} + {WANDER_FACTOR:g} * {learnt}"),
        recording(f"{Z}:{arm.name}", f"({DROP}:{arm.name} - {one}) / sqrt({VARIANCE}:{arm.name})"),
    ]


def threshold_rule(config: Config, arm: Arm) -> dict[str, str]:
    """Return the recording rule of the z at which a window fires: more series, more chances of a false alarm.

    The series that are compared now are counted over the whole Prometheus, since one person hears of them all.
    """
    family = f"vector({config.family})" if config.family else f"count({Z}:week or {Z}:days or {Z}:day) or vector(1)"
    return recording(f"{THRESHOLD}:{arm.name}", limit(arm, family))


def limit(arm: Arm, family: str) -> str:
    """Return the z at which a window fires, from the expression of the number of watched series."""
    return f"sqrt({arm.z**2:g} + 2 * ln({family}))"


def wander_rules(config: Config, arm: Arm) -> list[dict[str, str]]:
    """Return the recording rules of the readings of a window's wander, and of what is learnt from them."""
    around_s = config.wander_rest_s + arm.window_s
    frozen = f"last_over_time({FROZEN}_time[{duration(config.gate_s)}]) > time() - {around_s}"
    reading = f"{_reading(config, arm)}\nunless {on(IDENTITY)} {fired(around_s)}\nunless {on(HELD)} ({frozen})"
    return [
        recording(f"{WANDER}:{arm.name}", reading),
        recording(f"{LEARNT}:{arm.name}", _learnt(config, arm)),
        recording(f"{T2}:{arm.name}", _believed(config, arm)),
    ]


def block_steps(window_s: int, block_s: int) -> str:
    """Return the range of a subquery with one step for each block of a window.

    Example:
        >>> block_steps(86_400, 3_600)
        '[86399999ms:1h]'
    """
    return f"[{_just_under(window_s)}:{duration(block_s)}]"


def _just_under(seconds: int) -> str:
    """Return a range a millisecond short: Prometheus before 3.0 counts both of its ends."""
    return f"{1_000 * seconds - 1}ms"


def _drop(config: Config, arm: Arm) -> str:
    normal, mean, down = f"{NORMAL}_mean:{arm.base}", f"ragtrace:score_mean:{arm.name}", config.down_metrics
    if not down:
        return f"{normal} - {mean}"
    lower = f"{{{watching(down)}}}"
    return f'{normal}{{{METRIC}!~"{"|".join(down)}"}} - {mean}\nor\n{mean}{lower} - {normal}{lower}'


def _sampling(config: Config, arm: Arm) -> str:
    window = f"(ragtrace:score_n_eff:{arm.name} >= {config.min_n_eff})"
    base = f"({NORMAL}_n_eff:{arm.base} >= {config.min_baseline_n_eff})"
    return f"{NORMAL}_s2:{arm.base} * (1 / {window} + 1 / {base})"


def _between_blocks(arm: Arm) -> str:
    w, wx = f"ragtrace:score_w:{arm.block}", f"ragtrace:score_wx:{arm.block}"
    steps, mean = block_steps(arm.window_s, arm.block_s), f"ragtrace:score_mean:{arm.name}"
    squares = (
        f"sum_over_time(({wx} ^ 2){steps})\n"
        f"  - 2 * {mean} * sum_over_time(({w} * {wx}){steps})\n"
        f"  + {mean} ^ 2 * sum_over_time(({w} ^ 2){steps})"
    )
    weight = f"(ragtrace:score_w:{arm.name} * (sum_over_time({w}{steps}) > 0))"
    return f"clamp_min(\n  {squares}, 0\n) / {weight}\n+ {NORMAL}_s2:{arm.base} / {NORMAL}_n_eff:{arm.base}"


def _reading(config: Config, arm: Arm) -> str:
    at = f" offset {duration(config.wander_rest_s)}"
    mean = f"ragtrace:score_mean:{arm.name}{at}"
    normal = f"({DROP}:{arm.name}{at}) ^ 2"
    followed = f"({rolling(config, 'mean', arm.base, at=at)} - {mean}) ^ 2"
    return f"({followed} < {normal} or {normal})\n  - {S2}:{arm.name}{at}"


def _learnt(config: Config, arm: Arm) -> str:
    readings, prior = f"({WANDER}:{arm.name}[{_just_under(config.wander_s)}])", config.wander_prior**2
    # Seconds of history and of the prior; a reading stands for the interval of its group.
    history = f"{config.baseline_interval_s} * count_over_time{readings}"
    total = f"{config.baseline_interval_s} * sum_over_time{readings}"
    return (
        f"clamp_min(\n  ({total} + {config.wander_weight_s * prior:g})"
        f" / ({history} + {config.wander_weight_s}),\n  {config.wander_floor * prior:g}\n)\n"
        f"or 0 * {_last_s2(config, arm)} + {prior:g}"
    )


def _believed(config: Config, arm: Arm) -> str:
    learnt, cap = f"{LEARNT}:{arm.name}", f"{arm.wander_cap**2:g}"
    most = f"clamp_min({config.wander_sampling:g} * {_last_s2(config, arm)}, {cap})"
    own = f"{learnt} <= {most}\nor {most} < {learnt}\nor clamp_max({learnt}, {cap})"
    if arm.name in {"day", "fast"}:
        return own
    of_day = f"clamp_max({T2}:day, {cap})"
    return f"(\n{own}\n) > {of_day}\nor {of_day}\nor {own}"


def _last_s2(config: Config, arm: Arm) -> str:
    return f"last_over_time({S2}:{arm.name}[{duration(config.gate_s)}])"
