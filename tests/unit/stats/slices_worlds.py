"""Worlds of scores with slices: nothing falls, everything falls, or the runs of one slice fall."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ragtrace.stats import Slice, TwoPeriods

SHARES = {
    "workflow": (0.6, 0.4),
    "model": (0.8, 0.2),
    "language": (0.7, 0.2, 0.1),
    "k": (0.5, 0.5),
    "query_length": (0.25,) * 4,
    "corpus": (0.2, 0.15, 0.15, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05),
}
OF_A_SESSION = {"workflow", "language", "model"}
TAGS = (0.5, 0.3, 0.2, 0.1, 0.05, 0.03)
EVIDENCE = 6.0  # standard errors by which the whole mean falls
Kind = Literal["none", "everywhere", "slice"]


class World:
    """One world.

    Args:
        rng: draws it.
        kind: what falls.
        least_share: of the runs in the slice that falls.
    """

    def __init__(self, rng: np.random.Generator, kind: Kind, *, least_share: float = 0.1) -> None:
        n_window = int(rng.choice([300, 600, 1_500]))
        n = n_window * (1 + int(rng.choice([2, 5, 10])))
        self.is_window = np.arange(n) >= n - n_window
        self.turns = int(rng.choice([1, 1, 3]))
        self.clusters = np.arange(n) // self.turns
        self.weights = np.where(rng.random(n) < 0.3, 4.0, 1.0) if rng.random() < 0.3 else np.ones(n)
        self.members, mean = self._slices(rng)
        self.slice: Slice | None = None
        drop = EVIDENCE * np.sqrt(0.1 * self.turns * (self.weights**2).mean() / n_window)
        if kind == "everywhere":
            mean = mean - 0.1 * self.is_window
        if kind == "slice":
            large = [name for name, mask in self.members.items() if mask.mean() >= least_share]
            self.slice = large[int(rng.integers(len(large)))]
            own = self.members[self.slice]
            mean = mean - min(drop / own.mean(), 0.8) * (own & self.is_window)
        self.scores = TwoPeriods(
            values=self._drawn(rng, np.clip(mean, 0.01, 0.99)),
            weights=self.weights,
            clusters=self.clusters,
            is_window=self.is_window,
        )

    def _slices(self, rng):
        n, n_clusters = len(self.clusters), int(self.clusters[-1]) + 1
        members, parts = {}, {}
        for dimension, shares in SHARES.items():
            is_whole = dimension in OF_A_SESSION
            drawn = rng.choice(len(shares), size=n_clusters if is_whole else n, p=shares)
            parts[dimension] = drawn[self.clusters] if is_whole else drawn
            members |= {Slice(dimension, str(i)): parts[dimension] == i for i in range(len(shares))}
        for i, share in enumerate(TAGS):
            members[Slice("tag", str(i))] = (rng.random(n_clusters) < share)[self.clusters]
        mean = 0.85 + 0.08 * rng.standard_normal(10)[parts["corpus"]] - 0.05 * (parts["language"] == 1)
        return members, np.clip(mean, 0.3, 0.98)

    def _drawn(self, rng, mean):
        """Draw near-smooth, 0/1 or three-claim scores; turns of a session resemble one another."""
        n = len(mean)
        shared = rng.random(int(self.clusters[-1]) + 1)[self.clusters]
        uniform = np.where(rng.random(n) < 0.4, shared, rng.random(n))
        kind = rng.integers(3)
        if kind == 0:
            return (uniform < mean).astype(float)
        if kind == 1:
            claims = np.column_stack([uniform, rng.random((n, 2))])
            return (claims < mean[:, None]).mean(axis=1)
        return np.clip(mean + 0.1 * rng.standard_normal(n), 0.0, 1.0)
