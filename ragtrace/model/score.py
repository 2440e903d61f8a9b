"""Results of metrics, their scales, and the scores that leave the library."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from msgspec import Struct

from ragtrace.model.diagnosis import DIAGNOSIS, WORDS
from ragtrace.model.reasons import MISSING_INPUT, NA

State = Literal["ok", "na", "error", "skipped"]
Stratum = Literal["random", "forced"]
Direction = Literal["up", "down"]

NA_REASONS = frozenset(NA)
ERROR_REASONS = frozenset(
    {
        "judge_error", "judge_incomplete", "judge_timeout", "judge_refused", "judge_truncated", "judge_filtered",
        "judge_invalid_output", "judge_unavailable", "invalid_grade", "zero_embedding", "internal_error",
        "budget_exceeded",
    }
)  # fmt: skip
SKIP_REASONS = frozenset({"not_sampled", "budget_exceeded", "queue_full", "expired", "evicted", "shutdown"})
NOT_APPLICABLE = frozenset(
    {
        "no_answer_expected", "no_labels", "k_not_positive", "insufficient_runs", "insufficient_ratings",
        "no_samples", "no_parts", "no_ranking", "follows_answer", "several_answers", "unsupported_by_judge",
        "unsupported_language",
    }
)  # fmt: skip
"""Reasons of state ``na`` that the set-up or the record decides, and never the quality of a run."""

_REASONS: dict[str, frozenset[str]] = {"na": NA_REASONS, "error": ERROR_REASONS, "skipped": SKIP_REASONS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Range of a metric's values, and the part of it that passes.

    Attributes:
        low: lowest value.
        high: highest value.
        direction: up = higher is better.
        threshold: of pass and fail, None = none; of a 1-5 form also as a share of its range, such as .5 for 3 of 5.
    """

    low: float = 0.0
    high: float = 1.0
    direction: Direction = "up"
    threshold: float | None = None

    @property
    def is_five_point(self) -> bool:
        """Return whether it is a 1-5 form."""
        return (self.low, self.high) == (1.0, 5.0)

    @property
    def is_unit(self) -> bool:
        """Return whether its values are exported in [0, 1], a 1-5 form as (s - 1) / 4."""
        return (self.low >= 0.0 and self.high <= 1.0) or self.is_five_point

    def exported(self, value: float) -> float:
        """Return a value as it enters sums and gauges.

        Example:
            >>> Scale(low=1.0, high=5.0).exported(4.0)
            0.75
        """
        return (value - 1.0) / 4.0 if self.is_five_point else value

    def passes(self, value: float) -> bool | None:
        """Say whether a value meets the threshold; None without one.

        Example:
            >>> Scale(threshold=0.8).passes(0.8), Scale(direction="down", threshold=0.2).passes(0.3)
            (True, False)
        """
        if self.threshold is None:
            return None
        shown = self.exported(value) if self.is_five_point and self.threshold < self.low else value
        return shown >= self.threshold if self.direction == "up" else shown <= self.threshold


class JudgeInfo(Struct, frozen=True, kw_only=True):
    """Identity of the judge behind a verdict, so that no mean mixes two of them.

    Attributes:
        model: the judge's name, for example ``overlap`` or ``openai:gpt-4o-mini``.
        prompt_hash: 8 hex digits over prompt, schema and parameters.
        label_scale: the grade scale, where the metric uses grades.
    """

    model: str
    prompt_hash: str = ""
    label_scale: str | None = None


class MetricResult(Struct, frozen=True, kw_only=True):
    """One number of a metric for one record, or the reason for which there is none.

    The constructor refuses NaN and infinity, a value without state ``ok``, ``ok`` without a value, and a
    reason outside the closed list, so that a failure can never turn into a number.

    Attributes:
        name: the exported metric name, for example ``faithfulness`` or ``p_at_k``.
        value: present with state ``ok`` only.
        reason: present with every other state.
        details: JSON-ready facts behind the number (claims, weights, counts).
        passed: value against the threshold in the metric's direction; None without a threshold or a value.
        k: the cut-off of an @K metric.
        label_scope: which set of passages was labelled, for metrics over labels.
        variant: "" for the first of several K, else the K as text; see `key`.
        version: 8 hex digits over metric code version, prompt, schema and judge parameters.

    Example:
        >>> MetricResult(name="faithfulness", value=0.75, state="ok").value
        0.75
        >>> MetricResult(name="faithfulness", value=float("nan"), state="ok")
        Traceback (most recent call last):
        ...
        ValueError: faithfulness: a value must be finite, got nan
    """

    name: str
    state: State
    value: float | None = None
    reason: str | None = None
    details: Mapping[str, object] = {}
    llm_calls: int = 0
    embed_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    judge: JudgeInfo | None = None
    passed: bool | None = None
    k: int | None = None
    label_scope: str | None = None
    variant: str = ""
    version: str = ""

    def __post_init__(self) -> None:
        if (self.value is None) == (self.state == "ok"):
            raise ValueError(f"{self.name}: a value stands with state 'ok' and with no other")
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"{self.name}: a value must be finite, got {self.value}")
        if self.state == "ok":
            if self.reason is not None:
                raise ValueError("a result of state 'ok' has no reason")
        elif self.reason is None:
            raise ValueError(f"a result of state {self.state!r} needs a reason")
        elif self.reason not in _REASONS[self.state] and not (
            self.state == "na" and self.reason.startswith(MISSING_INPUT)
        ):
            raise ValueError(f"{self.reason!r} is not a reason of state {self.state!r}")

    @property
    def key(self) -> str:
        """Name in files and span attributes: the metric, and ``@K`` behind it for every K but the first."""
        return f"{self.name}@{self.variant}" if self.variant else self.name

    @property
    def is_missing(self) -> bool:
        """Whether a score is missing from the mean for a reason that may depend on the run's quality.

        Every ``error`` is, each ``skipped`` but ``not_sampled``, for which other runs stand with their weights, and
        each ``na`` but those of `NOT_APPLICABLE` and ``missing_input:NAME``.

        Example:
            >>> MetricResult(name="faithfulness", state="na", reason="abstained").is_missing
            True
            >>> MetricResult(name="faithfulness", state="na", reason="missing_input:answer").is_missing
            False
        """
        if self.reason is None:
            return False
        return not is_of_set_up(self.reason) if self.state == "na" else self.reason != "not_sampled"

    def shown_details(self, *, has_content: bool) -> dict[str, object]:
        """Return the details that may leave; without content finite numbers, truth values and a verdict's words.

        Other texts, and whatever holds some, may quote the answer.

        Example:
            >>> details = {"claims": ["Oslo is old."], "n": 1, "ratio": float("inf")}
            >>> MetricResult(name="x", state="ok", value=1.0, details=details).shown_details(has_content=False)
            {'n': 1}
            >>> details = {"verdict": "ok", "lost": ["a"]}
            >>> found = MetricResult(name="diagnosis", state="ok", value=1.0, details=details)
            >>> found.shown_details(has_content=False)
            {'verdict': 'ok'}
        """
        if has_content:
            return dict(self.details)
        return {
            name: value
            for name, value in self.details.items()
            if isinstance(value, int)
            or (isinstance(value, float) and math.isfinite(value))
            or (self.name == DIAGNOSIS and isinstance(value, str) and value in WORDS.get(name, ()))
        }


def is_of_set_up(reason: str) -> bool:
    """Return whether a reason of state ``na`` is decided by the set-up or the record, and never by a run's quality.

    Example:
        >>> is_of_set_up("no_labels"), is_of_set_up("missing_input:reference"), is_of_set_up("no_contexts")
        (True, True, False)
    """
    return reason in NOT_APPLICABLE or reason.startswith(MISSING_INPUT)


class SeriesKey(Struct, frozen=True):
    """Name of a series of scores: scores of two keys are never averaged.

    Attributes:
        metric: the exported name; of a scored file the key of the score, such as ``p_at_k@10``.
        workflow: of the scored runs; "" = of any.
        judge: the judge's name; None where nothing was judged, and where the version is enough.
        version: of metric and judge; None where unknown.
        k: the cut-off of an @K metric.
        label_scale: the scale of the labels behind it; the version does not tell it.
        universe: the labelled passages; the version does not tell them.

    Example:
        >>> SeriesKey("mrr", version="v") == SeriesKey("mrr", version="v", universe="pool")
        False
    """

    metric: str
    workflow: str = ""
    judge: str | None = None
    version: str | None = None
    k: int | None = None
    label_scale: str | None = None
    universe: str | None = None

    @classmethod
    def of(cls, result: MetricResult) -> SeriesKey:
        """Return the key of a result, in any workflow."""
        judge = result.judge
        return cls(
            metric=result.name,
            judge=judge.model if judge else None,
            version=result.version or None,
            k=result.k,
            label_scale=(judge.label_scale or None) if judge else None,
            universe=result.label_scope or None,
        )

    def maker(self) -> dict[str, str | int | None]:
        """Return what tells it from another series of its metric and workflow, as in JSON files."""
        return {name: getattr(self, name) for name in ("judge", "version", "k", "label_scale", "universe")}


class Missed(NamedTuple):
    """A counted missing score of a waiting run; the score takes back the same weight with the same words."""

    weight: float
    outcome: str
    reason: str


class ScoreKey(Struct, frozen=True, kw_only=True):
    """Identity of a score: a repeat of the same key replaces, never adds."""

    trace_id: str
    span_id: str
    metric: str
    version: str


class Score(Struct, frozen=True, kw_only=True):
    """A metric's result for one trace, with the stratum and weight that an honest mean needs.

    Attributes:
        key: identity of the score.
        result: the metric's result.
        stratum: ``random`` scores estimate the mean, ``forced`` ones never enter it.
        weight: 1 / inclusion probability (at least 1); None when the head probability is unknown.
        scored_at: Unix seconds.
    """

    key: ScoreKey
    result: MetricResult
    stratum: Stratum = "random"
    weight: float | None = 1.0
    scored_at: float = 0.0

    def __post_init__(self) -> None:
        if self.weight is not None and not (math.isfinite(self.weight) and self.weight >= 1.0):
            raise ValueError(f"a weight is 1 / probability and so at least 1, got {self.weight}")
