"""Choice of the records that are kept whole."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragtrace.model.codec import record_from_json, record_to_json
from ragtrace.sampling.draw import uniform
from ragtrace.sqlite_file import PAD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.model import RagRecord, Score

_SALT = b"ragtrace:payload\0"
_NEGATIVE = 0.5  # feedback below it


@dataclass(frozen=True, slots=True)
class Kept:
    """Reason to keep a record (``failed``, ``low``, ``flagged``, ``sample``), and its probability."""

    reason: str
    probability: float


def reason_to_keep(record: RagRecord, scores: Sequence[Score], share: float) -> Kept | None:
    """Return why a record is kept, None when it is not.

    Failed has an error among its scores, or ended in one; low missed a threshold; flagged was taken by a rule, or
    a person disliked it. Of the others a share is drawn by a hash of the trace id, alike in every process. What is
    kept for sure has probability 1, so that means over kept records can be weighted with 1 / probability.

    Example:
        >>> from ragtrace.model import MetricResult, RagRecord, Score, ScoreKey
        >>> key = ScoreKey(trace_id="t", span_id="s", metric="mrr", version="v")
        >>> low = Score(key=key, result=MetricResult(name="mrr", state="ok", value=0.1, passed=False))
        >>> reason_to_keep(RagRecord(id="1"), [low], 0.01)
        Kept(reason='low', probability=1.0)
    """
    if record.outcome == "error" or any(score.result.state == "error" for score in scores):
        return Kept("failed", 1.0)
    if any(score.result.passed is False for score in scores):
        return Kept("low", 1.0)
    is_disliked = any(item.value < _NEGATIVE for item in record.feedback)
    if is_disliked or any(score.stratum == "forced" for score in scores):
        return Kept("flagged", 1.0)
    return Kept("sample", share) if uniform(record.trace_id or record.id, _SALT) < share else None


def to_payload(record: RagRecord) -> bytes:
    """Return a record as JSON behind blanks, which SQLite erases whole."""
    return PAD + json.dumps(record_to_json(record), ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "replace"
    )


def from_payload(payload: bytes) -> RagRecord:
    """Return the record of some JSON.

    Raises:
        ValueError: it is none, or of a kind that a newer ragtrace wrote.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> from_payload(to_payload(RagRecord(id="1", query="Where?"))).query
        'Where?'
    """
    return record_from_json(json.loads(payload), fallback_id="")
