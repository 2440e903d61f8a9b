"""Hallucination: consistency of the answer's sentences with the contexts, by a local pair model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.judges.nli.checking import identity
from ragtrace.metrics.base import CoroutineMetric, MetricSpec, Output, result

if TYPE_CHECKING:
    from ragtrace.judges.nli.checking import Checked, CheckedSentence
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import MetricResult

NAMES = ("hallucination", "hallucination_min")  # the mean and the worst sentence


async def hallucination(ctx: EvalContext) -> list[MetricResult]:
    """Consistency of the answer's sentences with the contexts: their mean, and the worst of them.

    In [0, 1], HIGHER IS BETTER: 1 is consistent, below the threshold (.5) hallucinated. Contexts are joined to
    premises of the scorer's window, which overlap by one context. A sentence's score is the maximum over premises;
    ``hallucination`` is the mean and ``hallucination_min`` the minimum over sentences. Nothing is truncated,
    whereas open-rag-eval cuts sources at 8,192 characters, so that late evidence makes a true answer look
    hallucinated.

    ``na``: no_answer, partial_run, no_contexts, unsupported_by_judge without a pair scorer, no_claims where the
    answer has no word. ``error``: judge_error, judge_invalid_output or judge_truncated where the scorer fails. The
    scorer works in threads. Source: HHEM; sentence against document after SummaC (2022).

    Example:
        >>> import asyncio
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.metrics.evaluate import evaluate
        >>> from ragtrace.model import Passage, Pool, RagRecord
        >>> def copied(pairs):
        ...     return [float(hypothesis in premise) for premise, hypothesis in pairs]
        >>> pool = Pool(stage="used", passages=(Passage(id="a", text="The lab is in Oslo.", rank=1),))
        >>> record = RagRecord(id="1", answer="The lab is in Oslo. It is big.", pools=(pool,))
        >>> context = EvalContext(record, pairs=copied)
        >>> [(r.name, r.value, r.passed) for r in asyncio.run(evaluate([METRIC], context))]
        [('hallucination', 0.5, True), ('hallucination_min', 0.0, False)]
    """
    checked = await ctx.checked()
    details = _details(checked, ctx)
    scores = [sentence.consistency for sentence in checked.sentences]
    if not scores:
        return METRIC.spec.every("no_claims", details)
    mean, least = sum(scores) / len(scores), min(scores)
    worst = {"unsupported": details["unsupported"] and [checked.sentences[scores.index(least)].text]}
    return [result(NAMES[0], mean, details), result(NAMES[1], least, {**worst, "truncated": False})]


def _details(checked: Checked, ctx: EvalContext) -> dict[str, object]:
    threshold = ctx.options.hallucination_threshold
    return {
        "scorer": identity(ctx.pairs)[0] if ctx.pairs is not None else "",
        "threshold": threshold,
        "n_sentences": len(checked.sentences),
        "unsupported": [one.text for one in checked.sentences if one.consistency < threshold],
        "sentences": [_shown(sentence) for sentence in checked.sentences],
        "premises": [{"contexts": list(premise.contexts)} for premise in checked.premises],
        "truncated": False,  # a pair beyond the window is an error of the scorer, never cut
    }


def _shown(sentence: CheckedSentence) -> dict[str, object]:
    scores = [signal.consistency for signal in sentence.signals]
    best = max(scores)
    return {"text": sentence.text, "score": best, "premise": scores.index(best), "scores": scores}


METRIC = CoroutineMetric(
    MetricSpec(
        name="hallucination",
        summary="Consistency of the answer's sentences with the contexts under a local pair model, mean and worst; "
        "1 is consistent.",
        needs=("answer", "contexts", "pairs"),
        outputs=tuple(Output(name=name, threshold=0.5) for name in NAMES),
        calls="none; one pair a sentence and premise for the local model",
        source="HHEM, NLI",
        options=("hallucination_threshold",),
    ),
    hallucination,
)
