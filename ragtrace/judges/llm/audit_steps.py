"""The audit in steps, to be compared with the fused one: claims first, then their verdicts, then the citations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.judges.base import Audit
from ragtrace.judges.llm.audit import MAX_CLAIMS, judged_claim
from ragtrace.judges.llm.citations import CitationPairs
from ragtrace.judges.llm.numbering import Numbered
from ragtrace.judges.llm.replies import CitationRow, Form, Listed, VerdictRow, asked_rows

if TYPE_CHECKING:
    from ragtrace.judges.base import Claim, Support
    from ragtrace.judges.llm.citations import Pair
    from ragtrace.judges.llm.session import JudgeSession
    from ragtrace.model import RagRecord

CLAIMS, VERDICTS, CITATIONS = STEPS = ("audit_claims", "audit_verdicts", "audit_citations")


class AnswerClaimsReply(Form):
    """Reply to the audit_claims prompt."""

    attempted: bool
    noncommittal: bool
    claims: Listed[str]


class AuditVerdictsReply(Form):
    """Reply to the audit_verdicts prompt, and to its repair."""

    verdicts: Listed[VerdictRow]


class AuditCitationsReply(Form):
    """Reply to the audit_citations prompt, and to its repair."""

    citations: Listed[CitationRow]


async def audited_in_steps(record: RagRecord, session: JudgeSession, claim_batch: int) -> Audit:
    """Ask for the audit of a record in 1 + ceil(claims / claim_batch) calls, and one more where parts cite.

    The answer is split without a look at the contexts. One repair in all. Raises JudgeError.

    Args:
        record: what to audit.
        session: the evaluation, with the prompt audit_claims.
        claim_batch: claims checked in one call, at least 1.

    Example:
        >>> import asyncio
        >>> from ragtrace.judges.llm.judge import LLMJudge
        >>> from ragtrace.judges.llm.scripted import ScriptedChat
        >>> from ragtrace.model import RagRecord
        >>> row = {"id": 1, "verdict": "not_supported", "sources": [], "reason": "no context tells"}
        >>> chat = ScriptedChat([
        ...     {"attempted": True, "noncommittal": False, "claims": ["It is red."]},
        ...     {"verdicts": [row]},
        ... ])
        >>> record = RagRecord(id="1", query="Which?", answer="It is red.")
        >>> audit = asyncio.run(LLMJudge(chat, fused=False).audit(record))
        >>> audit.claims[0].verdict, audit.usage.llm_calls
        ('not_supported', 2)
    """
    contexts = Numbered(record)
    reply = await session.ask({"query": record.query, "answer": record.answer}, AnswerClaimsReply)
    texts = [text for text in reply.claims[:MAX_CLAIMS] if text.strip()]
    claims: list[Claim] = []
    for first in range(0, len(texts), claim_batch):
        claims += await _checked(record, contexts, texts[first : first + claim_batch], session.over(VERDICTS))
    citations = CitationPairs(record, contexts)
    supports = await _supports(record, contexts, citations, session.over(CITATIONS))
    return Audit(
        attempted=reply.attempted,
        noncommittal=reply.noncommittal,
        claims=tuple(claims),
        citations=citations.verdicts(supports),
        truncated=len(reply.claims) > MAX_CLAIMS,
        usage=session.usage,
    )


async def _checked(record: RagRecord, contexts: Numbered, texts: list[str], session: JudgeSession) -> list[Claim]:
    shown = {str(number): text for number, text in enumerate(texts, start=1)}
    data = {"query": record.query, "contexts": contexts.shown(), "claims": shown}
    rows = await asked_rows(
        session, data, ("claims",), AuditVerdictsReply, lambda reply: reply.verdicts, n_contexts=len(contexts)
    )
    return [judged_claim(text, rows[number], contexts) for number, text in enumerate(texts, start=1)]


async def _supports(
    record: RagRecord, contexts: Numbered, citations: CitationPairs, session: JudgeSession
) -> dict[Pair, Support]:
    if not citations.asked:
        return {}
    data = {"query": record.query, "contexts": contexts.shown(), "parts": citations.shown(citations.asked)}
    if citations.are_named:
        data["cited_as"] = citations.names()
    supports = citations.matched((await session.ask(data, AuditCitationsReply)).citations)
    owed = [pair for pair in citations.asked if pair not in supports]
    if not owed:
        return supports
    data["parts"] = citations.shown(owed)
    more = await session.mend(data, AuditCitationsReply, 'Give citations only for "parts".')
    return citations.completed(citations.matched(more.citations) | supports)
