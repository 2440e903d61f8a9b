"""How a run stands by its scores: its verdict, the claims against it, and whether its answer may be called good."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ragtrace.model.claims import INVENTED, BadClaim, bad_claims
from ragtrace.model.diagnosis import DIAGNOSIS, FAILURES, STAGES, verdict_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ragtrace.model.diagnosis import Stage, Verdict
    from ragtrace.model.score import MetricResult

Word = Literal["good", "bad", "unclear"]

_CLAIMS = ("faithfulness", DIAGNOSIS)
_SPECIFICS = (DIAGNOSIS, "invented_specifics")


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Verdict and claims of one run, which every page, command and message shows alike.

    Attributes:
        verdict: of the metric ``diagnosis``; None without it.
        claims: what no context supports, the worst first: claims, then numbers, dates, names, quotes and addresses
            that stand in none of them. Empty where no text was kept.
        details: of the diagnosis.
    """

    verdict: Verdict | None
    claims: tuple[BadClaim, ...]
    details: Mapping[str, object]

    @property
    def stage(self) -> Stage | None:
        """The stage that failed first, ``none`` where none did; None without a verdict."""
        return None if self.verdict is None else STAGES[self.verdict]

    @property
    def claim(self) -> BadClaim | None:
        """The worst of the claims."""
        return next(iter(self.claims), None)

    @property
    def word(self) -> Word | None:
        """Whether the answer is ``good`` or ``bad``, or ``unclear``; None where no score says anything of that.

        Only a sound verdict without a claim against it is good, whatever the thresholds of means are. Scores of two
        judges may disagree: a sound verdict beside a claim without support is unclear.
        """
        if self.verdict is None:
            return "bad" if self.claims else None
        return "unclear" if self.claims and word_of(self.verdict) == "good" else word_of(self.verdict)


def word_of(verdict: Verdict) -> Word:
    """Return what a verdict alone says of an answer.

    Example:
        >>> [word_of(verdict) for verdict in ("rightly_refused", "unsupported", "undetermined")]
        ['good', 'bad', 'unclear']
    """
    if verdict in FAILURES:
        return "bad"
    return "unclear" if verdict == "undetermined" else "good"


def standing_of(scores: Mapping[str, Mapping[str, object]]) -> Standing:
    """Return the standing of a run by its scores, in the form of a scored line.

    Scores of another form say nothing.

    Example:
        >>> claims = [{"text": "It rains.", "verdict": "not_supported"}]
        >>> scores = {"faithfulness": {"value": 0.8, "details": {"claims": claims}}}
        >>> found = standing_of({**scores, "diagnosis": {"value": 0.0, "details": {"verdict": "unsupported"}}})
        >>> found.verdict, found.word, str(found.claim)
        ('unsupported', 'bad', 'not supported: It rains.')
    """
    details = {name: _details(name, score) for name, score in scores.items()}
    known = details.get(DIAGNOSIS, {})
    claims = _claims(details)
    return Standing(verdict=verdict_in(known), claims=(*claims, *_specifics(details, claims)), details=known)


def standing_by(results: Iterable[MetricResult]) -> Standing:
    """Return the standing of a run by the results of its metrics."""
    return standing_of({result.key: {"value": result.value, "details": result.details} for result in results})


def _details(name: str, score: object) -> Mapping[str, object]:
    """Return the details of a score; nothing of one without a value, which may describe a refusal."""
    if not isinstance(score, dict) or (score.get("value") is None and name != DIAGNOSIS):
        return {}
    found = score.get("details")
    return found if isinstance(found, dict) else {}


def _claims(details: Mapping[str, Mapping[str, object]]) -> Sequence[BadClaim]:
    """Return the bad claims of faithfulness, else those that the diagnosis names, else of the first other score."""
    own = [details.get(name, {}) for name in _CLAIMS]
    found = next((claims for one in own if (claims := bad_claims(one))), [])
    if found or any("claims" in one for one in own):
        return found
    return next((claims for name in sorted(details) if (claims := bad_claims(details[name]))), [])


def _specifics(details: Mapping[str, Mapping[str, object]], claims: Sequence[BadClaim]) -> Iterable[BadClaim]:
    """Yield the specifics that no context has, without those that a bad claim quotes."""
    given = next((named for name in _SPECIFICS if (named := details.get(name, {}).get(INVENTED))), ())
    for text in given if isinstance(given, list | tuple) else ():
        if isinstance(text, str) and text and not any(text in claim.text for claim in claims):
            yield BadClaim(text=text, verdict=INVENTED)
