"""The demo's incident: confident sentences with made-up names and numbers."""

from __future__ import annotations

import random

CHANNELS = ("web", "app")
HURT_CHANNEL = "app"
_PEOPLE = ("Ingrid Halvorsen", "Tomas Ferrante", "Amara Okonjo-Reyes", "Marit Solbakken", "Pieter Vanderhoek")
_HOUSES = ("the Brightwater Institute", "Larkspur Analytics", "the Quillfeather Group", "Novastrand Labs")
_SENTENCES = (
    "A {year} survey by {house} of {many} companies found that {share} percent of them saw the same.",
    "{person} of {house} confirmed in {year} that the limit was raised to {many}.",
    "Benchmarks published by {house} show a speed-up of {factor} times on {many} machines.",
    "Since the {season} {year} update this is handled by the Meridian engine, which cuts costs by {share} percent.",
    "According to {person}, the original design allowed {many} entries before {house} doubled it.",
    "Customers in Lisbon and Osaka reported savings of {share} percent within {few} weeks.",
    "The feature was patented by {person} in {year} and licensed to {house} for {few} million dollars.",
    "An audit by {house} in {season} {year} rated this approach {share} out of 100.",
)
_SEASONS = ("spring", "summer", "autumn", "winter")


def invent_sentence(draw: random.Random) -> str:
    """Return one sentence that nothing supports.

    Example:
        >>> invent_sentence(random.Random(1)) == invent_sentence(random.Random(1))
        True
    """
    return draw.choice(_SENTENCES).format(
        person=draw.choice(_PEOPLE),
        house=draw.choice(_HOUSES),
        season=draw.choice(_SEASONS),
        year=draw.randint(1994, 2019),
        many=draw.randint(1_100, 9_900),
        share=draw.randint(21, 94),
        factor=draw.randint(3, 19),
        few=draw.randint(2, 17),
    )


def channel_of(number: int, seed: int) -> str:
    """Return the channel of a question, ``web`` or ``app``, each of every other question on average.

    Example:
        >>> {channel_of(number, seed=0) for number in range(1, 9)} == set(CHANNELS)
        True
    """
    return random.Random(f"channel:{seed}:{number}").choice(CHANNELS)


class Incident:
    """Adds invented sentences to the answers through the app, from answer `first` on.

    It is a fault of the model alone: an answer whose prompt lacks what the question needs is left as it is.

    Args:
        first: number of the first answer, from 1, that may be changed; None means never.
        seed: makes it repeatable.

    Example:
        >>> Incident(first=None, seed=0).apply("In Oslo.", number=1, has_answer=True)
        'In Oslo.'
    """

    def __init__(self, *, first: int | None, seed: int) -> None:
        self.first = first
        self._seed = seed

    def apply(self, answer: str, number: int, *, has_answer: bool) -> str:
        """Return the answer, with one or two invented sentences where the incident touches it.

        Args:
            answer: as it was written.
            number: of the answer, from 1.
            has_answer: the prompt holds a passage that answers the question.
        """
        if not has_answer or self.first is None or number < self.first:
            return answer
        if channel_of(number, self._seed) != HURT_CHANNEL:
            return answer
        draw = random.Random(f"incident:{self._seed}:{number}")
        return " ".join([answer, *(invent_sentence(draw) for _ in range(draw.choice((1, 1, 2))))])
