"""Worlds that nobody chose: what they have, and how much of it, is drawn at random."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.monitoring.drift_worlds.worlds import BINARY, FIVE, LEARNT, MIDDLING, NINE, SMOOTH, World

if TYPE_CHECKING:
    import numpy as np

_SHAPES: Final = (NINE, FIVE, BINARY, SMOOTH, MIDDLING)


def random_world(rng: np.random.Generator) -> World:
    """Return a world with some of the disturbances, each of a size up to the largest of the named worlds.

    Weekends may be better or worse, sessions have up to five turns that spread over hours, and are known.
    """

    def sometimes(chance: float, least: float, most: float) -> float:
        return float(rng.uniform(least, most)) if rng.random() < chance else 0.0

    return World(
        shape=_SHAPES[rng.integers(len(_SHAPES))],
        history=int(rng.choice([17, 24, 31, LEARNT, LEARNT])),
        wander=sometimes(0.8, 0.002, 0.015),
        correlation=float(rng.uniform(0, 0.95)),
        within=sometimes(0.4, 0.005, 0.03),
        within_hours=float(rng.uniform(1, 8)),
        of_day=float(rng.uniform(0, 0.015)),
        weekend=sometimes(0.4, -0.03, 0.03),
        release=sometimes(0.4, 0.003, 0.01),
        is_walk=bool(rng.random() < 0.4),
        growth=float(rng.choice([1, 1, 0.5, 2, 3])),
        topic_traffic=sometimes(0.5, 0.1, 0.6),
        topic_bad=float(rng.uniform(0.1, 0.35)),
        turns=int(rng.choice([1, 1, 2, 3, 5])),
        lags=tuple(int(it) for it in rng.integers(0, 12, 3)),
        season=sometimes(0.2, 0.003, 0.01),
        batch=(sometimes(0.2, 0.1, 0.4), sometimes(0.5, 0, 0.02)),
    )
