"""Rank metrics: bounds, and what their names promise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtrace.judges.scales import from_umbrela, to_umbrela
from ragtrace.metrics.ranking import rank
from ragtrace.metrics.selection.set_family import set_scores

IDS = [f"d{place}" for place in range(12)]
GRADES = st.dictionaries(st.sampled_from(IDS), st.integers(1, 5), min_size=1)
LISTS = st.lists(st.sampled_from(IDS), max_size=15)


@given(LISTS, GRADES, st.integers(1, 15))
def test_everything_lies_between_0_and_1(ranked, grades, k) -> None:
    functions = [rank.p_at_k, rank.ap_at_k_retrieved, rank.mrr_at_k, rank.ndcg_at_k, rank.ndcg_exp_at_k]
    over_relevant = [rank.ap_at_k, rank.ap_at_k_min_rk]
    if max(grades.values()) >= 4:
        functions += over_relevant
    else:
        assert [function(ranked, grades, k) for function in over_relevant] == [None, None]
    for function in functions:
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


def test_three_normalisers_give_three_numbers() -> None:
    grades = dict.fromkeys("abcdef", 5)
    ranked = ["a", "b", "c"]
    assert rank.ap_at_k_retrieved(ranked, grades, 3) == 1.0
    assert rank.ap_at_k(ranked, grades, 3) == 0.5
    assert rank.ap_at_k_min_rk(ranked, grades, 3) == 1.0
    assert rank.ap_at_k_min_rk(["x", "a"], grades, 2) == 0.25


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
