"""Arithmetic of the RA-nWG family over one query's grades, in plain Python.

U is the set of labelled passages, S the first K of the distinct delivered passages, Pool the candidates united with
S. A grade g weighs w_g, and a passage without a grade in Pool counts as outside it. With n_g passages of grade g in
U:

- w5 = 1, w4 = min(.5 (n5 / n4)^alpha, cap4), w3 = min(.1 (n5 / n3)^alpha, cap3), w2 = w1 = 0;
- without any 5 in U: w5 = w4 = 1, w3 = .2;
- frozen: w5, w4, w3 = 1, .5, .1, whatever U holds.

G(S) is the sum of weights in S, and G(best K) the sum of the K largest weights. RA-nWG = G(S) / G(best K of U),
PROC = G(best K of Pool) / G(best K of U), %PROC = G(S) / G(best K of Pool), so RA-nWG = PROC * %PROC.
N-Recall4+ = grades of 4 or 5 in S / min(K, n4 + n5), N-Recall5 = 5s in S / min(K, n5).

Weights hang on n5 / n4 and n5 / n3 alone: passages of grade 1 and 2 change none. With few 4s a 3 may weigh more
than a 4. The first 5 that is found changes w4 from 1 to .5 / n4, so use frozen weights where labels grow.

Source: arXiv 2511.09545 and the article with the published function. That function sums copies and does not
truncate; here copies are left out. Pure functions, usable from any thread.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations_with_replacement, repeat
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

Weights = tuple[float, float, float, float, float, float]  # by grade; place 0 is unused

_NO_FIVES: Weights = (0.0, 0.0, 0.0, 0.2, 1.0, 1.0)
FROZEN: Weights = (0.0, 0.0, 0.0, 0.1, 0.5, 1.0)
_UNLABELLED = repeat(0)
QUANTITIES = ("ra_nwg", "proc", "pct_proc", "n_recall4", "n_recall5", "precision4", "harm")


@dataclass(frozen=True, slots=True, kw_only=True)
class SetParams:
    """Parameters of the family; the defaults are the published ones.

    Attributes:
        alpha: how strongly rarity raises a weight, 0 to 10.
        cap4: largest weight of a 4, 0 to 1.
        cap3: largest weight of a 3, 0 to 1.
        harm_max: highest grade that counts as harm, 1 or 2.
        denominator: what Precision4+ and Harm divide by: K, or the passages returned if fewer.
        monotone: a 3 never weighs more than a 4; to be exported under another name.
        is_frozen: weights 1, .5, .1 whatever the census: comparable over time when U is not gold.

    Example:
        >>> SetParams(harm_max=1).cap3
        0.25
    """

    alpha: float = 1.0
    cap4: float = 1.0
    cap3: float = 0.25
    harm_max: int = 2
    denominator: Literal["k", "returned"] = "k"
    monotone: bool = False
    is_frozen: bool = False

    def __post_init__(self) -> None:
        if not 0.0 <= self.alpha <= 10.0:
            raise ValueError(f"alpha is 0 to 10, got {self.alpha}")
        if not (0.0 <= self.cap4 <= 1.0 and 0.0 <= self.cap3 <= 1.0):
            raise ValueError(f"caps are 0 to 1, got {self.cap4} and {self.cap3}")
        if self.harm_max not in {1, 2}:
            raise ValueError(f"harm_max is 1 or 2, got {self.harm_max}")
        if self.denominator not in {"k", "returned"}:
            raise ValueError(f"denominator is 'k' or 'returned', got {self.denominator!r}")


class SetScores(NamedTuple):
    """The family for one query and one K.

    A tuple, because a frozen dataclass of 16 fields takes 2 µs more to build.

    Attributes:
        reason: why the whole family has no value; None when it has.
        dup_count: copies among the delivered passages.
        ra_nwg: in [0, 1], None when G(best K of U) is 0.
        proc: in [0, 1], the ceiling the retriever left; a lower estimate when `pool_unlabelled` is not 0.
        pct_proc: in [0, 1], None when `g_pool` is 0.
        n_recall4: share of the reachable 4s and 5s in S, None when U has none.
        n_recall5: the same for 5s.
        precision4: share of K with a grade of 4 or 5.
        harm: share of K with a grade of at most ``harm_max``; lower is better.
        weights: by grade.
        g_obs: G(S).
        g_oracle: G(best K of U).
        g_pool: G(best K of Pool).
        returned: passages in S.
        pool_unlabelled: pool members without a grade, treated as outside Pool.
        census: number of 5s, 4s and 3s in U.
    """

    reason: str | None
    dup_count: int
    ra_nwg: float | None = None
    proc: float | None = None
    pct_proc: float | None = None
    n_recall4: float | None = None
    n_recall5: float | None = None
    precision4: float | None = None
    harm: float | None = None
    weights: Weights = FROZEN
    g_obs: float = 0.0
    g_oracle: float = 0.0
    g_pool: float = 0.0
    returned: int = 0
    pool_unlabelled: int = 0
    census: tuple[int, int, int] = (0, 0, 0)

    def outcome(self, quantity: str) -> float | str:
        """Return a quantity, or the reason for which it has no value.

        Example:
            >>> scores = set_scores({"a": 1}, ["a"], ["a"], 1)
            >>> scores.outcome("harm"), scores.outcome("ra_nwg")
            (1.0, 'zero_oracle')
        """
        value: float | None = getattr(self, quantity)
        if value is not None:
            return value
        if self.reason is not None:
            return self.reason
        return "zero_pool" if quantity == "pct_proc" and self.g_oracle > 0.0 else "zero_oracle"


PUBLISHED = SetParams()


def weights_of(n5: float, n4: float, n3: float, params: SetParams = PUBLISHED) -> Weights:
    """Return the weight of each grade of a label scope with so many 5s, 4s and 3s.

    Example:
        >>> weights_of(1, 4, 3)
        (0.0, 0.0, 0.0, 0.03333333333333333, 0.125, 1.0)
        >>> weights_of(0, 2, 1)
        (0.0, 0.0, 0.0, 0.2, 1.0, 1.0)
    """
    if params.is_frozen:
        return FROZEN
    if n5 == 0:
        return _NO_FIVES
    w4 = min(0.5 * (n5 / n4) ** params.alpha, params.cap4) if n4 else 0.0
    w3 = min(0.1 * (n5 / n3) ** params.alpha, params.cap3) if n3 else 0.0
    return (0.0, 0.0, 0.0, min(w3, w4) if params.monotone else w3, w4, 1.0)


def best_gain(n5: int, n4: int, n3: int, k: int, weights: Weights) -> float:
    """Return the sum of the K largest weights.

    They need not be those of the K best grades, because a 3 may weigh more than a 4. Summed exactly, so that RA-nWG
    <= PROC <= 1 holds to the last bit.

    Example:
        >>> best_gain(1, 10, 1, 2, weights_of(1, 10, 1))
        1.1
    """
    if n5 >= k:
        return float(k)
    w3, w4 = weights[3], weights[4]
    rest = k - n5
    if w3 > w4:
        take3 = min(rest, n3)
        take4 = min(n4, rest - take3)
    else:
        take4 = min(rest, n4)
        take3 = min(n3, rest - take4)
    return math.fsum([weights[5]] * n5 + [w4] * take4 + [w3] * take3)


def set_scores(
    labels: Mapping[str, int],
    topk: Sequence[str],
    pool: Iterable[str],
    k: int,
    params: SetParams = PUBLISHED,
) -> SetScores:
    """Return the whole family for one query.

    Args:
        labels: grade, an integer of 1 to 5, of every passage of the label scope.
        topk: ids of the delivered passages, best first; later copies are left out, then the first K are taken.
        pool: ids of the retrieval pool, in any order.
        k: cut-off; nothing is padded when fewer were delivered.
        params: see `SetParams`.

    Returns:
        The scores. Without a value for the family, `SetScores.reason` is, in this order: ``k_not_positive``,
        ``no_labels``, ``invalid_grade`` (an error), ``unlabelled_topk``.

    Example:
        >>> labels = {"a": 5, "b": 4, "c": 4, "d": 1}
        >>> scores = set_scores(labels, ["a", "d"], ["a", "b", "d"], 2)
        >>> scores.ra_nwg, scores.proc, scores.harm
        (0.8, 1.0, 0.5)
    """
    distinct = list(dict.fromkeys(topk))
    dup_count = len(topk) - len(distinct)
    if k <= 0:
        return SetScores("k_not_positive", dup_count)
    if not labels:
        return SetScores("no_labels", dup_count)
    labelled = _packed(labels.values())
    if labelled is None:
        return SetScores("invalid_grade", dup_count)
    selected = distinct[:k]
    delivered = bytes(map(labels.get, selected, _UNLABELLED))
    if 0 in delivered:
        return SetScores("unlabelled_topk", dup_count)
    candidates = bytes(map(labels.get, {*pool, *selected}, _UNLABELLED))
    return _scored(labelled, delivered, candidates, k, params, dup_count)


def _packed(grades: Collection[int]) -> bytes | None:
    """Return grades as bytes, or None when one is not an integer of 1 to 5.

    Grades are bytes here because counting a grade among 50 takes 0.05 µs in bytes and 0.6 µs in a list.
    """
    try:
        packed = bytes(grades)
    except (TypeError, ValueError):
        return None
    if packed.translate(None, b"\1\2\3\4\5"):
        return None
    types = [*map(type, grades)]
    # True is an int to bytes(); the count, by identity, spares nearly all calls the slower search.
    return packed if types.count(int) == len(packed) or bool not in types else None


def _scored(
    labelled: bytes, delivered: bytes, candidates: bytes, k: int, params: SetParams, dup_count: int
) -> SetScores:
    n5, n4, n3 = census = labelled.count(5), labelled.count(4), labelled.count(3)
    p5, p4, p3 = pooled = candidates.count(5), candidates.count(4), candidates.count(3)
    s5, s4, s3 = delivered.count(5), delivered.count(4), delivered.count(3)
    weights = weights_of(n5, n4, n3, params)
    g_obs = math.fsum([weights[5]] * s5 + [weights[4]] * s4 + [weights[3]] * s3)
    g_oracle = best_gain(n5, n4, n3, k, weights)
    g_pool = g_oracle if pooled == census else best_gain(p5, p4, p3, k, weights)
    harmful = delivered.count(1) + (delivered.count(2) if params.harm_max == 2 else 0)
    slots = k if params.denominator == "k" else len(delivered) or k
    return SetScores(
        None,
        dup_count,
        g_obs / g_oracle if g_oracle else None,
        g_pool / g_oracle if g_oracle else None,
        g_obs / g_pool if g_pool else None,
        (s5 + s4) / min(k, n5 + n4) if n5 + n4 else None,
        s5 / min(k, n5) if n5 else None,
        (s5 + s4) / slots,
        harmful / slots,
        weights,
        g_obs,
        g_oracle,
        g_pool,
        len(delivered),
        candidates.count(0),
        census,
    )


def set_bounds(
    labels: Mapping[str, int],
    topk: Sequence[str],
    pool: Iterable[str],
    k: int,
    params: SetParams = PUBLISHED,
) -> dict[str, tuple[float, float]]:
    """Return the bounds of each quantity over all grades that unlabelled passages may have.

    Every mixture is tried, as the published weights move with the grades: the extremes need not lie at "all 1"
    and "all 5". Grade 2 weighs as much as 1, so that m unlabelled passages take C(m + 3, 3) trials: 286 for 10.

    Returns:
        Bounds by quantity; a quantity that has no value under any mixture is left out. Empty when the family is
        not to be had for another reason than ``unlabelled_topk``.

    Example:
        >>> set_bounds({"a": 5}, ["a", "x"], ["a", "x"], 2)["precision4"]
        (0.5, 1.0)
    """
    missing = [key for key in list(dict.fromkeys(topk))[: max(k, 0)] if key not in labels]
    pool = list(pool)
    bounds: dict[str, tuple[float, float]] = {}
    for grades in combinations_with_replacement((1, 3, 4, 5), len(missing)):
        filled = {**labels, **dict(zip(missing, grades, strict=True))}
        scores = set_scores(filled, topk, pool, k, params)
        for name in QUANTITIES:
            value = getattr(scores, name)
            if value is not None:
                low, high = bounds.get(name, (value, value))
                bounds[name] = (min(low, value), max(high, value))
    return bounds
