"""Arithmetic of rank metrics: P@K, AP@K over the retrieved, reciprocal rank, nDCG@K.

All take the ranked ids best first, of which later copies are removed, and grades by id. An id without a grade
counts as not relevant, as trec_eval does; the metrics over records refuse such lists instead. Verified against
pytrec_eval, ranx and ir_measures by the golden vectors. Pure functions, usable from any thread.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def hits(ranked: Sequence[str], grades: Mapping[str, float], relevant: float) -> list[bool]:
    """Return for each distinct id, in order, whether its grade is at least `relevant`.

    Example:
        >>> hits(["a", "b", "a", "c"], {"a": 5, "b": 1}, 4)
        [True, False, False]
    """
    return [grades.get(key, -math.inf) >= relevant for key in dict.fromkeys(ranked)]


def average_precision(found: Sequence[bool], normaliser: int) -> float:
    """Return the sum of precisions at each hit over `normaliser`.

    In [0, 1]; 0.0 without a hit.

    Example:
        >>> average_precision([True, False, True], 2)
        0.8333333333333333
    """
    total, n_hits = 0.0, 0
    for rank, is_hit in enumerate(found, start=1):
        if is_hit:
            n_hits += 1
            total += n_hits / rank
    return total / normaliser if n_hits else 0.0


def p_at_k(ranked: Sequence[str], grades: Mapping[str, float], k: int, relevant: float = 4) -> float | None:
    """Return the share of K places that hold a relevant passage.

    In [0, 1], higher is better. K stays the denominator when fewer were returned, as in trec_eval. None when K is
    not positive.

    Example:
        >>> p_at_k(["a", "b"], {"a": 5, "b": 2}, 4)
        0.25
    """
    return sum(hits(ranked, grades, relevant)[:k]) / k if k > 0 else None


def ap_at_k_retrieved(
    ranked: Sequence[str], grades: Mapping[str, float], k: int, relevant: float = 4
) -> float | None:
    """Return average precision over the relevant passages in the top K.

    In [0, 1], higher is better. It ignores what was missed: one relevant passage in first place gives 1.0. No
    relevant passage gives 0.0, a K that is not positive None. Source: open-rag-eval's AP@K.

    Example:
        >>> ap_at_k_retrieved(["a", "b", "c"], {"a": 1, "b": 5, "c": 4}, 3)
        0.5833333333333333
    """
    if k <= 0:
        return None
    top = hits(ranked, grades, relevant)[:k]
    return average_precision(top, sum(top))


def reciprocal_rank(ranked: Sequence[str], grades: Mapping[str, float], relevant: float = 4) -> float:
    """Return 1 / rank of the first relevant passage.

    In [0, 1]; 0.0 when there is none. No cut-off. The mean over queries is MRR.

    Example:
        >>> reciprocal_rank(["a", "b"], {"a": 1, "b": 4})
        0.5
    """
    found = hits(ranked, grades, relevant)
    return 1.0 / (found.index(True) + 1) if True in found else 0.0


def ndcg_at_k(ranked: Sequence[str], gains: Mapping[str, float], k: int) -> float | None:
    """Return nDCG@K with linear gain.

    In [0, 1], higher is better (trec_eval, ranx ndcg).

    Args:
        ranked: ids, best first.
        gains: gain of every judged passage, on 0 to 3; the ideal ranking is taken over all of them.
        k: cut-off.

    Returns:
        The value, or None when K is not positive or the ideal is 0.

    Example:
        >>> round(ndcg_at_k(["b", "a"], {"a": 3, "b": 0}, 2), 6)
        0.63093
    """
    if k <= 0:
        return None
    ideal = _dcg(sorted(gains.values(), reverse=True)[:k])
    if ideal <= 0.0:
        return None
    found = _dcg([gains.get(key, 0.0) for key in dict.fromkeys(ranked)][:k])
    return min(found / ideal, 1.0)


def _dcg(gains: Sequence[float]) -> float:
    return math.fsum(gain / math.log2(place + 2) for place, gain in enumerate(gains))
