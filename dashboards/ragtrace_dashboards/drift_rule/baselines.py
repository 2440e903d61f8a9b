"""Recorded baselines: rolling ones that rest in an incident, and those that a person froze or accepted.

A rolling baseline is gated by ``ALERTS`` and read with ``last_over_time``, since a gated rule vanishes until the
incident has left its window. A baseline that a person froze or accepted goes before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ragtrace import semconv
from ragtrace_dashboards.config import DRIFT_ALERTS, duration
from ragtrace_dashboards.drift import CHANGED, NORMAL
from ragtrace_dashboards.expressions import (
    HELD,
    IDENTITY,
    JUDGE_MODEL,
    JUDGE_VERSION,
    METRIC,
    S2_FLOOR,
    SERIES,
    WHOSE,
    on,
    summed,
    watching,
)
from ragtrace_dashboards.rules import Rule

if TYPE_CHECKING:
    from ragtrace_dashboards.config import Config

BASELINE: Final = "ragtrace:baseline"
FROZEN: Final = "ragtrace:frozen"
"""Beginnings of the names of recorded baselines: rolling, and frozen or accepted."""

_JUDGED: Final = f'{JUDGE_VERSION}!=""'


def baseline_rules(config: Config) -> list[Rule]:
    """Return the recording rules of the rolling baselines."""
    return [rule for base in config.baseline_ends_s for rule in _rolling_rules(config, base)]


def normal_rules(config: Config) -> list[Rule]:
    """Return the recording rules of what windows are held against, and of judges that are new today."""
    return [
        *_frozen_rules(config),
        *(rule for base in config.baseline_ends_s for rule in _normal_rules(config, base)),
        _judge_change(config),
    ]


def rolling(config: Config, key: str, base: str, *, where: str = "", at: str = "") -> str:
    """Return the last rolling baseline within its memory: its `key` is ``mean``, ``n_eff`` or ``s2``."""
    return f"last_over_time({BASELINE}_{key}:{base}{where}[{duration(config.baseline_memory_s)}]{at})"


def fired(back_s: int) -> str:
    """Return the drift alerts that fired at any time within the last seconds."""
    names = "|".join(DRIFT_ALERTS)
    return f'last_over_time(ALERTS{{alertname=~"{names}",alertstate="firing"}}[{duration(back_s)}])'


def _rolling_rules(config: Config, base: str) -> list[Rule]:
    """Return a baseline's rules. The mean rests from a drift alert on until the incident has left its window.

    The last one is held for `baseline_memory_s`. After that, it is read once, even while an alert fires, since a
    series without a baseline is not watched. Number and variance follow the mean.
    """
    offset_s, where = config.baseline_ends_s[base], watching(it.name for it in config.metrics)
    length, at = duration(config.baseline_s), f"offset {duration(offset_s)}"
    w, wx, w2, w2x, w2x2 = (
        summed(SERIES[name], length, IDENTITY, where, at)
        for name in (semconv.SCORE_W, semconv.SCORE_WX, semconv.SCORE_W2, semconv.SCORE_W2X, semconv.SCORE_W2X2)
    )
    mean = f"{BASELINE}_mean:{base}"
    rests = f"{fired(config.baseline_s + offset_s)}\n  and {on(IDENTITY)} {rolling(config, 'mean', base)}"
    span = f"the {length} that ended {duration(offset_s)} ago"
    return [
        Rule(
            record=mean,
            expr=f"{wx}\n/ ({w} > 0)\nunless {on(IDENTITY)} (\n  {rests}\n)",
            says=f"Weighted mean of {span}; it rests from a drift alert until the incident is out of it.",
        ),
        Rule(
            record=f"{BASELINE}_n_eff:{base}",
            expr=f"{w} ^ 2\n/ ({w2} > 0)\nand {mean}",
            says="Effective number of scores behind that mean.",
        ),
        Rule(
            record=f"{BASELINE}_s2:{base}",
            expr=f"clamp_min(\n  (\n    {w2x2}\n    - 2 * {mean} * {w2x}\n  )\n"
            f"  / ({w2} > 0)\n  + {mean} ^ 2, {S2_FLOOR}\n)",
            says=f"Variance of one score around that mean, at least {S2_FLOOR}.",
        ),
    ]


def _frozen_rules(config: Config) -> list[Rule]:
    """Return the rules of the baselines that were frozen or accepted; of several the newest.

    They are looked for as far back as the longest window: while it holds a score, a scorer that is away for a night
    must not make an accepted level an alarm again. One of too few scores is left aside: nothing would be held
    against it, and it would stand in the way of the rolling one for as long as it is frozen.
    """
    back, by, where = duration(config.longest_window_s), ", ".join(HELD), watching(it.name for it in config.metrics)

    def last(name: str) -> str:
        return f"last_over_time({SERIES[name]}{{{where}}}[{back}])"

    def of_newest(name: str) -> str:  # all labels alike: the same process told both
        return f"avg by ({by}) ({last(name)} and {FROZEN}_time)"

    time = f"({last(semconv.BASELINE_FROZEN_TIME)} and {last(semconv.BASELINE_N)} >= {config.min_baseline_n_eff})"
    # 0 times the counter: the scores' labels around the baseline of their K, scale and judge version.
    scored = f"0 * max by ({', '.join(IDENTITY)}) ({last(semconv.SCORE_N)})"
    join = f"+ {on(HELD)} group_left ()"
    return [
        Rule(
            record=f"{FROZEN}_time",
            expr=f"{time}\n== on ({by}) group_left () max by ({by}) {time}",
            says="When the baseline that counts was frozen or accepted: the newest of enough scores.",
        ),
        Rule(
            record=f"{FROZEN}_mean",
            expr=f"{scored}\n{join} {of_newest(semconv.BASELINE_MEAN)}",
            says="Mean of that baseline.",
        ),
        Rule(
            record=f"{FROZEN}_n_eff",
            expr=f"0 * {FROZEN}_mean\n{join} {of_newest(semconv.BASELINE_N)}",
            says="Effective number of scores of that baseline.",
        ),
        Rule(
            record=f"{FROZEN}_s2",
            expr=f"clamp_min(\n  0 * {FROZEN}_mean\n  {join} {of_newest(semconv.BASELINE_SD)} ^ 2, {S2_FLOOR}\n)",
            says=f"Variance of one score of that baseline, at least {S2_FLOOR}.",
        ),
    ]


def _normal_rules(config: Config, base: str) -> list[Rule]:
    mean = f"{NORMAL}_mean:{base}"

    def rule(key: str, says: str) -> Rule:
        taken = f"({FROZEN}_{key} and {mean} == {FROZEN}_mean)"
        return Rule(record=f"{NORMAL}_{key}:{base}", expr=f"{taken}\nor {rolling(config, key, base)}", says=says)

    return [
        Rule(
            record=mean,
            expr=f"(\n  {FROZEN}_mean\n  unless (\n{_easier(config, base)}\n  )\n)\n"
            f"or {rolling(config, 'mean', base)}",
            says=f"What a window is held against: the frozen mean, else the rolling one that ends "
            f"{duration(config.baseline_ends_s[base])} ago.",
        ),
        rule("n_eff", "Effective number of scores behind what a window is held against."),
        rule("s2", "Variance of one score of what a window is held against."),
    ]


def _easier(config: Config, base: str) -> str:
    """Return the rolling means that are easier than the frozen one, while that is younger than the window.

    When a better level is accepted, the window still holds scores from before, and they are no drop.
    """
    down, frozen = config.down_metrics, f"{FROZEN}_mean"
    rest = f'{{{METRIC}!~"{"|".join(down)}"}}' if down else ""
    easier = f"{rolling(config, 'mean', base, where=rest)} < {frozen}"
    if down:
        easier += f"\n      or {rolling(config, 'mean', base, where=f'{{{watching(down)}}}')} > {frozen}"
    return f"    ({easier})\n    and {on(HELD)} {FROZEN}_time > time() - {config.baseline_ends_s[base]}"


def _judge_change(config: Config) -> Rule:
    by, day_s = (*WHOSE, JUDGE_MODEL, JUDGE_VERSION), config.day_window_s

    def scored(window_s: int, by: tuple[str, ...], at: str = "") -> str:
        return f"({summed(SERIES[semconv.SCORE_N], duration(window_s), by, _JUDGED, at)} > 0)"

    at = f"offset {duration(day_s)}"
    return Rule(
        record=CHANGED,
        expr=f"{scored(day_s, by)}\nunless {scored(config.baseline_s, by, at)}\n"
        f"and {on(WHOSE)} {scored(config.baseline_s, WHOSE, at)}",
        says=f"Scores of the last {duration(day_s)} by a judge or prompt that scored nothing in the "
        f"{duration(config.baseline_s)} before, where another did.",
    )
