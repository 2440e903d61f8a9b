"""Factual correctness: whether answer and reference say the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.judges.llm.correctness import CORRECTNESS
from ragtrace.metrics.base import MetricSpec, Output, result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.judges.llm.correctness import CheckedClaim, Correctness
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import MetricResult

_F = "factual_correctness"
_PRECISION = "factual_correctness_precision"
_RECALL = "factual_correctness_recall"


def f_beta(precision: float, recall: float, beta: float = 1.0) -> float:
    """Return the weighted harmonic mean, in [0, 1]; 0.0 when both are 0.

    Args:
        precision: in [0, 1].
        recall: in [0, 1].
        beta: weight of recall against precision, above 0.

    Example:
        >>> f_beta(1.0, 0.5)
        0.6666666666666666
        >>> f_beta(0.0, 0.0)
        0.0
    """
    weight = beta * beta
    below = weight * precision + recall
    return (1.0 + weight) * precision * recall / below if below else 0.0


class FactualCorrectness:
    """Agreement of answer and reference, claim by claim; all outputs in [0, 1], higher is better.

    - ``factual_correctness_precision`` P: claims of the answer that the reference entails, over its claims;
    - ``factual_correctness_recall`` R: claims of the reference that the answer entails, over its claims;
    - ``factual_correctness``: (1 + b^2) P R / (b^2 P + R), where b is `Options.factual_beta`; 0.0 where both are 0.

    A contradicted claim and one that the other text does not hold both count as not entailed; the details count
    them apart. Each ratio counts the claims of one text. ragas mixes the texts: 4 supported claims of the answer
    and 1 of 2 facts covered give a recall of .8 there and .5 here.

    A text without claims: its side and the F measure are ``na no_claims``. Other ``na``: no_answer, partial_run,
    missing_input:reference, unsupported_by_judge. Coroutine-safe. Source: claim precision and recall as in
    open-rag-eval.

    Example:
        >>> import asyncio
        >>> from ragtrace.judges.llm.judge import LLMJudge
        >>> from ragtrace.judges.llm.scripted import ScriptedChat
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.model import RagRecord
        >>> chat = ScriptedChat([
        ...     {"answer_claims": ["It is in Oslo."], "reference_claims": ["It is in Oslo.", "It is old."]},
        ...     {"verdicts": [{"id": n, "verdict": v} for n, v in enumerate(
        ...         ["supported", "supported", "not_supported"], start=1)]},
        ... ])
        >>> record = RagRecord(id="1", answer="In Oslo.", reference="The old lab in Oslo.")
        >>> results = asyncio.run(METRIC.compute(EvalContext(record, judge=LLMJudge(chat))))
        >>> [result.value for result in results]
        [1.0, 0.5, 0.6666666666666666]
    """

    spec = MetricSpec(
        name=_F,
        aliases=("factual_correctness_f1",),
        summary="Share of the answer's claims that the reference entails, of the reference's that the answer does.",
        needs=("answer", "reference", "query", "judge"),
        required=("answer", "reference", "judge"),
        outputs=(Output(name=_PRECISION), Output(name=_RECALL), Output(name=_F)),
        calls="2 judge calls, shared with noise_sensitivity",
        source="claim precision and recall as in open-rag-eval",
        prompts=CORRECTNESS.prompts,
        options=("factual_beta",),
    )

    async def compute(self, ctx: EvalContext) -> list[MetricResult]:
        """Return the three outputs; raises JudgeError when the judge has no usable verdicts."""
        claims = await ctx.ask(CORRECTNESS)
        precision, recall = _entailed(claims.answer), _entailed(claims.reference)
        beta = ctx.options.factual_beta
        both = None if precision is None or recall is None else f_beta(precision, recall, beta)
        details = _details(claims, beta)
        return [
            _result(_PRECISION, precision, details),
            _result(_RECALL, recall, details),
            _result(_F, both, details),
        ]


def _entailed(claims: Sequence[CheckedClaim]) -> float | None:
    if not claims:
        return None
    return sum(claim.verdict == "supported" for claim in claims) / len(claims)


def _result(name: str, value: float | None, details: dict[str, object]) -> MetricResult:
    return result(name, "no_claims" if value is None else value, details)


def _details(claims: Correctness, beta: float) -> dict[str, object]:
    return {
        "answer": _side(claims.answer),
        "reference": _side(claims.reference),
        "beta": beta,
        "truncated": claims.truncated,
    }


def _side(claims: Sequence[CheckedClaim]) -> dict[str, object]:
    verdicts = [claim.verdict for claim in claims]
    return {
        "entailed": verdicts.count("supported"),
        "contradicted": verdicts.count("contradicted"),
        "neutral": verdicts.count("not_supported"),
        "claims": [{"text": claim.text, "verdict": claim.verdict} for claim in claims],
    }


METRIC = FactualCorrectness()
