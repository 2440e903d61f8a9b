"""Choice of the runs that are kept as anchors."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragtrace.stores.anchors import Anchor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ragtrace.model import RagRecord

EDGES = (0.25, 0.5, 0.75, 0.999)
"""Lower edges of all bands but the first; the last band holds the runs that every metric scored 1."""
BY_SHARE = 0.75
"""Part of the anchors that follows the traffic; the rest is spread evenly, so that there is room to rise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A run that may be kept.

    Attributes:
        record: the run, with its contexts.
        weight: traces that it stands for, above 0.
        level: mean of its scores by the judge, turned so that higher is better; None where it has none.
    """

    record: RagRecord
    weight: float = 1.0
    level: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """One band of scores.

    Attributes:
        share: of the traffic, 0 to 1.
        kept: anchors drawn from it.
        missing: anchors that it should have and that nobody could give.
    """

    share: float
    kept: int
    missing: int


def choose(
    candidates: Iterable[Candidate], n: int, *, seed: int, traffic: Mapping[int, float] | None = None
) -> tuple[list[Anchor], dict[int, Band]]:
    """Return at most `n` anchors in random order, and the bands that they were drawn from.

    A band has anchors by its share of the traffic and a few more, so that small bands are not empty. Within a band
    the draw is by weight without replacement (Efraimidis and Spirakis, 2006), so a band's mean needs no weights.
    The scores here decide the band alone. They are no reference: a run that is chosen for a low score scores higher
    the next time, by chance alone.

    Args:
        candidates: the runs that may be kept.
        n: number of anchors.
        seed: of the draw.
        traffic: weight of all runs by band, where more runs were scored than may be kept; None = the candidates'.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> runs = [Candidate(record=RagRecord(id=str(i)), level=1.0 if i % 5 else 0.1) for i in range(100)]
        >>> anchors, bands = choose(runs, 40, seed=1)
        >>> len(anchors), {band: (it.share, it.kept) for band, it in sorted(bands.items())}
        (40, {0: (0.2, 11), 4: (0.8, 29)})
    """
    rng = random.Random(seed)
    bands: dict[int, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        bands[band_of(candidate.level)].append(candidate)
    weights = {band: math.fsum(it.weight for it in members) for band, members in bands.items()}
    weights |= traffic or {}
    total = math.fsum(weights.values())
    shares = {band: weight / total for band, weight in weights.items()}
    wanted = _split(n, shares)
    counts = _filled(wanted, {band: len(bands[band]) for band in shares})
    anchors = [
        Anchor(record=it.record, band=band, share=shares[band])
        for band, members in bands.items()
        for it in _drawn(members, counts[band], rng)
    ]
    rng.shuffle(anchors)
    return anchors, {
        band: Band(share=shares[band], kept=counts[band], missing=max(wanted[band] - counts[band], 0))
        for band in shares
    }


def band_of(level: float | None) -> int:
    """Return the number of a level's band, from 0; the last one without a level.

    Example:
        >>> band_of(0.1), band_of(0.5), band_of(1.0), band_of(None)
        (0, 2, 4, 4)
    """
    return len(EDGES) if level is None else bisect_right(EDGES, level)


def level_of(scores: Mapping[str, float], lower_is_better: Iterable[str] = ()) -> float | None:
    """Return the mean of some scores, turned so that higher is better; None without any.

    Example:
        >>> level_of({"faithfulness": 0.8, "harm_at_k": 0.4}, ["harm_at_k"]), level_of({})
        (0.7, None)
    """
    if not scores:
        return None
    down = set(lower_is_better)
    return math.fsum(1.0 - x if name in down else x for name, x in scores.items()) / len(scores)


def _split(n: int, shares: Mapping[int, float]) -> dict[int, int]:
    """Return whole numbers that add up to `n`, by the largest remainders."""
    exact = {band: n * (BY_SHARE * share + (1.0 - BY_SHARE) / len(shares)) for band, share in shares.items()}
    counts = {band: math.floor(value) for band, value in exact.items()}
    left = n - sum(counts.values())
    for band in sorted(exact, key=lambda it: counts[it] - exact[it])[:left]:
        counts[band] += 1
    return counts


def _filled(wanted: Mapping[int, int], sizes: Mapping[int, int]) -> dict[int, int]:
    """Return the numbers within what each band has; the largest bands give what others lack."""
    counts = {band: min(count, sizes[band]) for band, count in wanted.items()}
    lacking = sum(wanted.values()) - sum(counts.values())
    for band in sorted(sizes, key=lambda it: -sizes[it]):
        more = min(lacking, sizes[band] - counts[band])
        counts[band] += more
        lacking -= more
    return counts


def _drawn(members: Sequence[Candidate], n: int, rng: random.Random) -> list[Candidate]:
    keys = [(math.log(1.0 - rng.random()) / it.weight, place) for place, it in enumerate(members)]
    return [members[place] for _, place in sorted(keys, reverse=True)[:n]]
