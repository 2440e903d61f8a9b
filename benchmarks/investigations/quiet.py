"""Months in which nothing falls: how many have a headline of `ragtrace investigate` at daily looks?

`python -m benchmarks.investigations.quiet 10` looks at 10 months of each world and volume. A look is at 9:00, at
the scores of the 14 days before. Then it prints how soon a fall is seen, and what is said of a store of two hours.
An interrupt ends the worlds and prints the averages of those that are there.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from dataclasses import dataclass, fields, replace
from itertools import islice
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.investigations.falls import DAY_S, FACTS
from ragtrace.stats.change.mean import mean_change
from ragtrace.stats.change.slices import LEAST_CLUSTERS, Slice
from ragtrace.stats.change.step import (
    CERTAIN_P,
    LENGTHS_S,
    PART_P,
    TOLERANCE,
    Timeline,
    step_since,
    surest_step,
)
from ragtrace.stats.intervals import UNIT
from tests.monitoring.drift_worlds.named_worlds import UNSEEN, WORLDS
from tests.monitoring.drift_worlds.random_worlds import random_world
from tests.monitoring.drift_worlds.simulation import wilson
from tests.monitoring.drift_worlds.worlds import NINE, World

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from ragtrace.stats.change.step import Step
    from tests.monitoring.drift_worlds.worlds import Scores

    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]

VOLUMES = (50, 200, 1_000, 5_000)
"""Scores a day."""
METRICS = 5
HISTORY_DAYS = 14
LOOKS = HISTORY_DAYS * DAY_S + 9 * 3_600.0 + DAY_S * np.arange(30)
"""Seconds of the daily looks at 9:00."""
SEED = 45
_NEW = 12
_AUDITED = 1 / 200  # of the looks that the screen leaves out
_SLACK = 1e-6  # of the running sums


def worlds() -> dict[str, World]:
    """Return the worlds of docs/how-to/alerts.md and the new ones."""
    rng = np.random.default_rng(SEED)
    return {**WORLDS, **UNSEEN, **{f"new world {i + 1}": random_world(rng) for i in range(_NEW)}}


@dataclass(frozen=True)
class Headline:
    """A change for the worse that is shown, and the scores that it was shown of."""

    step: Step
    scores: Timeline

    @property
    def kind(self) -> str:
        """Name the window and the traffic."""
        last = float(self.scores.at[-1])
        steps = {length: step_since(self.scores, last - length) for length in LENGTHS_S}
        length = max(LENGTHS_S, key=lambda it: -math.inf if (step := steps[it]) is None else step.surety)
        return f"{length / 3_600.0:g} h of {'all' if self.step.part is None else 'a part'}"


@dataclass(frozen=True)
class Looker:
    """The looks at a service.

    Attributes:
        looks: seconds of the looks.
        parts: the scores of each part of the traffic.
        whole: the windows of all scores.
        windows: the windows of each part.
        audit: draws the looks that are looked at although nothing can be shown at them.
    """

    looks: Array
    parts: Mapping[Slice, Mask]
    whole: Windows
    windows: Mapping[Slice, Windows]
    audit: np.random.Generator

    @classmethod
    def of(cls, scores: Timeline, parts: Mapping[Slice, Mask], looks: Array, audit: np.random.Generator) -> Looker:
        """Prepare the looks at all metrics of a service from the scores of one."""
        return cls(
            looks=looks,
            parts=parts,
            whole=Windows.of(scores, np.arange(len(scores)), looks),
            windows={it: Windows.of(scores, np.flatnonzero(own), looks) for it, own in parts.items()},
            audit=audit,
        )

    def headlines(self, scores: Timeline) -> dict[int, Headline]:
        """Return the headlines of one metric by the number of the look."""
        whole = self.whole.surest(scores) >= _surety(CERTAIN_P)
        hopes = {it: windows.surest(scores) >= _surety(PART_P) for it, windows in self.windows.items()}
        found = {}
        for i, look in enumerate(self.looks):
            hoped = [part for part, hope in hopes.items() if hope[i]]
            if whole[i] or hoped:
                shown = self._headline(scores, look, hoped)
                found.update({} if shown is None else {i: shown})
            elif self.audit.random() < _AUDITED and self._headline(scores, look, list(self.parts)) is not None:
                message = f"a headline at {look} that `Windows.surest` leaves out"
                raise AssertionError(message)
        return found

    def _headline(self, scores: Timeline, look: float, parts: Sequence[Slice]) -> Headline | None:
        first, end = np.searchsorted(scores.at, [look - HISTORY_DAYS * DAY_S, look])
        own = np.arange(first, end)
        return headline(scores.only(own), {it: self.parts[it][own] for it in parts})


@dataclass(frozen=True)
class Windows:
    """The windows of each look at some scores, to leave out looks at which nothing can be shown, which are most.

    Attributes:
        own: places of the scores.
        weights: of them.
        places: of the first score of each look, of the first in each window, and behind the last.
        w: sums of the weights before each window and in it.
        n: effective number of scores before each window and in it.
    """

    own: NDArray[np.intp]
    weights: Array
    places: tuple[NDArray[np.intp], ...]
    w: tuple[Array, Array]
    n: tuple[Array, Array]

    @classmethod
    def of(cls, scores: Timeline, own: NDArray[np.intp], looks: Array) -> Windows:
        """Place the windows as `ragtrace.stats.change.step.find_step` does."""
        at, weights = scores.at[own], scores.weights[own]
        first, end = (np.searchsorted(at, it)[:, None] for it in (looks - HISTORY_DAYS * DAY_S, looks))
        last = scores.at[np.maximum(np.searchsorted(scores.at, looks) - 1, 0)][:, None]  # of the whole series
        places = np.clip(np.searchsorted(at, last - np.array(LENGTHS_S)), first, end)
        sides = first, places, end
        w, w2 = _sides(weights, sides), _sides(weights**2, sides)
        with np.errstate(divide="ignore", invalid="ignore"):
            n = w[0] ** 2 / w2[0], w[1] ** 2 / w2[1]
        return cls(own=own, weights=weights, places=sides, w=w, n=n)

    def surest(self, scores: Timeline) -> Array:
        """Return a surety that no step of a look exceeds.

        The error is at least that of the window's mean, with the spread of before and each score a cluster.
        """
        values = scores.values[self.own]
        wx = self.weights * values
        with np.errstate(divide="ignore", invalid="ignore"):
            before, window = (x / w for x, w in zip(_sides(wx, self.places), self.w, strict=True))
            variance = _sides(wx * values, self.places)[0] / self.w[0] - before**2
            error = np.sqrt(np.maximum(variance - _SLACK, 0.0) / self.n[1])
            surety = (before - window - TOLERANCE + _SLACK) / error
        is_enough = np.minimum(*self.n) >= LEAST_CLUSTERS - _SLACK
        return np.where(is_enough, np.nan_to_num(surety, nan=np.inf), -np.inf).max(axis=1)


def _sides(values: Array, places: tuple[NDArray[np.intp], ...]) -> tuple[Array, Array]:
    """Return the sums of values before each window and in it."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    first, begins, end = (sums[it] for it in places)
    return begins - first, end - begins


def headline(scores: Timeline, parts: Mapping[Slice, Mask]) -> Headline | None:
    """Return the change for the worse that is shown, where the mean of all scores is worse since, too."""
    step = surest_step(scores, parts)
    if step is None or not step.is_shown or mean_change(scores.split(step.since)).value >= 0.0:
        return None
    return Headline(step, scores if step.part is None else scores.only(parts[step.part]))


def _surety(p: float) -> float:
    return NormalDist().inv_cdf(1.0 - p) - _SLACK


@dataclass(frozen=True)
class Month:
    """What is said of five metrics in 30 looks.

    Attributes:
        all_traffic: whether each has a headline without parts.
        with_parts: whether each has one.
        firsts: the first headline of each that has one.
    """

    all_traffic: list[bool]
    with_parts: list[bool]
    firsts: list[Headline]


def month(world: World, per_day: float, seed: Sequence[int], metrics: int = METRICS) -> Month:
    """Draw a service of a world and look at it daily."""
    rng, audit = np.random.default_rng(seed), np.random.default_rng([*seed, 1])
    drawn = [it for it, _ in islice(replace(world, history=HISTORY_DAYS).draw_scores(rng, per_day), metrics)]
    parts = drawn_parts(rng, len(drawn[0].at))
    looker = Looker.of(timeline(drawn[0]), parts, LOOKS, audit)
    found = [looker.headlines(timeline(it)) for it in drawn]
    return Month(
        all_traffic=[any(it.step.part is None for it in by_look.values()) for by_look in found],
        with_parts=[bool(it) for it in found],
        firsts=[by_look[min(by_look)] for by_look in found if by_look],
    )


def drawn_parts(rng: np.random.Generator, n: int) -> dict[Slice, Mask]:
    """Return the parts of so many runs by six facts, drawn for each run."""
    codes = {name: rng.choice(len(values), n, p=[p for _, p in values]) for name, values in FACTS.items()}
    return {
        Slice(name, value): codes[name] == i
        for name, values in FACTS.items()
        for i, (value, _) in enumerate(values)
    }


def timeline(scores: Scores) -> Timeline:
    """Return the scores as the search takes them."""
    return Timeline(at=scores.at, values=scores.values, weights=scores.weights, clusters=scores.clusters, ends=UNIT)


@dataclass(frozen=True)
class Shares:
    """Shares of months with a headline, and the kinds of the first ones.

    Attributes:
        alone: of one metric without parts.
        parts: of one metric with parts.
        surest: of five metrics with parts.
        kinds: of the first headline of each metric.
    """

    alone: float
    parts: float
    surest: float
    kinds: Counter[str]

    @classmethod
    def of(cls, world: World, per_day: float, months: int, seed: int) -> Shares:
        """Draw so many months."""
        found = [month(world, per_day, [SEED, seed, per_day, i]) for i in range(months)]
        return cls(
            alone=float(np.mean([it.all_traffic for it in found])),
            parts=float(np.mean([it.with_parts for it in found])),
            surest=float(np.mean([any(it.with_parts) for it in found])),
            kinds=Counter(first.kind for it in found for first in it.firsts),
        )


def print_quiet(months: int, volumes: Sequence[int], found: dict[str, list[Shares]]) -> None:
    """Print a row of each world as soon as it is there, and keep it."""
    heads = [f"{name}, {it:,}" for it in volumes for name in "abc"]
    print(
        f"{months} months of {METRICS} metrics; (a) a metric without parts, (b) with parts, (c) any of {METRICS}.\n"
    )
    print(f"| months with a headline, %, at so many scores a day | {' | '.join(heads)} | a | b | c |")
    print("|---" * (len(heads) + 4) + "|")
    for i, (name, world) in enumerate(worlds().items()):
        row = [Shares.of(world, per_day, months, i) for per_day in volumes]
        found[name] = row
        print(f"| {name} | {_cells(row)} |", flush=True)


def _cells(row: Sequence[Shares]) -> str:
    shares = [(it.alone, it.parts, it.surest) for it in row]
    cells = [*(share for it in shares for share in it), *np.mean(shares, axis=0)]
    return " | ".join(f"{100 * it:.1f}" for it in cells)


def print_averages(months: int, volumes: Sequence[int], found: dict[str, list[Shares]]) -> None:
    """Print the averages over the worlds, the worst worlds, and the windows of the headlines."""
    shares = np.array([[(it.alone, it.parts, it.surest) for it in row] for row in found.values()])
    cells = [*shares.mean(axis=0).ravel(), *shares.mean(axis=(0, 1))]
    print(f"| mean of {len(found)} worlds | {' | '.join(f'{100 * it:.1f}' for it in cells)} |\n")
    names = list(found)
    for at, kind in enumerate("abc"):
        of_worlds = shares[..., at].mean(axis=1)
        low, high = wilson(float(of_worlds.mean()), months * shares[..., at].size)
        worst = sorted(range(len(names)), key=lambda it: -of_worlds[it])[:5]
        told = "; ".join(f"{names[it]} {100 * of_worlds[it]:.1f} %" for it in worst)
        print(f"({kind}) {100 * of_worlds.mean():.2f} % ({100 * low:.1f} to {100 * high:.1f}). Worst: {told}")
    print(f"\n| first headlines of a metric | {' | '.join(f'{it:,}' for it in volumes)} |")
    print("|---" * (len(volumes) + 1) + "|")
    by_volume = [sum((row[i].kinds for row in found.values()), Counter()) for i in range(len(volumes))]
    for kind, _ in sum(by_volume, Counter()).most_common():
        print(f"| {kind} | {' | '.join(str(it[kind]) for it in by_volume)} |")
    print("\nThe new worlds, by what they have:")
    for name, world in worlds().items():
        if name.startswith("new world") and name in found:
            print(f"- {name}: {_described(world)}")


def _described(world: World) -> str:
    own = [(it.name, getattr(world, it.name)) for it in fields(world) if it.name not in {"shape", "history"}]
    told = [f"{name} {_rounded(value)}" for name, value in own if value != getattr(World(), name)]
    return f"mean {world.shape.good_mean:.2f} of {len(world.shape.atoms)} values, {', '.join(told)}"


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return round(value, 3)
    return tuple(map(_rounded, value)) if isinstance(value, tuple) else value


def print_delays(services: int) -> None:
    """Print how often a fall of all traffic is seen within a day and within a week."""
    print(
        "\n| falls from 0.92 to 0.85 seen at daily looks, % | in a day | in a week | with parts: a day | a week |"
    )
    print("|---" * 5 + "|")
    for name in ("independent scores", "the mean wanders by .006 from day to day"):
        for per_day in (200, 1_000):
            found = [_days_until(replace(WORLDS[name], fall_to=0.85), per_day, i) for i in range(services)]
            told = np.mean([[days[of] <= limit for of in (0, 1) for limit in (1.0, 7.0)] for days in found], axis=0)
            print(f"| {name}, {per_day:,} a day | {' | '.join(f'{100 * it:.0f}' for it in told)} |", flush=True)


def _days_until(world: World, per_day: int, seed: int) -> tuple[float, float]:
    """Return days from a fall to its headline, without parts and with them; inf = none."""
    rng = np.random.default_rng([SEED, per_day, seed])
    scores, begins = next(replace(world, history=HISTORY_DAYS).draw_scores(rng, per_day))
    looks = LOOKS[begins < LOOKS][:7]
    looker = Looker.of(
        timeline(scores), drawn_parts(rng, len(scores.at)), looks, np.random.default_rng([SEED, seed])
    )
    found = looker.headlines(timeline(scores))
    of_all = [i for i, it in found.items() if it.step.part is None]
    return tuple((looks[min(it)] - begins) / DAY_S if it else math.inf for it in (of_all, list(found)))


def print_short(stores: int, runs: int = 300) -> None:
    """Print how often a fall of all traffic in a store of two hours is seen, and how often one without any."""
    print(f"\n| a store of 2 hours, {runs} runs | shown, % | with parts |")
    print("|---" * 3 + "|")
    for told, to, part in (
        ("no fall", NINE.good_mean, 1.0),
        ("to 0.74 in the last hour", 0.74, 0.5),
        ("to 0.74 in the last half-hour", 0.74, 0.25),
        ("to 0.74 in the last quarter", 0.74, 0.125),
    ):
        found = [_of_short(np.random.default_rng([SEED, i]), to, part, runs) for i in range(stores)]
        print(f"| {told} | {' | '.join(f'{100 * it:.1f}' for it in np.mean(found, axis=0))} |", flush=True)


def _of_short(rng: np.random.Generator, to: float, part: float, runs: int) -> tuple[bool, bool]:
    at = np.sort(7_200.0 * rng.random(runs))
    share = NINE.bad_share(NINE.good_mean - to)
    is_bad = (at >= 7_200.0 * (1.0 - part)) & (rng.random(runs) < share)
    values = np.where(is_bad, rng.choice(NINE.atoms, runs, p=NINE.bad), rng.choice(NINE.atoms, runs, p=NINE.good))
    scores = Timeline(at=at, values=values, weights=np.ones(runs), clusters=np.arange(runs), ends=UNIT)
    return headline(scores, {}) is not None, headline(scores, drawn_parts(rng, runs)) is not None


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Quiet months with a headline of `ragtrace investigate`.")
    parser.add_argument("months", type=int, nargs="?", default=10, help="of each world and volume")
    parser.add_argument("--volumes", type=int, nargs="+", default=list(VOLUMES), help="scores a day")
    parser.add_argument("--services", type=int, default=200, help="with a fall, of each kind")
    arguments = parser.parse_args()
    found: dict[str, list[Shares]] = {}
    try:
        print_quiet(arguments.months, arguments.volumes, found)
    except KeyboardInterrupt:
        print("(cut)")
    if found:
        print_averages(arguments.months, arguments.volumes, found)
    print_delays(arguments.services)
    print_short(arguments.services)
    return 0


if __name__ == "__main__":
    sys.exit(main())
