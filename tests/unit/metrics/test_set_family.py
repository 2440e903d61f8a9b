"""Properties of the RA-nWG family."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragtrace.metrics import QUANTITIES, SetParams, SetScores, best_gain, set_bounds, set_scores, weights_of

PARAMS = st.builds(
    SetParams,
    alpha=st.sampled_from((0.0, 0.5, 1.0, 2.0)),
    cap4=st.sampled_from((0.75, 1.0)),
    cap3=st.sampled_from((0.2, 0.25, 0.33)),
    harm_max=st.sampled_from((1, 2)),
    denominator=st.sampled_from(("k", "returned")),
    monotone=st.booleans(),
    is_frozen=st.booleans(),
)


@st.composite
def queries(draw: st.DrawFn) -> tuple[dict[str, int], list[str], list[str], int]:
    """Return a labelled universe, delivered passages with copies, a pool within the universe, and K."""
    grades = draw(st.lists(st.integers(1, 5), min_size=1, max_size=30))
    labels = {f"d{place}": grade for place, grade in enumerate(grades)}
    ids = st.sampled_from(sorted(labels))
    return labels, draw(st.lists(ids, max_size=12)), draw(st.lists(ids, max_size=20)), draw(st.integers(1, 14))


def values(scores: SetScores) -> dict[str, float | None]:
    return {name: getattr(scores, name) for name in QUANTITIES}


@given(queries(), PARAMS)
def test_bounds_and_the_identity(query, params) -> None:
    scores = set_scores(*query, params)  # type: ignore[call-arg]
    assert scores.reason is None
    assert all(value is None or 0.0 <= value <= 1.0 for value in values(scores).values())
    if scores.ra_nwg is not None and scores.proc is not None:
        assert scores.ra_nwg <= scores.proc <= 1.0
    if scores.pct_proc is not None:
        assert scores.ra_nwg == pytest.approx(scores.proc * scores.pct_proc, abs=1e-12)


@given(queries(), PARAMS, st.randoms())
def test_the_order_of_the_selection_changes_nothing(query, params, random) -> None:
    labels, topk, pool, k = query
    distinct = list(dict.fromkeys(topk))[:k]
    shuffled = random.sample(distinct, len(distinct))
    assert values(set_scores(labels, distinct, pool, k, params)) == values(
        set_scores(labels, shuffled, pool, k, params)
    )


@given(queries(), PARAMS, st.lists(st.integers(1, 2), max_size=20))
def test_junk_in_the_universe_changes_no_weight_and_no_gain(query, params, junk) -> None:
    labels, topk, pool, k = query
    more = {**labels, **{f"junk{place}": grade for place, grade in enumerate(junk)}}
    assert set_scores(more, topk, pool, k, params) == set_scores(labels, topk, pool, k, params)


@given(queries(), PARAMS)
def test_proc_is_one_when_the_universe_is_the_pool(query, params) -> None:
    labels, topk, _, k = query
    scores = set_scores(labels, topk, list(labels), k, params)
    assert scores.proc in {None, 1.0}
    assert (scores.proc is None) == (scores.g_oracle == 0.0)


@given(queries(), PARAMS)
def test_the_oracle_is_the_best_of_all_selections(query, params) -> None:
    labels, _, _, k = query
    ids, k = sorted(labels)[:8], min(k, 4)
    small = {key: labels[key] for key in ids}
    scores = set_scores(small, [], ids, k, params)
    best = max(
        math.fsum(scores.weights[small[key]] for key in chosen)
        for chosen in itertools.combinations(ids, min(k, len(ids)))
    )
    assert scores.g_oracle == pytest.approx(best, abs=1e-12)


@given(queries(), PARAMS, st.integers(1, 3))
@settings(max_examples=50)
def test_bounds_hold_for_every_grade_the_unlabelled_may_have(query, params, n_unlabelled) -> None:
    labels, topk, pool, k = query
    missing = [f"x{place}" for place in range(n_unlabelled)]
    topk = missing + topk
    bounds = set_bounds(labels, topk, pool, k, params)
    shown = missing[:k]
    for grades in itertools.product((1, 2, 3, 4, 5), repeat=len(shown)):
        filled = set_scores({**labels, **dict(zip(shown, grades, strict=True))}, topk, pool, k, params)
        for name, value in values(filled).items():
            if value is not None:
                low, high = bounds[name]
                assert low <= value <= high


def test_weights_need_not_grow_with_the_grade_and_the_oracle_takes_weights() -> None:
    weights = weights_of(1, 10, 1)
    assert weights[3] == pytest.approx(0.1)
    assert weights[4] == pytest.approx(0.05)
    assert best_gain(1, 10, 1, 2, weights) == pytest.approx(1.1)
    assert weights_of(1, 10, 1, SetParams(monotone=True))[3] == weights[4]


def test_the_oracle_is_k_once_there_are_k_fives() -> None:
    labels = {f"d{place}": 5 for place in range(7)} | {"x": 4}
    scores = set_scores(labels, ["x"], ["x"], 5)
    assert scores.g_oracle == 5.0


@pytest.mark.parametrize(
    "wrong", [{"alpha": -1.0}, {"alpha": float("nan")}, {"cap4": 1.5}, {"harm_max": 3}, {"denominator": "n"}]
)
def test_parameters_out_of_range_are_refused(wrong) -> None:
    with pytest.raises(ValueError):
        SetParams(**wrong)
