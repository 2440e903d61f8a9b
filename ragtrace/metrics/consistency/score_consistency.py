"""Score consistency: how much a metric's value varies over several runs of one query."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ragtrace.metrics.base import MetricSpec, Output, result
from ragtrace.metrics.consistency.runs import LEAST_RUNS, over_runs
from ragtrace.stats.dispersion import dispersion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.model import MetricResult

STD, CV, INDEX = "score_std", "score_cv", "consistency_adjusted_index"

METRIC = over_runs(
    MetricSpec(
        name="score_consistency",
        summary="How much any metric's value varies over several runs of one query.",
        needs=("runs",),
        outputs=(
            Output(name=STD, high=math.inf, direction="down", threshold=None),
            Output(name=CV, low=-math.inf, high=math.inf, direction="down", threshold=None),
            Output(name=INDEX, low=-math.inf, high=math.inf, threshold=None),
        ),
        calls="none",
        source="Open RAG Eval",
    )
)


def score_consistency(values: Sequence[float]) -> list[MetricResult]:
    """Return deviation, coefficient of variation and consistency-adjusted index of one metric over runs.

    - ``score_std``: standard deviation with divisor n - 1, in the metric's unit, lower is better;
    - ``score_cv``: that / mean, lower is better; ``na missing_input:nonzero_mean`` at mean 0;
    - ``consistency_adjusted_index``: mean / (1 + deviation with divisor n), in the metric's direction.

    Their details hold every statistic of `ragtrace.stats.dispersion.Dispersion`. Give it the values of state ``ok``
    under one judge, version and K. Fewer than 3: ``na insufficient_runs``. Source: Open RAG Eval, whose index uses
    the divisor n.

    Raises:
        ValueError: a value is not finite.

    Example:
        >>> [round(result.value, 3) for result in score_consistency([0.5, 0.7, 0.9])]
        [0.2, 0.286, 0.602]
        >>> score_consistency([0.5, 0.7])[0].reason
        'insufficient_runs'
    """
    if len(values) < LEAST_RUNS:
        return METRIC.spec.every("insufficient_runs")
    found = dispersion(values)
    if found is None:
        fault = {"message": "the values are too large for a deviation"}
        return METRIC.spec.every("internal_error", fault)
    details = found.to_json()
    results = {STD: found.std, CV: found.cv, INDEX: found.consistency_adjusted_index}
    return [_result(name, value, details) for name, value in results.items()]


def _result(name: str, value: float | None, details: dict[str, float | None]) -> MetricResult:
    return result(name, "missing_input:nonzero_mean" if value is None else value, details)
