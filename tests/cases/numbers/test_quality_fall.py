"""A page: faithfulness falls by 0.12 at 1,000 scores a day. A smaller fall, a bad quiet night and one session are none."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import ragtrace_dashboards
from tests.cases.numbers.months import DAY_H, counters, labels, moved, wander
from tests.monitoring.promtool import expecting, run

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE, JOB = "RagtraceQualityFall", "paged"
RULES = Path(ragtrace_dashboards.__file__).parent / "dist" / "rules" / "ragtrace-alerts.yaml"
LEARN_H = 10 * DAY_H
STEP_MIN = 30
"""Minutes between samples and evaluations: the day of a fall is looked at closely."""
WANDER = 0.006
SCORES = (0.0, 0.25, 0.5, 0.75, 1.0)
NORMAL, SHARES = 0.92, (0.03, 0.02, 0.03, 0.08, 0.84)
DAY = tuple(1.0 if 7 <= hour < 22 else 0.2 for hour in range(24))
"""Traffic by the hour, so that nights are quiet."""


@dataclass(frozen=True, kw_only=True)
class Fall:
    """Scores of one workflow that fall for some hours.

    Attributes:
        to: the mean of these hours.
        begins_h: hour of the day at which they begin.
        hours: how many.
        per_day: scores a day.
        turns: equal turns of each declared session.
        bad: sessions of zeros that come within the first hour; they are the only ones then.
    """

    to: float = NORMAL
    begins_h: float = 9.0
    hours: float = 12.0
    per_day: float = 1_000.0
    turns: int = 1
    bad: int = 0

    def steps(self, seed: int, after_h: float) -> Iterator[list[list[float]]]:
        """Yield the sessions of each half-hour, until some hours after the fall began."""
        rng, begins = random.Random(seed), LEARN_H + self.begins_h
        offs = wander(rng, round((begins + after_h) / DAY_H) + 2, WANDER)
        for step in range(round((begins + after_h) * 60 / STEP_MIN)):
            hour = step * STEP_MIN / 60
            sessions = self.per_day / self.turns * DAY[int(hour % DAY_H)] / sum(DAY) * STEP_MIN / 60
            is_fallen = begins <= hour < begins + self.hours
            if self.bad and begins <= hour < begins + 1.0:
                yield [[0.0] * self.turns] * (self.bad if hour == begins else 0)
                continue
            off = offs[int(hour / DAY_H)] + (self.to - NORMAL if is_fallen else 0.0)
            yield [
                [self._score(rng, off)] * self.turns for _ in range(int(sessions) + (rng.random() < sessions % 1.0))
            ]

    @staticmethod
    def _score(rng: random.Random, off: float) -> float:
        """Draw a score whose mean is off by so much: a share becomes 0 or 1."""
        x = rng.choices(SCORES, SHARES)[0]
        return moved(rng, x, off / NORMAL if off < 0.0 else off / (1.0 - NORMAL))


def pages(hour: float, hours: float, *, some: bool) -> dict[str, Any]:
    """Return the check that it paged, or did not, within the hours before an hour."""
    count = f'count_over_time(ALERTS{{alertname="{PAGE}",alertstate="firing",job="{JOB}"}}[{round(hours * 60)}m])'
    return expecting(f"count({count}) >= bool 1", hour, [{"labels": "{}", "value": 1}] if some else [])


def test_the_fall_pages_and_the_drift_is_a_warning() -> None:
    document = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    severity = {
        rule["alert"]: rule["labels"]["severity"]
        for group in document["groups"]
        for rule in group["rules"]
        if "alert" in rule
    }
    assert severity.get("RagtraceQualityDrift") == "warning"
    assert severity.get(PAGE) == "critical"


WITHIN_H = 12.0
"""Of one seed; docs/how-to/alerts.md has the measured median."""
PAGED: dict[str, Fall] = {
    "0.12 in the morning": Fall(to=0.80, begins_h=9.0),
    "0.12 in the evening": Fall(to=0.80, begins_h=14.0),
    "0.2": Fall(to=0.72, begins_h=9.0),
}
QUIET: dict[str, Fall] = {
    "no fall": Fall(hours=48.0),
    "0.05 for two days": Fall(to=0.87, hours=48.0),
    "five bad scores in a quiet night": Fall(begins_h=2.0, per_day=60.0, bad=5),
    "five bad scores in a quiet night of a busy service": Fall(begins_h=3.0, bad=5),
    "one session of twelve bad turns in a quiet night": Fall(begins_h=2.0, per_day=120.0, turns=12, bad=1),
    "no fall, sessions of twelve equal turns": Fall(hours=72.0, turns=12),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGED)
def test_a_fall_pages_within_half_a_day_and_never_before(tmp_path: Path, name: str) -> None:
    fall = PAGED[name]
    begins = LEARN_H + fall.begins_h
    series = counters(labels("faithfulness", JOB), fall.steps(1, WITHIN_H + 1.0))
    checks = [pages(begins, begins, some=False), pages(begins + WITHIN_H, WITHIN_H, some=True)]
    run(tmp_path, series, checks, only=[PAGE], step_min=STEP_MIN)


@pytest.mark.slow
@pytest.mark.parametrize("name", QUIET)
def test_what_is_no_fall_of_hours_never_pages(tmp_path: Path, name: str) -> None:
    fall = QUIET[name]
    end = LEARN_H + fall.begins_h + fall.hours + DAY_H
    series = counters(labels("faithfulness", JOB), fall.steps(1, end - LEARN_H - fall.begins_h))
    run(tmp_path, series, [pages(end, end, some=False)], only=[PAGE], step_min=STEP_MIN)
