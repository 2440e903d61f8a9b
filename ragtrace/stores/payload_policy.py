"""Choice of the records that are kept whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragtrace.model.codec import json_bytes, json_value, record_from_json, record_to_line
from ragtrace.sampling.draw import uniform
from ragtrace.sqlite_file import PAD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.model import RagRecord, Score
    from ragtrace.stores.base import Policy

KEPT_AS_BAD = ("failed", "low", "flagged")
"""Reasons by which a run was chosen for being bad, so that it does not stand for all."""
_SALT = b"ragtrace:payload\0"
_NEGATIVE = 0.5  # feedback below it


@dataclass(frozen=True, slots=True)
class Kept:
    """Reason to keep a record (``all``, ``failed``, ``low``, ``flagged``, ``sample``), and its probability."""

    reason: str
    probability: float


def reason_to_keep(record: RagRecord, scores: Sequence[Score], policy: Policy) -> Kept | None:
    """Return why a record is kept, None when it is not.

    Where all texts are kept, a run of the random draw is kept for ``all``, whatever its scores are; one that a rule
    took stays flagged. Else failed has an error among its scores, or ended in one; low missed a threshold; flagged
    was taken by a rule, or a person disliked it. Of the others a share is drawn by a hash of the trace id, alike in
    every process. What is kept for sure has probability 1, so that means over kept records can be weighted with
    1 / probability.

    Example:
        >>> from ragtrace.model import MetricResult, RagRecord, Score, ScoreKey
        >>> from ragtrace.stores.base import Policy
        >>> key = ScoreKey(trace_id="t", span_id="s", metric="mrr", version="v")
        >>> low = Score(key=key, result=MetricResult(name="mrr", state="ok", value=0.1, passed=False))
        >>> reason_to_keep(RagRecord(id="1"), [low], Policy(has_content=True))
        Kept(reason='low', probability=1.0)
        >>> reason_to_keep(RagRecord(id="1"), [low], Policy(has_content=True, has_all_texts=True))
        Kept(reason='all', probability=1.0)
        >>> reason_to_keep(RagRecord(id="1"), [low], Policy()) is None
        True
    """
    if not policy.has_content:
        return None
    is_forced = any(score.stratum == "forced" for score in scores)
    if policy.has_all_texts:
        return Kept("flagged" if is_forced else "all", 1.0)
    if record.outcome == "error" or any(score.result.state == "error" for score in scores):
        return Kept("failed", 1.0)
    if any(score.result.passed is False for score in scores):
        return Kept("low", 1.0)
    is_disliked = any(item.value < _NEGATIVE for item in record.feedback)
    if is_disliked or is_forced:
        return Kept("flagged", 1.0)
    is_drawn = uniform(record.trace_id or record.id, _SALT) < policy.payload_share
    return Kept("sample", policy.payload_share) if is_drawn else None


def to_payload(record: RagRecord) -> bytes:
    """Return a record as JSON behind blanks, which SQLite erases whole."""
    return PAD + json_bytes(record_to_line(record))


def from_payload(payload: bytes) -> RagRecord:
    """Return the record of some JSON.

    Raises:
        ValueError: it is none, or of a kind that a newer ragtrace wrote.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> from_payload(to_payload(RagRecord(id="1", query="Where?"))).query
        'Where?'
    """
    return record_from_json(json_value(payload), fallback_id="")
