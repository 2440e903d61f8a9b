"""Values of facts that nearly all runs took on, or lost, between two periods."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from ragtrace.scoring.investigation.runs import RunScore
    from ragtrace.stats.change.mean import TwoPeriods
    from ragtrace.stats.change.slices import Slice

_MOST = 0.9
_FEW = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """The values of one fact that nearly all runs of one period have, and hardly any of the other.

    Nearly all are at least 90 % of a period's weight, and hardly any are at most 10 %.

    Attributes:
        dimension: the fact, such as ``model``.
        before: values of the time before.
        window: values of the window.
    """

    dimension: str
    before: tuple[str, ...]
    window: tuple[str, ...]


def replaced_facts(
    runs: Sequence[RunScore], scores: TwoPeriods, *, left_out: AbstractSet[str] = frozenset()
) -> tuple[Replaced, ...]:
    """Return the facts whose value was replaced, by their names.

    Args:
        runs: the compared runs.
        scores: their weights and periods, in the same order.
        left_out: facts that are not known of all runs.
    """
    weights: defaultdict[Slice, list[float]] = defaultdict(lambda: [0.0, 0.0])
    total = [0.0, 0.0]
    for run, weight, is_window in zip(runs, scores.weights.tolist(), scores.is_window.tolist(), strict=True):
        total[is_window] += weight
        for it in run.slices:
            weights[it][is_window] += weight
    values: defaultdict[str, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for it, own in weights.items():
        shares = [part / whole for part, whole in zip(own, total, strict=True)]
        if it.dimension not in left_out and max(shares) >= _MOST and min(shares) <= _FEW:
            values[it.dimension][shares[1] > shares[0]].append(it.value)
    return tuple(
        Replaced(dimension=name, before=tuple(sorted(before)), window=tuple(sorted(window)))
        for name, (before, window) in sorted(values.items())
    )
