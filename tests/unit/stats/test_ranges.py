"""An interval of a mean stays inside the range of its metric, wherever it is shown."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ragtrace.metrics.registry import output
from ragtrace.scoring.offline.scored_row import ends_of, range_of
from ragtrace.stats.intervals import clustered_interval, mean_interval
from ragtrace.stats.intervals import cluster_sums as sums_over
from ragtrace.views.figures import mean_of_values

NAMES = ["answer_similarity", "semantic_similarity", "bertscore_consistency", "score_std", "score_cv"]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", NAMES)
def test_of_few_and_of_many_values(name: str, seed: int) -> None:
    rng = random.Random(seed)
    scale = output(name)
    low, high = max(scale.low, -1e9), min(scale.high, 1e9)
    for n in (1, 2, 3, 10, 200):
        values = [min(max(rng.choice([0.96, 0.99, -0.4, 0.1, 1.0, 3.0]), low), high) for _ in range(n)]
        for found in (
            clustered_interval(values, ends=ends_of(name, values), bounds=range_of(name, values)),
            mean_interval(sums_over(values), ends_of(name, values), range_of(name, values)),
            mean_of_values(name, np.array(values)),
        ):
            assert found.low is None or found.low >= scale.low
            assert found.high is None or found.high <= scale.high
            assert found.low is None or found.low <= found.mean <= found.high
