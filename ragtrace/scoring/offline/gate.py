"""Gate for grading in batches, against single passages."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ragtrace.stats.agreement import quadratic_kappa
from ragtrace.stats.figure import Figure, mean_figure

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST_PAIRS = 200
LEAST_KAPPA = 0.80
MOST_SHIFT = 0.1  # of a grade, on average
FAILED = "let this judge grade one passage a call: RAGTRACE_GRADE_BATCH=1, or grade_batch=1 in ragtrace.configure"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Result of the pairs.

    Attributes:
        verdict: ``passed``, ``failed``, or ``unverified`` without enough pairs.
        kappa: quadratic kappa between batch and single.
        shift: mean of batch minus single, in grades.
        advice: what to do, in one sentence.
    """

    verdict: Literal["passed", "failed", "unverified"]
    kappa: Figure
    shift: Figure
    advice: str

    def to_json(self) -> dict[str, object]:
        """Return it as JSON-ready values."""
        return {
            "verdict": self.verdict,
            "pairs": self.kappa.n,
            "kappa": self.kappa.to_json(),
            "mean_shift": self.shift.to_json(),
            "advice": self.advice,
        }


def gate(pairs: Sequence[tuple[int, int]], *, failures: Sequence[str] = ()) -> Gate:
    """Return the verdict over (batch grade, single grade) pairs.

    Passed with at least 200 pairs, a quadratic kappa of at least .80 and a mean shift below .1 of a grade. A judge
    that gives one and the same grade throughout has no kappa, and the gate stays unverified.

    Args:
        pairs: of the same passages.
        failures: the reason of each record whose passages could not be graded.

    Example:
        >>> gate([(5, 5), (4, 4), (1, 1), (2, 3)] * 50).verdict
        'failed'
        >>> gate([(5, 5), (1, 1)] * 10).advice
        '20 pairs are too few, 200 are needed: give more records with passages'
    """
    kappa = quadratic_kappa([pair[0] for pair in pairs], [pair[1] for pair in pairs])
    shift = mean_figure([float(batch - single) for batch, single in pairs], "there is no pair", ends=None)
    if len(pairs) < LEAST_PAIRS:
        few = f"{len(pairs)} pairs are too few, {LEAST_PAIRS} are needed: {_instead(failures)}"
        return Gate(verdict="unverified", kappa=kappa, shift=shift, advice=few)
    if kappa.value is None or shift.value is None:
        same = "the judge gives one and the same grade throughout: give records with good and bad passages"
        return Gate(verdict="unverified", kappa=kappa, shift=shift, advice=same)
    if kappa.value >= LEAST_KAPPA and abs(shift.value) < MOST_SHIFT:
        return Gate(verdict="passed", kappa=kappa, shift=shift, advice="this judge may grade in batches")
    return Gate(verdict="failed", kappa=kappa, shift=shift, advice=FAILED)


def _instead(failures: Sequence[str]) -> str:
    if not failures:
        return "give more records with passages"
    reason, number = Counter(failures).most_common(1)[0]
    return f"the judge failed on {len(failures)} records ({number} {reason})"
