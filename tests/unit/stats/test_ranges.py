"""An interval of a mean stays inside the range of its metric, wherever it is shown."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ragtrace.cli.io.summary import Summary
from ragtrace.metrics import output
from ragtrace.scoring import ends_of
from ragtrace.stats import (
    Range,
    cluster_sums,
    clustered_interval,
    mean_interval,
    paired_difference,
    unpaired_difference,
)
from ragtrace.views.figures import ends_of_values

if TYPE_CHECKING:
    from ragtrace.stats import Interval

NAMES = [
    "answer_similarity",
    "semantic_similarity",
    "bertscore_consistency",
    "score_std",
    "score_cv",
    "faithfulness",
]


def some_values(name: str, seed: int, n: int) -> list[float]:
    rng, scale = random.Random(seed), output(name)
    drawn = (rng.choice([0.96, 0.99, -0.4, 0.1, 1.0, 3.0]) for _ in range(n))
    return [min(max(value, scale.low), scale.high) for value in drawn]


def intervals(name: str, values: list[float]) -> list[Interval]:
    clusters = [n // 2 for n in range(len(values))]
    return [
        clustered_interval(values, ends=ends_of(name, values)),
        clustered_interval(values, clusters, ends=ends_of(name, values)),
        mean_interval(cluster_sums(values), ends_of_values(name, np.array(values))),
    ]


@pytest.mark.parametrize("n", [1, 2, 3, 10, 200])
@pytest.mark.parametrize("name", NAMES)
def test_of_few_and_of_many_values(name: str, n: int) -> None:
    scale = output(name)
    for seed in range(5):
        for found in intervals(name, some_values(name, seed, n)):
            assert found.low is None or found.low >= scale.low
            assert found.high is None or found.high <= scale.high
            assert found.low is None or found.low <= found.mean <= found.high


def test_of_an_answer_similarity_as_it_was_shown() -> None:
    found = clustered_interval([0.2, 0.9, 0.95], ends=ends_of("answer_similarity", [0.2, 0.9, 0.95]))
    assert found.high == 1.0
    assert clustered_interval([0.2, 0.9, 0.95], ends=None).high > 1.0


def test_a_range_adds_no_labels() -> None:
    values = [0.4, 0.45, 0.5, 0.42] * 10
    assert clustered_interval(values, ends=Range(-1.0, 1.0)) == clustered_interval(values, ends=None)
    assert clustered_interval([0.4], ends=Range(-1.0, 1.0)).low is None


def test_a_change_stays_inside_the_width_of_the_range() -> None:
    before, after = [-1.0, 1.0, -1.0], [1.0, 1.0, 1.0]
    ends = ends_of("answer_similarity", [*before, *after])
    for found in (paired_difference(before, after, ends=ends), unpaired_difference(before, after, ends=ends)):
        assert found is not None
        assert -2.0 <= found.low <= found.value <= found.high <= 2.0


def test_a_score_outside_its_declared_range_has_no_ends() -> None:
    assert ends_of("answer_similarity", [0.5, 1.5]) is None


def test_the_summary_of_a_file() -> None:
    shown = Summary()
    for value in (0.2, 0.9, 0.95):
        shown.add({"answer_similarity": {"state": "ok", "value": value}})
    (column,) = shown.columns["answer_similarity"].values()
    found = column.interval("answer_similarity")
    assert (found.low, found.high) == (0.0, 1.0)
