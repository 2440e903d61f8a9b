"""How the offline judge and embedder read English: sentences, terms, numbers, names."""

from __future__ import annotations

import re

_STOP = frozenset(
    (
        "a an the and or but if of to in on at by for with from as is are was were be been being it its "
        "this that these those he she they him his her their we you i me my your our us do does did not "
        "no nor so than then there here which who whom whose what when where why how can could may might "
        "must shall should will would have has had having about into over under up down out off again "
        "more most some any each other such only own same too very just also am "
    ).split()
)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?|\d[\d.,]*\d")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])[\"')\]]*\s+|\n+")
_LIST_MARK = re.compile(r"^(?:[-*•#>]+|\d{1,3}[.)])\s+")
_NUMBER = re.compile(r"\d[\d.,:/-]*")
_NAME = re.compile(r"(?<!^)(?<![.!?]\s)\b[A-Z][a-zA-Z]{2,}")
_SUFFIXES = ("ingly", "edly", "ing", "ied", "ies", "ed", "es", "ly", "s")


def sentences(text: str) -> list[str]:
    """Return the sentences of a text without list marks; lines end sentences too. Blank text gives none.

    Example:
        >>> sentences("It opened in 2010. It is in Oslo.")
        ['It opened in 2010.', 'It is in Oslo.']
    """
    parts = (_LIST_MARK.sub("", part.strip().replace("**", "")) for part in _SENTENCE_END.split(text) if part)
    return [part for part in parts if part.strip()]


def stems(text: str) -> list[str]:
    """Return the terms of a text in order: lower case, without stop words and common endings.

    Example:
        >>> stems("The refunds are paid within days.")
        ['refund', 'paid', 'within', 'day']
    """
    return [_stem(word) for word in _WORD.findall(text.lower()) if word not in _STOP]


def numbers_in(text: str) -> frozenset[str]:
    """Return the numbers of a text as written, without trailing punctuation.

    Example:
        >>> sorted(numbers_in("In 2010, 3.5 % of them."))
        ['2010', '3.5']
    """
    return frozenset(number.rstrip(".,:/-") for number in _NUMBER.findall(text))


def names_in(text: str) -> frozenset[str]:
    """Return words that are capitalised within a sentence (names, mostly), as written.

    Example:
        >>> sorted(names_in("The lab is in Oslo."))
        ['Oslo']
    """
    return frozenset(_NAME.findall(text))


def _stem(word: str) -> str:
    word = word.replace("’", "'").removesuffix("'s")
    if len(word) <= 5:
        return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word[: -len(suffix)] + ("y" if suffix in {"ied", "ies"} else "")
            break
    return word.removesuffix("e")
