"""Noise sensitivity, factual correctness, entities and similarity: calls, sharing, modes, repair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtrace.errors import ConfigError
from ragtrace.judges import LLMJudge, OverlapEmbedder, OverlapJudge, ScriptedChat
from ragtrace.judges.llm.correctness import MAX_CLAIMS
from ragtrace.metrics import EvalContext, MetricOptions, evaluate, expected, f_beta, incorrect_claims, select
from tests import make
from tests.unit.judges.records import data_of as data
from tests.unit.metrics import cases

if TYPE_CHECKING:
    from ragtrace.model import RagRecord

CLAIMS = {"answer_claims": ["in Oslo", "since 2010"], "reference_claims": ["is in Oslo"]}
VERDICTS = {
    "verdicts": [
        {"id": 1, "verdict": "supported"},
        {"id": 2, "verdict": "contradicted"},
        {"id": 3, "verdict": "supported"},
    ]
}
TABLE = {"table": [{"id": 1, "sources": [1]}, {"id": 2, "sources": [2]}, {"id": 3, "sources": [1]}]}
BOTH = ["noise_sensitivity", "factual_correctness"]


def record(*texts: str, **more: Any) -> RagRecord:
    return make.record(*texts, **{"answer": "In Oslo since 2010.", "reference": "It is in Oslo.", **more})


async def run(names, made, chat, **options):
    return await cases.run(names, made, judge=LLMJudge(chat), **options)


async def test_noise_takes_three_calls_and_keeps_both_matrices_by_the_records_indexes() -> None:
    chat = ScriptedChat([CLAIMS, VERDICTS, TABLE])
    results = await run(["noise_sensitivity"], record(" ", "Oslo.", "2010."), chat)
    assert [call.schema_name for call in chat.prompts] == ["claims", "claim_verdicts", "claim_sources"]
    assert sum(result.llm_calls for result in results.values()) == 3
    details = results["incorrect_rate"].details
    assert [claim["sources"] for claim in details["claims"]] == [[1], [2]]
    assert [fact["sources"] for fact in details["facts"]] == [[1]]
    assert (details["contexts"], details["relevant_contexts"]) == ([1, 2], [1])
    assert results["noise_sensitivity_irrelevant"].value == 0.5
    assert results["noise_sensitivity_irrelevant"].passed is False
    assert results["noise_sensitivity_relevant"].passed is True


@pytest.mark.parametrize("names", [BOTH, BOTH[::-1]])
async def test_both_metrics_share_claims_and_verdicts(names) -> None:
    chat = ScriptedChat([CLAIMS, VERDICTS, TABLE])
    results = await run(names, record("Oslo.", "2010."), chat)
    assert (chat.calls, sum(result.llm_calls for result in results.values())) == (3, 3)
    assert results["factual_correctness"].value == pytest.approx(2 / 3)
    assert results["incorrect_rate"].value == 0.5


async def test_the_verdicts_see_each_list_with_the_other_text_and_the_table_sees_no_answer() -> None:
    chat = ScriptedChat([CLAIMS, VERDICTS, TABLE])
    await run(BOTH, record("Oslo.", "2010."), chat)
    assert data(chat, 1)["answer_claims"] == {"1": "in Oslo", "2": "since 2010"}
    assert data(chat, 1)["reference_claims"] == {"3": "is in Oslo"}
    assert data(chat, 2) == {
        "contexts": {"1": "Oslo.", "2": "2010."},
        "claims": {"1": "in Oslo", "2": "since 2010", "3": "is in Oslo"},
    }


async def test_factual_correctness_counts_contradicted_and_neutral_apart() -> None:
    rows = [("supported", 1), ("contradicted", 2), ("not_supported", 3)]
    verdicts = {"verdicts": [{"id": number, "verdict": word} for word, number in rows]}
    results = await run(["factual_correctness"], record(), ScriptedChat([CLAIMS, verdicts]))
    answer, reference = (results["factual_correctness"].details[side] for side in ("answer", "reference"))
    assert [answer[name] for name in ("entailed", "contradicted", "neutral")] == [1, 1, 0]
    assert [reference[name] for name in ("entailed", "contradicted", "neutral")] == [0, 0, 1]
    assert results["factual_correctness"].value == 0.0


async def test_a_missing_verdict_is_asked_for_alone_and_the_table_then_has_no_repair() -> None:
    part = {"verdicts": VERDICTS["verdicts"][:2]}
    rest = {"verdicts": VERDICTS["verdicts"][2:]}
    chat = ScriptedChat([CLAIMS, part, rest, {"table": TABLE["table"][:2]}])
    results = await run(BOTH, record("Oslo.", "2010."), chat)
    assert data(chat, 2)["answer_claims"] == {}
    assert data(chat, 2)["reference_claims"] == {"3": "is in Oslo"}
    assert chat.calls == 4
    assert results["factual_correctness"].state == "ok"
    assert {results[name].reason for name in ("incorrect_rate", "noise_sensitivity_relevant")} == {
        "judge_incomplete"
    }
    assert sum(result.llm_calls for result in results.values()) == 4


async def test_a_missing_row_of_the_table_is_repaired() -> None:
    chat = ScriptedChat([CLAIMS, VERDICTS, {"table": TABLE["table"][:2]}, {"table": TABLE["table"][2:]}])
    results = await run(["noise_sensitivity"], record("Oslo.", "2010."), chat)
    assert data(chat, 3)["claims"] == {"3": "is in Oslo"}
    assert results["noise_sensitivity_irrelevant"].value == 0.5


async def test_a_row_without_sources_is_no_row() -> None:
    table = {"table": [{"id": 1}, *TABLE["table"][1:]]}
    results = await run(
        ["noise_sensitivity"], record("Oslo.", "2010."), ScriptedChat([CLAIMS, VERDICTS, table, table])
    )
    assert results["incorrect_rate"].reason == "judge_invalid_output"


async def test_an_answer_without_claims_is_not_looked_up_in_the_contexts() -> None:
    chat = ScriptedChat([CLAIMS | {"answer_claims": [" "]}, {"verdicts": [{"id": 1, "verdict": "not_supported"}]}])
    results = await run(BOTH, record("Oslo."), chat)
    assert chat.calls == 2
    assert results["incorrect_rate"].reason == "no_claims"
    assert results["factual_correctness_precision"].reason == "no_claims"
    assert results["factual_correctness_recall"].value == 0.0


async def test_texts_without_any_claim_take_one_call() -> None:
    chat = ScriptedChat([{"answer_claims": [], "reference_claims": []}])
    results = await run(BOTH, record("Oslo."), chat)
    assert chat.calls == 1
    assert {result.reason for result in results.values()} == {"no_claims"}


async def test_only_the_first_claims_of_a_long_text_are_checked() -> None:
    many = [f"claim {n}" for n in range(1, MAX_CLAIMS + 2)]
    rows = [{"id": n, "verdict": "supported"} for n in range(1, MAX_CLAIMS + 2)]
    chat = ScriptedChat([{"answer_claims": many, "reference_claims": ["r"]}, {"verdicts": rows}])
    details = (await run(["factual_correctness"], record(), chat))["factual_correctness"].details
    assert details["truncated"] is True
    assert (details["answer"]["entailed"], details["reference"]["entailed"]) == (MAX_CLAIMS, 1)


SOURCES = st.lists(st.integers(0, 4), max_size=4)


@given(st.lists(st.tuples(st.booleans(), SOURCES), min_size=1, max_size=12), st.frozensets(st.integers(0, 4)))
def test_incorrect_claims_are_relevant_irrelevant_or_unattributed(
    claims: list[tuple[bool, list[int]]], relevant: frozenset[int]
) -> None:
    """The rate of incorrect claims = relevant + irrelevant + unattributed, each claim in one of them alone."""
    found = incorrect_claims([right for right, _ in claims], [sources for _, sources in claims], relevant)
    wrong = [set(sources) for right, sources in claims if not right]
    assert found.relevant + found.irrelevant + found.unattributed == found.total == len(wrong)
    assert found.relevant == sum(not sources.isdisjoint(relevant) for sources in wrong)
    assert found.irrelevant == sum(bool(sources) and sources.isdisjoint(relevant) for sources in wrong)
    assert min(found.relevant, found.irrelevant, found.unattributed) >= 0


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.01, 100))
def test_f_beta_lies_between_precision_and_recall(precision, recall, beta) -> None:
    low, high = min(precision, recall), max(precision, recall)
    assert low - 1e-12 <= f_beta(precision, recall, beta) <= high + 1e-12


@pytest.mark.parametrize("beta", [0.0, -1.0, float("nan"), float("inf"), 101.0])
def test_a_beta_out_of_range_is_refused(beta) -> None:
    with pytest.raises(ConfigError, match="factual_beta"):
        MetricOptions(factual_beta=beta)


async def test_beta_starts_a_new_series() -> None:
    one, two = [
        await run(["factual_correctness"], record(), ScriptedChat([CLAIMS, VERDICTS]), factual_beta=beta)
        for beta in (1.0, 2.0)
    ]
    assert one["factual_correctness"].version != two["factual_correctness"].version


@pytest.mark.parametrize("name", [*BOTH, "context_entities_recall", "semantic_similarity"])
async def test_the_version_is_known_before_any_record_and_the_same_for_na(name) -> None:
    judge, embedder = LLMJudge(ScriptedChat()), OverlapEmbedder()
    stand_ins = {
        result.name: result.version for result in expected(select([name]), judge, embedder, MetricOptions())
    }
    for made in (record("Oslo."), record("Oslo.", answer="", reference=None)):
        results = await evaluate(select([name]), EvalContext(made, judge=judge, embedder=embedder))
        assert {result.name: result.version for result in results} == stand_ins


async def test_entities_are_listed_in_one_call_over_contexts_that_are_not_blank() -> None:
    reply = {"reference_entities": ["Oslo", "oslo", "2010"], "context_entities": ["OSLO"]}
    chat = ScriptedChat([reply])
    result = (await run(["context_entities_recall"], record(" ", "In OSLO."), chat))["context_entities_recall"]
    assert (result.value, result.llm_calls, result.details["mode"]) == (0.5, 1, "listed")
    assert (result.details["found"], result.details["missing"]) == (["oslo"], ["2010"])
    assert data(chat, 0)["contexts"] == {"1": "In OSLO."}


async def test_entities_in_text_shows_the_judge_no_context() -> None:
    chat = ScriptedChat([{"reference_entities": ["Oslo", "Rome", "Acme Inc."]}])
    made = record("Jerome works at  ACME\nInc. today.", "In OSLO.")
    result = (await run(["context_entities_recall"], made, chat, entities_in_text=True))["context_entities_recall"]
    assert (result.value, result.details["mode"]) == (pytest.approx(2 / 3), "in_text")
    assert result.details["missing"] == ["rome"]
    assert data(chat, 0) == {"reference": "It is in Oslo."}


async def test_a_name_does_not_run_over_two_contexts() -> None:
    chat = ScriptedChat([{"reference_entities": ["Oslo Lab"]}])
    results = await run(["context_entities_recall"], record("in Oslo", "Lab two"), chat, entities_in_text=True)
    assert results["context_entities_recall"].value == 0.0


@pytest.mark.parametrize("in_text", [True, False])
async def test_no_context_is_0_without_a_call(in_text) -> None:
    chat = ScriptedChat()
    results = await run(["context_entities_recall"], record(" "), chat, entities_in_text=in_text)
    assert (results["context_entities_recall"].value, chat.calls) == (0.0, 0)


@pytest.mark.parametrize("name", [*BOTH, "context_entities_recall"])
async def test_the_offline_judge_cannot(name) -> None:
    results = await evaluate(select([name]), EvalContext(record("Oslo."), judge=OverlapJudge()))
    assert {(result.state, result.reason) for result in results} == {("na", "unsupported_by_judge")}


async def test_similarity_embeds_both_texts_in_one_batch() -> None:
    made = record(answer="The lab is in Oslo.", reference="The lab is in Oslo.")
    (result,) = await evaluate(select(["semantic_similarity"]), EvalContext(made, embedder=OverlapEmbedder()))
    assert result.value == pytest.approx(1.0, abs=1e-12)
    assert (result.embed_calls, result.llm_calls, result.passed) == (1, 0, None)


async def test_similarity_of_an_embedder_that_gives_nan_is_an_error() -> None:
    class Broken:
        name = "broken"

        async def embed(self, texts):
            return np.full((len(texts), 2), np.nan)

    (result,) = await evaluate(select(["semantic_similarity"]), EvalContext(record(), embedder=Broken()))
    assert (result.state, result.reason) == ("error", "judge_invalid_output")
