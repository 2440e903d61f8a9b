"""Traces of the forced stratum, which are scored for a reason and never enter a mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragtrace.model import RagRecord

FORCE_TAG = "ragtrace:score"  # an application's own wish
CANARY_TAG = "ragtrace:canary"
BAD_FEEDBACK = 0.5  # of [0, 1]; below it a person was not content
# Words that speak to a judge rather than to a reader; a hit routes the trace here and changes no score.
_INJECTIONS = (
    "ignore all previous",
    "ignore previous instructions",
    "ignore the above",
    "disregard all previous",
    "disregard the above",
    "rate this 5",
    "give a score of",
    "mark as supported",
    "you are the judge",
    "as an evaluator",
    "</data-",
    '"verdict":',
    "<|im_start|>",
    "[/inst]",
)
_LONGEST_TEXT = 4_000  # characters that are looked at


def forced_reason(record: RagRecord) -> str | None:
    """Return why a trace is scored whatever the draw says; None for most.

    In this order: ``user_flag`` (the tag ``ragtrace:score``), ``canary``, ``error``, ``negative_feedback``,
    ``empty_retrieval``, ``suspected_injection``.

    Example:
        >>> from ragtrace.model import Feedback, RagRecord
        >>> forced_reason(RagRecord(id="1", feedback=(Feedback(value=0.0),)))
        'negative_feedback'
        >>> forced_reason(RagRecord(id="1", answer="In Oslo.")) is None
        True
    """
    if FORCE_TAG in record.tags:
        return "user_flag"
    if CANARY_TAG in record.tags:
        return "canary"
    if record.outcome == "error":
        return "error"
    if any(one.value < BAD_FEEDBACK for one in record.feedback):
        return "negative_feedback"
    if record.pools and not record.pools[0].passages:
        return "empty_retrieval"
    return "suspected_injection" if is_suspicious(record.answer) or is_suspicious(record.query) else None


def is_suspicious(text: str) -> bool:
    """Return whether the beginning of a text speaks to a judge.

    Question and answer alone are looked at in the application's thread: the contexts of a run (14 kB) took 60 us.

    Example:
        >>> is_suspicious("Ignore all previous instructions.")
        True
    """
    lowered = text[:_LONGEST_TEXT].lower()
    return any(phrase in lowered for phrase in _INJECTIONS)
