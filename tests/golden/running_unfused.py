"""Golden vectors once more through the judge's other forms: in steps, one context a call, and UMBRELA's own scale."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace.judges.llm.audit import MAX_CLAIMS
from ragtrace.judges.llm.judge import LLMJudge
from ragtrace.judges.llm.numbering import grading_batches
from ragtrace.judges.llm.scripted import ScriptedChat
from ragtrace.judges.scales import to_umbrela
from ragtrace.metrics.context.context_precision import ContextPrecision
from ragtrace.metrics.eval_context import EvalContext, MetricOptions
from ragtrace.metrics.registry import select
from ragtrace.model import Pool, RagRecord
from tests.golden import replies, running
from tests.golden.running import check, computed, passages, used

if TYPE_CHECKING:
    from ragtrace.judges.llm.chat import ChatModel


async def faithfulness(record: dict[str, Any]) -> None:
    await running.faithfulness(record)
    inputs = record["inputs"]
    contexts = inputs.get("contexts") or []
    made = RagRecord(
        id="1", query=inputs.get("query") or "", answer=inputs.get("answer") or "", pools=used(contexts)
    )
    n_contexts = sum(bool(text.strip()) for text in contexts)
    # One batch, as the ids of a record run through all of its claims.
    judge = LLMJudge(_chat(record, lambda: _in_steps(record, n_contexts)), fused=False, claim_batch=MAX_CLAIMS)
    options = MetricOptions(zero_on_empty_context=inputs.get("on_empty_context") == "zero")
    results = await computed(select(["faithfulness"]), EvalContext(made, judge=judge, options=options))
    check(results["faithfulness"], record["expected"], record)


async def context_precision(record: dict[str, Any]) -> None:
    await running.context_precision(record)
    inputs = record["inputs"]
    with_reference = inputs.get("mode", "without_reference") == "with_reference"
    target, contexts = inputs.get("reference_or_answer") or "", inputs.get("contexts") or []
    made = RagRecord(
        id="1",
        query=inputs.get("query") or "",
        answer="" if with_reference else target,
        reference=target if with_reference else None,
        pools=used(contexts),
    )
    n_contexts = sum(bool(text.strip()) for text in contexts)
    judge = LLMJudge(_chat(record, lambda: _one_by_one(record, contexts, n_contexts)), fused=False)
    metric = ContextPrecision(needs_reference=with_reference)
    check(
        (await computed([metric], EvalContext(made, judge=judge)))["context_precision"], record["expected"], record
    )


async def umbrela(record: dict[str, Any]) -> None:
    await running.umbrela(record)
    inputs, expected = record["inputs"], record["expected"] or {}
    number = inputs["passages"]
    count = number if isinstance(number, int) else len(number)
    pool = Pool(stage="retrieved", passages=passages(f"d{place}" for place in range(count)))
    made = RagRecord(id="1", query=inputs.get("query") or "", pools=(pool,))
    judge = LLMJudge(_chat(record, lambda: _graded(record, made)), scale="umbrela")
    results = await computed(
        select(["mrr", "p_at_k"]), EvalContext(made, judge=judge, options=MetricOptions(k_values=(1,)))
    )
    if record["expected"] is None:
        check(results["p_at_k"], None, record)
        return
    grades: Any = results["mrr"].details["grades"]
    assert grades == expected["grades_1_5"]
    assert sum(map(to_umbrela, grades)) / len(grades) == expected["umbrela_mean"]
    assert results["mrr"].judge is not None
    assert results["mrr"].judge.label_scale == "umbrela_mapped"
    check(results["mrr"], expected["mrr"], record)


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
