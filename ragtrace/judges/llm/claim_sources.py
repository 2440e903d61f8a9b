"""Contexts behind each claim of answer and reference, in one table for both lists."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ragtrace.judges.base import CustomTask
from ragtrace.judges.llm.correctness import numbered_from
from ragtrace.judges.llm.numbering import Numbered
from ragtrace.judges.llm.replies import Form, Listed, SourcedRow, asked_rows
from ragtrace.model import JudgeUsage

if TYPE_CHECKING:
    from ragtrace.judges.base import PromptJudge
    from ragtrace.judges.llm.correctness import Correctness
    from ragtrace.model import RagRecord

PROMPTS = ("claim_sources",)


class TableRow(SourcedRow):
    """The contexts behind one claim; a row without them says nothing and is refused."""

    sources: Listed[int]


class ClaimSourcesReply(Form):
    """Reply to the claim_sources prompt, and to its repair."""

    table: Listed[TableRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimSources:
    """0-based indexes of the contexts that support each claim, in the order of the claims."""

    answer: tuple[tuple[int, ...], ...]
    reference: tuple[tuple[int, ...], ...]
    usage: JudgeUsage = field(default_factory=JudgeUsage)


def claim_sources(claims: Correctness) -> CustomTask[ClaimSources]:
    """Return the inquiry after the contexts behind claims that were taken before.

    It is one evaluation with the one that took the claims: when that used its repair, none is left. Its
    coroutine raises JudgeError, JudgeIncomplete when a row stays missing or names a context that does not exist.

    Example:
        >>> import asyncio
        >>> from ragtrace.judges.llm.correctness import CheckedClaim, Correctness
        >>> from ragtrace.judges.llm.judge import LLMJudge
        >>> from ragtrace.judges.llm.scripted import ScriptedChat
        >>> from ragtrace.model import Passage, Pool, RagRecord
        >>> pool = Pool(stage="used", passages=(Passage(id="a", text="It is in Oslo.", rank=1),))
        >>> claim = CheckedClaim(text="It is in Oslo.", verdict="supported")
        >>> judge = LLMJudge(ScriptedChat([{"table": [{"id": 1, "sources": [1]}]}]))
        >>> inquiry = claim_sources(Correctness(answer=(claim,), reference=()))
        >>> asyncio.run(inquiry.ask(judge, RagRecord(id="1", pools=(pool,)))).answer
        ((0,),)
    """

    async def ask(judge: PromptJudge, record: RagRecord) -> ClaimSources:
        return await _filled(judge, record, claims)

    return CustomTask(name="claim_sources", prompts=PROMPTS, ask=ask)


async def _filled(judge: PromptJudge, record: RagRecord, claims: Correctness) -> ClaimSources:
    session = judge.session(PROMPTS[0])
    if claims.has_repaired:
        session.without_repair()
    contexts = Numbered(record)
    texts = [claim.text for claim in (*claims.answer, *claims.reference)]
    data = {"contexts": contexts.shown(), "claims": numbered_from(1, texts)}
    with session.charging():
        rows = await asked_rows(
            session, data, ("claims",), ClaimSourcesReply, lambda reply: reply.table, n_contexts=len(contexts)
        )
    found = tuple(contexts.indexes(row.sources) for _, row in sorted(rows.items()))
    n_answer = len(claims.answer)
    return ClaimSources(answer=found[:n_answer], reference=found[n_answer:], usage=session.usage)
