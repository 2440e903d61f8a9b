"""The audit: one reading of an answer against its contexts, for five metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.judges.base import Audit, Claim
from ragtrace.judges.llm.citations import CitationPairs
from ragtrace.judges.llm.numbering import Numbered
from ragtrace.judges.llm.replies import AuditRepair, AuditReply, VerdictRow, aligned, completed, listed

if TYPE_CHECKING:
    from ragtrace.judges.base import Support
    from ragtrace.judges.llm.citations import Pair
    from ragtrace.judges.llm.session import JudgeSession
    from ragtrace.model import RagRecord

MAX_CLAIMS = 40  # the prompt allows one more, so that a longer answer is seen to be cut
_REASON_WORDS = 25


async def audited(record: RagRecord, session: JudgeSession) -> Audit:
    """Ask for the audit of a record, and for what its reply left out; raises JudgeError."""
    contexts = Numbered(record)
    citations = CitationPairs(record, contexts)
    data = _data(record, contexts, citations)
    reply = await session.ask(data, AuditReply)
    wanted = [n for n, text in enumerate(reply.claims[:MAX_CLAIMS], start=1) if text.strip()]
    verdicts, doubtful = aligned(reply.verdicts, len(reply.claims), len(contexts))
    supports = citations.matched(reply.citations)
    owed = [n for n in doubtful if n in wanted]
    open_pairs = [pair for pair in citations.asked if pair not in supports]
    if owed or open_pairs:
        data |= {"claims": {str(n): reply.claims[n - 1] for n in owed}}
        data |= {"parts": citations.shown(open_pairs)}
        more = await session.mend(data, AuditRepair, _want(owed, open_pairs))
        found, _ = aligned(more.verdicts, len(reply.claims), len(contexts))
        verdicts |= completed(found, owed)
        supports = citations.completed(citations.matched(more.citations) | supports)
    return _audit(reply, verdicts, wanted, contexts, citations, supports, session)


def _data(record: RagRecord, contexts: Numbered, citations: CitationPairs) -> dict[str, object]:
    data: dict[str, object] = {
        "query": record.query,
        "contexts": contexts.shown(),
        "answer": record.answer,
    }
    if citations.asked:
        data["parts"] = citations.shown(citations.asked)
    if citations.asked and citations.are_named:
        data["cited_as"] = citations.names()
    return data


def _want(owed: list[int], open_pairs: list[Pair]) -> str:
    verdicts = f'only for the ids {listed(owed)} of "claims"' if owed else "for none"
    citations = 'only for "parts"' if open_pairs else "for none"
    return f"Leave claims empty; give verdicts {verdicts}, and citations {citations}."


def _audit(
    reply: AuditReply,
    verdicts: dict[int, VerdictRow],
    wanted: list[int],
    contexts: Numbered,
    citations: CitationPairs,
    supports: dict[Pair, Support],
    session: JudgeSession,
) -> Audit:
    return Audit(
        attempted=reply.attempted,
        noncommittal=reply.noncommittal,
        claims=tuple(judged_claim(reply.claims[n - 1], verdicts[n], contexts) for n in wanted),
        citations=citations.verdicts(supports),
        truncated=len(reply.claims) > MAX_CLAIMS,
        usage=session.usage,
    )


def judged_claim(text: str, row: VerdictRow, contexts: Numbered) -> Claim:
    """Return a claim with its verdict, its sources as indexes into the record's contexts."""
    return Claim(
        text=text.strip(),
        verdict=row.verdict,
        support=1.0 if row.verdict == "supported" else 0.0,
        sources=contexts.indexes(row.sources),
        reason=" ".join(row.reason.split()[:_REASON_WORDS]),
    )
