"""Faithfulness: how much of the answer is supported by the contexts that were delivered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace.metrics.base import MetricSpec, Output
from ragtrace.model import MetricResult

if TYPE_CHECKING:
    from ragtrace.judges.base import Audit, Claim
    from ragtrace.metrics.eval_context import EvalContext

NAME = "faithfulness"


class Faithfulness:
    """Supported claims / claims of the answer; with a judge that measures, the mean support of its sentences.

    In [0, 1], higher is better. Blank answer: ``na no_answer``; no contexts: ``na no_contexts`` (0.0 with
    ``zero_on_empty_context``); no claims: ``na no_claims``; a refusal: ``na abstained``, with the support kept in
    details. Partial support is no support. Source: METRICS.md 1.1; claim decomposition after RAGAS (2023).

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

    spec = MetricSpec(
        name=NAME,
        summary="Share of the answer's claims that the delivered contexts support.",
        needs=("answer", "contexts", "judge"),
        required=("answer", "judge"),
        outputs=(Output(name=NAME),),
        calls="1 judge call, shared with citations and no_answer",
        source="RAGAS, Es et al. 2023",
        task="audit",
        options=("zero_on_empty_context",),
    )

    async def compute(self, ctx: EvalContext) -> list[MetricResult]:
        """Return one result; raises JudgeError."""
        if not ctx.contexts():
            if ctx.options.zero_on_empty_context:
                return [MetricResult(name=NAME, state="ok", value=0.0, details={"contexts": 0})]
            return [MetricResult(name=NAME, state="na", reason="no_contexts")]
        audit = await ctx.audit()
        details = _details(audit)
        if not audit.attempted:
            return [MetricResult(name=NAME, state="na", reason="abstained", details=details)]
        if not audit.claims:
            return [MetricResult(name=NAME, state="na", reason=audit.unscorable or "no_claims", details=details)]
        return [MetricResult(name=NAME, state="ok", value=_mean(audit), details=details)]


def _mean(audit: Audit) -> float:
    return sum(claim.support for claim in audit.claims) / len(audit.claims)


def _details(audit: Audit) -> dict[str, Any]:
    claims = audit.claims
    contradicted = sum(claim.verdict == "contradicted" for claim in claims)
    return {
        "n_claims": len(claims),
        "support": _mean(audit) if claims else None,
        "contradicted_rate": contradicted / len(claims) if claims else None,
        "unsupported": [claim.text for claim in claims if claim.verdict != "supported"],
        "claims": [_shown(claim) for claim in claims],
        "truncated": audit.truncated,
    }


def _shown(claim: Claim) -> dict[str, Any]:
    return {
        "text": claim.text,
        "verdict": claim.verdict,
        "support": claim.support,
        "sources": list(claim.sources),
        "reason": claim.reason,
    }


METRIC = Faithfulness()
