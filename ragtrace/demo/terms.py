"""Words as the demo's retriever, reranker and answerer compare them."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_WORD = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\[])")
_ENDINGS = ("ing", "ed", "es", "s", "e")
_SHORTEST_STEM = 3
_STOP_WORDS = """
a about after all am an and any are as at be been but by can could did do does for from get had has have how i if in
into is it its me more my no not of on one or our over ragtrace should so some than that the their them then there
they this to up use used using was we were what when where which while who why will with would you your
"""
_STOP = frozenset(_STOP_WORDS.split())


@lru_cache(maxsize=4096)
def stems(text: str) -> tuple[str, ...]:
    """Return the stems of the words that carry meaning, in order; kept, as the same passages come again and again.

    Example:
        >>> stems("How are dangling citations scored?")
        ('dangl', 'citation', 'scor')
    """
    return tuple(_stem(word) for word in _WORD.findall(text.lower()) if word not in _STOP)


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word.removesuffix(ending)
    return word


def sentences(text: str) -> list[str]:
    """Cut a text into sentences.

    Example:
        >>> sentences("K is 5. See ragtrace.k for its value.")
        ['K is 5.', 'See ragtrace.k for its value.']
    """
    return [part for part in _END.split(text.strip()) if part]


class Rarity:
    """Weighs words by how few of a corpus' texts hold them (inverse document frequency).

    Example:
        >>> rarity = Rarity(["the lab", "the fjord lab"])
        >>> rarity.of("fjord") > rarity.of("lab")
        True
    """

    def __init__(self, texts: Iterable[str]) -> None:
        holding: Counter[str] = Counter()
        self._count = 0
        for text in texts:
            holding.update(set(stems(text)))
            self._count += 1
        self._holding = holding

    def of(self, stem: str) -> float:
        """Return the weight of a stem; a stem that no text holds weighs most."""
        holding = self._holding[stem]
        return math.log(1.0 + (self._count - holding + 0.5) / (holding + 0.5))

    def coverage(self, wanted: Iterable[str], held: Iterable[str]) -> float:
        """Return the share of the wanted stems' weight that `held` has, in [0, 1]; 0 when nothing is wanted."""
        needed = set(wanted)
        # fsum, since the order of a set of texts changes from process to process, and with it the last digit.
        total = math.fsum(self.of(stem) for stem in needed)
        return math.fsum(self.of(stem) for stem in needed & set(held)) / total if total else 0.0
