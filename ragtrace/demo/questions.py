"""The demo's questions with hand-made grades of every handbook passage."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import chain, islice
from typing import TYPE_CHECKING

from ragtrace.demo.handbook import handbook

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question.

    Attributes:
        id: short name.
        query: what is asked.
        reference: a short right answer.
        grades: grade 2 to 5 by passage id; every other passage of the handbook was read and has grade 1.
            Empty for a question that the handbook does not answer.
    """

    id: str
    query: str
    reference: str
    grades: Mapping[str, int]

    def labels(self) -> dict[str, int]:
        """Return the grade of every passage of the handbook: the universe ``gold``."""
        return {passage.id: self.grades.get(passage.id, 1) for passage in handbook()}


@cache
def questions() -> tuple[Question, ...]:
    """Return every question.

    Example:
        >>> len(questions()) >= 45
        True
    """
    text = (files("ragtrace.demo") / "questions.jsonl").read_text(encoding="utf-8")
    return tuple(Question(**json.loads(line)) for line in text.splitlines())


def asked(count: int, seed: int) -> list[Question]:
    """Return `count` questions: all of them in an order that `seed` decides, then all again in another.

    Example:
        >>> [q.id for q in asked(3, seed=0)] == [q.id for q in asked(3, seed=0)]
        True
    """
    draw = random.Random(seed)
    return list(islice(chain.from_iterable(_rounds(draw)), count))


def _rounds(draw: random.Random) -> Iterator[list[Question]]:
    while True:
        yield draw.sample(questions(), len(questions()))
