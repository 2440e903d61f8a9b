"""Pair contradiction: whether the contexts contradict a sentence of the answer, under a local NLI model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.errors import JudgeUnsupported
from ragtrace.metrics.base import CoroutineMetric, MetricSpec, Output, result

if TYPE_CHECKING:
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import MetricResult

NAME = "pair_contradiction"


async def pair_contradiction(ctx: EvalContext) -> list[MetricResult]:
    """The strongest contradiction between a sentence of the answer and a premise of the contexts.

    In [0, 1], lower is better; passes at .5 or less. NLI models see contradictions and miss unsupported additions,
    so this stands beside `hallucination`, whose pairs it shares; an average of the two lost on one data set or
    another. `contradictions` asks the judge instead. ``na``: no_answer, partial_run, no_contexts,
    unsupported_by_judge without a pair scorer or where its model has no such label, no_claims where the answer has
    no word. Errors as for `hallucination`. Source: natural language inference.

    Example:
        >>> import asyncio
        >>> from ragtrace.judges.base import PairSignals
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.model import Passage, Pool, RagRecord
        >>> class Negation:
        ...     name, version, window = "negation", "1", 512
        ...
        ...     def __call__(self, pairs):
        ...         return [signal.consistency for signal in self.signals(pairs)]
        ...
        ...     def size(self, premise, hypothesis):
        ...         return len(premise) + len(hypothesis)
        ...
        ...     def signals(self, pairs):
        ...         return [PairSignals(consistency=0.1, contradiction=float(" not " in h)) for _, h in pairs]
        >>> pool = Pool(stage="used", passages=(Passage(id="a", text="It is red.", rank=1),))
        >>> record = RagRecord(id="1", answer="It is big. It is not red.", pools=(pool,))
        >>> asyncio.run(METRIC.compute(EvalContext(record, pairs=Negation())))[0].value
        1.0
    """
    checked = await ctx.checked()
    if not checked.sentences:
        return [result(NAME, "no_claims")]
    found = [sentence.contradiction for sentence in checked.sentences]
    known = [value for value in found if value is not None]
    if len(known) < len(found):
        raise JudgeUnsupported("the pair scorer has no label for contradiction")
    sentences = [
        {"text": it.text, "score": it.contradiction, "scores": [signal.contradiction for signal in it.signals]}
        for it in checked.sentences
    ]
    premises = [{"contexts": list(premise.contexts)} for premise in checked.premises]
    details = {"n_sentences": len(known), "sentences": sentences, "premises": premises}
    return [result(NAME, max(known), details)]


METRIC = CoroutineMetric(
    MetricSpec(
        name=NAME,
        summary="Strongest contradiction of a sentence of the answer by the contexts, under a local NLI model.",
        needs=("answer", "contexts", "pairs"),
        outputs=(Output(name=NAME, direction="down", threshold=0.5),),
        calls="none; shares the pairs of hallucination",
        source="NLI",
    ),
    pair_contradiction,
)
