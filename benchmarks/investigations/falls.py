"""Falls of a known cause: are their part, size and onset named?

`python -m benchmarks.investigations.falls` prints, for each kind of fall, how many of its worlds are found, whose
part is named first, whose interval holds the truth, and how far the onset is off.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from ragtrace.model import SeriesKey
from ragtrace.scoring.investigation.comparison import TooFewScores
from ragtrace.scoring.investigation.runs import RunScore
from ragtrace.scoring.investigation.search import investigated
from ragtrace.stats.change.slices import Slice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ragtrace.scoring.investigation.search import Investigation

DAY_S = 86_400.0
END = 1_795_800_000.0
HISTORY_DAYS = 13.0
_KEY = SeriesKey(metric="faithfulness", judge="overlap", version="v1", k=None, label_scale=None, universe=None)
FACTS = {
    "corpus": (("handbook", 0.4), ("tickets", 0.25), ("faq", 0.2), ("api", 0.15)),
    "model": (("large", 0.75), ("small", 0.25)),
    "tag": (("web", 0.5), ("app", 0.25), ("mail", 0.25)),
    "kind": (("how", 0.5), ("where", 0.25), ("why", 0.25)),
    "language": (("en", 0.75), ("other", 0.25)),
    "environment": (("eu", 0.6), ("us", 0.4)),
}
QUARTERS = (
    Slice("corpus", "tickets"),
    Slice("model", "small"),
    Slice("tag", "app"),
    Slice("tag", "mail"),
    Slice("kind", "where"),
    Slice("kind", "why"),
    Slice("language", "other"),
)
"""Parts with a quarter of the traffic."""


@dataclass(frozen=True, kw_only=True)
class Fall:
    """A kind of fall.

    Attributes:
        name: of its row in the table.
        runs: in 13 days.
        hours: ago that it began.
        by: how much lower the mean of its part is since.
        is_everywhere: whether all traffic fell; else a quarter did.
        worlds: how many are drawn.
        claims: of an answer, least and most; 1 and 1 make scores of 0 and 1.
    """

    name: str
    runs: int = 10_000
    hours: float = 72.0
    by: float = 0.15
    is_everywhere: bool = False
    worlds: int = 48
    claims: tuple[int, int] = (3, 9)


FALLS = (
    Fall(name=".15 in a quarter, for 3 days"),
    Fall(name=".15 in a quarter, for 3 days, 3,000 runs", runs=3_000),
    Fall(name=".15 in a quarter, for 6 hours", hours=6.0),
    Fall(name=".30 in a quarter, for 6 hours", hours=6.0, by=0.3),
    Fall(name=".15 in a quarter, for a day", hours=24.0),
    Fall(name=".15 in a quarter, for 6 days", hours=144.0),
    Fall(name=".10 everywhere, for 3 days", by=0.1, is_everywhere=True, worlds=32),
    Fall(name=".10 everywhere, for 6 hours", by=0.1, is_everywhere=True, worlds=32, hours=6.0),
    Fall(name=".15 everywhere, for 6 hours", is_everywhere=True, worlds=32, hours=6.0),
    Fall(name=".15 in a quarter, for 3 days, scores of 0 and 1", claims=(1, 1)),
    Fall(name=".15 in a quarter, for 6 hours, scores of 0 and 1", claims=(1, 1), hours=6.0),
)


@dataclass(frozen=True)
class Drawn:
    """A source of drawn scores, as `ragtrace.scoring.investigation.runs.Source`."""

    runs: list[RunScore]

    def metrics(self) -> list[str]:
        """Return the one metric."""
        return ["faithfulness"]

    def scores(self, _metric: str, since: float, until: float) -> list[RunScore]:
        """Return the scores of a time."""
        return [run for run in self.runs if since <= run.at < until]


def drawn(fall: Fall, seed: int) -> tuple[Drawn, Slice | None]:
    """Return the scores of one world, and the part that fell.

    Traffic follows the hours of the day, and the mean wanders by .004 from day to day. A tenth of the runs are
    second turns of a session, with the score of the first.
    """
    rng = np.random.default_rng((seed, fall.runs))
    part = None if fall.is_everywhere else QUARTERS[seed % len(QUARTERS)]
    day = rng.choice(int(HISTORY_DAYS * 24), fall.runs, p=_of_hours())
    age = np.sort(day + rng.random(fall.runs))[::-1] * 3_600.0
    facts = {name: rng.choice(len(values), fall.runs, p=[p for _, p in values]) for name, values in FACTS.items()}
    names = {name: [value for value, _ in values] for name, values in FACTS.items()}
    own = np.ones(fall.runs, dtype=np.bool_)
    if part is not None:
        own = facts[part.dimension] == names[part.dimension].index(part.value)
    wander = 0.004 * rng.standard_normal(int(HISTORY_DAYS) + 1)
    mean = 0.92 + wander[(age // DAY_S).astype(int)] - fall.by * (own & (age < fall.hours * 3_600.0))
    claims = rng.integers(fall.claims[0], fall.claims[1] + 1, fall.runs)
    values = rng.binomial(claims, mean) / claims
    sessions = np.where(rng.random(fall.runs) < 0.1, np.arange(fall.runs) - 1, np.arange(fall.runs))
    lengths = rng.lognormal(4.0, 0.5, fall.runs).astype(int)
    runs = [
        RunScore(
            trace_id=f"{i:032x}",
            at=END - float(age[i]),
            value=float(values[i]),
            weight=1.0,
            cluster=str(sessions[i]),
            key=_KEY,
            slices=tuple(Slice(name, names[name][code[i]]) for name, code in facts.items()),
            query_chars=int(lengths[i]),
        )
        for i in range(fall.runs)
    ]
    return Drawn(runs), part


def _of_hours() -> list[float]:
    hours = np.arange(int(HISTORY_DAYS * 24))
    traffic = 1.0 + 0.75 * np.sin(2.0 * np.pi * hours / 24.0)
    return list(traffic / traffic.sum())


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What was said of one world."""

    is_found: bool
    is_first: bool = False
    is_wrong: bool = False
    is_held: bool = False
    is_bare: bool = False
    size: float = 0.0
    hours_off: float = 0.0


def answered(fall: Fall, seed: int) -> Answer:
    """Return what the search says of one world."""
    source, part = drawn(fall, seed)
    try:
        found = investigated(source, before=END - 14 * DAY_S, until=END)
    except TooFewScores:
        return Answer(is_found=False)
    return _judged(found, fall, part) if found.is_fallen else Answer(is_found=False)


def _judged(found: Investigation, fall: Fall, part: Slice | None) -> Answer:
    named = [it.slice for it in found.explained.slices]
    truth = fall.by * (1.0 if part is None else 0.25)
    low, high = -(found.change.high or 0.0), -(found.change.low or 0.0)
    return Answer(
        is_found=True,
        is_first=named[:1] == [part],
        is_wrong=any(it != part for it in named) if part is not None else bool(named),
        is_held=low <= truth <= high,
        is_bare=not named,
        size=-found.change.value / truth,
        hours_off=abs((found.changed_at or 0.0) - (END - fall.hours * 3_600.0)) / 3_600.0,
    )


def rows(falls: tuple[Fall, ...] = FALLS) -> Iterator[str]:
    """Yield the table's rows."""
    heads = (
        "fall",
        "found",
        "its part first",
        "an unchanged part",
        "interval holds",
        "size / truth",
        "onset off, h",
    )
    yield f"| {' | '.join(heads)} |"
    yield "|---|---|---|---|---|---|---|"
    for fall in falls:
        answers = [answered(fall, seed) for seed in range(fall.worlds)]
        found = [it for it in answers if it.is_found]
        n = len(found)
        first = f"{sum(it.is_first for it in found)}"
        if fall.is_everywhere:
            first = f"no part: {sum(it.is_bare for it in found)}"
        yield (
            f"| {fall.name} | {n} of {fall.worlds} | {first} of {n} | {sum(it.is_wrong for it in found)} of {n}"
            f" | {sum(it.is_held for it in found)} of {n} | {_middle([it.size for it in found]):.2f}"
            f" | {_middle([it.hours_off for it in found]):.1f} |"
        )


def _middle(values: list[float]) -> float:
    return median(values) if values else float("nan")


def main() -> int:
    """Print the table; an argument makes so many worlds of each kind."""
    count = [int(it) for it in sys.argv[1:]]
    for row in rows(tuple(replace(it, worlds=count[0]) if count else it for it in FALLS)):
        print(row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
