"""Recording rules of the wander: how far a service's mean moves by itself, learnt from its past.

It is the mean of D^2 - S2 over `wander_s` that ended `wander_rest_s` ago. D is the drop of a window and S2 its
sampling variance, s2 (1 / n of the window + 1 / n of the baseline). It is shrunk to a prior with a weight of
`wander_weight_s`: `wander_prior`^2, or s2 / `wander_scores` where that is smaller, as for a metric near 0 or 1. It
is at least the prior, and at most the larger of the window's cap and `wander_sampling` S2, since scores in sessions
that nobody declares move the mean as a wander does.

A reading of D^2 - S2 counts only when no drift alert of its series fired near it, and no baseline was frozen or
accepted near it: a drop that was mended or accepted is an incident. A frozen baseline does not follow the service,
so the smaller of its D^2 and the rolling baseline's is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ragtrace_dashboards.config import duration
from ragtrace_dashboards.drift import DROP, MEAN, N_EFF, NORMAL, arms
from ragtrace_dashboards.drift_rule.baselines import FROZEN, fired, rolling
from ragtrace_dashboards.expressions import HELD, IDENTITY, on
from ragtrace_dashboards.rules import Rule

if TYPE_CHECKING:
    from ragtrace_dashboards.config import Config
    from ragtrace_dashboards.drift import Arm

READING: Final = "ragtrace:drift_wander"
"""Beginning of the names of the readings of D^2 - S2, recorded `wander_rest_s` late."""

T2: Final = "ragtrace:drift_t2"
"""Beginning of the names of the wander, a variance."""


def wander_rules(config: Config) -> list[Rule]:
    """Return the recording rules of the readings of each window's wander, and of the wander that they show."""
    return [rule for arm in arms(config) for rule in (_reading(config, arm), _wander(config, arm))]


def just_under(seconds: int) -> str:
    """Return a range a millisecond short: Prometheus before 3.0 counts both of its ends.

    Example:
        >>> just_under(86_400)
        '86399999ms'
    """
    return f"{1_000 * seconds - 1}ms"


def _reading(config: Config, arm: Arm) -> Rule:
    rest, around_s = duration(config.wander_rest_s), config.wander_rest_s + arm.window_s
    at = f" offset {rest}"
    by_normal = f"({DROP}:{arm.name}{at}) ^ 2"
    by_rolling = f"({rolling(config, 'mean', arm.base, at=at)} - {MEAN}:{arm.name}{at}) ^ 2"
    return Rule(
        record=f"{READING}:{arm.name}",
        expr=f"({by_rolling} < {by_normal} or {by_normal})\n- {_sampling(arm, at)}\n"
        f"unless {on(IDENTITY)} {fired(around_s)}\n"
        f"unless {on(HELD)} {FROZEN}_time > time() - {around_s}",
        says=f"How far the mean of {duration(arm.window_s)} lay from normal {rest} ago, squared, beyond sampling; "
        "none near an incident.",
    )


def _wander(config: Config, arm: Arm) -> Rule:
    readings, prior = f"({READING}:{arm.name}[{just_under(config.wander_s)}])", _prior(config, arm)
    # Seconds of history and of the prior; a reading stands for the interval of its group.
    history = f"{config.wander_interval_s} * count_over_time{readings}"
    total = f"{config.wander_interval_s} * sum_over_time{readings}"
    sampling = f"({_sampling(arm)} and {DROP}:{arm.name})"
    most = f"clamp_min({config.wander_sampling:g} * {sampling}, {arm.wander_cap**2:g})"
    return Rule(
        record=f"{T2}:{arm.name}",
        expr=f"(\n  ({total} + {config.wander_weight_s} * {prior})\n"
        f"  / ({history} + {config.wander_weight_s})\n  > {prior}\n  or {prior}\n)\n"
        f"< {most}\nor {most}",
        says=f"The service's own wander in {duration(arm.window_s)}, a variance: mean of those readings, bounded.",
    )


def _prior(config: Config, arm: Arm) -> str:
    """Return the wander that is believed before there is history, and the least that is."""
    return f"clamp_max({NORMAL}_s2:{arm.base} / {config.wander_scores}, {config.wander_prior**2:g})"


def _sampling(arm: Arm, at: str = "") -> str:
    """Return the sampling variance of a drop."""
    n, base_n = f"{N_EFF}:{arm.name}{at}", f"{NORMAL}_n_eff:{arm.base}{at}"
    return f"{NORMAL}_s2:{arm.base}{at} * (1 / {n} + 1 / {base_n})"
