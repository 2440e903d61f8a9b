"""Reads claims of one term ("It is free."), whose words alone tell little."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ragtrace.judges.offline.words import stems

if TYPE_CHECKING:
    from collections.abc import Iterable

_WORDS_BEFORE = 6  # in which a negation holds for a word
_MOST_READ = 50  # times that a sentence has a word
_CLAUSE_END = re.compile(  # of at most 120 characters
    r"[.;:,!?()]|\b(?:but|and|while|whereas|although)\b", re.IGNORECASE
)
_NEGATION = re.compile(  # of at most 120 characters
    r"\b(?:not(?! only\b| just\b)|no|none|never|non|nor|neither|without|nothing|nobody|hardly|lacks?)\b",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"[^\W_]+(?:'[^\W_]+)?")  # of at most 8,000 characters: a sentence in one notation
COUNTERPARTS: dict[str, tuple[str, ...]] = {
    "free": ("fee", "charg", "cost"), "fee": ("free",), "charg": ("free",), "cost": ("free",),
}  # fmt: skip


_VERB = re.compile(  # of at most 2,000 characters: a sentence
    r"(?:\b(?:is|are|was|were|be|been|will|would|can|cannot|could|may|might|must|shall|should|has|have|had|does|"
    r"do|did|not)\b|'(?:s|re|ll|ve|d)\b|n't\b)",
    re.IGNORECASE,
)


# What only agrees, doubts or cheers: "That is right.", "I guess so.", "Not really.".
_AGREEMENT = re.compile(  # of at most 2,000 characters: a sentence
    r"^\W*(?:i\b.*|(?:(?:no|yes|well|oh)\W+)?(?:(?:that|this|it)(?:'s| is| was| sounds?| sure)?\W+)?(?:not\W+)?"
    r"(?:very |so |quite |really |pretty )?"
    r"(?:correct|right|true|false|wrong|cool|great|nice|good|fine|awesome|amazing|interesting|perfect|ok|okay|"
    r"really|even|exactly|indeed|sure|yeah|yep|yup|nope|maybe|perhaps|probably|likely|possibly|agreed|done|"
    r"bye|goodbye|cheers|congratulations|sorry|enjoy|welcome|definitely|certainly|absolutely|surely)"
    r"(?: (?:it|that|this|they|he|she|you))?(?: (?:is|are|was|does|do|did|has|can|will))?)\W*$",
    re.IGNORECASE,
)


def is_short_claim(text: str) -> bool:
    """Return whether a part of an answer with one term is a sentence that claims something.

    A heading, a label, the number of a list and an exclamation are none, nor is what only agrees.

    Example:
        >>> [is_short_claim(said) for said in ("It is free.", "Oslo.", "There is no fee!")]
        [True, True, True]
        >>> [is_short_claim(said) for said in ("2.", "Pricing", "Levels:", "Snap it!", "That is correct.")]
        [False, False, False, False, False]
    """
    said = text.strip(" \"'*_")
    if said.endswith(":") or not any(map(str.isalpha, said)) or _AGREEMENT.match(said) or not stems(said):
        return False
    return said.endswith(".") or _VERB.search(said) is not None


def stance(term: str, text: str) -> bool | None:
    """Return whether a normalised sentence affirms a term, False where it denies it, None where it lacks it.

    Example:
        >>> stance("fee", "There is a fee of 40 euro."), stance("fee", "There is no fee."), stance("fee", "Oslo.")
        (True, False, None)
        >>> stance("free", "There is no fee."), stance("fee", "Entry is free.")
        (True, False)
    """
    found = _affirms((term,), text)
    if found is None and (other := _affirms(COUNTERPARTS.get(term, ()), text)) is not None:
        return not other
    return found


def _affirms(terms: Iterable[str], text: str) -> bool | None:
    wanted, n_read = frozenset(terms), 0
    stances: set[bool] = set()
    begins = tuple(term[:2] for term in wanted)
    for word in _TOKEN.finditer(text):
        if len(stances) > 1 or n_read == _MOST_READ:
            break
        if not word[0].lower().startswith(begins) or wanted.isdisjoint(stems(word[0])):
            continue
        n_read += 1
        clause = _CLAUSE_END.split(text[max(0, word.start() - 120) : word.start()])[-1]
        near = " ".join(_TOKEN.findall(clause)[-_WORDS_BEFORE:])
        stances.add(len(_NEGATION.findall(near)) % 2 == 0)
    return stances.pop() if len(stances) == 1 else True if stances else None
