"""The offline answerer: picks the sentences of the passages that match the question, and rewords them lightly."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ragtrace.demo.search import rarity
from ragtrace.demo.terms import sentences, stems

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

REFUSAL = "I could not find an answer to that in the handbook."
MOST_SENTENCES = 3
LEAST_MATCH = 0.22  # of the question's weight; below it a sentence answers something else
NEAR_BEST = 0.8
REWORDED_SHARE = 0.8
# What a model that paraphrases would write; a word judge sees some support lost, as with real answers.
_WORDINGS = {
    "absent": "missing",
    "although": "even though",
    "because": "since",
    "begins": "starts",
    "carries": "bears",
    "chosen": "picked",
    "computed": "calculated",
    "contains": "includes",
    "counted": "tallied",
    "crosses": "exceeds",
    "ends": "finishes",
    "evidence": "proof",
    "gets": "receives",
    "holds": "contains",
    "kept": "retained",
    "largest": "biggest",
    "needs": "requires",
    "relevant": "pertinent",
    "reported": "noted",
    "says": "states",
    "sends": "transmits",
    "share": "fraction",
    "shows": "reveals",
    "small": "little",
    "therefore": "thus",
    "used": "employed",
    "uses": "employs",
    "whole": "entire",
    "worst": "poorest",
}
_OPENINGS = ("In short: ", "Briefly: ", *[""] * 10)
_WORD = re.compile(r"[A-Za-z]+")


def answer(question: str, contexts: Sequence[str], draw: random.Random) -> str:
    """Answer a question out of contexts, or say that they do not answer it.

    Args:
        question: what is asked.
        contexts: passages, best first.
        draw: decides the wording.

    Example:
        >>> import random
        >>> answer("Where is the moon?", ["Lunch is at noon."], random.Random(0))
        'I could not find an answer to that in the handbook.'
    """
    chosen = _chosen(question, contexts)
    if not chosen:
        return REFUSAL
    return draw.choice(_OPENINGS) + " ".join(_reworded(sentence, draw) for sentence in chosen)


def _chosen(question: str, contexts: Sequence[str]) -> list[str]:
    """Return the sentences that match best, in the order in which they stand."""
    wanted, weights = stems(question), rarity()
    scored: list[tuple[float, int, str]] = []
    for rank, context in enumerate(contexts):
        around = weights.coverage(wanted, stems(context))
        for place, sentence in enumerate(sentences(context)):
            match = weights.coverage(wanted, stems(sentence)) + around - 0.15 * rank - 0.03 * place
            scored.append((match / 2.0, len(scored), sentence))
    best = sorted(scored, key=lambda item: (-item[0], item[1]))[:MOST_SENTENCES]
    if not best or best[0][0] < LEAST_MATCH:
        return []
    kept = [item for item in best if item[0] >= NEAR_BEST * best[0][0]]
    return [sentence for _, _, sentence in sorted(kept, key=lambda item: item[1])]


def _reworded(sentence: str, draw: random.Random) -> str:
    def reworded(found: re.Match[str]) -> str:
        word = found.group()
        other = _WORDINGS.get(word)
        return other if other is not None and draw.random() < REWORDED_SHARE else word

    return _WORD.sub(reworded, sentence)
