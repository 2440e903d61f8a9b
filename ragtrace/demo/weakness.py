"""Finds the sentence of an answer that its contexts support least."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

SHOWN_CHARS = 90
# Of the overlap judge's reason; the nearest passage before it says little of an invented sentence.
_UNSEEN = re.compile(r"(?:numbers|names) not in the contexts.*")


def weakest(details: Mapping[str, Any]) -> tuple[str, str]:
    """Return the least supported claim of a faithfulness score and the judge's reason; ("", "") without claims.

    Args:
        details: of the score: ``claims`` with text, verdict, reason and, where the judge measures, support.

    Example:
        >>> weakest({"claims": [{"text": "A.", "support": 1.0}, {"text": "B.", "support": 0.1, "reason": "no"}]})
        ('B.', 'no')
    """
    claims = list(details.get("claims", ()))
    if not claims:
        return "", ""
    least = min(claims, key=_support)
    reason = str(least.get("reason") or "")
    unseen = _UNSEEN.search(reason)
    return str(least.get("text", "")), unseen.group() if unseen else reason


def before(answer: str, marked: str) -> str:
    """Return the end of what an answer says before a sentence of it, "" at its beginning.

    Example:
        >>> before("The lab is in Oslo. It has 9000 rooms.", "It has 9000 rooms.")
        'The lab is in Oslo.'
    """
    place = answer.find(marked) if marked else 0
    said = answer[: max(place, 0)].strip()
    if not said:
        return ""
    return said if len(said) <= SHOWN_CHARS else f"…{said[-SHOWN_CHARS:]}"


def _support(claim: Mapping[str, Any]) -> float:
    support = claim.get("support")
    return float(support) if support is not None else float(claim.get("verdict") == "supported")
