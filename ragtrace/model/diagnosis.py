"""The closed list of verdicts on a run: at which stage it failed, or that it did not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace.model.score import MetricResult

Verdict = Literal[
    "not_retrieved",
    "unknown_retrieval",
    "lost_in_rerank",
    "cut_from_prompt",
    "insufficient_but_answered",
    "sufficient_but_ignored",
    "contradicted",
    "unsupported",
    "wrongly_refused",
    "rightly_refused",
    "ok",
    "undetermined",
]
Stage = Literal["retrieval", "rerank", "prompt", "model", "none"]

DIAGNOSIS: Final = "diagnosis"
"""Name of the metric whose results carry a verdict."""

VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)
FAILURES: Final[tuple[Verdict, ...]] = VERDICTS[: VERDICTS.index("rightly_refused")]
"""Verdicts of a run in which a stage failed; the earliest stage first."""

STAGES: Final[dict[Verdict, Stage]] = {
    "not_retrieved": "retrieval",
    "unknown_retrieval": "retrieval",
    "lost_in_rerank": "rerank",
    "cut_from_prompt": "prompt",
    "insufficient_but_answered": "model",
    "sufficient_but_ignored": "model",
    "contradicted": "model",
    "unsupported": "model",
    "wrongly_refused": "model",
    "rightly_refused": "none",
    "ok": "none",
    "undetermined": "none",
}
"""The stage that a verdict names; ``none`` where no stage failed or none can be named."""

MEANINGS: Final[dict[Verdict, str]] = {
    "not_retrieved": "the retriever did not return a passage that was needed",
    "unknown_retrieval": "the contexts lack the answer, and nobody knows whether the corpus holds it",
    "lost_in_rerank": "a needed passage was retrieved, and worse ones were selected in its place",
    "cut_from_prompt": "a needed passage was selected, and the prompt did not hold it",
    "insufficient_but_answered": "nothing more was there to find, and the model answered without enough",
    "sufficient_but_ignored": "the contexts hold the answer, and the model did not use it",
    "contradicted": "the answer says the opposite of the contexts",
    "unsupported": "the answer says what the contexts do not hold",
    "wrongly_refused": "the contexts hold the answer, and the model declined",
    "rightly_refused": "the contexts lack the answer, and the model declined",
    "ok": "the contexts support each claim, and no stage is seen to fail",
    "undetermined": "the evidence does not decide",
}
"""Each verdict in words."""

Because = Literal[
    "sufficiency_unknown",
    "attempt_unknown",
    "claims_unknown",
    "prompt_unmatched",
    "conflicting_evidence",
    "partial_run",
    "no_answer_expected",
    "no_answer_given",
    "answer_missing",
    "several_answers",
    "contexts_truncated",
    "no_contexts",
    "no_query",
    "judge_failed",
]
"""The reason of ``undetermined``."""

_KEY: Final = "verdict"
WORDS: Final[dict[str, tuple[str, ...]]] = {
    _KEY: VERDICTS,
    "stage": get_args(Stage),
    "because": get_args(Because),
    "by": ("labels", "grades", "shadow"),
}
"""The details of a diagnosis that are words of a closed list."""


def verdict_of(result: MetricResult) -> Verdict | None:
    """Return the verdict of a result of the metric `DIAGNOSIS`; None for every other result.

    Example:
        >>> from ragtrace.model.score import MetricResult
        >>> found = MetricResult(name="diagnosis", state="ok", value=0.0, details={"verdict": "lost_in_rerank"})
        >>> verdict_of(found), STAGES["lost_in_rerank"]
        ('lost_in_rerank', 'rerank')
    """
    return verdict_in(result.details) if result.name == DIAGNOSIS else None


def verdict_in(details: Mapping[str, object]) -> Verdict | None:
    """Return the verdict in the details of a diagnosis; None where there is none of the list."""
    named = details.get(_KEY)
    return next((verdict for verdict in VERDICTS if verdict == named), None)
