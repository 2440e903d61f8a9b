"""Times, traffic and labels of the month that the pictures show."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from ragtrace import semconv
from tests.dashboards.month import DAY

END = 1_780_002_000 // 7_200 * 7_200
CHANGE = END - 40 * 3_600
WORKFLOWS = {"support": 0.6, "docs": 0.4}
MODELS = {"large": 0.6, "small": 0.4}
RUNS_AN_HOUR = 90.0

Labels = dict[str, str]
Reading = Callable[[int], float]
Readings = dict[str, list[tuple[Labels, Reading]]]


def busy(at: int) -> float:
    """Traffic of a time of day beside the day's mean."""
    return 1 + 0.6 * math.sin(2 * math.pi * (at % DAY / DAY - 0.35))


def wave(at: int, low: float, high: float) -> float:
    """A value between two that follows the traffic, with a little of its own."""
    return low + (high - low) * (busy(at) - 0.4) / 1.2 * (0.92 + 0.16 * random.Random(at).random())


def label(attribute: str, value: str) -> Labels:
    """One label of a series."""
    return {semconv.prometheus_name(attribute, ""): value}


def workflow_of(name: str) -> Labels:
    """The label of a workflow."""
    return label(semconv.GEN_AI_WORKFLOW_NAME, name)


def whose(metric: str, workflow: str) -> Labels:
    """Labels of a metric's scores; as in life, one that is no set's has neither K nor labelled passages."""
    k, scale, universe = ("5", "1-5", "pool") if metric.endswith("_at_k") else ("", "", "")
    found = {
        semconv.GEN_AI_EVALUATION_NAME: metric, semconv.GEN_AI_WORKFLOW_NAME: workflow, semconv.K: k,
        semconv.LABEL_SCALE: scale, semconv.UNIVERSE: universe,
    }  # fmt: skip
    return {semconv.prometheus_name(key, ""): value for key, value in found.items()}


def falling(rate: float, shares: tuple[float, float], workflow: str) -> Reading:
    """An hour's part of a rate, before the change and after it, the second for "docs" alone."""

    def reading(at: int) -> float:
        share = shares[at > CHANGE and workflow == "docs"]
        return rate * busy(at) * share * (0.8 + 0.4 * random.Random(f"{at // 21_600} {share}").random())

    return reading
