"""Context entities recall: how many entities of the reference the contexts name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.judges.llm.entities import OF_BOTH, OF_REFERENCE
from ragtrace.metrics.base import MetricSpec, Output
from ragtrace.metrics.context.entity_names import folded, names_in, normalised
from ragtrace.model import MetricResult

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ragtrace.metrics.eval_context import EvalContext

NAME = "context_entities_recall"


class ContextEntitiesRecall:
    """Entities of the reference that the contexts name too, over its entities, in [0, 1], higher is better.

    Entities are sets of names, compared in NFKC without case, with white space collapsed and without punctuation
    at their edges. By default one call lists those of the reference and of the contexts. With
    `Options.entities_in_text` one short call lists the reference's, and each is looked up in the contexts' text
    between word boundaries, which is blind to other spellings; ``details.mode`` says which it was. ``na``:
    missing_input:reference, no_entities, unsupported_by_judge. No context gives 0.0 without a call: there was
    something to find and nothing was retrieved. Coroutine-safe. Source: METRICS.md 2.3, after RAGAS.

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

    spec = MetricSpec(
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
    )

    async def compute(self, ctx: EvalContext) -> list[MetricResult]:
        """Return one result; raises JudgeError when the judge has no usable list."""
        mode = "in_text" if ctx.options.entities_in_text else "listed"
        contexts = [passage.text for _, passage in ctx.contexts()]
        if not contexts:
            return [MetricResult(name=NAME, state="ok", value=0.0, details={"mode": mode, "contexts": 0})]
        if ctx.options.entities_in_text:
            wanted = _names((await ctx.inquire(OF_REFERENCE)).reference)
            found = frozenset[str]().union(*(names_in(wanted, folded(text)) for text in contexts))
        else:
            entities = await ctx.inquire(OF_BOTH)
            wanted = _names(entities.reference)
            found = wanted & _names(entities.contexts or ())
        return [_scored(wanted, found, mode, len(contexts))]


def _names(entities: Iterable[str]) -> frozenset[str]:
    return frozenset(map(normalised, entities)) - {""}


def _scored(wanted: frozenset[str], found: frozenset[str], mode: str, n_contexts: int) -> MetricResult:
    if not wanted:
        return MetricResult(name=NAME, state="na", reason="no_entities", details={"mode": mode})
    details = {
        "mode": mode,
        "found": sorted(found),
        "missing": sorted(wanted - found),
        "contexts": n_contexts,
    }
    return MetricResult(name=NAME, state="ok", value=len(found) / len(wanted), details=details)


METRIC = ContextEntitiesRecall()
