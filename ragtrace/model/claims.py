"""The claims of an answer that its contexts do not support, as a score's details hold them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

SUPPORTED = "supported"
INVENTED = "invented"
"""Verdict on a number, date, name, quote or address that no context has, and the name of the list of such."""


class BadClaim(Struct, frozen=True, kw_only=True):
    """A claim that is not supported.

    Attributes:
        text: the claim; a sentence of the answer as written, a judge's own words for a part of it, or a specific.
        verdict: ``contradicted``, ``not_supported``, ``invented``, or another word of the judge's.
        support: 0 to 1, where the judge measures it.
        reason: the judge's reason, "" where it gives none.
    """

    text: str
    verdict: str
    support: float | None = None
    reason: str = ""

    def __str__(self) -> str:
        shown = self.verdict.replace("_", " ")
        return f"{shown}{'' if self.support is None else f' ({self.support:.2f})'}: {self.text}"


def bad_claims(details: Mapping[str, object]) -> list[BadClaim]:
    """Return the claims in a score's details that are not supported, the worst first.

    Details without texts, or of another form, give an empty list.

    Example:
        >>> claims = [{"text": "It rains.", "verdict": "not_supported"}, {"text": "Oslo.", "verdict": "supported"}]
        >>> [str(claim) for claim in bad_claims({"claims": claims})]
        ['not supported: It rains.']
    """
    given = details.get("claims")
    found = [_claim(item) for item in given if isinstance(item, dict)] if isinstance(given, list) else []
    bad = [claim for claim in found if claim.text and claim.verdict not in {SUPPORTED, ""}]
    return sorted(bad, key=lambda claim: (claim.support or 0.0, claim.verdict != "contradicted"))


def _claim(item: Mapping[str, object]) -> BadClaim:
    support = item.get("support")
    has_support = isinstance(support, int | float) and not isinstance(support, bool) and math.isfinite(support)
    return BadClaim(
        text=str(item.get("text") or ""),
        verdict=str(item.get("verdict") or ""),
        support=float(support) if has_support and isinstance(support, int | float) else None,
        reason=str(item.get("reason") or ""),
    )
