"""Cuts contexts into premises that fit a model's window."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from ragtrace.judges.offline.words import windows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Fits = Callable[[str], bool]

BETWEEN_CONTEXTS = "\n\n"
_AFTER_SENTENCE = re.compile(  # of at most 8,192 characters: a window; also the full stops of Chinese
    r"(?<=[.!?])(?=\s)|(?<=[\u3002\uff01\uff1f\n])"
)
_BEFORE_WORD = re.compile(r"(?<=\s)(?=\S)")  # of at most 8,192 characters: a window
# How a text that is too long is cut: at which places, and how many units the next piece repeats. The units keep
# their white space, so that pieces are the text as it was.
_LEVELS = ((_AFTER_SENTENCE, 1), (_BEFORE_WORD, 20), (None, 40))  # of at most 8,192 characters: a window


@dataclass(frozen=True, slots=True, kw_only=True)
class Premise:
    """One premise, and the places of the contexts it is made of."""

    text: str
    contexts: tuple[int, ...]


def premises(contexts: Sequence[tuple[int, str]], fits: Fits) -> list[Premise]:
    """Return premises that all fit.

    Each begins with the last context of the one before, where that fits too.

    Args:
        contexts: the texts with their places in the record; none is blank.
        fits: says whether a text is short enough; one character always has to be.

    Returns:
        Premises in order, which together hold every context whole. A context that does not fit alone is cut at
        sentences (repeating one), else at words (repeating 20), else anywhere.

    Example:
        >>> [p.contexts for p in premises([(0, "aaaa"), (1, "bb"), (3, "cccc")], lambda text: len(text) <= 8)]
        [(0, 1), (1, 3)]
        >>> [p.text for p in premises([(0, "It is red. It is big. No.")], lambda text: len(text) <= 15)]
        ['It is red.', ' It is big. No.']
    """
    units = [(place, piece) for place, text in contexts for piece in pieces(text, fits)]
    texts = [text for _, text in units]
    return [
        Premise(
            text=BETWEEN_CONTEXTS.join(texts[first:last]),
            contexts=tuple(dict.fromkeys(place for place, _ in units[first:last])),
        )
        for first, last in _packed(texts, BETWEEN_CONTEXTS, 1, fits)
    ]


def pieces(text: str, fits: Fits, *, repeat: bool = True) -> list[str]:
    """Return the text, or pieces of it that fit.

    Without `repeat` they join to the text again.

    Example:
        >>> pieces("one two three", lambda text: len(text) <= 8, repeat=False)
        ['one two ', 'three']
    """
    return [text] if fits(text) else _cut(text, fits, 0, repeat=repeat)


def _cut(text: str, fits: Fits, level: int, *, repeat: bool) -> list[str]:
    pattern, overlap = _LEVELS[level]
    units: list[str] = []
    for unit in _split(text, pattern) if pattern else text:
        is_small = level + 1 == len(_LEVELS) or fits(unit)
        units += [unit] if is_small else _cut(unit, fits, level + 1, repeat=repeat)
    spans = _packed(units, "", overlap if repeat else 0, fits)
    return [text for text in ("".join(units[first:last]) for first, last in spans) if text.strip()]


def _split(text: str, pattern: re.Pattern[str]) -> list[str]:
    """Return the parts of a text between the places of a pattern."""
    found = {it.start() for start, end in windows_of(text) for it in pattern.finditer(text, start, end)}
    return [text[start:end] for start, end in pairwise([0, *sorted(found), len(text)])]


def _packed(units: list[str], between: str, overlap: int, fits: Fits) -> list[tuple[int, int]]:
    """Return the longest spans of units that fit. Each but the first repeats up to `overlap` units."""
    spans: list[tuple[int, int]] = []
    first, last = 0, 0
    while last < len(units):
        # A tokenizer may need fewer tokens for a longer text: without the bound the search could go back.
        last = max(last + 1, _furthest(units, first, between, fits))
        spans.append((first, last))
        first = max(first + 1, last - overlap)
        while first < last < len(units) and not fits(between.join(units[first : last + 1])):
            first += 1
    return spans


def _furthest(units: list[str], first: int, between: str, fits: Fits) -> int:
    """Find the end of the longest span from `first` by doubling and halving."""
    good, step = first + 1, 1
    while good + step <= len(units) and fits(between.join(units[first : good + step])):
        good, step = good + step, step * 2
    bad = min(good + step, len(units) + 1)
    while bad - good > 1:
        middle = (good + bad) // 2
        if fits(between.join(units[first:middle])):
            good = middle
        else:
            bad = middle
    return good
