"""Invented specifics: whether the answer states a number, date, name, quote or address that no context holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.judges.offline.reading import version
from ragtrace.metrics.base import CoroutineMetric, MetricSpec, Output, result

if TYPE_CHECKING:
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import MetricResult

NAME = "invented_specifics"


async def invented_specifics(ctx: EvalContext) -> list[MetricResult]:
    """1.0 when the answer states a specific that no context holds or yields, else 0.0; lower is better.

    Specifics are numbers with their units, dates, times, ordinals, months, weekdays, names, codes, quotes of three
    or more words, and addresses: links, hosts, files, mailboxes and phone numbers. An address counts to the letter,
    but for scheme, "www.", case and a last slash; id, source and metadata of a passage hold it too. A host alone is
    held by a link of it, and a link by no host. Links of citation marks, images and lists of sources are none. A
    context holds one in another notation ("twelve", 2019-03-05 for 5 March, 5 pm for 17:00), in
    another unit (5,000 m for 5 km), within the precision of the answer ("about 20" for 19.99), as a decade or
    century of its year, and as a name in another spelling, inflection or abbreviation (WHO, Norwegian, Dr.). It
    yields sums, differences, products and shares of numbers that stand near each other, halves and doubles, and
    counts of lists, mostly where a word such as "together" or "more" asks for one. What the question or an
    earlier turn says is not invented. The details list the specifics as evidence.

    The offline reading finds them, whichever judge is configured; where that is the judge ``overlap``, its one pass
    serves both. A number that takes two steps to compute, or a name that the model knows and no context has, is
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
        summary="Whether the answer states a number, date, name, quote or address that no context holds or yields.",
        needs=("answer", "contexts"),
        outputs=(Output(name=NAME, direction="down", threshold=0.2),),
        calls="none; one pass with the judge overlap",
        source="ragtrace",
        offline_version=version(),
    ),
    invented_specifics,
)
