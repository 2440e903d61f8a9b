"""The offline judge as a sensor: answers that differ in one fact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ragtrace.judges import OverlapJudge
from tests.unit.judges.offline.minimal_pairs import PAIRS, UNSEEN, Pair
from tests.unit.judges.offline.scoring import results

if TYPE_CHECKING:
    from ragtrace.model import MetricResult


async def judged(answer: str, *contexts: str) -> MetricResult:
    return (await results(answer, *contexts))["faithfulness"]


async def is_right(pair: Pair) -> bool:
    contexts = pair.context.split(" || ")
    right, wrong = (await judged(pair.right, *contexts)).value, (await judged(pair.wrong, *contexts)).value
    return right is not None and wrong is not None and right >= OverlapJudge.thresholds["faithfulness"] > wrong


@pytest.mark.parametrize(("pairs", "least"), [(PAIRS, 61), (UNSEEN, 40)], ids=["tuned", "unseen"])
async def test_it_tells_most_pairs_apart(pairs: tuple[Pair, ...], least: int) -> None:
    missed = [pair for pair in pairs if not await is_right(pair)]
    assert len(pairs) - len(missed) >= least, missed


@pytest.mark.parametrize(
    ("context", "answer", "evidence"),
    [
        ("The lamp may not be used in bathrooms.", "The lamp may be used in bathrooms.", "the contexts deny it"),
        ("Smoking is prohibited on the balcony.", "Smoking is allowed on the balcony.", "the opposite of 'allow'"),
        (
            "Plan A costs 10 euros. Plan B costs 20 euros.",
            "Plan A costs 20 euros.",
            "'10 euro' in place of '20 euro'",
        ),
        ("The fair is in March. Sales begin in May.", "The fair is in May.", "'March' in place of 'May'"),
        (
            "The museum has 4 floors and 12 galleries.",
            "The museum has 4 galleries.",
            "the contexts have '12 gallery'",
        ),
        ("Arsenal beat Chelsea in the final.", "Chelsea beat Arsenal in the final.", "the other way round"),
    ],
)
async def test_it_gives_the_evidence(context: str, answer: str, evidence: str) -> None:
    claims: Any = (await judged(answer, context)).details["claims"]
    (claim,) = claims
    assert claim["verdict"] == "contradicted"
    assert evidence in claim["reason"]


@pytest.mark.parametrize(
    ("context", "answer"),
    [
        ("A carton holds twelve bottles.", "A carton holds 12 bottles."),
        ("The stadium has 1,000 seats.", "The stadium has 1 000 seats."),
        ("The stadium has 1000 seats.", "The stadium has 1,000 seats."),
        ("The trail is 5 km long.", "The trail is 5 kilometres long."),
        ("The discount is 20 %.", "The discount is 20 percent."),
        ("The ticket costs €30.", "The ticket costs 30 euros."),
        ("The ticket costs 30 EUR.", "The ticket costs €30."),
        ("It was sold for $2.5 million.", "It was sold for 2,500,000 dollars."),
        ("The law came into force on 2019-11-05.", "The law came into force on November 5, 2019."),
        ("The shop opens at 9:30 am and closes at 6 pm.", "The shop opens at 9:30 and closes at 18:00."),
        ("The warranty lasts twenty-four months.", "The warranty lasts 24 months."),
    ],
)
async def test_notation_is_no_difference(context: str, answer: str) -> None:
    assert (await judged(answer, context)).value == 1.0
