"""Count verdicts of runs and runs without a score, weighted as the sums of scores are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ragtrace import semconv
from ragtrace.model.diagnosis import DIAGNOSIS, VERDICTS, verdict_of
from ragtrace.telemetry.metrics.clusters import ClusterSums

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opentelemetry.util.types import AttributeValue

    from ragtrace.model import Score
    from ragtrace.model.diagnosis import Verdict
    from ragtrace.telemetry.metrics.series import Attributes

    Add = Callable[[str, float, Mapping[str, AttributeValue]], None]

_FREQUENT: Final = (
    "abstained", "answer_missing", "contexts_truncated", "no_answer", "no_claims", "no_contexts", "partial_run",
)  # fmt: skip
"""Reasons that exist at 0 before the first such run, since ``increase()`` loses the first increment of a series."""

_VERDICT_SUMS: Final = (semconv.DIAGNOSIS_N, semconv.DIAGNOSIS_W, semconv.DIAGNOSIS_W2)
_MOST_PRECREATED = 1_000  # label sets; the SDK folds those beyond 2,000 an instrument into one


class Shares:
    """Weighted counts of verdicts and of runs without a score. Thread-safe; no method waits.

    Only runs of the random stratum with a known weight count. `add` adds an amount to a counter by its name.

    A metric with several K counts once a run.

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
        if key in self._created or (len(self._created) + 1) * len(_FREQUENT) > _MOST_PRECREATED:
            return
        self._created.add(key)  # no lock: adding 0 twice changes nothing
        about = _about(metric, workflow)
        self._owe(about, 0.0, 0.0)
        for reason in _FREQUENT:
            self._add(semconv.SCORE_MISSING_W, 0.0, about | {semconv.OUTCOME: "na", semconv.REASON: reason})
        if metric == DIAGNOSIS:
            for verdict in VERDICTS:
                self._diagnose(workflow, verdict, (0.0, 0.0, 0.0))

    def count(self, score: Score, workflow: str, cluster: str) -> None:
        """Count a result as due, as missing where it has no score, and by its verdict where it is a diagnosis.

        Args:
            score: of any state.
            workflow: as points have it.
            cluster: of the run (`ragtrace.model.cluster.cluster_of`).
        """
        result, weight = score.result, score.weight
        is_due = result.value is not None or result.is_missing
        if score.stratum != "random" or weight is None or not is_due or result.variant:
            return
        about = _about(result.name, workflow)
        squares = self._clusters.join((result.name, workflow), cluster, 1.0, weight).w2
        self._owe(about, weight, squares)
        if result.reason is not None:
            missing = {semconv.OUTCOME: result.state, semconv.REASON: result.reason}
            self._add(semconv.SCORE_MISSING_W, weight, about | missing)
        if result.name == DIAGNOSIS:
            self._diagnose(workflow, verdict_of(result) or "undetermined", (1.0, weight, squares))

    def _owe(self, about: Attributes, weight: float, squares: float) -> None:
        self._add(semconv.SCORE_DUE_W, weight, about)
        self._add(semconv.SCORE_DUE_W2, squares, about)

    def _diagnose(self, workflow: str, verdict: Verdict, parts: tuple[float, float, float]) -> None:
        about = {semconv.GEN_AI_WORKFLOW_NAME: workflow, semconv.DIAGNOSIS_VERDICT: verdict}
        for name, part in zip(_VERDICT_SUMS, parts, strict=True):
            self._add(name, part, about)


def _about(metric: str, workflow: str) -> Attributes:
    return {semconv.GEN_AI_EVALUATION_NAME: metric, semconv.GEN_AI_WORKFLOW_NAME: workflow}
