"""Rule F as PromQL: three windows against a baseline that learns nothing of an incident.

Two forms. Over recorded series, for Prometheus: the baseline is a recording rule, gated by ``ALERTS`` and read
with ``last_over_time``, since a gated rule vanishes until the incident has left its window; a baseline that a
person froze or accepted goes before it. Over raw counters and the baseline that the scorer exports, frozen or
learnt, for alerts that Grafana manages: those write no ``ALERTS``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ragtrace import semconv
from ragtrace_dashboards.config import duration
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
    gauge_by,
    on,
    summed,
    variance,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ragtrace_dashboards.config import Config

DRIFT_ALERTS: Final = ("RagtraceQualityDrift", "RagtraceSelectionEfficiencyDrift", "RagtraceHarmDrift")
CHANGED: Final = "ragtrace:judge_changed:day"
KNOWN: Final = "ragtrace:judge_known:base"
FROZEN: Final = "ragtrace:baseline_frozen"
NORMAL: Final = "ragtrace:normal"
"""Beginnings of the names of recorded baselines: the frozen ones, and those that scores are held against."""

EASIER: Final = "ragtrace:baseline_easier"
"""Rolling means that are easier to meet than a frozen one of which the window still holds scores from before."""

_WINDOW_SUMS = {"w": semconv.SCORE_W, "wx": semconv.SCORE_WX, "w2": semconv.SCORE_W2}
_BASE_SUMS = {**_WINDOW_SUMS, "w2x": semconv.SCORE_W2X, "w2x2": semconv.SCORE_W2X2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One window of rule F.

    Attributes:
        name: in the names of recorded series, the same in every profile.
        window_s: its length.
        tolerance: the fall that is not worth an alert.
        z: standard errors beyond the tolerance at which it fires.
        base: name of the baseline it is held against: the one that ends where the window begins, or a day ago.
    """

    name: str
    window_s: int
    tolerance: float
    z: float
    base: str


def arms(config: Config) -> tuple[Arm, ...]:
    """Return the windows of rule F, the slow ones first.

    Example:
        >>> from ragtrace_dashboards.config import Config
        >>> [(arm.name, arm.window_s, arm.z) for arm in arms(Config())]
        [('day', 86400, 3.0), ('days', 259200, 3.0), ('fast', 21600, 4.0)]
    """
    slow, fast = (config.tolerance, config.z), (config.fast_tolerance, config.fast_z)
    return (
        Arm(name="day", window_s=config.day_window_s, tolerance=slow[0], z=slow[1], base="day"),
        Arm(name="days", window_s=config.days_window_s, tolerance=slow[0], z=slow[1], base="days"),
        Arm(name="fast", window_s=config.fast_window_s, tolerance=fast[0], z=fast[1], base="day"),
    )


def watching(names: Iterable[str]) -> str:
    """Return the matcher of some metrics.

    Example:
        >>> watching(["mrr", "harm_at_k"])
        'gen_ai_evaluation_name=~"mrr|harm_at_k"'
    """
    return f'{METRIC}=~"{"|".join(names)}"'


def window_rules(config: Config) -> list[dict[str, str]]:
    """Return the recording rules of mean, effective number and z of each window, and of what it is held against."""
    where = watching(it.name for it in config.metrics)
    rules = _frozen_rules(config)
    for arm in arms(config):
        sums = {key: f"ragtrace:score_{key}:{arm.name}" for key in _WINDOW_SUMS}
        rules += [
            _rule(sums[key], summed(SERIES[name], duration(arm.window_s), IDENTITY, where))
            for key, name in _WINDOW_SUMS.items()
        ]
        rules += [
            _rule(f"ragtrace:score_mean:{arm.name}", f"{sums['wx']} / ({sums['w']} > 0)"),
            _rule(f"ragtrace:score_n_eff:{arm.name}", f"{sums['w']} ^ 2 / ({sums['w2']} > 0)"),
            *(_normal_rules(config, arm) if arm.name == arm.base else ()),
            _rule(f"ragtrace:drift_z:{arm.name}", _recorded_z(config, arm)),
        ]
    return [*rules, _rule(CHANGED, _recorded_change(config))]


def baseline_rules(config: Config) -> list[dict[str, str]]:
    """Return the recording rules of the baselines; mean, effective number and variance rest after an incident."""
    rules = []
    for base, offset_s in (("day", config.day_window_s), ("days", config.days_window_s)):
        sums = {key: f"ragtrace:baseline_{key}:{base}" for key in _BASE_SUMS}
        sample = _baseline(config, offset_s)
        rules += [_rule(sums[key], sample.sum(name)) for key, name in _BASE_SUMS.items()]
        mean = f"{sums['wx']} / ({sums['w']} > 0)"
        s2 = variance(mean, sums["w2"], sums["w2x"], sums["w2x2"])
        rules += [
            _resting(config, f"ragtrace:baseline_mean:{base}", mean),
            _resting(config, f"ragtrace:baseline_n_eff:{base}", f"{sums['w']} ^ 2 / ({sums['w2']} > 0)"),
            _resting(config, f"ragtrace:baseline_s2:{base}", s2),
        ]
    return [*rules, _rule(KNOWN, _known(config, (*WHOSE, JUDGE_MODEL, JUDGE_VERSION)))]


def recorded_drift(config: Config, names: Sequence[str]) -> str:
    """Return the drift alert over recorded series: any arm, but not while the judge or its prompt has changed."""
    where = watching(names)
    fired = "\n  or ".join(f"ragtrace:drift_z:{arm.name}{{{where}}} > {arm.z:g}" for arm in arms(config))
    return f"(\n  {fired}\n)\nunless {on(WHOSE)} {CHANGED}"


def frozen_drift(config: Config, names: Sequence[str]) -> str:
    """Return the drift alert over raw counters and the exported baseline of the same K, scale and judge version."""
    down = config.down_metrics
    sides = [(is_down, [name for name in names if (name in down) == is_down]) for is_down in (False, True)]
    fired = "\n  or ".join(
        f"({_frozen_z(config, arm, chosen, is_down=is_down)}) > {arm.z:g}\n    unless {_just_frozen(arm, chosen)}"
        for arm in arms(config)
        for is_down, chosen in sides
        if chosen
    )
    changed = judge_change(config, config.days_window_s)
    return f"(\n  {fired}\n)\nunless {on(WHOSE)} (\n  {changed}\n)"


def judge_change(config: Config, window_s: int) -> str:
    """Return what scored within the window and never in the baseline before, where something else did."""
    by = (*WHOSE, JUDGE_MODEL, JUDGE_VERSION)
    shift = f"offset {duration(window_s)}"
    before = summed(SERIES[semconv.SCORE_N], duration(config.baseline_s), by, f'{JUDGE_VERSION}!=""', shift)
    now = _scored_now(window_s)
    return f"({now} > 0)\n  unless ({before} > 0)\n  and {on(WHOSE)} (sum by ({', '.join(WHOSE)}) ({before}) > 0)"


def _rule(record: str, expr: str) -> dict[str, str]:
    return {"record": record, "expr": expr}


def _baseline(config: Config, offset_s: int) -> Sample:
    return Sample(
        window=duration(config.baseline_s),
        where=watching(it.name for it in config.metrics),
        at=f"offset {duration(offset_s)}",
    )


def _resting(config: Config, name: str, expr: str) -> dict[str, str]:
    """Return the recording rule of a baseline; it rests from a drift alert on until the incident left its window.

    The last one is held for `baseline_memory_s`. After that, it is read once, even while an alert fires, since a
    series without a baseline is not watched.
    """
    by = ", ".join(IDENTITY)
    alerts = f'ALERTS{{alertname=~"{"|".join(DRIFT_ALERTS)}",alertstate="firing"}}'
    fired = f"last_over_time({alerts}[{duration(config.baseline_rest_s)}])"
    held = f"last_over_time({name}[{duration(config.baseline_memory_s)}])"
    return _rule(name, f"({expr})\nunless on ({by}) ({fired}\n  and on ({by}) {held})")


def _frozen_rules(config: Config) -> list[dict[str, str]]:
    """Return the recording rules of the baselines that were frozen or accepted; of several the newest.

    They are looked for as far back as the longest window: while it holds a score, a scorer that is away for a night
    must not make an accepted level an alarm again. One of too few scores is left aside: nothing would be held
    against it, and it would stand in the way of the rolling one for as long as it is frozen.
    """
    back, by = duration(config.days_window_s), ", ".join(HELD)
    where = watching(it.name for it in config.metrics)

    def last(name: str) -> str:
        return f"last_over_time({SERIES[name]}{{{where}}}[{back}])"

    def of_newest(name: str) -> str:  # all labels alike: the same process told both
        return f"avg by ({by}) ({last(name)} and {FROZEN}_time)"

    enough = f"{last(semconv.BASELINE_N)} >= {config.min_baseline_n_eff}"
    time = f"({last(semconv.BASELINE_FROZEN_TIME)} and {enough})"
    return [
        _rule(f"{FROZEN}_time", f"{time}\n== on ({by}) group_left () max by ({by}) ({time})"),
        _rule(f"{FROZEN}_mean", of_newest(semconv.BASELINE_MEAN)),
        _rule(f"{FROZEN}_n_eff", of_newest(semconv.BASELINE_N)),
        _rule(f"{FROZEN}_s2", f"clamp_min({of_newest(semconv.BASELINE_SD)} ^ 2, {S2_FLOOR})"),
    ]


def _normal_rules(config: Config, arm: Arm) -> list[dict[str, str]]:
    """Return the recording rules of what a window is held against: the frozen baseline, else the rolling one."""
    memory = duration(config.baseline_memory_s)
    return [
        _rule(f"{EASIER}:{arm.base}", _easier(config, arm)),
        *(
            _rule(
                f"{NORMAL}_{key}:{arm.base}",
                # 0 times the mean: the scores' labels around the baseline of their K, scale and judge version.
                f"0 * ragtrace:score_mean:{arm.base} + {on(HELD)} group_left () {FROZEN}_{key}\n"
                f"unless {on(IDENTITY)} {EASIER}:{arm.base}\n"
                f"or last_over_time(ragtrace:baseline_{key}:{arm.base}[{memory}])",
            )
            for key in ("mean", "n_eff", "s2")
        ),
    ]


def _easier(config: Config, arm: Arm) -> str:
    """Return the rolling means that are easier than the frozen one, while that is younger than the window.

    When a better level is accepted, the window still holds scores from before, and they are no drop.
    """
    held = on(HELD)
    down = config.down_metrics
    rest = f'{{{METRIC}!~"{"|".join(down)}"}}' if down else ""

    def rolling(where: str) -> str:
        return f"last_over_time(ragtrace:baseline_mean:{arm.base}{where}[{duration(config.baseline_memory_s)}])"

    lower = f"{rolling(rest)} < {held} group_left () {FROZEN}_mean"
    higher = f"\n  or {rolling(f'{{{watching(down)}}}')} > {held} group_left () {FROZEN}_mean" if down else ""
    return f"({lower}{higher})\nand {held} ({FROZEN}_time > time() - {arm.window_s})"


def _recorded_z(config: Config, arm: Arm) -> str:
    normal = {key: f"{NORMAL}_{key}:{arm.base}" for key in ("mean", "n_eff", "s2")}
    error = (
        f"sqrt({normal['s2']} * (1 / (ragtrace:score_n_eff:{arm.name} >= {config.min_n_eff})"
        f" + 1 / ({normal['n_eff']} >= {config.min_baseline_n_eff})))"
    )
    down = config.down_metrics
    mean = f"ragtrace:score_mean:{arm.name}"
    rest = f'{{{METRIC}!~"{"|".join(down)}"}}' if down else ""
    shown = f"({normal['mean']}{rest} - {mean} - {arm.tolerance:g})\n  / {error}"
    if not down:
        return shown
    lower = f"{{{watching(down)}}}"
    return f"{shown}\nor\n({mean}{lower} - {normal['mean']}{lower} - {arm.tolerance:g})\n  / {error}"


def _recorded_change(config: Config) -> str:
    before = f"last_over_time({KNOWN}[{duration(config.gate_s)}])"
    return (
        f"({_scored_now(config.day_window_s)} > 0)\nunless ({before} > 0)\n"
        f"and {on(WHOSE)} (sum by ({', '.join(WHOSE)}) ({before}) > 0)"
    )


def _scored_now(window_s: int) -> str:
    by = (*WHOSE, JUDGE_MODEL, JUDGE_VERSION)
    return summed(SERIES[semconv.SCORE_N], duration(window_s), by, f'{JUDGE_VERSION}!=""')


def _known(config: Config, by: Sequence[str]) -> str:
    shift = f"offset {duration(config.day_window_s)}"
    return summed(SERIES[semconv.SCORE_N], duration(config.baseline_s), by, f'{JUDGE_VERSION}!=""', shift)


def _just_frozen(arm: Arm, names: Sequence[str]) -> str:
    """Return what was frozen within the window: it holds scores from before, of another level maybe."""
    time = f"{SERIES[semconv.BASELINE_FROZEN_TIME]}{{{watching(names)}}}"
    return f"{on(HELD)} ({time} > time() - {arm.window_s})"


def _frozen_z(config: Config, arm: Arm, names: Sequence[str], *, is_down: bool) -> str:
    where = watching(names)
    sample = Sample(window=duration(arm.window_s), by=HELD, where=where)
    mean, sd, n = (
        gauge_by("avg", name, HELD, where)
        for name in (semconv.BASELINE_MEAN, semconv.BASELINE_SD, semconv.BASELINE_N)
    )
    better, worse = (sample.mean, mean) if is_down else (mean, sample.mean)
    error = (
        f"sqrt(clamp_min(({sd}) ^ 2, {S2_FLOOR}) * (1 / ({sample.n_eff} >= {config.min_n_eff})"
        f" + 1 / ({n} >= {config.min_baseline_n_eff})))"
    )
    return f"({better} - ({worse}) - {arm.tolerance:g}) / {error}"
