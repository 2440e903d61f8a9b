"""Search for the parts of the traffic that explain a change of a mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from ragtrace.stats.change.mean import TwoPeriods, adjusted, effective, influence, mean_change, spread_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace.stats.change.mean import Change, Mask, Worse

FALSE_DISCOVERY_RATE = 0.05
LEAST_CLUSTERS = 20.0
"""Effective clusters that a slice needs before or in the window, and the other runs on both sides."""
LEAST_SHARE = 0.2
"""Share of the whole change that a slice must explain to be named."""
_MOST_KNOWN = 0.5  # of a slice's weight in slices already named; above it the runs are mostly theirs


How = Literal["worse", "more", "less", "new", "gone"]


class Slice(NamedTuple):
    """A part of the traffic: the runs with one value of one dimension, such as tag and ``beta``."""

    dimension: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceChange:
    """The part of a change that one slice explains.

    The change without the slice is that of all other runs. The slice explains the rest: the whole change minus the
    change of the others. It is the sum of two parts: runs of the slice scored worse than the others' change tells,
    or there are more of them and they score worse than others at any time.

    Attributes:
        slice: the slice.
        inside: the change of the mean of its runs.
        outside: the change of the mean of all other runs.
        share_before: its share of the weight before, 0 to 1.
        share_window: its share in the window.
        explained: whole change minus `outside`.
        low: lower bound of the 95 % interval of `explained`.
        high: upper bound.
        by_mean: part of `explained` that comes from the changed mean of its runs.
        by_share: part that comes from its changed share; all of it where a period has none of its runs.
        p: one-sided p-value of "it explains nothing".
        q: p adjusted for the number of slices tested.
    """

    slice: Slice
    inside: Change
    outside: Change
    share_before: float
    share_window: float
    explained: float
    low: float
    high: float
    by_mean: float
    by_share: float
    p: float
    q: float

    @property
    def how(self) -> How:
        """Fate of the slice: its runs became worse, there are more or fewer of them, it is new, or gone."""
        if not self.inside.before.n:
            return "new"
        if not self.inside.window.n:
            return "gone"
        if abs(self.by_share) < 2.0 * abs(self.by_mean):
            return "worse"
        return "more" if self.share_window > self.share_before else "less"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """Result of a search.

    Attributes:
        change: of all runs.
        slices: those that explain it, the strongest evidence first; empty where no part stands out.
        rest: the change of the runs outside every named slice; None where none is named.
        tested: number of slices that were large enough to be tested.
    """

    change: Change
    slices: tuple[SliceChange, ...]
    rest: Change | None
    tested: int


def explain(
    scores: TwoPeriods,
    members: Mapping[Slice, Mask],
    *,
    worse: Worse = -1,
    most: int = 3,
    rate: float = FALSE_DISCOVERY_RATE,
    shown: Slice | None = None,
    wander: float = 0.0,
) -> Explained:
    """Return the slices that explain a change of the mean for the worse.

    A slice is tested for the difference between the change of all runs and that of the runs outside it, so that a
    fall that is everywhere names none. The p-values of all slices are adjusted after Benjamini and Hochberg (1995).
    The slice with the strongest evidence is named, its runs are set aside, and the search goes on among the others:
    a slice is not named if most of its runs in the window are in slices named before.

    Args:
        scores: of both periods.
        members: for each slice the runs in it, True or False for each score; slices may overlap.
        worse: sign of a change for the worse.
        most: slices that are named at most.
        rate: false-discovery rate.
        shown: a slice whose own mean is shown to be worse; it is named first.
        wander: variance by which means of such periods differ at any time, for the interval of the change.

    Returns:
        No slice where the mean did not change for the worse, or where a period has no score.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> is_window, is_beta = np.arange(800) >= 400, np.arange(800) % 4 == 0
        >>> slices = {Slice("tag", "beta"): is_beta, Slice("language", "en"): np.arange(800) % 3 > 0}
        >>> scores = TwoPeriods(
        ...     values=rng.normal(0.8, 0.1, 800) - 0.2 * (is_window & is_beta),
        ...     weights=np.ones(800),
        ...     clusters=np.arange(800),
        ...     is_window=is_window,
        ... )
        >>> found = explain(scores, slices)
        >>> [(it.slice.value, round(it.explained / found.change.value)) for it in found.slices]
        [('beta', 1)]
    """
    change = mean_change(scores, worse=worse, wander=wander)
    whole = _tests(scores, members, worse)
    named: list[Slice] = []
    kept = np.ones(len(scores.values), dtype=np.bool_)
    while len(named) < most and worse * change.value > 0.0:
        left = {name: members[name] for name in whole if not _is_known(scores, members[name], kept)}
        tests = (
            _tests(scores.only(kept), {name: mask[kept] for name, mask in left.items()}, worse) if named else whole
        )
        fitting = [
            name
            for name, test in tests.items()
            if test.q <= rate and whole[name].explained / change.value >= LEAST_SHARE
        ]
        if shown in tests and not named:
            fitting = [shown]
        if not fitting:
            break
        named.append(min(fitting, key=lambda name: (tests[name].p, -worse * tests[name].explained)))
        kept &= ~members[named[-1]]
    return Explained(
        change=change,
        slices=tuple(_slice_change(scores, name, members[name], whole[name], worse) for name in named),
        rest=mean_change(scores.only(kept), worse=worse) if named else None,
        tested=len(whole),
    )


class _Test(NamedTuple):
    """Explained change of a slice, half the width of its interval, p-value, and adjusted p-value."""

    explained: float
    half: float
    p: float
    q: float


def _tests(scores: TwoPeriods, members: Mapping[Slice, Mask], worse: Worse) -> dict[Slice, _Test]:
    """Test every slice that is large enough."""
    everywhere = influence(scores)
    names, found = [], []
    for name, mask in members.items():
        before, window = _sides(scores, mask)
        n_eff = effective(scores, before), effective(scores, window)
        others = [effective(scores, side) for side in _sides(scores, ~mask)]
        if max(n_eff) < LEAST_CLUSTERS or min(others) < LEAST_CLUSTERS:
            continue
        spread = spread_of(scores, everywhere - influence(scores, ~mask), n_eff)
        if spread is not None:
            explained = _difference(scores) - _difference(scores.only(~mask))
            names.append(name)
            found.append((explained, spread.half, spread.p(worse * explained)))
    q_values = adjusted(np.array([p for _, _, p in found]))
    return {name: _Test(*it, float(q)) for name, it, q in zip(names, found, q_values, strict=True)}


def _difference(scores: TwoPeriods) -> float:
    before, window = (
        float((scores.weights[side] * scores.values[side]).sum() / scores.weights[side].sum())
        for side in (~scores.is_window, scores.is_window)
    )
    return window - before


def _sides(scores: TwoPeriods, mask: Mask) -> tuple[Mask, Mask]:
    return mask & ~scores.is_window, mask & scores.is_window


def _is_known(scores: TwoPeriods, mask: Mask, kept: Mask) -> bool:
    """Return whether most of a slice's weight stands in slices that are named already."""
    own = mask & scores.is_window if (mask & scores.is_window).any() else mask
    return float(scores.weights[own & ~kept].sum()) > _MOST_KNOWN * float(scores.weights[own].sum())


def _slice_change(scores: TwoPeriods, name: Slice, mask: Mask, test: _Test, worse: Worse) -> SliceChange:
    inside, outside = (mean_change(scores.only(own), worse=worse) for own in (mask, ~mask))
    before, window = (
        float(scores.weights[own].sum() / scores.weights[side].sum())
        for own, side in zip(_sides(scores, mask), (~scores.is_window, scores.is_window), strict=True)
    )
    is_in_both = inside.before.n > 0 and inside.window.n > 0
    by_mean = (before + window) / 2.0 * (inside.value - outside.value) if is_in_both else 0.0
    return SliceChange(
        slice=name,
        inside=inside,
        outside=outside,
        share_before=before,
        share_window=window,
        explained=test.explained,
        low=test.explained - test.half,
        high=test.explained + test.half,
        by_mean=by_mean,
        by_share=test.explained - by_mean,
        p=test.p,
        q=test.q,
    )
