"""RA-nWG over a stratified census with estimated numbers of 5s, 4s and 3s.

In each stratum, for example a band of ranks, m of N passages were graded, so n_g = sum of N / m * count of grade g.
The grades of the delivered and pooled passages are known, as for any labels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragtrace.metrics.selection.set_family import SetScores, weights_of
from ragtrace.stats.intervals import percentile_bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ragtrace.metrics.selection.set_family import SetParams, Weights
    from ragtrace.model import LabelStratum

Counts = tuple[float, float, float]  # of 5s, 4s and 3s
N_RESAMPLES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownGrades:
    """Numbers of 5s, 4s and 3s that are delivered, pooled, and known at all; they bound an estimate."""

    selected: Counts
    pooled: Counts
    known: Counts


def estimated(strata: Sequence[LabelStratum]) -> Counts:
    """Return the estimated numbers of 5s, 4s and 3s.

    Example:
        >>> from ragtrace.model import LabelStratum
        >>> pool = LabelStratum(size=10, labelled=10, counts={5: 2, 4: 1})
        >>> estimated([pool, LabelStratum(size=100, labelled=20, counts={4: 1})])
        (2.0, 6.0, 0.0)
    """
    n5, n4, n3 = (
        math.fsum(part.size / part.labelled * part.counts.get(grade, 0) for part in strata if part.labelled)
        for grade in (5, 4, 3)
    )
    return n5, n4, n3


def unseen_fives_up_to(strata: Sequence[LabelStratum]) -> float:
    """Return how many 5s may be unseen; 0 hits in m draws bound a share by 3 / m."""
    return math.fsum(
        (part.size - part.labelled) * min(1.0, 3.0 / part.labelled)
        for part in strata
        if part.labelled and not part.counts.get(5)
    )


def census_scores(census: Counts, grades: KnownGrades, k: int, params: SetParams) -> SetScores:
    """Return the family for K over a census.

    The census is raised to what is known, so that RA-nWG <= PROC <= 1.

    Example:
        >>> from ragtrace.metrics.selection.set_family import SetParams
        >>> some = KnownGrades(selected=(1, 0, 0), pooled=(1, 1, 0), known=(1, 1, 0))
        >>> census_scores((2.5, 1, 0), some, 2, SetParams(is_frozen=True)).ra_nwg
        0.5
    """
    n5, n4, n3 = (max(n, known) for n, known in zip(census, grades.known, strict=True))
    weights = weights_of(n5, n4, n3, params)
    g_obs = math.fsum(n * weights[grade] for n, grade in zip(grades.selected, (5, 4, 3), strict=True))
    g_oracle = _best_gain((n5, n4, n3), k, weights)
    g_pool = _best_gain(grades.pooled, k, weights)
    s5, s4, _ = grades.selected
    return SetScores(
        None,
        0,
        ra_nwg=_over(g_obs, g_oracle),
        proc=_over(g_pool, g_oracle),
        pct_proc=_over(g_obs, g_pool) if g_oracle else None,
        n_recall4=_over(s5 + s4, min(k, n5 + n4)),
        n_recall5=_over(s5, min(k, n5)),
        g_obs=g_obs,
        g_oracle=g_oracle,
        g_pool=g_pool,
        weights=weights,
    )


def intervals(
    strata: Sequence[LabelStratum], grades: KnownGrades, k: int, params: SetParams
) -> dict[str, tuple[float, float]]:
    """Return the 95 % bootstrap interval of each quantity that has one.

    A resample draws the graded passages of each stratum anew, and from them those that were not graded, so that a
    stratum graded wholly adds no uncertainty. 1,000 resamples, seed 0; about 10 ms.
    """
    import numpy as np  # noqa: PLC0415 - only strata need it

    found = [census_scores((n5, n4, n3), grades, k, params) for n5, n4, n3 in _resampled(strata).tolist()]
    bounds: dict[str, tuple[float, float]] = {}
    for name in ("ra_nwg", "proc", "pct_proc", "n_recall4", "n_recall5"):
        values = [value for scores in found if (value := getattr(scores, name)) is not None]
        if len(values) == len(found):
            bounds[name] = percentile_bounds(np.array(values))
    return bounds


def _resampled(strata: Sequence[LabelStratum]) -> NDArray[np.float64]:
    """Return (B, 3) censuses of 5s, 4s and 3s."""
    import numpy as np  # noqa: PLC0415 - the same

    rng = np.random.default_rng(0)
    total = np.zeros((N_RESAMPLES, 3))
    for part in strata:
        counts = np.array([part.counts.get(grade, 0) for grade in (5, 4, 3)], dtype=np.float64)
        total += counts
        rest = part.size - part.labelled
        if rest and counts.any():
            drawn = np.append(counts, part.labelled - counts.sum())
            again = rng.multinomial(part.labelled, drawn / part.labelled, N_RESAMPLES) / part.labelled
            total += rng.multinomial(rest, again)[:, :3]
    return total


def _best_gain(census: Counts, k: int, weights: Weights) -> float:
    """Return the sum of the K largest weights, where numbers need not be whole."""
    gain, left = 0.0, float(k)
    for weight, n in sorted(zip((weights[5], weights[4], weights[3]), census, strict=True), reverse=True):
        take = min(left, n)
        gain += take * weight
        left -= take
    return gain


def _over(top: float, bottom: float) -> float | None:
    return min(top / bottom, 1.0) if bottom else None  # a sum over K may be a last bit too large
