"""Term search over the handbook: BM25 for candidates, coverage of the question for the selection."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

from ragtrace.demo.handbook import handbook
from ragtrace.demo.terms import Rarity, sentences, stems

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.demo.handbook import HandbookPassage

SATURATION = 1.2  # BM25's k1
LENGTH_SHARE = 0.75  # BM25's b
TITLE_TIMES = 2


@cache
def rarity() -> Rarity:
    """Return the weights of words over the handbook."""
    return Rarity(f"{passage.title} {passage.text}" for passage in handbook())


class TermIndex:
    """BM25 over passages; a word of the title counts twice.

    Args:
        passages: what is searched.

    Example:
        >>> index = TermIndex(handbook())
        >>> index.search("What does Harm@K count?", 1)[0][0].id
        'retrieval#harm'
    """

    def __init__(self, passages: Sequence[HandbookPassage]) -> None:
        self._passages = tuple(passages)
        self._counts = [Counter(stems(f"{p.title} " * TITLE_TIMES + p.text)) for p in self._passages]
        self._lengths = [counts.total() for counts in self._counts]
        self._mean_length = sum(self._lengths) / max(len(self._lengths), 1)
        self._rarity = Rarity(f"{p.title} {p.text}" for p in self._passages)

    def search(self, query: str, top_k: int) -> list[tuple[HandbookPassage, float]]:
        """Return the `top_k` best passages with their scores, best first; ties in the order of the handbook."""
        wanted = stems(query)
        scored = [(self._score(wanted, place), -place) for place in range(len(self._passages))]
        return [(self._passages[-place], score) for score, place in sorted(scored, reverse=True)[:top_k]]

    def _score(self, wanted: Sequence[str], place: int) -> float:
        counts, length = self._counts[place], self._lengths[place]
        damping = SATURATION * (1.0 - LENGTH_SHARE + LENGTH_SHARE * length / self._mean_length)
        return sum(
            self._rarity.of(stem) * counts[stem] * (SATURATION + 1.0) / (counts[stem] + damping)
            for stem in wanted
            if counts[stem]
        )


def relevance(query: str, title: str, text: str) -> float:
    """Return how well a passage answers a query, in [0, 1]: the query's words in title, text and best sentence.

    Example:
        >>> relevance("What is dangling?", "Citations: Dangling citations", "A citation is dangling.")
        1.0
    """
    wanted, weights = stems(query), rarity()
    in_title = weights.coverage(wanted, stems(title))
    in_text = weights.coverage(wanted, stems(f"{title} {text}"))
    in_sentence = max((weights.coverage(wanted, stems(s)) for s in sentences(text)), default=0.0)
    return (in_title + 2.0 * in_text + in_sentence) / 4.0
