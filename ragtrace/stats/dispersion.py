"""Mean, variance, deviation and range of a few numbers."""

from __future__ import annotations

import math
import statistics
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispersion:
    """Statistics of at least two numbers, in their own unit by default.

    Attributes:
        n: how many there are.
        mean: their mean.
        variance: with divisor n - 1, in the unit's square.
        std: square root of `variance`.
        cv: std / mean, without a unit; None at mean 0 and where the quotient is not finite.
        variance_pop: with divisor n.
        std_pop: square root of `variance_pop`.
        cv_pop: std_pop / mean; None as `cv`.
        median: of an even number the mean of the middle two.
        range: highest minus lowest.
        iqr: third minus first quartile, by linear interpolation.
        consistency_adjusted_index: mean / (1 + std_pop), as in Open RAG Eval.
    """

    n: int
    mean: float
    variance: float
    std: float
    cv: float | None
    variance_pop: float
    std_pop: float
    cv_pop: float | None
    median: float
    range: float
    iqr: float
    consistency_adjusted_index: float

    def to_json(self) -> dict[str, float | None]:
        """Return every statistic by its name."""
        return asdict(self)


def dispersion(values: Sequence[float]) -> Dispersion | None:
    """Return the statistics of numbers; None below two, or without a finite form.

    Sums are exact, so that equal numbers have the deviation 0.

    Raises:
        ValueError: a number is not finite.

    Example:
        >>> found = dispersion([0.5, 0.7, 0.9])
        >>> round(found.mean, 12), round(found.std, 12), round(found.iqr, 12)
        (0.7, 0.2, 0.2)
        >>> dispersion([0.1] * 3).std, dispersion([0.0] * 3).cv
        (0.0, None)
    """
    if not all(map(math.isfinite, values)):
        raise ValueError("a value must be finite")
    if len(values) < 2:
        return None
    with suppress(OverflowError):
        return _dispersion([float(value) for value in values])
    return None


def _dispersion(values: list[float]) -> Dispersion | None:
    mean = statistics.mean(values)
    std, std_pop = statistics.stdev(values), statistics.pstdev(values)
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    found = Dispersion(
        n=len(values),
        mean=mean,
        variance=statistics.variance(values),
        std=std,
        cv=_quotient(std, mean),
        variance_pop=statistics.pvariance(values),
        std_pop=std_pop,
        cv_pop=_quotient(std_pop, mean),
        median=statistics.median(values),
        range=max(values) - min(values),
        iqr=third - first,
        consistency_adjusted_index=mean / (1.0 + std_pop),
    )
    return found if all(value is None or math.isfinite(value) for value in found.to_json().values()) else None


def _quotient(std: float, mean: float) -> float | None:
    found = std / mean if mean else math.inf
    return found if math.isfinite(found) else None
