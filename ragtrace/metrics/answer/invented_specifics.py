"""Invented specifics: whether the answer states a number, date, name or quote that no context holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.judges.offline.reading import version
from ragtrace.metrics.base import CoroutineMetric, MetricSpec, Output, result

if TYPE_CHECKING:
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import MetricResult

NAME = "invented_specifics"


async def invented_specifics(ctx: EvalContext) -> list[MetricResult]:
    """1.0 when the answer states a specific that no context holds, else 0.0; lower is better.

    Specifics are numbers with their units, dates, times, months, weekdays, names and quotes of three words or more.
    They are compared in one notation: "twelve" and 12, 1,000 and 1 000, 5 km and 5 kilometres. What the question or
    an earlier turn says is not invented. The details list the specifics as evidence.

    The offline reading finds them, whichever judge is configured; where that is the judge ``overlap``, its one pass
    serves both. A true number that the model computed, or a name that the contexts spell otherwise, counts as
    invented: watch the mean, not the single answer. ``na``: no_answer, partial_run, no_contexts, abstained,
    no_claims, and unsupported_language where answer or contexts are not English.

    Example:
        >>> import asyncio
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.metrics.evaluate import evaluate
        >>> from ragtrace.model import Passage, Pool, RagRecord
        >>> pool = Pool(stage="used", passages=(Passage(id="a", text="The lab is in Oslo.", rank=1),))
        >>> record = RagRecord(id="1", query="Where?", answer="The lab in Oslo has 12 rooms.", pools=(pool,))
        >>> result = asyncio.run(evaluate([METRIC], EvalContext(record)))[0]
        >>> result.value, result.details["invented"]
        (1.0, ['12'])
    """
    found = ctx.specifics()
    if not found.is_attempt:
        return [result(NAME, "abstained")]
    if found.unscorable or not found.n_claims:
        return [result(NAME, found.unscorable or "no_claims")]
    details = {"invented": list(found.invented), "n_claims": found.n_claims}
    return [result(NAME, float(bool(found.invented)), details)]


METRIC = CoroutineMetric(
    MetricSpec(
        name=NAME,
        summary="Whether the answer states a number, date, name or quote that no context holds.",
        needs=("answer", "contexts"),
        outputs=(Output(name=NAME, direction="down", threshold=0.2),),
        calls="none; one pass with the judge overlap",
        source="ragtrace",
        offline_version=version(),
    ),
    invented_specifics,
)
