"""ROUGE consistency: how alike the wordings of several answers to one query are."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from ragtrace.metrics.base import MetricSpec, Output, result
from ragtrace.metrics.consistency.rouge import rouge_of_tokens, tokens
from ragtrace.metrics.consistency.runs import LEAST_RUNS, over_runs
from ragtrace.stats.dispersion import dispersion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.metrics.consistency.rouge import Rouge
    from ragtrace.model import MetricResult

# Name of the output, and how many tokens one of two texts needs at least for it to mean anything.
_LEAST_TOKENS = {"rouge1_consistency": 1, "rouge2_consistency": 2, "rouge_l_consistency": 1}

METRIC = over_runs(
    MetricSpec(
        name="rouge_consistency",
        summary="How alike the wordings of several answers to one query are: mean ROUGE F1 over their pairs.",
        needs=("answer", "runs"),
        outputs=tuple(Output(name=name, threshold=None) for name in _LEAST_TOKENS),
        calls="none",
        source="Lin 2004; Open RAG Eval",
    )
)


def rouge_consistency(answers: Sequence[str]) -> list[MetricResult]:
    """Return the mean ROUGE-1, 2 and L of the answers' pairs.

    Higher is better, and 1.0 is the same wording. The value is F1, which is the same in both directions of a pair.
    Precision one way is recall the other way, so their symmetric means are one number, ``details.precision`` =
    ``details.recall``. Blank answers are dropped first; fewer than 3 left: ``na insufficient_runs``; no pair with a
    token (two, for ROUGE-2): ``na no_tokens``. `ragtrace.metrics.consistency.runs.by_query` finds the runs. Source:
    Lin 2004.

    Example:
        >>> [result.value for result in rouge_consistency(["It is in Oslo.", "It is in Oslo!", "it is in oslo"])]
        [1.0, 1.0, 1.0]
        >>> rouge_consistency(["Oslo.", "Oslo.", "  "])[0].reason
        'insufficient_runs'
    """
    read = [tokens(answer) for answer in answers if answer.strip()]
    if len(read) < LEAST_RUNS:
        return METRIC.spec.every("insufficient_runs")
    pairs = [(len(a), len(b), rouge_of_tokens(a, b)) for a, b in combinations(read, 2)]
    results = []
    for place, (name, least) in enumerate(_LEAST_TOKENS.items()):
        # Two texts of which one has no token say nothing; ROUGE-2 says nothing of two texts of one word.
        found = [scores[place] for a, b, scores in pairs if min(a, b) >= 1 and max(a, b) >= least]
        results.append(_result(name, found, runs=len(read), pairs=len(pairs)))
    return results


def _result(name: str, found: list[Rouge], *, runs: int, pairs: int) -> MetricResult:
    details: dict[str, object] = {"runs": runs, "pairs": len(found), "pairs_without_tokens": pairs - len(found)}
    if not found:
        return result(name, "no_tokens", details)
    f1 = [scores.f1 for scores in found]
    either = sum((scores.precision + scores.recall) / 2.0 for scores in found) / len(found)
    spread = dispersion(f1)
    details |= {"precision": either, "recall": either, "over_pairs": spread.to_json() if spread else None}
    return result(name, sum(f1) / len(f1), details)
