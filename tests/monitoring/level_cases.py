"""Cases of alerts over days: level, number and judge of scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.monitoring.cases import Case
from tests.monitoring.drift_cases import CHANGED, labels
from tests.monitoring.promtool import Scores, baseline, scores

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.monitoring.cases import Kind

LOW, BLIND = "RagtraceLowScores", "RagtraceDriftBlind"


def level_cases() -> list[Case]:
    return [*_low(), *_blind(), *_judges()]


def _low() -> Iterator[Case]:
    def case(job: str, count: int, *phases: Scores, hour: float = 118, kind: Kind = "") -> Case:
        return Case(job, scores(labels(job), *phases), {LOW: [(hour, count)]}, kind=kind)

    yield case("three of ten low for days", 1, Scores(120, 200, low=0.3))
    yield case("nearly all low today", 1, Scores(96, 200), Scores(24, 200, low=0.9))
    # Of three days' scores these are one in fifty: only the quick arm sees them.
    yield case("nearly all low on a slow day", 1, Scores(96, 2_000, low=0.0), Scores(30, 100, low=0.9), hour=124)
    yield case("one of ten low", 0, Scores(120, 200, low=0.1))
    yield case("six a day, all low", 0, Scores(120, 6, low=1.0), kind="low n")
    yield case("well again", 0, Scores(96, 200, low=0.3), Scores(24, 200, low=0.0))
    yield case("low, then nothing", 0, Scores(60, 200, low=0.9), Scores(96, 0), hour=150, kind="silence")


def _blind() -> Iterator[Case]:
    def case(job: str, count: int, *phases: Scores, hour: float = 160, kind: Kind = "") -> Case:
        return Case(job, scores(labels(job), *phases), {BLIND: [(hour, count)]}, kind=kind)

    yield case("enough", 0, Scores(168, 200))
    yield case("15 a day", 1, Scores(168, 15), kind="low n")
    yield case("few of many carry it", 1, Scores(168, 200, w2=25.0), kind="low n")
    yield case("a metric that stopped", 1, Scores(84, 200), Scores(84, 0), kind="silence")
    yield case("new: it learns", 0, Scores(60, 20), hour=58)
    # The rolling baseline stands in for a frozen one of too few scores.
    for job, n in (("a baseline of 83", 83), ("a baseline of 500", 500)):
        series = scores(labels(job), Scores(168, 200)) + baseline(labels(job), (168, 0.92), n=n, frozen_h=0)
        yield Case(job, series, {BLIND: [(160, 0)]})


def _judges() -> Iterator[Case]:
    def by(job: str, version: str, begin_h: float, *phases: Scores) -> list[dict[str, str]]:
        return scores(labels(job, ragtrace_judge_version=version), *phases, begin_h=begin_h)

    # How low scores are is a matter of whoever judges now; that there are enough is not.
    yield Case(
        "changes",
        by("changes", "a", 0, Scores(96, 200), Scores(72, 0)) + by("changes", "b", 96, Scores(72, 200, low=0.9)),
        {CHANGED: [(90, 0), (106, 1), (130, 0)], LOW: [(90, 0), (118, 1)], BLIND: [(160, 0)]},
        kind="judge change",
    )
    yield Case(
        "changes, then nothing",
        by("changes, then nothing", "a", 0, Scores(96, 200), Scores(72, 0))
        + by("changes, then nothing", "b", 96, Scores(6, 200), Scores(66, 0)),
        {CHANGED: [(106, 1), (136, 0)]},
        kind="silence",
    )
    # Two judges side by side, or in turns: each is looked at for itself.
    for job, b, low, blind in (
        ("a mild one hides a strict one", Scores(168, 200, low=0.3), 1, 0),
        ("two of 15 a day", Scores(168, 15), 0, 2),
        ("ten a day by a strict one", Scores(168, 9, low=1.0), 0, 1),
    ):
        a = Scores(168, 15 if blind == 2 else 200, low=0.05)
        yield Case(job, by(job, "a", 0, a) + by(job, "b", 0, b), {LOW: [(160, low)], BLIND: [(160, blind)]})
    # One score by another judge has changed the measurement: the number does not count.
    yield Case(
        "three by another", by("three by another", "a", 0, Scores(168, 200)) + by("three by another", "b", 96, Scores(24, 3)),
        {CHANGED: [(106, 1)]}, kind="low n",
    )  # fmt: skip
    yield Case("as it was", by("as it was", "a", 0, Scores(168, 200)), {CHANGED: [(4, 0), (160, 0)]})
    yield Case("first", by("first", "a", 96, Scores(72, 200)), {CHANGED: [(106, 0)]})
