"""Token targets on a sample of answer and contexts, counted with the real vocabulary."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ragtrace.judges.llm.judge import LLMJudge
from ragtrace.judges.llm.scripted import ScriptedChat
from ragtrace.metrics.eval_context import EvalContext
from ragtrace.metrics.evaluate import evaluate
from ragtrace.metrics.registry import select
from ragtrace.model import AnswerPart, Passage, Pool, RagRecord
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


async def prompts(count: Callable[[str], int], *, with_citations: bool) -> dict[str, int]:
    context, answer = cut(SENTENCE * 4, 121, count), cut(SENTENCE * 3, 82, count)
    passages = tuple(Passage(id=f"doc-{i}", text=context, rank=i) for i in range(1, 6))
    quarter = len(answer) // 4 + 1
    answer_parts = tuple(
        AnswerPart(text=answer[i * quarter : (i + 1) * quarter], citations=(f"doc-{i + 1}",)) for i in range(4)
    )
    record = RagRecord(
        id="1",
        query="What does the annual maintenance plan cover?",
        answer=answer,
        pools=(Pool(stage="used", passages=passages),),
        answer_parts=answer_parts if with_citations else (),
    )
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


async def test_faithfulness_alone_takes_a_thousand_tokens(count: Callable[[str], int]) -> None:
    size = (await prompts(count, with_citations=False))["audit"]
    assert size <= 1000, size


async def test_the_bundle_takes_2600_tokens(count: Callable[[str], int]) -> None:
    sizes = await prompts(count, with_citations=True)
    assert sum(sizes.values()) <= 2600
    print(sizes)  # noqa: T201 -- shown by pytest -s


@pytest.mark.parametrize(
    ("name", "calls", "tokens"),
    [("noise_sensitivity", 3, 2600), ("factual_correctness", 2, 1200), ("context_entities_recall", 1, 1000)],
)
async def test_metrics_over_a_reference(name: str, calls: int, tokens: int, count: Callable[[str], int]) -> None:
    """Six claims of 20 tokens and four facts of 15, as the sample has them."""
    passages = tuple(Passage(id=f"doc-{i}", text=cut(SENTENCE * 4, 121, count), rank=i) for i in range(1, 6))
    record = RagRecord(
        id="1",
        query="What does the annual maintenance plan cover?",
        answer=cut(SENTENCE * 3, 82, count),
        reference=cut(SENTENCE * 2, 60, count),
        pools=(Pool(stage="used", passages=passages),),
    )
    claims = {"answer_claims": [cut(SENTENCE, 20, count)] * 6, "reference_claims": [cut(SENTENCE, 15, count)] * 4}
    reply = claims | {
        "verdicts": [{"id": i, "verdict": "supported"} for i in range(1, 11)],
        "table": [{"id": i, "sources": [1, 2]} for i in range(1, 11)],
        "reference_entities": ["Oslo"],
        "context_entities": ["Oslo"],
    }
    chat = ScriptedChat(always=reply)
    results = await evaluate(select([name]), EvalContext(record, judge=LLMJudge(chat)))
    assert {result.state for result in results} == {"ok"}
    size = sum(count(call.system) + count(call.user) for call in chat.prompts)
    print(name, size)  # noqa: T201 -- shown by pytest -s
    assert (chat.calls, size <= tokens) == (calls, True), size


@pytest.mark.parametrize(("made", "calls"), [(10, 3), (12, 5)])
async def test_nuggets_take_2200_tokens(made: int, calls: int, count: Callable[[str], int]) -> None:
    passages = tuple(Passage(id=f"doc-{i}", text=cut(SENTENCE * 4, 121, count), rank=i) for i in range(1, 6))
    record = RagRecord(
        id="1",
        query="What does the annual maintenance plan cover?",
        answer=cut(SENTENCE * 3, 82, count),
        pools=(Pool(stage="used", passages=passages),),
    )
    nuggets = [f"Plan {i} covers filters, pumps and valves at each customer site" for i in range(1, made + 1)]
    batches = [10, made - 10] if made > 10 else [made]
    chat = ScriptedChat(
        [
            {"nuggets": nuggets},
            *({"labels": [{"id": i, "importance": "vital"} for i in range(1, size + 1)]} for size in batches),
            *({"assignments": [{"id": i, "support": "support"} for i in range(1, size + 1)]} for size in batches),
        ]
    )
    results = await evaluate(select(["nuggets"]), EvalContext(record, judge=LLMJudge(chat)))
    assert {result.state for result in results} == {"ok"}
    size = sum(count(call.system) + count(call.user) for call in chat.prompts)
    print("nuggets", made, size)  # noqa: T201 -- shown by pytest -s
    assert (chat.calls, size <= 2200) == (calls, True), size


@pytest.mark.parametrize(
    ("name", "tokens"), [("faithfulness_1to5", 1000), ("answer_relevancy_1to5", 350), ("answer_coverage_1to5", 400)]
)
async def test_single_call_forms(name: str, tokens: int, count: Callable[[str], int]) -> None:
    """One call each; some 50 tokens above omk's templates, for the fence and what is said of it."""
    passages = tuple(Passage(id=f"doc-{i}", text=cut(SENTENCE * 4, 121, count), rank=i) for i in range(1, 6))
    record = RagRecord(
        id="1",
        query="What does the annual maintenance plan cover?",
        answer=cut(SENTENCE * 3, 82, count),
        reference=cut(SENTENCE * 2, 60, count),
        pools=(Pool(stage="used", passages=passages),),
    )
    chat = ScriptedChat(always={"attempted": True, "reason": "", "grade": 4})
    results = await evaluate(select([name]), EvalContext(record, judge=LLMJudge(chat)))
    assert {result.state for result in results} == {"ok"}
    size = sum(count(call.system) + count(call.user) for call in chat.prompts)
    print(name, size)  # noqa: T201 -- shown by pytest -s
    assert (chat.calls, size <= tokens) == (1, True), size
