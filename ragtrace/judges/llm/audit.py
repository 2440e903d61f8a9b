"""The audit of an answer against its contexts, in one call and at most one repair."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.judges.base import Audit, Claim
from ragtrace.judges.llm.citations import CitationPairs
from ragtrace.judges.llm.numbering import Numbered
from ragtrace.judges.llm.replies import AuditRepair, AuditReply, VerdictRow, aligned, completed, listed

if TYPE_CHECKING:
    from ragtrace.judges.llm.session import JudgeSession
    from ragtrace.model import RagRecord

MAX_CLAIMS = 40  # the prompt allows one more, so that a longer answer is seen to be cut
_REASON_WORDS = 25
SUFFICIENCY = "audit_sufficiency"


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


def _judged_claim(text: str, row: VerdictRow, contexts: Numbered) -> Claim:
    return Claim(
        text=text.strip(),
        verdict=row.verdict,
        support=1.0 if row.verdict == "supported" else 0.0,
        sources=contexts.indexes([number for number in row.sources if 1 <= number <= len(contexts)]),
        reason=" ".join(row.reason.split()[:_REASON_WORDS]),
    )
