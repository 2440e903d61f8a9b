"""Noise sensitivity: the wrong share of the answer, and the contexts it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragtrace.judges.llm.correctness import CORRECTNESS, SOURCES, claim_sources
from ragtrace.metrics.base import CoroutineMetric, MetricSpec, Output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.judges.llm.correctness import ClaimSources, Correctness
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import MetricResult

_OUTPUTS = (
    "noise_sensitivity_relevant",
    "noise_sensitivity_irrelevant",
    "noise_sensitivity_unattributed",
    "incorrect_rate",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IncorrectClaims:
    """Numbers of incorrect claims by where they come from; every incorrect claim stands in one of them."""

    relevant: int
    irrelevant: int
    unattributed: int

    @property
    def total(self) -> int:
        """All incorrect claims."""
        return self.relevant + self.irrelevant + self.unattributed


def incorrect_claims(
    correct: Sequence[bool], sources: Sequence[Sequence[int]], relevant_contexts: frozenset[int]
) -> IncorrectClaims:
    """Count the incorrect claims of an answer by their sources.

    Args:
        correct: for each claim whether the reference entails it.
        sources: for each claim the contexts that support it.
        relevant_contexts: contexts that support a fact of the reference.

    Example:
        >>> incorrect_claims([True, False, False], [[0], [0, 1], []], frozenset({0}))
        IncorrectClaims(relevant=1, irrelevant=0, unattributed=1)
    """
    wrong = [set(behind) for is_right, behind in zip(correct, sources, strict=True) if not is_right]
    relevant = sum(bool(behind & relevant_contexts) for behind in wrong)
    unattributed = sum(not behind for behind in wrong)
    return IncorrectClaims(
        relevant=relevant, irrelevant=len(wrong) - relevant - unattributed, unattributed=unattributed
    )


async def noise_sensitivity(ctx: EvalContext) -> list[MetricResult]:
    """Incorrect claims / claims of the answer, by where the error comes from.

    In [0, 1], lower is better. A claim is incorrect where the reference does not entail it. A context is relevant
    where it supports a fact of the reference.

    - ``noise_sensitivity_relevant``: incorrect and supported by a relevant context (ragas' default mode);
    - ``noise_sensitivity_irrelevant``: incorrect, supported by an irrelevant context and by no relevant one;
    - ``noise_sensitivity_unattributed``: incorrect and supported by no context;
    - ``incorrect_rate``: incorrect, which is the sum of the three.

    A reference without facts makes every context irrelevant. The details keep both matrices, as the 0-based indexes
    of the contexts that support each claim. ``na``: no_answer, partial_run, no_contexts, missing_input:reference,
    unsupported_by_judge, and no_claims where the answer holds none. Source: RAGAS noise sensitivity, after
    RAGChecker (2024).

    Example:
        >>> import asyncio
        >>> from ragtrace.judges.llm.judge import LLMJudge
        >>> from ragtrace.judges.llm.scripted import ScriptedChat
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.model import Passage, Pool, RagRecord
        >>> chat = ScriptedChat([
        ...     {"answer_claims": ["It is in Oslo.", "It is new."], "reference_claims": ["It is in Oslo."]},
        ...     {"verdicts": [{"id": n, "verdict": v} for n, v in enumerate(
        ...         ["supported", "not_supported", "supported"], start=1)]},
        ...     {"table": [{"id": n, "sources": [1]} for n in (1, 2, 3)]},
        ... ])
        >>> pool = Pool(stage="used", passages=(Passage(id="a", text="The new lab is in Oslo.", rank=1),))
        >>> record = RagRecord(id="1", answer="In Oslo; it is new.", reference="In Oslo.", pools=(pool,))
        >>> results = asyncio.run(METRIC.compute(EvalContext(record, judge=LLMJudge(chat))))
        >>> [result.value for result in results]
        [0.5, 0.0, 0.0, 0.5]
    """
    claims = await ctx.ask(CORRECTNESS)
    if not claims.answer:
        return METRIC.spec.every("no_claims")
    return _scored(claims, await ctx.ask(claim_sources(claims)), ctx)


def _scored(claims: Correctness, sources: ClaimSources, ctx: EvalContext) -> list[MetricResult]:
    relevant_contexts = frozenset(index for behind in sources.reference for index in behind)
    correct = [claim.verdict == "supported" for claim in claims.answer]
    found = incorrect_claims(correct, sources.answer, relevant_contexts)
    details = {
        "claims": [
            {"text": claim.text, "verdict": claim.verdict, "sources": list(behind)}
            for claim, behind in zip(claims.answer, sources.answer, strict=True)
        ],
        "facts": [
            {"text": claim.text, "sources": list(behind)}
            for claim, behind in zip(claims.reference, sources.reference, strict=True)
        ],
        "truncated": claims.truncated,
        "contexts": [index for index, _ in ctx.contexts()],
        "relevant_contexts": sorted(relevant_contexts),
        "n_claims": len(correct),
        "n_incorrect": found.total,
    }
    counts = (found.relevant, found.irrelevant, found.unattributed, found.total)
    return METRIC.spec.results([count / len(correct) for count in counts], "no_claims", details)


METRIC = CoroutineMetric(
    MetricSpec(
        name="noise_sensitivity",
        summary="Share of the answer's claims that are wrong, by the contexts that say so: relevant, other, none.",
        needs=("answer", "contexts", "reference", "query", "judge"),
        required=("answer", "contexts", "reference", "judge"),
        outputs=tuple(Output(name=name, direction="down", threshold=0.2) for name in _OUTPUTS),
        calls="3 judge calls, 2 of them shared with factual_correctness",
        source="ragas noise sensitivity",
        prompts=(*CORRECTNESS.prompts, SOURCES),
    ),
    noise_sensitivity,
)
