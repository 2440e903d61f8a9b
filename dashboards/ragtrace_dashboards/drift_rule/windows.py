"""Recording rules of the windows: mean, effective number, drop, its standard error, and the drop that fires.

The error of a drop has four parts. s2 is the variance of one score, as in the baseline.

- The baseline's sampling error: s2 / n of the baseline.
- The window's sampling error, s2 / n of the window, or where that is larger the error that the spread between its
  blocks shows: the sum over the blocks of (WX - mean W)^2, divided by the square of their weight. Blocks are hours,
  or quarters of an hour in the shortest window: the last whole ones of the clock, since Prometheus aligns the steps
  of a subquery. Scores that come in sessions or bursts raise it.
- The service's own wander, `drift_rule.wander`, for the window and for the baseline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ragtrace import semconv
from ragtrace_dashboards.config import duration
from ragtrace_dashboards.drift import DROP, ERROR, LIMIT, MEAN, N_EFF, NORMAL, arms
from ragtrace_dashboards.drift_rule.wander import T2, just_under
from ragtrace_dashboards.expressions import IDENTITY, METRIC, SERIES, summed, watching
from ragtrace_dashboards.rules import Rule

if TYPE_CHECKING:
    from ragtrace_dashboards.config import Config
    from ragtrace_dashboards.drift import Arm

WANDER_FACTOR: Final = 1.5
"""The wander in the variance of a drop: both its window and its baseline wander."""


def window_rules(config: Config, *names: str) -> list[Rule]:
    """Return the recording rules of some windows, by their names, and of the blocks that they are made of."""
    chosen = [arm for arm in arms(config) if arm.name in names]
    blocks = {arm.block: arm for arm in chosen}
    return [
        *(rule for arm in blocks.values() for rule in _block_rules(config, arm)),
        *(rule for arm in chosen for rule in _mean_rules(config, arm)),
        *(rule for arm in chosen for rule in _drop_rules(config, arm)),
        *(_limit_rule(config, arm) for arm in chosen),
    ]


def mean_and_size(config: Config, window_s: int) -> tuple[str, str]:
    """Return the weighted mean and the effective number of the watched scores within the last seconds."""
    where, window = watching(it.name for it in config.metrics), duration(window_s)
    w, wx, w2 = (
        summed(SERIES[name], window, IDENTITY, where)
        for name in (semconv.SCORE_W, semconv.SCORE_WX, semconv.SCORE_W2)
    )
    return f"{wx}\n/ ({w} > 0)", f"{w} ^ 2\n/ ({w2} > 0)"


def firing_errors(config: Config, arm: Arm) -> str:
    """Return the standard errors at which a window fires: more series, more chances of a false alarm.

    The series that are compared now are counted over the whole Prometheus, since one person hears of them all.
    """
    counted = f"vector({config.family})" if config.family else f"count({ERROR}:day or {ERROR}:week) or vector(1)"
    return f"scalar(sqrt({arm.z**2:g} + 2 * ln({counted})))"


def turned(config: Config, better: str, worse: str, at: str = "") -> str:
    """Return how far a mean lies on the bad side of a better one, which is of the time `at`."""
    down = config.down_metrics
    if not down:
        return f"{better}{at} - {worse}"
    upper, lower = f'{{{METRIC}!~"{"|".join(down)}"}}', f"{{{watching(down)}}}"
    return f"{better}{upper}{at} - {worse}\n  or {worse}{lower} - {better}{at}"


def _block_rules(config: Config, arm: Arm) -> list[Rule]:
    where, length = watching(it.name for it in config.metrics), duration(arm.block_s)
    sums = {"w": (semconv.SCORE_W, "weight"), "wx": (semconv.SCORE_WX, "weight times score")}
    return [
        Rule(
            record=f"ragtrace:score_{key}:{arm.block}",
            expr=summed(SERIES[name], length, IDENTITY, where),
            says=f"Sum of {what} within the last {length}, from which the spread between blocks is computed.",
        )
        for key, (name, what) in sums.items()
    ]


def _mean_rules(config: Config, arm: Arm) -> list[Rule]:
    mean, size = mean_and_size(config, arm.window_s)
    window = duration(arm.window_s)
    return [
        Rule(record=f"{MEAN}:{arm.name}", expr=mean, says=f"Weighted mean of the scores of the last {window}."),
        Rule(
            record=f"{N_EFF}:{arm.name}",
            expr=size,
            says=f"Effective number of scores of the last {window}; a session or a repeated question is one.",
        ),
    ]


def _drop_rules(config: Config, arm: Arm) -> list[Rule]:
    drop = turned(config, f"{NORMAL}_mean:{arm.base}", f"{MEAN}:{arm.name}")
    return [
        Rule(
            record=f"{DROP}:{arm.name}",
            expr=f"(\n  {drop}\n)\nand {NORMAL}_n_eff:{arm.base} >= {config.min_baseline_n_eff}\n"
            f"and {N_EFF}:{arm.name} >= {config.min_n_eff}",
            says=f"How far the mean of {duration(arm.window_s)} lies on the bad side of normal, where both have "
            "enough scores.",
        ),
        Rule(
            record=f"{ERROR}:{arm.name}",
            expr=_error(config, arm),
            says="Standard error of that drop: sampling or the spread between blocks, if larger, and the wander.",
        ),
    ]


def _error(config: Config, arm: Arm) -> str:
    w, wx, mean = f"ragtrace:score_w:{arm.block}", f"ragtrace:score_wx:{arm.block}", f"{MEAN}:{arm.name}"
    blocks = f"[{just_under(arm.window_s)}:{duration(arm.block_s)}]"
    s2, n = f"{NORMAL}_s2:{arm.base}", f"{N_EFF}:{arm.name}"
    wander = f"{WANDER_FACTOR:g} * last_over_time({T2}:{arm.name}[{duration(config.fast_window_s)}])"
    return (
        "sqrt(\n"
        "  (\n"
        "    clamp_min(\n"
        f"      sum_over_time(({wx} ^ 2){blocks})\n"
        f"      - 2 * {mean} * sum_over_time(({w} * {wx}){blocks})\n"
        f"      + {mean} ^ 2 * sum_over_time(({w} ^ 2){blocks}), 0\n"
        f"    ) / (sum_over_time({w}{blocks}) ^ 2 > 0)\n"
        f"    > {s2} / {n}\n"
        f"    or {s2} / {n}\n"
        "  )\n"
        f"  + {s2} / {NORMAL}_n_eff:{arm.base}\n"
        f"  + {wander}\n"
        f")\nand {DROP}:{arm.name}"
    )


def _limit_rule(config: Config, arm: Arm) -> Rule:
    return Rule(
        record=f"{LIMIT}:{arm.name}",
        expr=f"clamp_min(\n  1 / {N_EFF}:{arm.name}\n  + {firing_errors(config, arm)} * {ERROR}:{arm.name},\n"
        f"  {arm.tolerance:g}\n)",
        says=f"The drop at which {duration(arm.window_s)} fires: one bad answer and the noise, or the tolerance.",
    )
