"""The audit of an answer against its contexts, fused or in steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.judges.base import Audit, Claim
from ragtrace.judges.llm.citations import CitationPairs
from ragtrace.judges.llm.numbering import Numbered
from ragtrace.judges.llm.replies import (
    AuditRepair,
    AuditReply,
    CitationRow,
    Flag,
    Form,
    Listed,
    VerdictRow,
    aligned,
    asked_rows,
    completed,
    listed,
)

if TYPE_CHECKING:
    from ragtrace.judges.llm.session import JudgeSession
    from ragtrace.model import RagRecord

MAX_CLAIMS = 40  # the prompt allows one more, so that a longer answer is seen to be cut
_REASON_WORDS = 25
SUFFICIENCY = "audit_sufficiency"
CLAIMS, VERDICTS, CITATIONS = STEPS = ("audit_claims", "audit_verdicts", "audit_citations")


class AnswerClaimsReply(Form):
    """Reply to the audit_claims prompt."""

    attempted: Flag
    noncommittal: Flag
    claims: Listed[str]


class AuditVerdictsReply(Form):
    """Reply to the audit_verdicts prompt, and to its repair."""

    verdicts: Listed[VerdictRow]


class AuditCitationsReply(Form):
    """Reply to the audit_citations prompt, and to its repair."""

    citations: Listed[CitationRow]


async def audited(record: RagRecord, session: JudgeSession) -> Audit:
    """Ask for the audit of a record, and for missing parts. Raises JudgeError."""
    contexts = Numbered(record)
    citations = CitationPairs(record, contexts)
    data = {"query": record.query, "contexts": contexts.shown(), "answer": record.answer, **citations.data()}
    reply = await session.ask(data, AuditReply)
    wanted = [n for n, text in enumerate(reply.claims[:MAX_CLAIMS], start=1) if text.strip()]
    verdicts, doubtful = aligned(reply.verdicts, len(reply.claims), len(contexts))
    supports = citations.matched(reply.citations)
    owed = [n for n in doubtful if n in wanted]
    open_pairs = [pair for pair in citations.asked if pair not in supports]
    if owed or open_pairs:
        data |= {"claims": {str(n): reply.claims[n - 1] for n in owed}, "parts": citations.shown(open_pairs)}
        of_claims = f'only for the ids {listed(owed)} of "claims"' if owed else "for none"
        of_citations = 'only for "parts"' if open_pairs else "for none"
        want = f"Leave claims empty; give verdicts {of_claims}, and citations {of_citations}."
        more = await session.mend(data, AuditRepair, want)
        found, _ = aligned(more.verdicts, len(reply.claims), len(contexts))
        verdicts |= completed(found, owed)
        supports = citations.completed(citations.matched(more.citations) | supports)
    return Audit(
        attempted=reply.attempted,
        noncommittal=reply.noncommittal,
        claims=tuple(_judged_claim(reply.claims[n - 1], verdicts[n], contexts) for n in wanted),
        citations=citations.verdicts(supports),
        truncated=len(reply.claims) > MAX_CLAIMS,
        sufficient=reply.sufficient,
        has_repaired=session.has_repaired,
        usage=session.usage,
    )


async def audited_in_steps(record: RagRecord, session: JudgeSession, claim_batch: int) -> Audit:
    """Ask for claims, then for verdicts, then for citations.

    It takes 1 + ceil(claims / claim_batch) calls, and one more where parts cite. The answer is split without a
    look at the contexts. One repair in all. Raises JudgeError.
    """
    contexts = Numbered(record)
    reply = await session.ask({"query": record.query, "answer": record.answer}, AnswerClaimsReply)
    texts = [text for text in reply.claims[:MAX_CLAIMS] if text.strip()]
    asked = {"query": record.query, "contexts": contexts.shown()}
    claims: list[Claim] = []
    for first in range(0, len(texts), claim_batch):
        batch = dict(enumerate(texts[first : first + claim_batch], start=1))
        rows = await asked_rows(
            session.over(VERDICTS),
            {**asked, "claims": {str(number): text for number, text in batch.items()}},
            ("claims",),
            AuditVerdictsReply,
            lambda reply: reply.verdicts,
            n_contexts=len(contexts),
        )
        claims += [_judged_claim(text, rows[number], contexts) for number, text in batch.items()]
    citations = CitationPairs(record, contexts)
    supports = {}
    if citations.asked:
        data = {**asked, **citations.data()}
        citing = session.over(CITATIONS)
        supports = citations.matched((await citing.ask(data, AuditCitationsReply)).citations)
        owed = [pair for pair in citations.asked if pair not in supports]
        if owed:
            data["parts"] = citations.shown(owed)
            more = await citing.mend(data, AuditCitationsReply, 'Give citations only for "parts".')
            supports = citations.completed(citations.matched(more.citations) | supports)
    return Audit(
        attempted=reply.attempted,
        noncommittal=reply.noncommittal,
        claims=tuple(claims),
        citations=citations.verdicts(supports),
        truncated=len(reply.claims) > MAX_CLAIMS,
        has_repaired=session.has_repaired,
        usage=session.usage,
    )


def _judged_claim(text: str, row: VerdictRow, contexts: Numbered) -> Claim:
    return Claim(
        text=text.strip(),
        verdict=row.verdict,
        support=1.0 if row.verdict == "supported" else 0.0,
        sources=contexts.indexes(row.sources),
        reason=" ".join(row.reason.split()[:_REASON_WORDS]),
    )
