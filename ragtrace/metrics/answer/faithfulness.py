"""Faithfulness: how much of the answer is supported by the contexts that were delivered."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from ragtrace.metrics.base import CoroutineMetric, MetricSpec, Output, claims_lacking, result

if TYPE_CHECKING:
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import MetricResult

NAME = "faithfulness"


async def faithfulness(ctx: EvalContext) -> list[MetricResult]:
    """Supported claims / claims of the answer.

    In [0, 1], higher is better. The judge splits the answer into atomic claims and names the contexts that support
    each; partial support is no support. A judge that measures support gives the mean support of the sentences
    instead; short ones ("It is free.") count, greetings and "Yes." do not. Up to 40 claims are read;
    ``details.truncated`` says where there were more.

    ``na``: no_answer, partial_run; no_contexts (0.0 with `MetricOptions.zero_on_empty_context`); no_claims;
    abstained for a refusal, with the support kept in the details. Peers disagree here: without claims ragas gives
    NaN, llm4s and deepeval 1, trulens 0.0; trulens counts a refusal as grounded, which lifts the mean when
    retrieval breaks. Source: RAGAS, Es et al. 2023.

    Example:
        >>> import asyncio
        >>> from ragtrace.judges.offline.judge import OverlapJudge
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.metrics.evaluate import evaluate
        >>> from ragtrace.model import Passage, Pool, RagRecord
        >>> pool = Pool(stage="used", passages=(Passage(id="a", text="The lab is in Oslo.", rank=1),))
        >>> record = RagRecord(id="1", query="Where?", answer="The lab is in Oslo.", pools=(pool,))
        >>> asyncio.run(evaluate([METRIC], EvalContext(record, judge=OverlapJudge())))[0].value
        1.0
    """
    if not ctx.contexts():
        if ctx.options.zero_on_empty_context:
            return [result(NAME, 0.0, {"contexts": 0})]
        return [result(NAME, "no_contexts")]
    audit = await ctx.audit()
    claims = audit.claims
    support = sum(claim.support for claim in claims) / len(claims) if claims else 0.0
    contradicted = sum(claim.verdict == "contradicted" for claim in claims)
    details: dict[str, object] = {
        "n_claims": len(claims),
        "support": support if claims else None,
        "contradicted_rate": contradicted / len(claims) if claims else None,
        "unsupported": [claim.text for claim in claims if claim.verdict != "supported"],
        "claims": [{**asdict(claim), "sources": list(claim.sources)} for claim in claims],
        "truncated": audit.truncated,
    }
    return [result(NAME, claims_lacking(audit) or support, details)]


METRIC = CoroutineMetric(
    MetricSpec(
        name=NAME,
        summary="Share of the answer's claims that the delivered contexts support.",
        needs=("answer", "contexts", "judge"),
        required=("answer", "judge"),
        outputs=(Output(name=NAME),),
        calls="1 judge call, shared with citations and no_answer",
        source="RAGAS, Es et al. 2023",
        task="audit",
        options=("zero_on_empty_context",),
    ),
    faithfulness,
)
