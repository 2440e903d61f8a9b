"""Months of a service in promtool, whose counters are sums of drawn scores and not straight lines."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any

from ragtrace import semconv
from tests.monitoring.promtool import FAITHFULNESS, SERIES, expecting, samples

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable

DAY_H = 24.0
STEP_MIN = 120
"""Minutes between samples and evaluations, where months pass."""


def labels(metric: str, job: str, **others: str) -> dict[str, str]:
    """Return the labels of a metric's counters under the offline judge."""
    judge = {"ragtrace_judge_model": "overlap", "ragtrace_judge_version": f"{metric[:4]}0001"}
    return FAITHFULNESS | judge | {"job": job, "gen_ai_evaluation_name": metric} | others


def counters(about: dict[str, str], steps: Iterable[list[list[float]]]) -> list[dict[str, str]]:
    """Return the seven counters of scores, step by step; a step has clusters of equally weighted scores."""
    sums: dict[str, list[float]] = {name: [] for name in _GROWTH}
    for clusters in steps:
        for name, grows in _GROWTH.items():
            sums[name].append(sum(grows(cluster) for cluster in clusters))
    return [
        samples(SERIES[name], about, " ".join(["0", *(f"{value:.6g}" for value in accumulate(grown))]))
        for name, grown in sums.items()
    ]


_GROWTH: dict[str, Callable[[list[float]], float]] = {
    semconv.SCORE_N: len,
    semconv.SCORE_W: len,
    semconv.SCORE_WX: sum,
    semconv.SCORE_W2: lambda cluster: len(cluster) ** 2,
    semconv.SCORE_W2X: lambda cluster: len(cluster) * sum(cluster),
    semconv.SCORE_W2X2: lambda cluster: sum(cluster) ** 2,
    semconv.SCORE_LOW_W: lambda cluster: sum(x < 0.5 for x in cluster),
}


def wander(rng: random.Random, days: int, sd: float) -> list[float]:
    """Return how far each day's mean is off: an autoregression, 0.5 of yesterday's."""
    found, off = [], 0.0
    for _ in range(days):
        off = 0.5 * off + rng.gauss(0.0, sd * 0.75**0.5)
        found.append(off)
    return found


def moved(rng: random.Random, x: float, off: float) -> float:
    """Return a score in [0, 1] that is now and then the worst or the best, so that the mean moves by `off` or near."""
    return (1.0 if off > 0.0 else 0.0) if rng.random() < abs(off) else x


def ever_firing(alert: str, until_h: float, hours: float, job: str, *, count: int = 0) -> dict[str, Any]:
    """Return the check how many alerts of a name fired for a service at any time within the hours before an hour."""
    chosen = f'ALERTS{{alertname=~"{alert}",alertstate="firing",job="{job}"}}'
    found = [{"labels": "{}", "value": count}] if count else []
    return expecting(f"count(count_over_time({chosen}[{round(hours)}h]))", until_h, found)


def has_fired(alert: str, until_h: float, hours: float, job: str) -> dict[str, Any]:
    """Return the check that at least one alert of a name fired for a service within the hours before an hour."""
    check = ever_firing(alert, until_h, hours, job, count=1)
    return check | {"expr": f"{check['expr']} >= bool 1"}
