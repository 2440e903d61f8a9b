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
    """Names as the texts spell them, in the judge's order; `contexts` is None where they were not asked for."""

    reference: tuple[str, ...]
    contexts: tuple[str, ...] | None = None
    usage: JudgeUsage = field(default_factory=JudgeUsage)


async def of_both(judge: PromptJudge, record: RagRecord) -> Entities:
    """List the entities of the reference and of all contexts, in one call; raises JudgeError.

    Example:
        >>> import asyncio
        >>> from ragtrace.judges.llm.judge import LLMJudge
        >>> from ragtrace.judges.llm.scripted import ScriptedChat
        >>> from ragtrace.model import RagRecord
        >>> chat = ScriptedChat([{"reference_entities": ["Oslo"], "context_entities": []}])
        >>> asyncio.run(of_both(LLMJudge(chat), RagRecord(id="1", reference="In Oslo."))).reference
        ('Oslo',)
    """
    session = judge.session("entities")
    data = {"contexts": Numbered(record).shown(), "reference": record.reference or ""}
    with session.charging():
        reply = await session.ask(data, EntitiesReply)
    contexts = tuple(reply.context_entities)
    return Entities(reference=tuple(reply.reference_entities), contexts=contexts, usage=session.usage)


async def of_reference(judge: PromptJudge, record: RagRecord) -> Entities:
    """List the entities of the reference alone, in one short call; raises JudgeError.

    Example:
        >>> import asyncio
        >>> from ragtrace.judges.llm.judge import LLMJudge
        >>> from ragtrace.judges.llm.scripted import ScriptedChat
        >>> from ragtrace.model import RagRecord
        >>> chat = ScriptedChat([{"reference_entities": ["Oslo"]}])
        >>> asyncio.run(of_reference(LLMJudge(chat), RagRecord(id="1", reference="In Oslo."))).contexts is None
        True
    """
    session = judge.session("reference_entities")
    with session.charging():
        reply = await session.ask({"reference": record.reference or ""}, ReferenceEntitiesReply)
    return Entities(reference=tuple(reply.reference_entities), usage=session.usage)


OF_BOTH = CustomTask(name="entities", prompts=("entities",), ask=of_both)
OF_REFERENCE = CustomTask(name="reference_entities", prompts=("reference_entities",), ask=of_reference)
