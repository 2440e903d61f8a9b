"""Recorded baselines: rolling ones that rest in an incident, and those that a person froze or accepted.

A rolling baseline is gated by ``ALERTS`` and read with ``last_over_time``, since a gated rule vanishes until the
incident has left its window. A baseline that a person froze or accepted goes before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ragtrace import semconv
from ragtrace_dashboards.config import DRIFT_ALERTS, duration
from ragtrace_dashboards.expressions import (
    HELD,
    IDENTITY,
    JUDGE_MODEL,
    JUDGE_VERSION,
    METRIC,
    S2_FLOOR,
    SERIES,
    WHOSE,
    Sample,
    on,
    recording,
    summed,
    variance,
    watching,
)

if TYPE_CHECKING:
    from ragtrace_dashboards.config import Config
    from ragtrace_dashboards.drift import Arm

KNOWN: Final = "ragtrace:judge_known:base"
BASELINE: Final = "ragtrace:baseline"
FROZEN: Final = "ragtrace:baseline_frozen"
NORMAL: Final = "ragtrace:normal"
"""Beginnings of the names of recorded baselines: rolling, frozen, and those that scores are held against."""

EASIER: Final = "ragtrace:baseline_easier"
"""Rolling means that are easier to meet than a frozen one of which the window still holds scores from before."""

_SUMS = {
    "w": semconv.SCORE_W,
    "wx": semconv.SCORE_WX,
    "w2": semconv.SCORE_W2,
    "w2x": semconv.SCORE_W2X,
    "w2x2": semconv.SCORE_W2X2,
}


def baseline_rules(config: Config) -> list[dict[str, str]]:
    """Return the recording rules of the baselines; mean, effective number and variance rest after an incident."""
    rules = []
    for base, offset_s in config.baseline_ends_s.items():
        rest_s = config.baseline_s + offset_s
        sums = {key: f"{BASELINE}_{key}:{base}" for key in _SUMS}
        sample = _sample(config, offset_s)
        rules += [recording(sums[key], sample.sum(name)) for key, name in _SUMS.items()]
        mean = f"{sums['wx']} / ({sums['w']} > 0)"
        s2 = variance(mean, sums["w2"], sums["w2x"], sums["w2x2"])
        rules += [
            _resting(config, f"{BASELINE}_mean:{base}", mean, rest_s),
            _resting(config, f"{BASELINE}_n_eff:{base}", f"{sums['w']} ^ 2 / ({sums['w2']} > 0)", rest_s),
            _resting(config, f"{BASELINE}_s2:{base}", s2, rest_s),
        ]
    return [*rules, recording(KNOWN, _judges_before(config))]


def frozen_rules(config: Config) -> list[dict[str, str]]:
    """Return the recording rules of the baselines that were frozen or accepted; of several the newest.

    They are looked for as far back as the longest window: while it holds a score, a scorer that is away for a night
    must not make an accepted level an alarm again. One of too few scores is left aside: nothing would be held
    against it, and it would stand in the way of the rolling one for as long as it is frozen.
    """
    back, by = duration(config.longest_window_s), ", ".join(HELD)
    where = watching(it.name for it in config.metrics)

    def last(name: str) -> str:
        return f"last_over_time({SERIES[name]}{{{where}}}[{back}])"

    def of_newest(name: str) -> str:  # all labels alike: the same process told both
        return f"avg by ({by}) ({last(name)} and {FROZEN}_time)"

    enough = f"{last(semconv.BASELINE_N)} >= {config.min_baseline_n_eff}"
    time = f"({last(semconv.BASELINE_FROZEN_TIME)} and {enough})"
    return [
        recording(f"{FROZEN}_time", f"{time}\n== on ({by}) group_left () max by ({by}) ({time})"),
        recording(f"{FROZEN}_mean", of_newest(semconv.BASELINE_MEAN)),
        recording(f"{FROZEN}_n_eff", of_newest(semconv.BASELINE_N)),
        recording(f"{FROZEN}_s2", f"clamp_min({of_newest(semconv.BASELINE_SD)} ^ 2, {S2_FLOOR})"),
    ]


def normal_rules(config: Config, arm: Arm) -> list[dict[str, str]]:
    """Return the recording rules of what a window is held against: the frozen baseline, else the rolling one."""
    return [
        recording(f"{EASIER}:{arm.base}", _easier(config, arm)),
        *(
            recording(
                f"{NORMAL}_{key}:{arm.base}",
                # 0 times the mean: the scores' labels around the baseline of their K, scale and judge version.
                f"0 * ragtrace:score_mean:{arm.base} + {on(HELD)} group_left () {FROZEN}_{key}\n"
                f"unless {on(IDENTITY)} {EASIER}:{arm.base}\n"
                f"or {rolling(config, key, arm.base)}",
            )
            for key in ("mean", "n_eff", "s2")
        ),
    ]


def rolling(config: Config, key: str, base: str, *, where: str = "", at: str = "") -> str:
    """Return the last rolling baseline within its memory: its `key` is ``mean``, ``n_eff`` or ``s2``."""
    return f"last_over_time({BASELINE}_{key}:{base}{where}[{duration(config.baseline_memory_s)}]{at})"


def fired(back_s: int) -> str:
    """Return the drift alerts that fired at any time within the last seconds."""
    names = "|".join(DRIFT_ALERTS)
    return f'last_over_time(ALERTS{{alertname=~"{names}",alertstate="firing"}}[{duration(back_s)}])'


def _sample(config: Config, offset_s: int) -> Sample:
    return Sample(
        window=duration(config.baseline_s),
        where=watching(it.name for it in config.metrics),
        at=f"offset {duration(offset_s)}",
    )


def _resting(config: Config, name: str, expr: str, rest_s: int) -> dict[str, str]:
    """Return the recording rule of a baseline; it rests from a drift alert on until the incident left its window.

    The last one is held for `baseline_memory_s`. After that, it is read once, even while an alert fires, since a
    series without a baseline is not watched.
    """
    held = f"last_over_time({name}[{duration(config.baseline_memory_s)}])"
    rests = f"({fired(rest_s)}\n  and {on(IDENTITY)} {held})"
    return recording(name, f"({expr})\nunless {on(IDENTITY)} {rests}")


def _easier(config: Config, arm: Arm) -> str:
    """Return the rolling means that are easier than the frozen one, while that is younger than the window.

    When a better level is accepted, the window still holds scores from before, and they are no drop.
    """
    held = on(HELD)
    down = config.down_metrics
    rest = f'{{{METRIC}!~"{"|".join(down)}"}}' if down else ""
    lower = f"{rolling(config, 'mean', arm.base, where=rest)} < {held} group_left () {FROZEN}_mean"
    higher = ""
    if down:
        mean = rolling(config, "mean", arm.base, where=f"{{{watching(down)}}}")
        higher = f"\n  or {mean} > {held} group_left () {FROZEN}_mean"
    return f"({lower}{higher})\nand {held} ({FROZEN}_time > time() - {arm.window_s})"


def _judges_before(config: Config) -> str:
    by = (*WHOSE, JUDGE_MODEL, JUDGE_VERSION)
    shift = f"offset {duration(config.day_window_s)}"
    return summed(SERIES[semconv.SCORE_N], duration(config.baseline_s), by, f'{JUDGE_VERSION}!=""', shift)
