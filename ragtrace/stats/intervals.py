"""Confidence intervals of a mean and of a share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

Z95 = 1.959963984540054
RESAMPLES = 1000
_BLOCK_CELLS = 500_000  # of one array of resamples: 4 MB, of which a statistic makes some ten


class Interval(NamedTuple):
    """A mean with its bounds, None where one sample or none gives them."""

    mean: float | None
    low: float | None
    high: float | None


def drawn(rng: np.random.Generator, n: int, n_resamples: int) -> Iterator[NDArray[np.int64]]:
    """Yield the indices of bootstrap resamples in blocks of rows, with the numbers of one draw."""
    rows = max(1, _BLOCK_CELLS // max(n, 1))
    for first in range(0, n_resamples, rows):
        yield rng.integers(0, n, (min(rows, n_resamples - first), n))


def percentile_bounds(values: NDArray[np.float64], confidence: float = 0.95) -> tuple[float, float]:
    """Return the percentiles that leave out the same share at either end."""
    import numpy as np  # noqa: PLC0415 - the application's process may import this module

    tail = (100.0 - 100.0 * confidence) / 2.0  # 2.5 exactly; (1 - .95) / 2 * 100 is not
    low, high = np.percentile(values, [tail, 100.0 - tail], method="linear")
    return float(low), float(high)


def bootstrap_mean_ci(
    values: Sequence[float], *, n_resamples: int = RESAMPLES, seed: int = 0, confidence: float = 0.95
) -> Interval:
    """Return the mean and its percentile bootstrap interval, reproducible to the bit.

    Args:
        values: the scores; the resampled unit is one score.
        n_resamples: number of resamples.
        seed: of ``numpy.random.default_rng``.
        confidence: of the interval, in (0, 1).

    Returns:
        No values: three None. One value: the mean without bounds.

    Example:
        >>> bootstrap_mean_ci([]).mean is None, bootstrap_mean_ci([0.5])
        (True, Interval(mean=0.5, low=None, high=None))
        >>> bootstrap_mean_ci([0.0, 1.0, 1.0, 1.0]).mean
        0.75
    """
    if not values:
        return Interval(None, None, None)
    import numpy as np  # noqa: PLC0415 - the application's process may import this module

    array = np.asarray(values, dtype=np.float64)
    mean = float(array.mean())
    n = len(array)
    if n == 1:
        return Interval(mean, None, None)
    rng = np.random.default_rng(seed)
    means = np.concatenate([array[rows].mean(axis=1) for rows in drawn(rng, n, n_resamples)])
    return Interval(mean, *percentile_bounds(means, confidence))


def bootstrap_ratio_ci(
    tops: Sequence[float], bottoms: Sequence[float], *, n_resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """Return the ratio of two means with its 95 % bootstrap interval.

    Units are resampled in pairs. A resample whose denominator is 0 is left out. No unit, or a denominator of 0:
    three None; one unit: no bounds.

    Example:
        >>> bootstrap_ratio_ci([0.5, 0.0], [1.0, 1.0]).mean, bootstrap_ratio_ci([0.5], [0.0]).mean
        (0.25, None)
    """
    bottom = math.fsum(bottoms)
    if bottom == 0.0:
        return Interval(None, None, None)
    mean = math.fsum(tops) / bottom
    n = len(tops)
    if n == 1:
        return Interval(mean, None, None)
    import numpy as np  # noqa: PLC0415 - the application's process may import this module

    pairs = np.asarray((tops, bottoms), dtype=np.float64)
    rng = np.random.default_rng(seed)
    sums = np.concatenate([pairs[:, rows].sum(axis=2) for rows in drawn(rng, n, n_resamples)], axis=1)
    is_sound = sums[1] > 0.0
    return Interval(mean, *percentile_bounds(sums[0, is_sound] / sums[1, is_sound]))


def wilson(successes: float, n: float, z: float = Z95) -> Interval:
    """Return a share with its Wilson interval; n = 0 gives three None.

    Example:
        >>> wilson(8, 10).low > 0.48
        True
    """
    if n <= 0:
        return Interval(None, None, None)
    share = successes / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return Interval(share, max(0.0, middle - half), min(1.0, middle + half))
