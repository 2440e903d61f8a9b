"""Tells answers that only decline, in English and in other languages, from attempts."""

from __future__ import annotations

import re
from functools import cache

from ragtrace.judges.offline.markup import claim_in
from ragtrace.judges.offline.tables import table
from ragtrace.judges.offline.words import sentences, stems

WHOLE = "whole answers"  # the heading of those that need no expression


def pattern() -> str:
    """Return the regular expression of refusals in all languages of the table."""
    return "|".join(one for name, lines in table("refusals.txt").items() if name != WHOLE for one in lines)


@cache
def _refusal() -> re.Pattern[str]:
    return re.compile(pattern(), re.IGNORECASE)


@cache
def _turn() -> re.Pattern[str]:
    return re.compile("|".join(table("turns.txt")["turns"]), re.IGNORECASE)


def is_attempt(answer: str) -> bool:
    """Return whether an answer tries to answer: False for a blank one and for one that only declines.

    Example:
        >>> is_attempt("I don't know."), is_attempt("I cannot help, but Paris is the capital.")
        (False, True)
        >>> is_attempt("Das weiß ich leider nicht."), is_attempt("申し訳ありませんが、わかりません。")
        (False, False)
    """
    said = filter(None, map(claim_in, sentences(answer)))
    parts = [clause for sentence in said for clause in _turn().split(sentence) if clause.strip()]
    claiming = [part for part in parts if stems(part)]
    if not claiming:
        return bool(answer.strip()) and not _refusal().search(answer)
    return any(not _refusal().search(part) and not part.rstrip().endswith(("?", "\uff1f")) for part in claiming)
