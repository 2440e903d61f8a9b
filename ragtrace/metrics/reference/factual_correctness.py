"""Factual correctness: whether answer and reference say the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.judges.llm.correctness import CORRECTNESS
from ragtrace.metrics.base import CoroutineMetric, MetricSpec, Output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.judges.llm.correctness import CheckedClaim
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import MetricResult

_NAME = "factual_correctness"


def f_beta(precision: float, recall: float, beta: float = 1.0) -> float:
    """Return the weighted harmonic mean.

    In [0, 1]; 0.0 when both are 0.

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


async def factual_correctness(ctx: EvalContext) -> list[MetricResult]:
    """Agreement of answer and reference, claim by claim.

    All outputs in [0, 1], higher is better.

    - ``factual_correctness_precision`` P: claims of the answer that the reference entails, over its claims;
    - ``factual_correctness_recall`` R: claims of the reference that the answer entails, over its claims;
    - ``factual_correctness``: (1 + b^2) P R / (b^2 P + R), where b is `MetricOptions.factual_beta`; 0.0 where P and
      R are 0.

    A contradicted claim and one that the other text does not hold both count as not entailed; the details count
    them apart. Each ratio counts the claims of one text. ragas mixes the texts: 4 supported claims of the answer
    and 1 of 2 facts covered give a recall of .8 there and .5 here.

    A text without claims: its side and the F measure are ``na no_claims``. Other ``na``: no_answer, partial_run,
    missing_input:reference, unsupported_by_judge. Source: claim precision and recall as in open-rag-eval.

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
    claims = await ctx.ask(CORRECTNESS)
    precision, recall = _entailed(claims.answer), _entailed(claims.reference)
    beta = ctx.options.factual_beta
    both = None if precision is None or recall is None else f_beta(precision, recall, beta)
    details = {
        "answer": _side(claims.answer),
        "reference": _side(claims.reference),
        "beta": beta,
        "truncated": claims.truncated,
    }
    return METRIC.spec.results((precision, recall, both), "no_claims", details)


def _entailed(claims: Sequence[CheckedClaim]) -> float | None:
    if not claims:
        return None
    return sum(claim.verdict == "supported" for claim in claims) / len(claims)


def _side(claims: Sequence[CheckedClaim]) -> dict[str, object]:
    verdicts = [claim.verdict for claim in claims]
    return {
        "entailed": verdicts.count("supported"),
        "contradicted": verdicts.count("contradicted"),
        "neutral": verdicts.count("not_supported"),
        "claims": [{"text": claim.text, "verdict": claim.verdict} for claim in claims],
    }


METRIC = CoroutineMetric(
    MetricSpec(
        name=_NAME,
        aliases=("factual_correctness_f1",),
        summary="Share of the answer's claims that the reference entails, of the reference's that the answer does.",
        needs=("answer", "reference", "query", "judge"),
        required=("answer", "reference", "judge"),
        outputs=(Output(name=f"{_NAME}_precision"), Output(name=f"{_NAME}_recall"), Output(name=_NAME)),
        calls="2 judge calls, shared with noise_sensitivity",
        source="claim precision and recall as in open-rag-eval",
        prompts=CORRECTNESS.prompts,
        options=("factual_beta",),
    ),
    factual_correctness,
)
