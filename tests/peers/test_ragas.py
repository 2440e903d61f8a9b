"""ragas 0.4.3 and ragtrace over the same worlds: equal where the metrics are the same, in both forms of ragas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.peers.worlds import ours, random_worlds

if TYPE_CHECKING:
    from tests.peers.process import Peers

FORMS = ("legacy", "collections")
# ragas adds 1e-10 or 1e-8 to denominators.
PEER = 1e-6
# Our metric, our output, ragas' metric, its options.
EQUAL: list[tuple[str, str, dict[str, Any]]] = [
    ("faithfulness", "faithfulness", {}),
    ("answer_relevancy", "answer_relevancy", {}),
    ("context_precision", "context_precision", {}),
    ("context_precision_with_reference", "context_precision", {}),
    ("context_recall", "context_recall", {}),
    ("context_entities_recall", "context_entities_recall", {}),
    ("noise_sensitivity", "noise_sensitivity_relevant", {"mode": "relevant"}),
    ("noise_sensitivity", "noise_sensitivity_irrelevant", {"mode": "irrelevant"}),
    ("semantic_similarity", "semantic_similarity", {}),
]
WORLDS = random_worlds(60, seed=7)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("metric", "output", "options"), EQUAL, ids=[output for _, output, _ in EQUAL])
async def test_equal_over_random_worlds(
    peers: Peers, metric: str, output: str, options: dict[str, Any], form: str
) -> None:
    asked = [world.job() for world in WORLDS]
    theirs = peers.ask("ragas", metric=metric, form=form, worlds=asked, **options)
    for world, peer in zip(WORLDS, theirs, strict=True):
        found = (await ours(metric, world))[output]
        assert found.value == pytest.approx(peer["value"], rel=0, abs=PEER), (world, peer)
    # The worlds tell something: not all of them have one value.
    assert len({peer["value"] for peer in theirs}) > 3


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("metric", "theirs_of", "own"),
    [
        ("faithfulness", lambda _: 2, 1),
        ("answer_relevancy", lambda _: 3, 1),
        ("context_precision", lambda n: n, 1),
        ("context_recall", lambda _: 1, 1),
        ("context_entities_recall", lambda _: 2, 1),
        ("noise_sensitivity", lambda n: 2 * n + 3, 3),
        ("factual_correctness", lambda _: 4, 2),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_calls_of_the_same_numbers(peers: Peers, metric: str, form: str, theirs_of: Any, own: int) -> None:
    """What one sample takes there and here."""
    theirs = peers.ask("ragas", metric=metric, form=form, worlds=[world.job() for world in WORLDS])
    for world, peer in zip(WORLDS, theirs, strict=True):
        assert peer["calls"] == theirs_of(len(world.contexts))
        results = (await ours(metric, world)).values()
        assert sum(result.llm_calls for result in results) == own


@pytest.mark.parametrize("form", FORMS)
async def test_factual_precision_equals_to_the_two_digits_that_ragas_gives(peers: Peers, form: str) -> None:
    """Precision counts one text there as well; recall and F1 do not, see test_ragas_differs.py."""
    asked = [world.job() for world in WORLDS]
    theirs = peers.ask("ragas", metric="factual_correctness", form=form, worlds=asked, mode="precision")
    for world, peer in zip(WORLDS, theirs, strict=True):
        found = (await ours("factual_correctness", world))["factual_correctness_precision"]
        assert found.value == pytest.approx(peer["value"], rel=0, abs=0.005 + PEER)
