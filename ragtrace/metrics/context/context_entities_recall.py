"""Context entities recall: the share of the entities of the reference that the contexts name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.judges.llm.entities import OF_BOTH, OF_REFERENCE
from ragtrace.metrics.base import CoroutineMetric, MetricSpec, Output, result
from ragtrace.metrics.context.entity_names import folded, names_in, normalised

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import MetricResult

NAME = "context_entities_recall"


async def context_entities_recall(ctx: EvalContext) -> list[MetricResult]:
    """Entities of the reference that the contexts name too / its entities.

    In [0, 1], higher is better. Entities are sets of names, compared in NFKC without case, with white space
    collapsed and without punctuation at their edges. ragas compares them as they are, so that "Oslo" and "OSLO"
    differ. By default one call lists those of the reference and of the contexts. With
    `MetricOptions.entities_in_text` one short call lists the reference's, and each is looked up in the contexts'
    text between word boundaries, which misses other spellings. ``details.mode`` says which it was.

    ``na``: missing_input:reference, no_entities (ragas 0.0), unsupported_by_judge. No context gives 0.0 without a
    call: there was something to find and nothing was retrieved. Source: RAGAS context entity recall.

    Example:
        >>> import asyncio
        >>> from ragtrace.judges.llm.judge import LLMJudge
        >>> from ragtrace.judges.llm.scripted import ScriptedChat
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.model import Passage, Pool, RagRecord
        >>> reply = {"reference_entities": ["Oslo", "2010"], "context_entities": ["OSLO"]}
        >>> pool = Pool(stage="used", passages=(Passage(id="a", text="The lab is in OSLO.", rank=1),))
        >>> record = RagRecord(id="1", reference="In Oslo since 2010.", pools=(pool,))
        >>> ctx = EvalContext(record, judge=LLMJudge(ScriptedChat([reply])))
        >>> asyncio.run(METRIC.compute(ctx))[0].value
        0.5
    """
    mode = "in_text" if ctx.options.entities_in_text else "listed"
    contexts = [passage.text for _, passage in ctx.contexts()]
    if not contexts:
        return [result(NAME, 0.0, {"mode": mode, "contexts": 0})]
    if ctx.options.entities_in_text:
        wanted = _names((await ctx.ask(OF_REFERENCE)).reference)
        found = frozenset[str]().union(*(names_in(wanted, folded(text)) for text in contexts))
    else:
        entities = await ctx.ask(OF_BOTH)
        wanted = _names(entities.reference)
        found = wanted & _names(entities.contexts or ())
    if not wanted:
        return [result(NAME, "no_entities", {"mode": mode})]
    details = {
        "mode": mode,
        "found": sorted(found),
        "missing": sorted(wanted - found),
        "contexts": len(contexts),
    }
    return [result(NAME, len(found) / len(wanted), details)]


def _names(entities: Iterable[str]) -> frozenset[str]:
    return frozenset(map(normalised, entities)) - {""}


METRIC = CoroutineMetric(
    MetricSpec(
        name=NAME,
        aliases=("context_entity_recall",),
        summary="Share of the reference's entities that the delivered contexts name.",
        needs=("reference", "contexts", "judge"),
        required=("reference",),
        outputs=(Output(name=NAME),),
        calls="1 judge call; a short one with entities_in_text",
        source="ragas context entity recall",
        prompts=(*OF_BOTH.prompts, *OF_REFERENCE.prompts),
        options=("entities_in_text",),
    ),
    context_entities_recall,
)
