"""Claims of answer and reference, checked against the other text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ragtrace.judges.base import CustomTask, Verdict
from ragtrace.judges.llm.numbering import Numbered, numbered
from ragtrace.judges.llm.replies import Form, Listed, NumberedRow, Numbers, SourcedRow, VerdictWord, asked_rows
from ragtrace.model import JudgeUsage

if TYPE_CHECKING:
    from ragtrace.judges.base import PromptJudge
    from ragtrace.judges.llm.session import JudgeSession
    from ragtrace.model import RagRecord

SOURCES = "claim_sources"  # its prompt, and the task
MAX_CLAIMS = 40  # of each text; the prompt allows one more, so that a longer text is seen to be cut


class ClaimsReply(Form):
    """Reply to the claims prompt."""

    answer_claims: Listed[str]
    reference_claims: Listed[str]


class ClaimVerdictRow(NumberedRow):
    """The verdict of the other text on one claim."""

    verdict: VerdictWord


class ClaimVerdictsReply(Form):
    """Reply to the claim_verdicts prompt, and to its repair."""

    verdicts: Listed[ClaimVerdictRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedClaim:
    """One claim with the verdict of the other text. Only ``supported`` counts as entailed."""

    text: str
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Correctness:
    """Claims of answer and reference, each checked against the other text.

    Attributes:
        answer: claims of the answer, checked against the reference.
        reference: claims of the reference, checked against the answer.
        truncated: True when only the first `MAX_CLAIMS` of a text were checked.
        has_repaired: whether the one repair of the evaluation is used up.
    """

    answer: tuple[CheckedClaim, ...]
    reference: tuple[CheckedClaim, ...]
    truncated: bool = False
    has_repaired: bool = False
    usage: JudgeUsage = field(default_factory=JudgeUsage)


async def checked(judge: PromptJudge, record: RagRecord) -> Correctness:
    """Take the claims of both texts in one call, then check them all.

    Without any claim there is no second call. Coroutine-safe.

    Raises:
        JudgeError: no usable reply; JudgeIncomplete when a verdict stays missing after the repair.
    """
    session = judge.session("claims")
    data = {"query": record.query, "answer": record.answer, "reference": record.reference or ""}
    with session:
        reply = await session.ask(data, ClaimsReply)
        answer, reference = _kept(reply.answer_claims), _kept(reply.reference_claims)
        verdicts = await _verdicts(session.over("claim_verdicts"), data, answer, reference)
    return Correctness(
        answer=_checked(answer, verdicts[: len(answer)]),
        reference=_checked(reference, verdicts[len(answer) :]),
        truncated=max(len(reply.answer_claims), len(reply.reference_claims)) > MAX_CLAIMS,
        has_repaired=session.has_repaired,
        usage=session.usage,
    )


CORRECTNESS = CustomTask(name="correctness", prompts=("claims", "claim_verdicts"), ask=checked)


async def _verdicts(
    session: JudgeSession, data: dict[str, str], answer: list[str], reference: list[str]
) -> list[Verdict]:
    if not answer and not reference:
        return []
    claims = {
        "answer_claims": numbered(answer),
        "reference_claims": numbered(reference, first=1 + len(answer)),
    }
    rows = await asked_rows(
        session, {**data, **claims}, tuple(claims), ClaimVerdictsReply, lambda reply: reply.verdicts
    )
    return [row.verdict for _, row in sorted(rows.items())]


def _kept(texts: list[str]) -> list[str]:
    return [text.strip() for text in texts[:MAX_CLAIMS] if text.strip()]


def _checked(texts: list[str], verdicts: list[Verdict]) -> tuple[CheckedClaim, ...]:
    return tuple(CheckedClaim(text=text, verdict=verdict) for text, verdict in zip(texts, verdicts, strict=True))


class TableRow(SourcedRow):
    """The contexts behind one claim; `sources` is required."""

    sources: Numbers


class ClaimSourcesReply(Form):
    """Reply to the claim_sources prompt, and to its repair."""

    table: Listed[TableRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimSources:
    """Contexts that support each claim, in the order of the claims. Indexes are 0-based."""

    answer: tuple[tuple[int, ...], ...]
    reference: tuple[tuple[int, ...], ...]
    usage: JudgeUsage = field(default_factory=JudgeUsage)


def claim_sources(claims: Correctness) -> CustomTask[ClaimSources]:
    """Return the task that finds the contexts behind claims.

    It is one evaluation with the one that took the claims: when that used its repair, none is left. Its
    coroutine raises JudgeError, JudgeIncomplete when a row stays missing or names a context that does not exist.
    """

    async def ask(judge: PromptJudge, record: RagRecord) -> ClaimSources:
        session = judge.session(SOURCES)
        if claims.has_repaired:
            session.without_repair()
        contexts = Numbered(record)
        texts = [claim.text for claim in (*claims.answer, *claims.reference)]
        data = {"contexts": contexts.shown(), "claims": numbered(texts)}
        with session:
            rows = await asked_rows(
                session, data, ("claims",), ClaimSourcesReply, lambda reply: reply.table, n_contexts=len(contexts)
            )
        found = tuple(contexts.indexes(row.sources) for _, row in sorted(rows.items()))
        n_answer = len(claims.answer)
        return ClaimSources(answer=found[:n_answer], reference=found[n_answer:], usage=session.usage)

    return CustomTask(name=SOURCES, prompts=(SOURCES,), ask=ask)
