"""Count verdicts of runs and runs without a score, weighted as the sums of scores are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ragtrace import semconv
from ragtrace.model import Missed
from ragtrace.model.diagnosis import DIAGNOSIS, VERDICTS, verdict_of
from ragtrace.telemetry.metrics.clusters import ClusterSums

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opentelemetry.util.types import AttributeValue

    from ragtrace.model import Score
    from ragtrace.model.diagnosis import Verdict
    from ragtrace.telemetry.metrics.series import Attributes

    Add = Callable[[str, float, Mapping[str, AttributeValue]], None]

_FREQUENT: Final = {
    "na": (
        "abstained", "answer_missing", "contexts_truncated", "no_answer", "no_claims", "no_contexts", "partial_run",
    ),
    "error": ("budget_exceeded", "judge_error", "judge_timeout", "judge_unavailable"),
    "skipped": ("budget_exceeded", "queue_full"),
}  # fmt: skip
"""Reasons that exist at 0 before the first such run, since ``increase()`` loses the first increment of a series."""

_KINDS: Final = [(outcome, reason) for outcome, reasons in _FREQUENT.items() for reason in reasons]

_VERDICT_SUMS: Final = (semconv.DIAGNOSIS_N, semconv.DIAGNOSIS_W, semconv.DIAGNOSIS_W2)
_MOST_PRECREATED = 1_000  # label sets; the SDK folds those beyond 2,000 an instrument into one


class Shares:
    """Weighted counts of verdicts and of runs without a score. Thread-safe; no method waits.

    Only runs of the random stratum with a known weight count. `add` adds an amount to a counter by its name.

    Every run is due once: when it is scored or lost (`count`), or at its first failed try (`wait`). From then on it
    is missing, until its score comes (`settle`). So due, and missing less recovered, hold at any time and over all
    processes. A metric with several K counts once a run.

    Example:
        >>> from ragtrace.model import MetricResult, Score, ScoreKey
        >>> counts = {}
        >>> shares = Shares(lambda name, amount, _: counts.update({name: amount}), lambda: 0.0)
        >>> result = MetricResult(name="faithfulness", state="na", reason="abstained")
        >>> key = ScoreKey(trace_id="t", span_id="s", metric="faithfulness", version="")
        >>> shares.count(Score(key=key, result=result, weight=4.0), "support", "session")
        >>> counts
        {'ragtrace.score.due.w': 4.0, 'ragtrace.score.due.w2': 16.0, 'ragtrace.score.missing.w': 4.0}
    """

    def __init__(self, add: Add, clock: Callable[[], float]) -> None:
        self._add = add
        self._clusters = ClusterSums(clock)
        self._created: set[tuple[str, str]] = set()

    def precreate(self, metric: str, workflow: str) -> None:
        """Create with add(0) the label sets of a metric in a workflow, once."""
        key = (metric, workflow)
        if key in self._created or (len(self._created) + 1) * len(_KINDS) > _MOST_PRECREATED:
            return
        self._created.add(key)  # no lock: adding 0 twice changes nothing
        about = _about(metric, workflow)
        self._owe(about, 0.0, 0.0)
        for outcome, reason in _KINDS:
            self._miss(about, Missed(0.0, outcome, reason))
            if outcome == "error":
                self._recover(about, Missed(0.0, outcome, reason))
        if metric == DIAGNOSIS:
            for verdict in VERDICTS:
                self._diagnose(workflow, verdict, (0.0, 0.0, 0.0))

    def count(self, score: Score, workflow: str, cluster: str, *, runs: int = 1) -> None:
        """Count a result as due, as missing where it has no score, and by its verdict where it is a diagnosis.

        Args:
            score: of any state.
            workflow: as points have it.
            cluster: of the run (`ragtrace.model.cluster.cluster_of`).
            runs: that were lost alike, of as many clusters.
        """
        result, weight = score.result, _due_weight(score)
        if weight is None:
            return
        about = _about(result.name, workflow)
        joined = weight * weight if runs > 1 else self._joined(score, workflow, cluster, weight)
        self._owe(about, runs * weight, runs * joined)
        if result.reason is not None:
            self._miss(about, Missed(runs * weight, result.state, result.reason))
        if result.name == DIAGNOSIS:
            verdict = verdict_of(result) or "undetermined"
            self._diagnose(workflow, verdict, (float(runs), runs * weight, runs * joined))

    def wait(self, score: Score, workflow: str, cluster: str, reason: str) -> Missed | None:
        """Count a result of a run that is to be tried again as due and missing; None where it is not due.

        Args:
            score: of any state; one with a value waits for the other scores of its run.
            workflow: as points have it.
            cluster: of the run.
            reason: of the run's failure, for results that are no error of their own.

        Returns:
            What `settle` needs.
        """
        result, weight = score.result, _due_weight(score)
        if weight is None:
            return None
        about = _about(result.name, workflow)
        missed = Missed(weight, "error", str(result.reason) if result.state == "error" else reason)
        self._owe(about, weight, self._joined(score, workflow, cluster, weight))
        self._miss(about, missed)
        return missed

    def settle(self, score: Score, workflow: str, cluster: str, missed: Missed) -> None:
        """Count the last result of a run that waited: one with a value is missing no more.

        Args:
            score: of any state.
            workflow: as points have it.
            cluster: of the run.
            missed: of its `wait`.
        """
        weight = _due_weight(score)
        if weight is None:
            return
        if score.result.value is not None:
            self._recover(_about(score.result.name, workflow), missed)
        if score.result.name == DIAGNOSIS:
            squares = self._clusters.join((DIAGNOSIS, workflow, "settled"), cluster, 1.0, weight).w2
            self._diagnose(workflow, verdict_of(score.result) or "undetermined", (1.0, weight, squares))

    def _joined(self, score: Score, workflow: str, cluster: str, weight: float) -> float:
        return self._clusters.join((score.result.name, workflow), cluster, 1.0, weight).w2

    def _miss(self, about: Attributes, missed: Missed) -> None:
        self._add(semconv.SCORE_MISSING_W, missed.weight, about | _kind(missed))

    def _recover(self, about: Attributes, missed: Missed) -> None:
        self._add(semconv.SCORE_RECOVERED_W, missed.weight, about | _kind(missed))

    def _owe(self, about: Attributes, weight: float, squares: float) -> None:
        self._add(semconv.SCORE_DUE_W, weight, about)
        self._add(semconv.SCORE_DUE_W2, squares, about)

    def _diagnose(self, workflow: str, verdict: Verdict, parts: tuple[float, float, float]) -> None:
        about = {semconv.GEN_AI_WORKFLOW_NAME: workflow, semconv.DIAGNOSIS_VERDICT: verdict}
        for name, part in zip(_VERDICT_SUMS, parts, strict=True):
            self._add(name, part, about)


def _due_weight(score: Score) -> float | None:
    """Return the weight with which a result is due; None where it is not, or where it is of another stratum."""
    result = score.result
    is_due = result.value is not None or result.is_missing
    return score.weight if score.stratum == "random" and is_due and not result.variant else None


def _kind(missed: Missed) -> Attributes:
    return {semconv.OUTCOME: missed.outcome, semconv.REASON: missed.reason}


def _about(metric: str, workflow: str) -> Attributes:
    return {semconv.GEN_AI_EVALUATION_NAME: metric, semconv.GEN_AI_WORKFLOW_NAME: workflow}
