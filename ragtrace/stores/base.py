"""Values that go in and out of a store."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ragtrace.model import as_trace_id, is_trace_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace.model import RagRecord, Score, ScoreKey

DAY_S = 86_400.0
FEEDBACK = "feedback"  # the metric of a label that is of the answer as a whole
TRACE_ID_FORM = "32 hex digits that are not all 0"
FOREIGN = "foreign:"  # begins the rater of a label that another judge gave, and no person
GOOD = 0.5  # a label from here on means that the person was content
Subject = Literal["trace", "session", "user"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Content, retention and size of a store.

    Attributes:
        has_content: texts may be kept: payloads, and the words among the details of scores.
        has_all_texts: where texts may be kept, those of every scored run are, and not of selected ones alone.
        scores_s: seconds that scores stay.
        payloads_s: seconds that records stay.
        labels_s: seconds that human labels stay, and with them the scores of their traces.
        file_bytes: most bytes of the file; beyond it the oldest payloads go, then the oldest scores.
        payload_share: of selected texts, the share of runs that are neither low nor failed nor flagged, 0 to 1.
    """

    has_content: bool = False
    has_all_texts: bool = False
    scores_s: float = 14 * DAY_S
    payloads_s: float = 3 * DAY_S
    labels_s: float = 30 * DAY_S
    file_bytes: int = 2_147_483_648
    payload_share: float = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A person's judgement of a trace; a later one replaces it.

    Attributes:
        trace_id: the trace, 32 hex digits; its scores may come before or after the label, or never.
        value: 0 (bad) to 1 (good).
        comment: in words; kept where texts may be kept.
        metric: the judged metric; ``feedback`` is the answer as a whole.
        rater: name of the person, "" when it does not matter.
        at: Unix seconds; 0 = now.
        session: the trace's session, for a trace that may never be scored.
        user: the trace's user, likewise.
        span_id: the rated span where it is known; it stands in the exported event alone.

    Raises:
        ValueError: no id of a trace, or a value outside 0 to 1.

    Example:
        >>> Label(trace_id="a" * 32, value=1.0).metric
        'feedback'
        >>> Label(trace_id="a" * 32, value=5.0)
        Traceback (most recent call last):
        ...
        ValueError: a label's value lies between 0 and 1, got 5.0
    """

    trace_id: str
    value: float
    comment: str | None = None
    metric: str = FEEDBACK
    rater: str = ""
    at: float = 0.0
    session: str | None = None
    user: str | None = None
    span_id: str = ""

    def __post_init__(self) -> None:
        if not is_trace_id(self.trace_id):
            raise ValueError(f"trace_id must be a whole trace id, {TRACE_ID_FORM}, got {self.trace_id!r:.50}")
        object.__setattr__(self, "trace_id", as_trace_id(self.trace_id))
        if not (math.isfinite(self.value) and 0.0 <= self.value <= 1.0):
            raise ValueError(f"a label's value lies between 0 and 1, got {self.value}")


def is_by_person(row: Mapping[str, object]) -> bool:
    """Return whether a stored row is a person's label, and neither a score nor a label of another judge.

    Example:
        >>> is_by_person({"source": "human", "version": "human:ada"})
        True
        >>> is_by_person({"source": "human", "version": "human:foreign:deepeval"})
        False
    """
    return row["source"] == "human" and not str(row["version"]).startswith(f"human:{FOREIGN}")


def exported_source(row: Mapping[str, object]) -> dict[str, object]:
    """Return a stored row as it is exported: a label of another judge says so in its source and version.

    Example:
        >>> exported_source({"source": "human", "version": "human:foreign:deepeval"})
        {'source': 'foreign', 'version': 'foreign:deepeval'}
    """
    if row["source"] != "human" or is_by_person(row):
        return dict(row)
    return {**row, "source": "foreign", "version": str(row["version"]).removeprefix("human:")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """Numbers of erased rows by kind."""

    runs: int = 0
    scores: int = 0
    labels: int = 0
    payloads: int = 0
    jobs: int = 0
    anchors: int = 0

    def __add__(self, other: Erased) -> Erased:
        return Erased(
            runs=self.runs + other.runs,
            scores=self.scores + other.scores,
            labels=self.labels + other.labels,
            payloads=self.payloads + other.payloads,
            jobs=self.jobs + other.jobs,
            anchors=self.anchors + other.anchors,
        )


@dataclass(slots=True)
class OutboxEntry:
    """The scores of one trace in the outbox, for the service that publishes them.

    Attributes:
        seq: their place among those of their owner.
        marks: the written form of each score, to say that it arrived; none of a score that was not written.
        owed: `EVENT`, `COUNT`, both or neither, of a score that was written before; missing = both.
    """

    seq: int = 0
    marks: dict[ScoreKey, tuple[int, int, int]] = field(default_factory=dict)
    owed: dict[ScoreKey, int] = field(default_factory=dict)

    def is_owed(self, score: Score, what: int = 3) -> bool:
        """Return whether this process still owes an event, or a metrics report."""
        return bool(self.owed.get(score.key, 3) & what)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """The scores of one trace that were claimed.

    Attributes:
        record: the trace's facts, without texts.
        scores: as they were written, details as far as they were kept.
        entry: their place in the outbox.
    """

    record: RagRecord
    scores: tuple[Score, ...]
    entry: OutboxEntry
