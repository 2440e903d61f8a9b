"""The decision table: from facts about a run to its verdict."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace.model.diagnosis import Because, Verdict

Known = Literal["yes", "no", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisFacts:
    """Known facts about a run. A fact that nothing says is ``unknown``.

    A needed passage is one that labels, or the judge's grades, call relevant.

    Attributes:
        sufficient: the delivered contexts hold all that the question asks.
        reached: the best needed passages stood in the prompt.
        found: the pool holds every needed passage of the corpus. Grades of the pool alone cannot say so.
        selected: the selection left no needed passage out in favour of a worse one.
        shown: the prompt held every needed passage that was selected.
        related: the delivered contexts hold two of five words of the question. Only ``no`` is ever said, as
            contexts with all its words may still lack the answer.
        touched: the contexts support or contradict a claim, or have some of its words: they seem to be about it.
        matched: the prompt that was seen showed a passage as it was delivered. Where it showed none, somebody wrote
            the passages anew, or the prompt lost them all.
        attempted: the answer tries to answer.
        supported: the contexts support each claim of the answer, and hold each specific: number, date, name, quote,
            address.
        contradicted: the contexts contradict a claim.
        responsive: the answer turns to the question, and does not evade it.
        used: a supported claim rests on a needed passage.
        complete: the answer holds the facts that the contexts give on the question.

    Example:
        >>> decide(DiagnosisFacts(sufficient="yes", attempted="no")).verdict
        'wrongly_refused'
    """

    sufficient: Known = "unknown"
    reached: Known = "unknown"
    found: Known = "unknown"
    selected: Known = "unknown"
    shown: Known = "unknown"
    related: Known = "unknown"
    touched: Known = "unknown"
    matched: Known = "unknown"
    attempted: Known = "unknown"
    supported: Known = "unknown"
    contradicted: Known = "unknown"
    responsive: Known = "unknown"
    used: Known = "unknown"
    complete: Known = "unknown"

    @property
    def holds(self) -> Known:
        """Whether the contexts held the answer: by `sufficient`, and by `reached` where that is unknown.

        Where both are, a model that declined and a needed passage that some stage lost say that they did not.
        """
        if self.sufficient != "unknown":
            return self.sufficient
        is_lost = "no" in {self.found, self.selected, self.shown}
        return "no" if self.reached == "unknown" and self.attempted == "no" and is_lost else self.reached


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRow:
    """One row of the table.

    Attributes:
        when: the facts that must hold; a fact that is left out may be anything.
        verdict: the verdict of a run to which no earlier row applies.
        because: the reason of ``undetermined``, "" for every other verdict.
        meaning: the row in words.
    """

    when: Mapping[str, tuple[Known, ...]] = field(default_factory=dict)
    verdict: Verdict
    because: Because | Literal[""] = ""
    meaning: str

    def applies(self, facts: DiagnosisFacts) -> bool:
        """Return whether a run with these facts meets the row."""
        return all(getattr(facts, name) in allowed for name, allowed in self.when.items())


_Allowed = tuple[Known, ...]
YES: Final[_Allowed] = ("yes",)
NO: Final[_Allowed] = ("no",)
OPEN: Final[_Allowed] = ("unknown",)
NOT_YES: Final[_Allowed] = ("no", "unknown")
NOT_NO: Final[_Allowed] = ("yes", "unknown")

ROWS: Final[tuple[DecisionRow, ...]] = (
    DecisionRow(
        when={"holds": NO, "found": NO},
        verdict="not_retrieved",
        meaning="A needed passage exists, and the retriever did not return it.",
    ),
    DecisionRow(
        when={"holds": NO, "selected": NO},
        verdict="lost_in_rerank",
        meaning="A needed passage was retrieved, and worse passages were selected in its place.",
    ),
    DecisionRow(
        when={"holds": NO, "shown": NO},
        verdict="cut_from_prompt",
        meaning="A needed passage was selected, and the prompt did not hold it.",
    ),
    DecisionRow(
        when={"holds": NO, "attempted": NO},
        verdict="rightly_refused",
        meaning="The contexts lack the answer, no stage is known to have lost it, and the model declined.",
    ),
    DecisionRow(
        when={"holds": NO, "attempted": OPEN},
        verdict="undetermined",
        because="attempt_unknown",
        meaning="The contexts lack the answer, and nobody knows whether the model declined.",
    ),
    DecisionRow(
        when={"holds": NO, "found": OPEN},
        verdict="unknown_retrieval",
        meaning="The contexts lack the answer, the model answered, and nobody knows whether the corpus holds more.",
    ),
    DecisionRow(
        when={"holds": NO},
        verdict="insufficient_but_answered",
        meaning="Every needed passage that exists reached the prompt, it was not enough, and the model answered.",
    ),
    DecisionRow(
        when={"attempted": OPEN},
        verdict="undetermined",
        because="attempt_unknown",
        meaning="Nobody knows whether the model declined.",
    ),
    DecisionRow(
        when={"matched": NO, "supported": NOT_YES},
        verdict="undetermined",
        because="prompt_unmatched",
        meaning="The prompt shows no passage in its own words, and the answer rests on none: the prompt may have "
        "lost them, and not the model.",
    ),
    DecisionRow(
        when={"holds": YES, "attempted": NO},
        verdict="wrongly_refused",
        meaning="The contexts hold the answer, and the model declined.",
    ),
    DecisionRow(
        when={"attempted": NO},
        verdict="undetermined",
        because="sufficiency_unknown",
        meaning="The model declined, and nobody knows whether the contexts hold the answer.",
    ),
    DecisionRow(
        when={"holds": YES, "responsive": NO, "used": NOT_YES},
        verdict="sufficient_but_ignored",
        meaning="The contexts hold the answer, and the model evades the question or answers another one.",
    ),
    DecisionRow(
        when={"contradicted": YES},
        verdict="contradicted",
        meaning="A claim says the opposite of the contexts.",
    ),
    DecisionRow(
        when={"holds": OPEN, "responsive": NO},
        verdict="undetermined",
        because="sufficiency_unknown",
        meaning="The answer does not turn to the question, and nobody knows whether the contexts hold the answer.",
    ),
    DecisionRow(
        when={"holds": OPEN, "related": NO, "touched": NOT_YES, "supported": NO},
        verdict="undetermined",
        because="sufficiency_unknown",
        meaning="Nothing speaks for or against a claim, and the contexts lack most words of the question: the "
        "retrieval may have failed, and not the model.",
    ),
    DecisionRow(
        when={"supported": NO},
        verdict="unsupported",
        meaning="A claim has no support in the contexts, or they lack a number, date, name, quote or "
        "address of the answer.",
    ),
    DecisionRow(
        when={"holds": YES, "used": NO, "responsive": OPEN},
        verdict="sufficient_but_ignored",
        meaning="The contexts hold the answer, and the claims rest on other passages than the needed ones.",
    ),
    DecisionRow(
        when={"holds": YES, "complete": NO},
        verdict="sufficient_but_ignored",
        meaning="The contexts hold the answer, and the model left most of its facts out.",
    ),
    DecisionRow(
        when={"supported": OPEN},
        verdict="undetermined",
        because="claims_unknown",
        meaning="No claim of the answer could be checked, or not all of them were.",
    ),
    DecisionRow(
        when={"responsive": NO},
        verdict="undetermined",
        because="conflicting_evidence",
        meaning="The claims are supported, and yet the answer evades the question.",
    ),
    DecisionRow(
        when={"used": NO},
        verdict="undetermined",
        because="conflicting_evidence",
        meaning="The answer turns to the question, and yet its claims rest on no needed passage.",
    ),
    DecisionRow(
        when={"holds": YES},
        verdict="ok",
        meaning="The contexts hold the answer, the model answered, and the contexts support each claim.",
    ),
    DecisionRow(
        when={"found": NOT_NO, "selected": NOT_NO, "shown": NOT_NO, "complete": NOT_NO},
        verdict="ok",
        meaning="The judge cannot read sufficiency, the contexts support the answer, and no stage is seen to fail.",
    ),
    DecisionRow(
        verdict="undetermined",
        because="sufficiency_unknown",
        meaning="A needed passage is missing, and nobody knows whether the contexts hold the answer without it.",
    ),
)
"""The rows, of which the first that applies decides. Earlier stages stand first, and the last row takes all."""


def decide(facts: DiagnosisFacts) -> DecisionRow:
    """Return the first row that applies; every combination of facts has one.

    Example:
        >>> decide(DiagnosisFacts(sufficient="no", found="yes", selected="no", attempted="yes")).verdict
        'lost_in_rerank'
        >>> decide(DiagnosisFacts()).because
        'attempt_unknown'
    """
    return next(row for row in ROWS if row.applies(facts))
