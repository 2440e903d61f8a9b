"""BERTScore consistency: likeness in meaning of several answers, by your own model."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING

from ragtrace.metrics.base import MetricSpec, Output, result
from ragtrace.metrics.consistency.runs import LEAST_RUNS, over_runs
from ragtrace.stats.dispersion import dispersion

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ragtrace.model import MetricResult

NAME = "bertscore_consistency"

METRIC = over_runs(
    MetricSpec(
        name=NAME,
        summary="How alike in meaning several answers to one query are, by a scorer that you bring.",
        needs=("answer", "runs"),
        outputs=(Output(name=NAME, low=-1.0, threshold=None),),
        calls="1 call of your scorer a query",
        source="Zhang et al. 2020; Open RAG Eval",
    )
)


def bertscore_consistency(
    answers: Sequence[str], scorer: Callable[[list[str], list[str]], Sequence[float]]
) -> MetricResult:
    """Return the mean score of the answers' pairs, each over both directions.

    Higher is better. Up to 1; with a baseline subtracted it may be below 0. Blank answers are dropped first; fewer
    than 3 left: ``na insufficient_runs``. A scorer that raises: ``error judge_error``; another number of scores, or
    one that is not finite: ``error judge_invalid_output``. Source: Zhang et al. 2020.

    Args:
        answers: of one query.
        scorer: takes candidates and as many references, returns a score for each; called once. With the package
            bert-score: ``lambda c, r: bert_score.score(c, r, lang="en", rescale_with_baseline=True)[2].tolist()``.

    Example:
        >>> equal = lambda candidates, references: [float(a == b) for a, b in zip(candidates, references)]
        >>> round(bertscore_consistency(["Oslo", "Oslo", "Rome"], equal).value, 3)
        0.333
    """
    kept = [answer for answer in answers if answer.strip()]
    if len(kept) < LEAST_RUNS:
        return METRIC.spec.every("insufficient_runs")[0]
    pairs = list(combinations(kept, 2))
    try:
        given = scorer([a for a, _ in pairs] + [b for _, b in pairs], [b for _, b in pairs] + [a for a, _ in pairs])
        scores = [float(score) for score in given]
    except Exception as error:
        return METRIC.spec.every("judge_error", {"message": f"{type(error).__name__}: {error}"})[0]
    if len(scores) != 2 * len(pairs) or not all(map(math.isfinite, scores)):
        message = f"the scorer must give {2 * len(pairs)} finite numbers, it gave {len(scores)}"
        return METRIC.spec.every("judge_invalid_output", {"message": message})[0]
    both = [(there + back) / 2.0 for there, back in zip(scores, scores[len(pairs) :], strict=False)]
    spread = dispersion(both)
    details = {"runs": len(kept), "pairs": len(pairs), "over_pairs": spread.to_json() if spread else None}
    return result(NAME, sum(both) / len(both), details)
