"""Rank metrics beside pytrec_eval (trec_eval), ir_measures and ranx, over random rankings."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from ragtrace.metrics.ranking import rank

if TYPE_CHECKING:
    from tests.peers.process import Peers

RELEVANT = 2  # on 0 to 3
LIBRARIES = ("pytrec_eval", "ir_measures", "ranx")


def queries(number: int, seed: int) -> list[dict[str, Any]]:
    """Rankings of judged and unjudged documents, each with something relevant to be found, and a K of 1 to 12."""
    draw = random.Random(seed)
    made = []
    for _ in range(number):
        labels = {f"d{place}": draw.choice((0, 0, 1, 2, 3)) for place in range(draw.randint(1, 15))}
        labels["d0"] = draw.choice((2, 3))
        ids = [*labels, *(f"unjudged{place}" for place in range(draw.randint(0, 5)))]
        ranked = draw.sample(ids, draw.randint(1, len(ids)))
        made.append({"labels": labels, "ranked": ranked, "k": draw.randint(1, 12)})
    return made


def ours(query: dict[str, Any]) -> dict[str, float | None]:
    labels, ranked, k = query["labels"], query["ranked"], query["k"]
    return {
        "p_at_k": rank.p_at_k(ranked, labels, k, RELEVANT),
        "mrr": rank.reciprocal_rank(ranked, labels, RELEVANT),
        "ndcg_at_k": rank.ndcg_at_k(ranked, labels, k),
    }


def test_every_rank_metric_equals_three_libraries(peers: Peers) -> None:
    asked = queries(150, seed=1)
    found = peers.ask("rank", queries=asked, relevant=RELEVANT)
    compared = set()
    for query, by_library in zip(asked, found, strict=True):
        for library in LIBRARIES:
            for name, value in ours(query).items():
                assert value == pytest.approx(by_library[library][name], rel=0, abs=1e-9), (library, name, query)
                compared.add((library, name))
    assert len(compared) == 3 * 3


def test_nothing_relevant_is_no_value_here_and_zero_there(peers: Peers) -> None:
    """nDCG has no value without an ideal; a 0.0 would pull the mean down."""
    graded_zero = {"labels": {"a": 0, "b": 0}, "ranked": ["a", "b"], "k": 2}
    for library in LIBRARIES:
        assert peers.ask("rank", queries=[graded_zero], relevant=RELEVANT)[0][library]["ndcg_at_k"] == 0.0
    assert ours(graded_zero)["ndcg_at_k"] is None


def test_ap_over_the_retrieved_is_not_the_peers_ap(peers: Peers) -> None:
    """Its normaliser is what the top K holds, so it has a name of its own (R = 6, K = 3, all hits)."""
    labels = {f"d{place}": 3 for place in range(6)}
    query = {"labels": labels, "ranked": list(labels), "k": 3}
    for library in LIBRARIES:
        assert peers.ask("rank", queries=[query], relevant=RELEVANT)[0][library]["ap_at_k"] == pytest.approx(0.5)
    assert rank.ap_at_k_retrieved(query["ranked"], labels, 3, RELEVANT) == 1.0
