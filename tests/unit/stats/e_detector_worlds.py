"""Worlds for the e-detector's promise: traffic in which scores are alike, told or not told, at a mean that stays.

`python -m tests.unit.stats.e_detector_worlds 200` prints the table of docs/how-to/alerts.md, of 200 runs a world.
"""

from __future__ import annotations

import heapq
import random
import statistics
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ragtrace.stats import Clustered, EDetector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Chance = Callable[[], float]

GOOD, BAD = 0.92, 0.80
SCORES = 15_000
PROMISED = SCORES / 73_000
HOUR = 3_600.0


class Turn(NamedTuple):
    """A score, its time, and what its run tells: a session, and a question."""

    x: float
    at: float
    session: str | None = None
    question: str | None = None


@dataclass(frozen=True)
class World:
    """Traffic that draws whether an answer is good with a chance that may change.

    Attributes:
        name: as the table has it.
        play: yields the turns.
        is_told: the monitor sees sessions and questions; else the detector takes each score as it comes.
    """

    name: str
    play: Callable[[random.Random, Chance], Iterator[Turn]]
    is_told: bool = False


def sessions(
    turns: int, gap_s: float, per_hour: float, *, alike: float = 1.0
) -> Callable[[random.Random, Chance], Iterator[Turn]]:
    """Return sessions that begin at random and overlap; a turn is as its session with some chance, else its own."""

    def play(draw: random.Random, good: Chance) -> Iterator[Turn]:
        waiting: list[tuple[float, int, int, float]] = []
        begins, number = 0.0, 0
        while True:
            while not waiting or waiting[0][0] >= begins:
                heapq.heappush(waiting, (begins, number, 1, float(draw.random() < good())))
                begins, number = begins + draw.expovariate(per_hour / turns / HOUR), number + 1
            at, session, turn, value = heapq.heappop(waiting)
            if turn < turns:
                next_at = at + gap_s * draw.uniform(0.75, 1.25)
                heapq.heappush(waiting, (next_at, session, turn + 1, value))
            is_alike = alike == 1.0 or draw.random() < alike
            yield Turn(value if is_alike else float(draw.random() < good()), at, session=str(session))

    return play


def in_turn(turns: int, gap_s: float) -> Callable[[random.Random, Chance], Iterator[Turn]]:
    """Return sessions of equal turns, one session after the other."""

    def play(draw: random.Random, good: Chance) -> Iterator[Turn]:
        at = 0.0
        while True:
            value = float(draw.random() < good())
            for _ in range(turns):
                at += gap_s
                yield Turn(value, at)

    return play


def batches(size: int, every_s: float, *, alike: float) -> Callable[[random.Random, Chance], Iterator[Turn]]:
    """Return jobs of so many scores, a second apart, each as its job with some chance, else its own."""

    def play(draw: random.Random, good: Chance) -> Iterator[Turn]:
        begins = 0.0
        while True:
            value = float(draw.random() < good())
            for second in range(size):
                is_alike = alike == 1.0 or draw.random() < alike
                yield Turn(value if is_alike else float(draw.random() < good()), begins + second)
            begins += every_s

    return play


def questions(asked: int, per_hour: float) -> Callable[[random.Random, Chance], Iterator[Turn]]:
    """Return questions by Zipf's law; one that is asked again within the clock's hour has the same score."""

    def play(draw: random.Random, good: Chance) -> Iterator[Turn]:
        names = range(asked)
        shares = [1.0 / (name + 1) for name in names]
        at, hour, known = 0.0, -1, dict[int, float]()
        while True:
            at += draw.expovariate(per_hour / HOUR)
            if at // HOUR != hour:
                hour, known = int(at // HOUR), {}
            [name] = draw.choices(names, shares)
            value = known.setdefault(name, float(draw.random() < good()))
            yield Turn(value, at, question=str(name))

    return play


WORLDS = (
    World("independent, 20 an hour", sessions(1, 0.0, 20.0)),
    World("independent, 60 an hour", sessions(1, 0.0, 60.0)),
    World("independent, 500 an hour", sessions(1, 0.0, 500.0)),
    *(
        World(f"declared sessions of {n} equal turns, 3 min apart, 60 an hour", sessions(n, 180.0, 60.0), is_told=True)
        for n in (1, 3, 6, 12)
    ),
    *(World(f"{n} equal turns, undeclared, 20 an hour, one session after the other", in_turn(n, 172.8)) for n in (3, 6, 12)),
    World("12 equal turns, undeclared, 3 h apart, one session after the other", in_turn(12, 3 * HOUR)),
    World("6 turns of which 4 in 5 are alike, undeclared, 3 min apart, 20 an hour", sessions(6, 180.0, 20.0, alike=0.8)),
    World("12 equal turns, undeclared, 3 min apart, 60 an hour", sessions(12, 180.0, 60.0)),
    World("12 equal turns, undeclared, 3 min apart, 500 an hour", sessions(12, 180.0, 500.0)),
    World("12 equal turns, undeclared, 20 min apart, 20 an hour", sessions(12, 1_200.0, 20.0)),
    World("6 equal turns, undeclared, 1 h apart, 20 an hour", sessions(6, HOUR, 20.0)),
    World("50 equal scores in a job an hour, undeclared", batches(50, 3_700.0, alike=1.0)),
    World("100 scores in a job each 6 h, half of them alike, undeclared", batches(100, 6 * HOUR, alike=0.5)),
    World("30 frequent questions, 60 an hour, as the monitor counts them", questions(30, 60.0), is_told=True),
    World("30 frequent questions, 60 an hour, to the detector alone", questions(30, 60.0)),
    World("6 frequent questions, 20 an hour, as the monitor counts them", questions(6, 20.0), is_told=True),
    World("6 frequent questions, 20 an hour, to the detector alone", questions(6, 20.0)),
)  # fmt: skip


class Run(NamedTuple):
    """Scores given after the baseline until an alarm, None without one; and scores given for each one counted."""

    alarm: int | None
    given_for_one: float
    hours: float


def alarm_of(world: World, seed: int, *, falls: bool = False, after: int = 0) -> Run:
    """Return when a run alarms within 15,000 scores, or after a fall that comes so many scores after the baseline."""
    detector, clustered = EDetector(), Clustered()
    given, begun, fell_at = 0, 0, 0.0

    def good() -> float:
        return BAD if falls and begun and given >= begun + after else GOOD

    for turn in world.play(random.Random(seed), good):
        given += 1
        taken = [(turn.x, turn.at)]
        if world.is_told:
            repeats = [turn.question] if turn.question else []
            means = clustered.add(turn.x, 1.0, turn.at, party=turn.session, repeats=repeats)
            taken = [(mean.x, mean.at) for mean in means]
        for x, at in taken:
            detector.add(x, 1.0, at)
        if not begun and detector.state != "learning":
            begun = given
        if given <= begun + after:
            fell_at = turn.at
        is_over = begun and given >= begun + after + SCORES
        if detector.state == "alarm" or is_over:
            found = given - begun - after if detector.state == "alarm" else None
            return Run(found, given / detector.n, (turn.at - fell_at) / HOUR)
    raise AssertionError("a world never ends")


def main(runs: int) -> None:
    """Print the table."""
    for world in WORLDS:
        still = [alarm_of(world, seed) for seed in range(runs)]
        alarms = sum(it.alarm is not None for it in still)
        fallen = [alarm_of(world, seed, falls=True, after=200) for seed in range(max(runs // 2, 1))]
        delays = [SCORES if it.alarm is None else it.alarm for it in fallen if it.alarm is None or it.alarm > 0]
        hours = statistics.median(it.hours for it in fallen)
        ratio = statistics.median(it.given_for_one for it in still)
        delay = statistics.median(delays)
        figures = f"{100 * alarms / runs:.1f} % | {delay:,.0f} | {hours:.0f} h | {ratio:.1f}"
        sys.stdout.write(f"| {world.name} | {figures} |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
