"""Words by which a judge or a model's label takes a side: for, against, and what lies between.

Words stand in pairs, and negation is derived, so that a word is never read on one side only: a verdict that is read
where it is good and refused where it is bad would raise the mean of what is left.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

Stance = Literal["for", "partial", "not_wholly", "absent", "against"]

PARTICLES = (("yes", "no"), ("true", "false"))
"""Pairs that answer any question."""
EITHER = (("grounded factual faithful", "hallucinated hallucination hallucinating fabricated invented"),)
"""Pairs of which a denial of the second says the first: "no hallucination" is a label beside "hallucination"."""
ABSENT = (
    *PARTICLES,
    *EITHER,
    ("right", "wrong"),
    ("full", "none"),
    ("positive", "negative"),
    ("passed passes pass", "failed fails fail"),
    ("accepted accept approved approve", "rejected reject"),
    ("found present stated states mentioned covered", "missing absent omitted"),
    ("entailed entails entail entailment", "neutral nei neither extrapolatory baseless"),
)
"""Pairs of which the second says that the claim has no support. A negated first word says the same."""
AGAINST = (
    (
        "supported supports support supporting",
        "contradicted contradicts contradict contradicting contradiction contradictory",
    ),
    ("entailed entails entail entailment", "refuted refutes refute refuting refutation"),
    ("confirmed confirms confirm proven proved", "disproven disproved disproves denied debunked"),
    ("consistent agrees agree agreed compatible", "conflicting conflicts conflict opposed opposes oppose"),
)
"""Pairs of which the second says that the opposite is true."""
DERIVED = (
    "correct accurate valid verified verifiable substantiated justified attributable attributed backed implied"
)
"""Words for support whose opposites are negations only."""

_PREFIXES = ("not", "non", "un", "in", "im", "ir", "il", "dis", "no")
_NOT = frozenset({"not", "no", "non", "never", "without", "lacks", "lacking", "lack", "!"})
_WHOLLY = frozenset({"full", "fully", "completely", "entirely", "wholly", "totally"})
_IN_PART = frozenset({"partial", "partially", "partly"})
_PARTLY = _IN_PART | {"part", "somewhat", "mostly", "largely", "half", "weakly"}
# Of these a verdict speaks only where it denies them: "not enough information".
_SPOKEN_OF = """
enough sufficient evidence information info basis mention determined determinable conclusive related relevant
answerable available text context contexts passage passages source sources document documents given provided
"""
_MATTER = frozenset(_SPOKEN_OF.split())
_PLAIN = """
is are was were be been being does do did can could ca it its this that the a an any all by in from with of at even
claim statement fact answer directly explicitly clearly really
"""
_PLAIN_WORDS = frozenset(_PLAIN.split())
_MOST_CHARS = 80
_MARKS = ".,;: "
_AROUND = str.maketrans("_", " ", "*`'\"")  # marks that stand around a word, and say nothing
_SHORT_NOT = re.compile(r"n['\u2019]t\b|(?<=\bcan)not\b", re.IGNORECASE)
_APART = re.compile(r"\b(un|im|ir|il|dis)[\s-]+(?=[a-z])|\b(in)-(?=[a-z])", re.IGNORECASE)  # "un-supported"
_ANSWERS = {"yes": True, "true": True, "full": True, "no": False, "false": False, "none": False}
_INNER_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_PART_END = re.compile(r"[,:=;.()]|\s[-\u2013\u2014]\s")
_TOKEN = re.compile(r"[a-z]+|!")
_BLANKS = re.compile(r"[\s_-]*")


@dataclass(frozen=True, slots=True)
class Words:
    """Words of both sides.

    Attributes:
        good: words for; all but "yes" may be negated.
        bad: words that take another side, each with its stance.
        either: of these, those whose denial is for.
    """

    good: frozenset[str]
    bad: dict[str, Stance]
    either: frozenset[str] = frozenset()

    def stance_of(self, said: str) -> Stance | None:
        """Return the side that a short text takes; None where it takes none, or two.

        A text is read as a whole: a word that is not known, a question mark or an "or" makes it unread. Parts
        behind a comma or a colon have to agree.

        Example:
            >>> [SIDES.stance_of(word) for word in ("Supported", "un-supported", "not entailed", "contradiction")]
            ['for', 'absent', 'absent', 'against']
            >>> [SIDES.stance_of(word) for word in ("not fully supported", "maybe", "not contradicted")]
            ['not_wholly', None, None]
            >>> [SIDES.stance_of(word) for word in ("supported: no", "no hallucination", "hallucinated: false")]
            ['absent', 'for', 'for']
        """
        if len(said) > _MOST_CHARS:
            return None
        bare = _SHORT_NOT.sub(" not", said).translate(_AROUND).strip().lstrip(_MARKS).rstrip(f"{_MARKS}!")
        spaced = _INNER_CAPITAL.sub(" ", _APART.sub(r"\1\2", bare))
        name, _, answer = spaced.lower().replace("=", ":").rpartition(":")
        if name and (is_so := _ANSWERS.get(answer.strip(_MARKS))) is not None:  # "supported: no"
            return self._part(name if is_so else f"not {name}")
        sides = {self._part(part.lower()) for part in _PART_END.split(spaced) if part.strip()}
        if sides == {"absent", "against"}:
            return "against"
        return sides.pop() if len(sides) == 1 else None

    def _part(self, part: str) -> Stance | None:
        tokens = _TOKEN.findall(part)
        if not _BLANKS.fullmatch(_TOKEN.sub("", part)):
            return None
        if tokens == ["no"]:
            return self.bad.get("no")
        if any(first == "in" and then in self.good - _WHOLLY for first, then in pairwise(tokens)):
            return None  # "in correct"
        denials, sides = sum(token in _NOT for token in tokens), set[Stance]()
        has_matter = False
        for token in tokens:
            side = self._side(token)
            if side is not None and token not in _NOT:
                sides.add(side)
            elif (is_denied := _denied(token, _MATTER)) or token in _MATTER:
                has_matter = True
                denials += is_denied
            elif not any(token in known for known in (_NOT, _WHOLLY, _PARTLY, _PLAIN_WORDS)):
                return None
        if len(sides) > 1 or denials > 1:
            return None
        if not sides and denials:
            return "absent" if has_matter else None
        if not sides:
            return None if _IN_PART.isdisjoint(tokens) else "partial"
        (side,) = sides
        if not denials:
            return side if side != "for" or _PARTLY.isdisjoint(tokens) else "partial"
        if side == "absent" and not self.either.isdisjoint(tokens) and (_WHOLLY | _PARTLY).isdisjoint(tokens):
            return "for"
        if side != "for" or "yes" in tokens:
            return None
        return "not_wholly" if not _WHOLLY.isdisjoint(tokens) else "absent"

    def _side(self, token: str) -> Stance | None:
        if token in self.good:
            return "for"
        return self.bad.get(token) or ("absent" if _denied(token, self.good) else None)


def _denied(token: str, words: frozenset[str]) -> bool:
    bases = (token.removeprefix(prefix) for prefix in _PREFIXES if token.startswith(prefix))
    return any(base in words and base != "yes" for base in bases)


def _words(absent: tuple[tuple[str, str], ...], against: tuple[tuple[str, str], ...] = ()) -> Words:
    bad: dict[str, Stance] = {word: "absent" for _, words in absent for word in words.split()}
    bad |= {word: "against" for _, words in against for word in words.split()}
    good = frozenset(word for words, _ in (*absent, *against) for word in words.split())
    return Words(good, bad, frozenset(word for _, words in EITHER for word in words.split()) & bad.keys())


SIDES = _words((*ABSENT, (DERIVED, "")), AGAINST)
"""The words of a verdict on a claim."""


@lru_cache(maxsize=64)
def sides_of(name: str) -> Words:
    """Return the words that answer a field of yes and no: the particles, and its own name.

    Example:
        >>> [sides_of("relevant").stance_of(word) for word in ("irrelevant", "Relevant", "not relevant", "no")]
        ['absent', 'for', 'absent', 'absent']
        >>> sides_of("noncommittal").stance_of("committal")
        'absent'
    """
    base = next((name.removeprefix(prefix) for prefix in _PREFIXES if name.startswith(prefix)), "")
    return _words((*PARTICLES, (name, base)))
