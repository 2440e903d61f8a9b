"""Numbers of a running demo: scores by metric, the fall that the search finds, and the worst answers."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING

from ragtrace.model.codec import score_to_json
from ragtrace.model.standing import standing_by
from ragtrace.scoring.investigation.comparison import NoMetric, TooFewScores
from ragtrace.scoring.investigation.runs import ScoredSource
from ragtrace.scoring.investigation.search import investigated
from ragtrace.scoring.offline.scored_row import ends_of
from ragtrace.stats.intervals import clustered_interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ragtrace.model import BadClaim, RagRecord, Score
    from ragtrace.model.codec import ScoreJson
    from ragtrace.stats.intervals import Interval

TAG = "demo:"
WATCHED = "faithfulness"
LOOK_EVERY = 10
"""Scores between two searches for a fall. In 24 runs without an incident none was found, with one always."""
END_S = 1e-3
"""The end of a period is exclusive."""
_WORST_KEPT = 5
_SHOWN_CHARS = 90
# Part of the overlap judge's reason; the nearest passage before it says little of an invented sentence.
_UNSEEN = re.compile(r"(?:numbers|names) not in the contexts.*")


@dataclass(slots=True, kw_only=True)
class MetricScores:
    """Scores of one metric: values of state ok, and the others by reason."""

    name: str
    values: list[float] = field(default_factory=list)
    na: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)

    @property
    def mean(self) -> float | None:
        """Mean of the values, None without any."""
        return fmean(self.values) if self.values else None

    @property
    def interval(self) -> Interval:
        """Mean with its 95 % bounds, None where they cannot be computed."""
        return clustered_interval(self.values, ends=ends_of(self.name, self.values))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fall:
    """The fall that the search found, with numbers of questions; `recent_n` scores began with `changed_at`."""

    question: int
    changed_at: int
    before_mean: float
    recent_mean: float
    recent_n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstAnswer:
    """An answer with low faithfulness.

    `before` is the end of the answer up to the least supported `sentence`, and `reason` is the judge's.
    """

    question: int
    query: str
    value: float
    before: str
    sentence: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Everything a view shows.

    Attributes:
        counts: records by ``sampled``, ``scored``, ``waiting`` and ``dropped``.
        incident_at: number of the question with which the incident begins, None without one.
        metrics: scores by metric, in the order of their first score.
        points: number of the question and score, of the watched metric.
        worst: worst answers, the worst first.
        search: what the search says of the scores so far.
        fall: the first fall that was found.
    """

    asked: int
    total: int
    failed: int
    counts: Mapping[str, int]
    seconds: float
    incident_at: int | None
    metrics: tuple[MetricScores, ...]
    points: tuple[tuple[int, float], ...]
    worst: tuple[WorstAnswer, ...]
    search: str
    fall: Fall | None

    @property
    def has_incident(self) -> bool:
        """Whether the incident has begun."""
        return self.incident_at is not None and self.asked >= self.incident_at


class Tally:
    """A sink that keeps the demo's numbers. `emit` runs in the scorer's thread, the rest in other threads.

    A fall of the watched metric is searched for as ``ragtrace investigate`` does it, anew after every tenth score.
    `asked` and `failed` count questions.
    """

    def __init__(self, *, total: int, incident_at: int | None) -> None:
        self.asked = 0
        self.failed = 0
        self.fall: Fall | None = None
        self._total = total
        self._incident_at = incident_at
        self._scored: list[tuple[RagRecord, dict[str, ScoreJson]]] = []
        self._search = "too few scores yet"
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._metrics: dict[str, MetricScores] = {}
        self._points: list[tuple[int, float]] = []
        self._worst: list[WorstAnswer] = []

    def emit(self, record: RagRecord, scores: Sequence[Score]) -> None:
        """Take one scored record."""
        with self._lock:
            for score in scores:
                result = score.result
                kept = self._metrics.setdefault(result.key, MetricScores(name=result.key))
                if result.value is None:
                    (kept.na if result.state == "na" else kept.errors)[result.reason or ""] += 1
                    continue
                kept.values.append(result.value)
                if result.name == WATCHED:
                    number = question_number(record)
                    self._points.append((number, result.value))
                    claim = standing_by(it.result for it in scores).claim
                    self._keep_if_worst(number, record, result.value, claim)
                    self._scored.append((record, {result.key: score_to_json(result)}))
                    if self.fall is None and len(self._scored) % LOOK_EVERY == 0:
                        self._look(number)

    def progress(self, ledger: Mapping[str, int]) -> Progress:
        """Return everything as of now, with the counts of `ragtrace.scoring.Ledger.snapshot`."""
        with self._lock:
            return Progress(
                asked=self.asked,
                total=self._total,
                failed=self.failed,
                counts={
                    "sampled": ledger.get("offered", 0) - ledger.get("skipped", 0),
                    "scored": ledger.get("scored", 0),
                    "waiting": ledger.get("pending", 0),
                    "dropped": ledger.get("dropped", 0) + ledger.get("failed", 0),
                },
                seconds=time.monotonic() - self._started,
                incident_at=self._incident_at,
                metrics=tuple(
                    MetricScores(name=it.name, values=list(it.values), na=it.na.copy(), errors=it.errors.copy())
                    for it in self._metrics.values()
                ),
                points=tuple(self._points),
                worst=tuple(self._worst),
                search=self._search,
                fall=self.fall,
            )

    def _look(self, number: int) -> None:
        """Search for a fall in the scores so far."""
        times = [time_of(record) for record, _ in self._scored]
        try:
            found = investigated(ScoredSource(self._scored), metric=WATCHED, before=0.0, until=max(times) + END_S)
        except (TooFewScores, NoMetric):
            return
        self._search = f"nothing fell in {len(times)} scores"
        if not found.is_fallen or found.changed_at is None:
            return
        sides: tuple[list[float], list[float]] = ([], [])
        for at, (_, value) in zip(times, self._points, strict=True):
            sides[at >= found.changed_at].append(value)
        self.fall = Fall(
            question=number,
            changed_at=min(n for at, (n, _) in zip(times, self._points, strict=True) if at >= found.changed_at),
            before_mean=fmean(sides[0]),
            recent_mean=fmean(sides[1]),
            recent_n=len(sides[1]),
        )
        self._search = f"a fall, found at question {number}"

    def _keep_if_worst(self, number: int, record: RagRecord, value: float, claim: BadClaim | None) -> None:
        sentence, reason = (claim.text, claim.reason) if claim is not None else ("", "")
        unseen = _UNSEEN.search(reason)
        before = record.answer[: max(record.answer.find(sentence), 0)].strip() if sentence else ""
        worst = WorstAnswer(
            question=number,
            query=record.query,
            value=value,
            before=before if len(before) <= _SHOWN_CHARS else f"…{before[-_SHOWN_CHARS:]}",
            sentence=sentence,
            reason=unseen.group() if unseen else reason,
        )
        best_first = sorted([*self._worst, worst], key=lambda it: -it.value)
        a_question = {it.query: it for it in best_first}  # of the answers to one question, the worst
        self._worst = sorted(a_question.values(), key=lambda it: it.value)[:_WORST_KEPT]


def time_of(record: RagRecord) -> float:
    """Return the Unix seconds at which a record ended, or began where it does not say."""
    return record.ended or record.started


def question_number(record: RagRecord) -> int:
    """Return the number of the question, from 1, that a record's tag carries.

    Example:
        >>> from ragtrace import RagRecord
        >>> question_number(RagRecord(id="1", tags=("demo:17",)))
        17
    """
    return next(int(tag.removeprefix(TAG)) for tag in record.tags if tag.startswith(TAG))
