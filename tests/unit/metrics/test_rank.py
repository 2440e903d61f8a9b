"""Rank metrics: bounds, and what their names promise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtrace.judges import from_umbrela, to_umbrela
from ragtrace.metrics import set_scores
from ragtrace.metrics.ranking import rank

IDS = [f"d{place}" for place in range(12)]
GRADES = st.dictionaries(st.sampled_from(IDS), st.integers(1, 5), min_size=1)
LISTS = st.lists(st.sampled_from(IDS), max_size=15)


@given(LISTS, GRADES, st.integers(1, 15))
def test_everything_lies_between_0_and_1(ranked, grades, k) -> None:
    for function in (rank.p_at_k, rank.ap_at_k_retrieved, rank.ndcg_at_k):
        assert 0.0 <= function(ranked, grades, k) <= 1.0, function.__name__
    assert 0.0 <= rank.reciprocal_rank(ranked, grades) <= 1.0


@given(GRADES, st.integers(1, 15), st.randoms())
def test_precision_at_k_is_precision4(grades, k, random) -> None:
    ranked = random.sample(sorted(grades), len(grades))
    assert rank.p_at_k(ranked, grades, k) == set_scores(grades, ranked, (), k).precision4


@given(GRADES, st.integers(1, 15))
def test_the_best_ranking_has_ndcg_1(grades, k) -> None:
    best = sorted(grades, key=lambda key: -grades[key])
    assert rank.ndcg_at_k(best, grades, k) == 1.0


def test_scales_keep_what_is_relevant() -> None:
    for grade in (0, 1, 2, 3):
        assert (from_umbrela(grade) >= 4) == (grade >= 2)
        assert to_umbrela(from_umbrela(grade)) == grade


@pytest.mark.parametrize("wrong", [-1, 4, 2.0, True, "2", None])
def test_a_grade_of_another_scale_is_refused(wrong) -> None:
    with pytest.raises(ValueError):
        from_umbrela(wrong)


@pytest.mark.parametrize("wrong", [0, 6, 2.0, True, "2", None])
def test_a_grade_outside_1_to_5_is_refused(wrong) -> None:
    with pytest.raises(ValueError):
        to_umbrela(wrong)
