"""People's ratings and the judge's anchors in the month: people see the incident, and the judge did not change."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from dashboards.screenshots.scene import RUNS_AN_HOUR, WORKFLOWS, falling, label, whose, workflow_of
from ragtrace import semconv

if TYPE_CHECKING:
    from dashboards.screenshots.scene import Labels, Reading, Readings

_RATED = 0.06  # of the runs
_BAD = (0.11, 0.34)  # share of bad ratings before and after the change
_AGREEMENT = {"faithfulness": (0.86, 240.0), "answer_relevancy": (0.74, 226.0)}
_ANCHORS = {
    "faithfulness": 0.004, "answer_relevancy": -0.003, "invented_specifics": 0.001, "citation_precision": 0.002,
    "context_sufficiency": -0.002, "context_precision": 0.003,
}  # fmt: skip


def opinions() -> Readings:
    """Readings of the series about ratings and anchors, by the instrument's name."""
    agreed = [(label(semconv.GEN_AI_EVALUATION_NAME, it), share, n) for it, (share, n) in _AGREEMENT.items()]
    return {
        semconv.FEEDBACK: [rated for name, share in WORKFLOWS.items() for rated in _ratings(name, share)],
        semconv.FEEDBACK_AGREEMENT: [(own, lambda at, p=p: p + 0.01 * _step(at)) for own, p, _ in agreed],
        semconv.FEEDBACK_AGREEMENT_N: [(own, lambda _, n=n: n) for own, _, n in agreed],
        semconv.ANCHOR_MEAN: _anchors(0.0),
        semconv.ANCHOR_LOW: _anchors(-0.014),
        semconv.ANCHOR_HIGH: _anchors(0.014),
        semconv.ANCHOR_N: [(whose(metric, ""), lambda _: 150.0) for metric in _ANCHORS],
        semconv.ANCHOR_STATE: [(whose(metric, ""), lambda _: 1.0) for metric in _ANCHORS],
    }


def _ratings(workflow: str, share: float) -> list[tuple[Labels, Reading]]:
    about = workflow_of(workflow) | label(semconv.GEN_AI_EVALUATION_NAME, "feedback")
    rated, (before, after) = _RATED * RUNS_AN_HOUR * share, _BAD
    return [
        (about | label(semconv.FEEDBACK_LABEL, name), falling(rated, shares, workflow))
        for name, shares in (("bad", (before, after)), ("good", (1 - before, 1 - after)))
    ]


def _anchors(off: float) -> list[tuple[Labels, Reading]]:
    return [
        (whose(metric, ""), lambda at, middle=middle: middle + off + 0.006 * _step(at))
        for metric, middle in _ANCHORS.items()
    ]


def _step(at: int) -> float:
    """A number from -1 to 1 that holds for six hours."""
    return 2 * random.Random(at // 21_600).random() - 1
