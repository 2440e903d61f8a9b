"""Whether a judge that only compares words has seen a contradiction for sure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ragtrace.judges.offline.notation import normalise
from ragtrace.judges.offline.words import sentences
from ragtrace.model.claims import SUPPORTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ragtrace.judges.base import Claim
    from ragtrace.model import RagRecord

_WORD: Final = re.compile(r"[^\W_]+(?:[.,:]\d+)*")
_NUMBER: Final = "#"


def is_contradicted(claims: Sequence[Claim], invented: Sequence[str], record: RagRecord) -> bool:
    """Return whether the contexts contradict the answer, and nothing else speaks against it.

    A judge that compares words calls a claim contradicted where the contexts say nearly the same with another
    number, date or name, or deny it. Of 372 faithful answers of MTRAG, SummEdits, BEGIN and WiCE 17 have such a
    claim, of 270 unfaithful ones 19. It counts where each claim without support is one, and the answer has a
    specific that no context has, or its claim is a sentence of the contexts but for the numbers. That is so for 0
    of the 372 and 9 of the 270.

    Args:
        claims: of the answer.
        invented: specifics of the answer that no context has.
        record: with the contexts.
    """
    against = [claim for claim in claims if claim.verdict != SUPPORTED]
    if not against or any(claim.verdict != "contradicted" for claim in against):
        return False
    if invented:
        return True
    held = {_form(one) for passage in record.contexts for one in sentences(passage.text)}
    return any(_form(claim.text) in held for claim in against)


def _form(sentence: str) -> tuple[str, ...]:
    """Return the words of a sentence with a mark in place of each number."""
    words: Iterable[str] = _WORD.findall(normalise(sentence).lower())
    return tuple(_NUMBER if word[0].isdigit() else word for word in words)
