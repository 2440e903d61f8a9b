"""Calls and tokens of judging one sample, beside the figures of other systems: ``make bench-cost``.

A scripted judge replies what a judge that finds nothing wrong would, and counts. Tokens are o200k_base over
system and user prompt, without schemas. The figures of other systems were measured with a scripted judge.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.judging.sample import REPLIES, Vocabulary, record
from ragtrace.judges.llm.chat import ChatReply
from ragtrace.judges.llm.judge import LLMJudge
from ragtrace.judges.offline.embedder import OverlapEmbedder
from ragtrace.metrics.eval_context import EvalContext, MetricOptions
from ragtrace.metrics.evaluate import evaluate
from ragtrace.metrics.registry import select
from ragtrace.model import MetricResult, RagRecord


@dataclass(frozen=True)
class Bundle:
    """Metrics that are asked for together, the promise, and what others take for the same."""

    name: str
    metrics: tuple[str, ...]
    calls: int
    tokens: int
    peers: str
    with_citations: bool = False
    reply_tokens: int | None = None


BUNDLES = (
    Bundle("faithfulness", ("faithfulness",), 1, 1_000, "ragas 2 / 1,813; deepeval 4 / 2,335"),
    Bundle("answer relevancy", ("answer_relevancy",), 1, 510, "ragas 3 / 1,530; deepeval 3 / 1,147"),
    Bundle("context precision", ("context_precision",), 1, 1_100, "ragas 5 / 5,485; deepeval 2 / 1,561"),
    Bundle("context recall", ("context_recall",), 1, 1_200, "ragas 1 / 1,889; deepeval 2 / 1,361"),
    Bundle(
        "the reference-free bundle",
        (
            "faithfulness",
            "answer_relevancy",
            "context_precision_graded",
            "p_at_k",
            "ap_at_k_retrieved",
            "mrr",
            "ndcg",
            "precision4",
            "harm",
            "selection_efficiency",
            "citations",
            "no_answer",
            "context_sufficiency",
            "diagnosis",
        ),
        3,
        2_600,
        "ragas 10 / 8,828 for 3 of them; open-rag-eval 20 / 11,748",
        with_citations=True,
        reply_tokens=700,
    ),
    Bundle("nuggets", ("nuggets",), 3, 2_200, "open-rag-eval 9 / 6,975"),
    Bundle("noise sensitivity", ("noise_sensitivity",), 3, 2_600, "ragas 13 / 9,874"),
    Bundle("context entities recall", ("context_entities_recall",), 1, 1_000, "ragas 2 / 1,734"),
    Bundle("factual correctness", ("factual_correctness",), 2, 1_200, "ragas 4 / 2,411"),
)


@dataclass
class Counting:
    """A `ragtrace.judges.llm.chat.ChatModel` that replies by the name of the schema, and counts."""

    vocabulary: Vocabulary
    name: str = "counting"
    calls: list[tuple[str, int, int]] = field(default_factory=list)

    async def complete(self, *, system: str, user: str, schema_name: str, **_: Any) -> ChatReply:
        reply = json.dumps(REPLIES[schema_name], separators=(",", ":"))
        asked = self.vocabulary.count(system) + self.vocabulary.count(user)
        self.calls.append((schema_name, asked, self.vocabulary.count(reply)))
        return ChatReply(text=reply, input_tokens=asked, output_tokens=self.calls[-1][2])

    def fingerprint(self) -> str:
        return self.name

    async def aclose(self) -> None:
        """Nothing is open."""


async def scored(bundle: Bundle, given: RagRecord, judge: LLMJudge) -> list[MetricResult]:
    case = EvalContext(given, judge=judge, embedder=OverlapEmbedder(), options=MetricOptions())
    return await evaluate(select(bundle.metrics), case)


def measured(bundle: Bundle, vocabulary: Vocabulary) -> tuple[Counting, Counting]:
    """Score the sample twice with one judge; return what each took."""
    given = record(vocabulary, with_citations=bundle.with_citations)
    model = Counting(vocabulary)
    judge = LLMJudge(model)
    results = asyncio.run(scored(bundle, given, judge))
    failed = [(result.name, result.reason) for result in results if result.state != "ok"]
    if failed:
        raise AssertionError(f"{bundle.name}: {failed}")
    first = Counting(vocabulary, calls=list(model.calls))
    model.calls.clear()
    asyncio.run(scored(bundle, given, judge))
    return first, Counting(vocabulary, calls=list(model.calls))


def totals(calls: list[tuple[str, int, int]]) -> tuple[int, int, int]:
    return len(calls), sum(asked for _, asked, _ in calls), sum(said for _, _, said in calls)


def main() -> int:
    vocabulary = Vocabulary()
    print("| metrics | calls | prompt tokens | reply tokens | promise | others: calls / prompt tokens | holds? |")
    print("|---|---|---|---|---|---|---|")
    worst = 0
    for bundle in BUNDLES:
        first, again = measured(bundle, vocabulary)
        calls, asked, said = totals(first.calls)
        holds = calls <= bundle.calls and asked <= bundle.tokens and said <= (bundle.reply_tokens or said)
        worst |= not holds
        promise, verdict = f"{bundle.calls} / {bundle.tokens:,}", "yes" if holds else "NO"
        print(f"| {bundle.name} | {calls} | {asked:,} | {said:,} | {promise} | {bundle.peers} | {verdict} |")
        for name, one, _ in first.calls:
            print(f"|   {name} | 1 | {one:,} | | | | |")
        regraded = by_name(again.calls)
        if "grades" in regraded:
            worst = 1
            print(f"| the same passages graded again | 1 | {regraded['grades']:,} | | 0 | | NO |")
        elif any(name == "grades" for name, _, _ in first.calls):
            print("| the same passages graded again | 0 | 0 | 0 | 0 / 0 | | yes |")
    return worst


def by_name(calls: list[tuple[str, int, int]]) -> Mapping[str, int]:
    return {name: asked for name, asked, _ in calls}


if __name__ == "__main__":
    sys.exit(main())
