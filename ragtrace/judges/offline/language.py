"""Tells English from other languages by script and function words; no model."""

from __future__ import annotations

import re

from ragtrace.judges.offline.tables import words

_SAMPLE = 4000
_FEWEST_WORDS = 3
_MOST_ENGLISH = 0.5
_LETTERS = re.compile(r"[^\W\d_]")
_LATIN = re.compile("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+|[\w.-]{1,64}@[\w.-]+")


def is_english(text: str) -> bool | None:
    """Return whether a text is English; None where too little of it tells (a name, a number, a list of names).

    Example:
        >>> is_english("The lab is in Oslo."), is_english("Das Labor ist in Oslo."), is_english("Oslo, 2010")
        (True, False, None)
    """
    sample = _ADDRESS.sub(" ", text[:_SAMPLE])
    letters = len(_LETTERS.findall(sample))
    if not letters:
        return None
    if len(_LATIN.findall(sample)) < _MOST_ENGLISH * letters:
        return False
    english, foreign, shared = words("english"), words("others"), words("shared")
    said = _WORD.findall(sample.lower().replace("\u2019", "'"))
    ours = sum(1.0 - 0.5 * (word in shared) for word in said if word in english)
    others = sum(word.lower() in foreign for word in _uttered(sample))
    has_own = any(word in english and word not in shared for word in said)
    if ours > others or (has_own and ours == others):
        return True
    if others >= 2 or (others and sum(word.islower() for word in _WORD.findall(sample)) >= _FEWEST_WORDS):
        return False
    return False if _looks_foreign(sample, said, ours) else None


def _uttered(sample: str) -> list[str]:
    """Return the words that are no part of a name: the first, small ones, and those before a small one."""
    said = _WORD.findall(sample.replace("\u2019", "'"))
    if sample.isupper():
        return said
    pairs = zip(said, [*said[1:], ""], strict=True)
    return [*said[:1], *(word for word, behind in [*pairs][1:] if word.islower() or behind.islower())]


def _looks_foreign(sample: str, said: list[str], ours: float) -> bool:
    """Return whether a sentence has no English function word, but letters that English lacks in common words."""
    if ours >= 1.0 or len(said) < _FEWEST_WORDS:
        return False
    small = [word for word in _WORD.findall(sample) if word.islower()]
    return sum(not word.isascii() for word in small) * 4 >= max(len(said), 4)


def is_readable(answer: str, contexts: list[str]) -> bool:
    """Return whether answer and contexts are English as far as one can tell.

    Of contexts in several languages the English ones must be at least half of what tells its language.

    Example:
        >>> is_readable("It costs twelve euros.", ["Der Tisch kostet zwölf Euro und ist aus Holz."])
        False
    """
    if is_english(answer) is False:
        return False
    sizes = {True: 0, False: 0}
    for text in contexts:
        found = is_english(text)
        if found is not None:
            sizes[found] += min(len(text), _SAMPLE)
    return sizes[False] <= sizes[True]
