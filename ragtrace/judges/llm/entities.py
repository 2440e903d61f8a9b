"""Entities that the reference and the contexts name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ragtrace.judges.base import CustomTask
from ragtrace.judges.llm.numbering import Numbered
from ragtrace.judges.llm.replies import Form, Listed
from ragtrace.model import JudgeUsage

if TYPE_CHECKING:
    from ragtrace.judges.base import PromptJudge
    from ragtrace.model import RagRecord


class ReferenceEntitiesReply(Form):
    """Reply to the reference_entities prompt."""

    reference_entities: Listed[str]


class EntitiesReply(ReferenceEntitiesReply):
    """Reply to the entities prompt."""

    context_entities: Listed[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entities:
    """Names as the texts spell them, in the judge's order.

    `contexts` is None where they were not asked for.
    """

    reference: tuple[str, ...]
    contexts: tuple[str, ...] | None = None
    usage: JudgeUsage = field(default_factory=JudgeUsage)


def _task(name: str, *, with_contexts: bool) -> CustomTask[Entities]:
    form = EntitiesReply if with_contexts else ReferenceEntitiesReply

    async def ask(judge: PromptJudge, record: RagRecord) -> Entities:
        data = {"contexts": Numbered(record).shown()} if with_contexts else {}
        with judge.session(name) as session:
            reply = await session.ask({**data, "reference": record.reference or ""}, form)
        contexts = tuple(reply.context_entities) if isinstance(reply, EntitiesReply) else None
        return Entities(reference=tuple(reply.reference_entities), contexts=contexts, usage=session.usage)

    return CustomTask(name=name, prompts=(name,), ask=ask)


OF_BOTH = _task("entities", with_contexts=True)
"""Lists the entities of the reference and of all contexts, in one call; raises JudgeError."""
OF_REFERENCE = _task("reference_entities", with_contexts=False)
"""Lists the entities of the reference alone, in one short call; raises JudgeError."""
