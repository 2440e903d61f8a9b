"""Token targets on a sample of answer and contexts, counted with the real vocabulary."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ragtrace.judges import LLMJudge, OverlapEmbedder, ScriptedChat
from ragtrace.metrics import EvalContext, evaluate, select
from ragtrace.model import AnswerPart, RagRecord
from tests import make
from tests.unit.judges.records import audit

if TYPE_CHECKING:
    from collections.abc import Callable

SENTENCE = (
    "The annual maintenance plan covers filters, pumps and valves at each customer site, with travel, labour "
    "and parts up to two hundred euros a visit. Consumables are excluded unless the appendix of the signed "
    "contract lists them, and either side may change the plan with four weeks of notice in writing. "
)


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], int]:
    """Count tokens with o200k_base from the copy that llama-index-core brings, so that no network is needed."""
    spec = importlib.util.find_spec("llama_index")
    folders = (
        [Path(place) / "core/_static/tiktoken_cache" for place in spec.submodule_search_locations or ()]
        if spec
        else []
    )
    if not any(folder.is_dir() for folder in folders):
        pytest.skip("llama-index-core with its vocabulary is not installed")
    tiktoken = pytest.importorskip("tiktoken")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(next(folder for folder in folders if folder.is_dir())))
    encoding = tiktoken.get_encoding("o200k_base")
    return lambda text: len(encoding.encode(text, disallowed_special=()))


def cut(text: str, tokens: int, count: Callable[[str], int]) -> str:
    return next(text[:end] for end in range(tokens * 8, 0, -1) if count(text[:end]) == tokens)


def made(count: Callable[[str], int], *, reference: int = 0, is_cited: bool = False) -> RagRecord:
    """Five contexts of 121 tokens, an answer of 82, and a reference of so many."""
    context, answer = cut(SENTENCE * 4, 121, count), cut(SENTENCE * 3, 82, count)
    quarter = len(answer) // 4 + 1
    cited = tuple(
        AnswerPart(text=answer[i * quarter : (i + 1) * quarter], citations=(f"doc-{i + 1}",)) for i in range(4)
    )
    return make.record(
        *[context] * 5,
        ids=[f"doc-{i}" for i in range(1, 6)],
        query="What does the annual maintenance plan cover?",
        answer=answer,
        reference=cut(SENTENCE * 2, reference, count) if reference else None,
        answer_parts=cited if is_cited else (),
    )


async def prompts(count: Callable[[str], int], record: RagRecord) -> dict[str, int]:
    citations = [{"part": i, "cites": str(i), "support": "full"} for i in range(1, 5)]
    chat = ScriptedChat(
        [
            audit([], [], citations),
            {"questions": [{"question": "q", "noncommittal": False}]},
            {"grades": [{"id": i, "grade": 3} for i in range(1, 6)]},
        ]
    )
    judge = LLMJudge(chat)
    await judge.audit(record)
    await judge.questions(record, 3)
    await judge.grades(record)
    return {call.schema_name: count(call.system) + count(call.user) for call in chat.prompts}


async def test_faithfulness_alone_takes_a_thousand_tokens_and_the_bundle_2600(count: Callable[[str], int]) -> None:
    assert (await prompts(count, made(count)))["audit"] <= 1000
    assert sum((await prompts(count, made(count, is_cited=True))).values()) <= 2600


REFERENCE_FREE = (
    "faithfulness", "answer_relevancy", "context_precision_graded", "p_at_k", "mrr", "selection_efficiency",
    "citations", "no_answer", "context_sufficiency", "diagnosis",
)  # fmt: skip


async def test_the_bundle_takes_three_calls_with_sufficiency_and_diagnosis(count: Callable[[str], int]) -> None:
    citations = [{"part": i, "cites": str(i), "support": "full"} for i in range(1, 5)]
    chat = ScriptedChat(
        [
            audit(["It covers filters."], [{"id": 1, "verdict": "supported", "sources": [1]}], citations)
            | {"sufficient": True},
            {"questions": [{"question": "What does the plan cover?", "noncommittal": False}]},
            {"grades": [{"id": i, "grade": 5} for i in range(1, 6)]},
        ]
    )
    ctx = EvalContext(made(count, is_cited=True), judge=LLMJudge(chat), embedder=OverlapEmbedder())
    results = {result.name: result for result in await evaluate(select(REFERENCE_FREE), ctx)}
    assert {result.state for result in results.values()} == {"ok"}
    assert results["diagnosis"].details["verdict"] == "ok"
    size = sum(count(call.system) + count(call.user) for call in chat.prompts)
    assert (chat.calls, size <= 2600) == (3, True), size


def claims(count: Callable[[str], int]) -> dict[str, Any]:
    """Six claims of 20 tokens and four facts of 15."""
    return {
        "answer_claims": [cut(SENTENCE, 20, count)] * 6,
        "reference_claims": [cut(SENTENCE, 15, count)] * 4,
        "verdicts": [{"id": i, "verdict": "supported"} for i in range(1, 11)],
        "table": [{"id": i, "sources": [1, 2]} for i in range(1, 11)],
        "reference_entities": ["Oslo"],
        "context_entities": ["Oslo"],
    }


def nuggets(number: int) -> list[dict[str, Any]]:
    texts = [f"Plan {i} covers filters, pumps and valves at each customer site" for i in range(1, number + 1)]
    ids = [range(1, size + 1) for size in ([10, number - 10] if number > 10 else [number])]
    return [
        {"nuggets": texts},
        *({"labels": [{"id": i, "importance": "vital"} for i in batch]} for batch in ids),
        *({"assignments": [{"id": i, "support": "support"} for i in batch]} for batch in ids),
    ]


GRADED = {"attempted": True, "reason": "", "grade": 4}


@pytest.mark.parametrize(
    ("name", "replies", "calls", "tokens"),
    [
        ("noise_sensitivity", claims, 3, 2600),
        ("factual_correctness", claims, 2, 1200),
        ("context_entities_recall", claims, 1, 1000),
        ("nuggets", nuggets(10), 3, 2200),
        ("nuggets", nuggets(12), 5, 2200),
        ("faithfulness_1to5", GRADED, 1, 1000),
        ("answer_relevancy_1to5", GRADED, 1, 350),
        ("answer_coverage_1to5", GRADED, 1, 400),
    ],
)
async def test_calls_and_tokens_of_a_metric(
    name: str, replies: Any, calls: int, tokens: int, count: Callable[[str], int]
) -> None:
    reply = replies(count) if callable(replies) else replies
    chat = ScriptedChat(reply) if isinstance(reply, list) else ScriptedChat(always=reply)
    results = await evaluate(select([name]), EvalContext(made(count, reference=60), judge=LLMJudge(chat)))
    assert {result.state for result in results} == {"ok"}
    size = sum(count(call.system) + count(call.user) for call in chat.prompts)
    assert (chat.calls, size <= tokens) == (calls, True), size
