"""The worlds of the simulation by name: those in which the rule was chosen, and those that it had not seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tests.monitoring.drift_worlds.worlds import (
    BINARY,
    FIVE,
    HOUR,
    MIDDLING,
    NEAR_PERFECT,
    SMOOTH,
    UNINVENTED,
    World,
)

VOLUMES: Final = (20, 50, 200, 1_000, 5_000)
"""Scores a day."""

USUAL: Final = World(wander=0.006, topic_traffic=0.3)
INVENTIONS: Final = replace(USUAL, shape=UNINVENTED, wander=0.002, topic_bad=0.1)
_THREE_TURNS: Final = replace(USUAL, turns=3, lags=(0, 1))
_TWICE: Final = replace(USUAL, turns=2, lags=(0, HOUR // 2, 2 * HOUR, 6 * HOUR, 15 * HOUR))

WORLDS: Final[dict[str, World]] = {
    "independent scores": World(of_day=0.0),
    "the mean wanders by .006 from day to day": USUAL,
    "by .009": replace(USUAL, wander=0.009),
    "by .015": replace(USUAL, wander=0.015),
    "by .015, slowly": replace(USUAL, wander=0.015, correlation=0.9),
    "by .02 over 4 hours": replace(USUAL, within=0.02),
    "by .03 over 2 hours": replace(USUAL, wander=0, within=0.03, within_hours=2),
    "by .03 over 6 hours": replace(USUAL, within=0.03, within_hours=6),
    "scores of five values": replace(USUAL, shape=FIVE),
    "scores of 0 and 1": replace(USUAL, shape=BINARY),
    "nearly perfect scores": replace(USUAL, shape=NEAR_PERFECT, wander=0.002, topic_bad=0.1),
    "smooth scores": replace(USUAL, shape=SMOOTH),
    "weekends .02 lower": replace(USUAL, weekend=0.02),
    "weekends .03 lower": replace(USUAL, weekend=0.03),
    "weekly releases of .01": replace(USUAL, release=0.01),
    "weekly releases that add up": replace(USUAL, release=0.01, is_walk=True),
    "traffic doubles": replace(USUAL, growth=2.0),
    "a topic adds half of the traffic": replace(USUAL, topic_traffic=0.5),
    "a topic doubles the traffic": replace(USUAL, topic_traffic=1.0),
    "sessions of three turns": _THREE_TURNS,
    "the same, not known as sessions": replace(_THREE_TURNS, is_clustered=False),
    "every question twice within hours": _TWICE,
    "the same, not known as duplicates": replace(_TWICE, is_clustered=False),
    "17 days after the start": replace(USUAL, history=17),
    "24 days after the start": replace(USUAL, history=24),
    "31 days after the start": replace(USUAL, history=31),
    "a holiday week": replace(USUAL, holiday=(0.25, 0.02)),
    "ends of months": replace(USUAL, month_end=(1.5, 0.015)),
    "weekly deploys, .1 lower for an hour": replace(USUAL, release=0.01, deploy=0.1),
    "sessions of six turns": replace(_THREE_TURNS, turns=6),
    "sessions of twelve turns": replace(_THREE_TURNS, turns=12),
    "50 questions, asked again and again": replace(USUAL, questions=50),
    "inventions in one answer of twenty": INVENTIONS,
    "a topic for six hours": replace(USUAL, topic_hours=6, topic_bad=0.5),
}
DOUBLED: Final = "a topic doubles the traffic"
TOPIC: Final = "a topic for six hours"
BURSTS: Final = (DOUBLED, TOPIC)
"""Worlds in which the quality falls for hours: an alarm is counted as a false one, and is none."""

UNSEEN: Final[dict[str, World]] = {
    "wander, weekends, topics and sessions": World(
        shape=FIVE, wander=0.012, correlation=0.8, weekend=0.02, topic_traffic=0.3, turns=2, lags=(0, HOUR)
    ),
    "one day of twenty is .04 lower": World(wander=0.004, bad_day=(0.05, 0.04)),
    "a nightly batch, .03 lower": World(shape=BINARY, wander=0.006, batch=(0.3, 0.03)),
    "a season of a month, a mean of .7": World(shape=MIDDLING, wander=0.006, season=0.01, growth=1.5),
    "strata of weights 1 and 10": replace(USUAL, wander=0.009, strata=((0.5, 1.0, 0.1), (0.5, 10.0, 0.0))),
}
"""Written before the rule was chosen, and first run after it."""
