"""Where ragas 0.4.3 and ragtrace differ on purpose, with the reason: ragas' number stands beside ours."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from tests.peers.worlds import ANSWER, QUERY, REFERENCE, World, ours, world

if TYPE_CHECKING:
    from ragtrace.model import MetricResult
    from tests.peers.process import Peers

FORMS = pytest.mark.parametrize("form", ["legacy", "collections"])


def theirs(peers: Peers, metric: str, form: str, of: World, **options: Any) -> dict[str, Any]:
    return peers.ask("ragas", metric=metric, form=form, worlds=[of.job()], **options)[0]


def state(result: MetricResult) -> tuple[str, str | None]:
    assert result.value is None
    return result.state, result.reason


@FORMS
async def test_verdicts_that_are_missing_are_not_left_out_of_the_denominator(peers: Peers, form: str) -> None:
    """Two verdicts of four, both positive: ragas divides by the verdicts it got, and says 1.0."""
    given = world(n_answer=4, max_verdicts=2)
    given = given.but(entails={"context 0": given.claims[ANSWER]})
    assert theirs(peers, "faithfulness", form, given)["value"] == 1.0
    assert state((await ours("faithfulness", given))["faithfulness"]) == ("error", "judge_incomplete")


@FORMS
@pytest.mark.parametrize(
    ("shape", "peer_recall", "recall"),
    [((4, 2, 4, 1), 0.8, 0.5), ((1, 1, 1, 0), 0.5, 0.0)],
    ids=["half-covered", "nothing-covered"],
)
async def test_factual_recall_counts_the_claims_of_one_text(
    peers: Peers, form: str, shape: tuple[int, int, int, int], peer_recall: float, recall: float
) -> None:
    """ragas' recall is TP of the answer over TP of the answer + FN of the reference."""
    n_answer, n_reference, right, covered = shape
    given = world(n_answer, n_reference, right=right, covered=covered)
    assert theirs(peers, "factual_correctness", form, given, mode="recall")["value"] == peer_recall
    assert (await ours("factual_correctness", given))["factual_correctness_recall"].value == recall


@FORMS
async def test_a_factual_f1_above_a_half_for_nothing_covered(peers: Peers, form: str) -> None:
    """One supported claim, no fact of the reference told: ragas says 0.67, the F measure is 0."""
    given = world(1, 1, right=1, covered=0)
    assert theirs(peers, "factual_correctness", form, given)["value"] == 0.67
    assert (await ours("factual_correctness", given))["factual_correctness"].value == 0.0


@FORMS
async def test_values_are_not_rounded(peers: Peers, form: str) -> None:
    """ragas rounds factual correctness to two digits."""
    given = world(3, 1, right=1, covered=1)
    assert theirs(peers, "factual_correctness", form, given, mode="precision")["value"] == 0.33
    assert (await ours("factual_correctness", given))["factual_correctness_precision"].value == 1 / 3


@FORMS
async def test_a_perfect_score_is_one(peers: Peers, form: str) -> None:
    """ragas adds 1e-10 to the denominator."""
    given = world(1, useful=["context 0"])
    peer = theirs(peers, "context_precision", form, given)["value"]
    assert 0.99999 < peer < 1.0
    assert (await ours("context_precision", given))["context_precision"].value == 1.0


@FORMS
async def test_opposite_vectors_do_not_leave_the_range(peers: Peers, form: str) -> None:
    """ragas declares 0 to 1 and returns -1."""
    vectors = {QUERY: [1.0, 0.0], "question?": [-1.0, 0.0]}
    given = world(questions=[("question?", False)], vectors=vectors)
    assert theirs(peers, "answer_relevancy", form, given)["value"] == pytest.approx(-1.0)
    found = (await ours("answer_relevancy", given))["answer_relevancy"]
    assert (found.value, found.details["raw"]) == (0.0, -1.0)


@FORMS
async def test_a_vector_without_length_is_an_error_and_no_nan(peers: Peers, form: str) -> None:
    """A vector without a direction is `error zero_embedding`."""
    vectors = {QUERY: [0.0, 0.0], "question?": [1.0, 0.0]}
    given = world(questions=[("question?", False)], vectors=vectors)
    assert theirs(peers, "answer_relevancy", form, given)["value"] is None
    assert state((await ours("answer_relevancy", given))["answer_relevancy"]) == ("error", "zero_embedding")


@pytest.mark.parametrize(("form", "value"), [("legacy", None), ("collections", 0.0)])
async def test_empty_questions_are_an_error_here_nan_or_zero_there(
    peers: Peers, form: str, value: float | None
) -> None:
    """The two forms of ragas disagree with each other."""
    given = world(questions=[("", False)], vectors={QUERY: [1.0]})
    peer = theirs(peers, "answer_relevancy", form, given)
    assert "error" not in peer
    assert peer["value"] == value
    assert state((await ours("answer_relevancy", given))["answer_relevancy"]) == ("error", "judge_incomplete")


@FORMS
async def test_the_same_name_in_capitals_is_the_same_entity(peers: Peers, form: str) -> None:
    """ragas compares strings as they are."""
    given = world(entities={REFERENCE: ["Oslo"], "context 0": ["OSLO"]})
    assert theirs(peers, "context_entities_recall", form, given)["value"] == 0.0
    assert (await ours("context_entities_recall", given))["context_entities_recall"].value == 1.0


@pytest.mark.parametrize(("form", "value"), [("legacy", 1 / 3), ("collections", 0.5)])
async def test_an_entity_named_twice_counts_once(peers: Peers, form: str, value: float) -> None:
    """ragas' legacy form divides by the length of the list."""
    given = world(entities={REFERENCE: ["Oslo", "Rome", "Rome"], "context 0": ["Oslo"]})
    assert theirs(peers, "context_entities_recall", form, given)["value"] == pytest.approx(value, abs=1e-6)
    assert (await ours("context_entities_recall", given))["context_entities_recall"].value == 0.5


@FORMS
async def test_a_reference_without_entities_has_no_recall(peers: Peers, form: str) -> None:
    """0.0 there, which no retriever can mend."""
    given = world(entities={REFERENCE: [], "context 0": ["Oslo"]})
    assert theirs(peers, "context_entities_recall", form, given)["value"] == 0.0
    found = (await ours("context_entities_recall", given))["context_entities_recall"]
    assert state(found) == ("na", "no_entities")


@FORMS
async def test_an_answer_without_claims_says_why_it_has_no_value(peers: Peers, form: str) -> None:
    """NaN there."""
    given = world(0)
    assert theirs(peers, "faithfulness", form, given)["value"] is None
    assert state((await ours("faithfulness", given))["faithfulness"]) == ("na", "no_claims")


@pytest.mark.parametrize(
    ("metric", "changes", "expected"),
    [
        ("faithfulness", {"answer": ""}, ("na", "no_answer")),
        ("faithfulness", {"contexts": []}, ("na", "no_contexts")),
        ("context_precision", {"contexts": []}, ("na", "no_contexts")),
        ("context_recall", {"contexts": []}, 0.0),
        ("noise_sensitivity", {"reference": ""}, ("na", "missing_input:reference")),
    ],
    ids=["no-answer", "no-contexts", "precision-no-contexts", "recall-no-contexts", "no-reference"],
)
async def test_what_makes_collections_raise_is_a_state_here(
    peers: Peers, metric: str, changes: dict[str, Any], expected: Any
) -> None:
    """A missing input is na; recall with nothing retrieved is 0."""
    given = world(1, 1).but(**changes)
    assert theirs(peers, metric, "collections", given)["error"] == "ValueError"
    found = next(iter((await ours(metric, given)).values()))
    assert (found.value if isinstance(expected, float) else state(found)) == expected


async def test_a_blank_answer_is_not_embedded_as_a_space(peers: Peers) -> None:
    """ragas' legacy form compares the reference with one space."""
    given = world(vectors={REFERENCE: [1.0, 0.0], " ": [1.0, 1.0]}, answer="")
    peer = theirs(peers, "semantic_similarity", "legacy", given)["value"]
    assert peer == pytest.approx(math.sqrt(0.5))
    assert state((await ours("semantic_similarity", given))["semantic_similarity"]) == ("na", "no_answer")


@FORMS
async def test_incorrect_claims_are_all_counted(peers: Peers, form: str) -> None:
    """ragas' two modes leave out the claim that no context has; ours add up to the incorrect rate."""
    given = world(2, 1)
    given = given.but(entails={"context 0": [*given.claims[REFERENCE], "claim 0"]})
    shares = [
        theirs(peers, "noise_sensitivity", form, given, mode=mode)["value"] for mode in ("relevant", "irrelevant")
    ]
    found = await ours("noise_sensitivity", given)
    assert shares == [0.5, 0.0]
    assert found["noise_sensitivity_unattributed"].value == 0.5
    assert found["incorrect_rate"].value == 1.0
