"""Golden vectors once more through the judge's other forms: in steps, one context a call, and UMBRELA's own scale."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace.judges.llm.audit import MAX_CLAIMS
from ragtrace.judges.llm.judge import LLMJudge
from ragtrace.judges.llm.numbering import grading_batches
from ragtrace.judges.llm.scripted import ScriptedChat
from tests.golden import replies, running
from tests.golden.running import not_blank

if TYPE_CHECKING:
    from ragtrace.judges.llm.chat import ChatModel
    from ragtrace.model import RagRecord


async def faithfulness(record: dict[str, Any]) -> None:
    await running.faithfulness(record)
    n_contexts = not_blank(record["inputs"].get("contexts") or [])
    # One batch, as the ids of a record run through all of its claims.
    judge = LLMJudge(_chat(record, lambda: _in_steps(record, n_contexts)), fused=False, claim_batch=MAX_CLAIMS)
    await running.faithfulness(record, judge)


async def context_precision(record: dict[str, Any]) -> None:
    await running.context_precision(record)
    contexts = record["inputs"].get("contexts") or []
    chat = _chat(record, lambda: _one_by_one(record, contexts, not_blank(contexts)))
    await running.context_precision(record, LLMJudge(chat, fused=False))


async def umbrela(record: dict[str, Any]) -> None:
    await running.umbrela(record)
    chat = _chat(record, lambda: _graded(record, running.umbrela_record(record["inputs"])))
    await running.umbrela(record, LLMJudge(chat, scale="umbrela"), "umbrela_mapped")


def _chat(record: dict[str, Any], script: Any) -> ChatModel:
    verdicts = record.get("judge_verdicts")
    if verdicts is None:
        return ScriptedChat()
    return ScriptedChat(always=replies.failure(record)) if replies.fails(verdicts) else script()


def _in_steps(record: dict[str, Any], n_contexts: int) -> ScriptedChat:
    reply = replies.faithfulness(record, n_contexts)
    if len(reply["verdicts"]) <= len(reply["claims"]):
        reply["verdicts"] = [row for row in reply["verdicts"] if row["id"] <= MAX_CLAIMS]
    return ScriptedChat(always=reply)


def _one_by_one(record: dict[str, Any], contexts: list[str], n_contexts: int) -> ScriptedChat:
    """One reply a context, up to the first that is not about it alone: a repair gets the same again."""
    rows = {row["id"]: row["relevant"] for row in replies.relevance(record, contexts)["verdicts"]}
    script = [
        {"verdicts": [{"id": 1, "relevant": rows[number]}] if number in rows else []}
        for number in range(1, n_contexts + 1)
    ]
    if script and max(rows, default=0) > n_contexts:
        script[-1]["verdicts"].append({"id": 2, "relevant": True})
    faulty = next((place for place, reply in enumerate(script) if len(reply["verdicts"]) != 1), len(script))
    return ScriptedChat(script[:faulty], always=script[faulty] if faulty < len(script) else None)


def _graded(record: dict[str, Any], made: RagRecord) -> ScriptedChat:
    by_id = {f"d{place}": verdict for place, verdict in enumerate(record["judge_verdicts"] or [])}
    batches = [
        {
            "grades": [
                {"id": number, "grade": by_id[passage.id]}
                for number, passage in enumerate(batch, start=1)
                if by_id.get(passage.id) is not None
            ]
        }
        for batch in grading_batches(made)
    ]
    return ScriptedChat(always=batches[0])


RUNNERS = {"faithfulness": faithfulness, "context_precision": context_precision, "umbrela": umbrela}
