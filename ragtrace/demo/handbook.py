"""The demo's corpus, which is the project's own handbook, graded questions about it, and their words."""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from ragtrace.judges.offline.words import stems

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = "ragtrace-handbook"
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_SECTION = re.compile(r"^## ", re.MULTILINE)
_MARKS = re.compile(r"[`*]")
_NOT_OF_A_SLUG = re.compile(r"[^a-z0-9]+")
_EVERYWHERE = frozenset({"ragtrace", "use", "used", "get", "after", "while"})  # say nothing about a question


@dataclass(frozen=True, slots=True, kw_only=True)
class HandbookPassage:
    """One section of the handbook, cut at a second-level heading.

    The id is made of page and heading, for example ``sampling#weights``. The text is prose on one line, without
    fenced code.
    """

    id: str
    title: str
    text: str


@cache
def handbook() -> tuple[HandbookPassage, ...]:
    """Return every passage of the handbook, by page and place.

    Example:
        >>> "sampling#weights" in {passage.id for passage in handbook()}
        True
    """
    folder = files("ragtrace.demo") / "corpus"
    pages = sorted((page for page in folder.iterdir() if page.name.endswith(".md")), key=lambda page: page.name)
    return tuple(
        passage
        for page in pages
        for passage in passages_of(page.name.removesuffix(".md"), page.read_text(encoding="utf-8"))
    )


def passages_of(page: str, markdown: str) -> list[HandbookPassage]:
    r"""Cut one page into passages.

    Example:
        >>> passages_of("faq", "# FAQ\n\n## How `k` is set\nBy *you*.\n")[0]
        HandbookPassage(id='faq#how-k-is-set', title='FAQ: How k is set', text='By you.')
    """
    head, *sections = _SECTION.split(_FENCED.sub("", markdown))
    page_title = _plain(head).removeprefix("# ")
    found = []
    for section in sections:
        heading, _, body = section.partition("\n")
        slug = _NOT_OF_A_SLUG.sub("-", heading.lower()).strip("-")
        found.append(
            HandbookPassage(id=f"{page}#{slug}", title=f"{page_title}: {_plain(heading)}", text=_plain(body))
        )
    return found


def _plain(markdown: str) -> str:
    return " ".join(_MARKS.sub("", markdown).split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question with hand-made grades of every handbook passage.

    Attributes:
        grades: grade 2 to 5 by passage id. Every other passage was read and has grade 1. Empty for a question that
            the handbook does not answer.
    """

    id: str
    query: str
    reference: str
    grades: Mapping[str, int]

    def labels(self) -> dict[str, int]:
        """Return the grade of every passage of the handbook."""
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


def shuffled_questions(count: int, seed: int) -> list[Question]:
    """Return `count` questions: all of them in an order that `seed` decides, then all again in another.

    Example:
        >>> [q.id for q in shuffled_questions(3, seed=0)] == [q.id for q in shuffled_questions(3, seed=0)]
        True
    """
    draw, every = random.Random(seed), questions()
    rounds = -(-count // len(every))
    return [question for _ in range(rounds) for question in draw.sample(every, len(every))][:count]


@cache
def word_weights() -> Mapping[str, float]:
    """Return the weight of each word stem of the handbook; the fewer passages have it, the more it weighs."""
    found = Counter(stem for p in handbook() for stem in set(stems(f"{p.title} {p.text}")))
    return {stem: math.log(1 + len(handbook()) / count) for stem, count in found.items()}


def coverage(question: str, text: str) -> float:
    """Return the share of the question's words, by weight, that a text has; 0 for a question without words.

    Example:
        >>> coverage("What is dangling?", "A citation is dangling.")
        1.0
    """
    wanted, held = set(stems(question)) - _EVERYWHERE, set(stems(text))
    weights, unknown = word_weights(), math.log(1 + len(handbook()))
    # fsum, since the order of a set of texts changes from process to process, and with it the last digit.
    total = math.fsum(weights.get(stem, unknown) for stem in wanted)
    return math.fsum(weights.get(stem, unknown) for stem in wanted & held) / total if total else 0.0
