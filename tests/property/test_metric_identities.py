"""Identities through the metrics themselves; those of the set arithmetic are in test_set_family.py."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtrace.metrics.eval_context import EvalContext, MetricOptions
from ragtrace.metrics.evaluate import evaluate
from ragtrace.metrics.reference.noise_sensitivity import incorrect_claims
from ragtrace.metrics.registry import select
from ragtrace.model import Labels, Passage, Pool, RagRecord

if TYPE_CHECKING:
    from ragtrace.model import MetricResult

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


@st.composite
def records(draw: st.DrawFn) -> RagRecord:
    """A labelled universe, a pool of it, and what was delivered of the pool."""
    grades = {f"d{n}": grade for n, grade in enumerate(draw(st.lists(st.integers(1, 5), min_size=1, max_size=15)))}
    pool = draw(st.lists(st.sampled_from(sorted(grades)), min_size=1, max_size=12, unique=True))
    used = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=8))
    stages = {"retrieved": pool, "used": used}
    return RagRecord(
        id="1",
        pools=tuple(Pool(stage=stage, passages=passages(ids)) for stage, ids in stages.items()),  # type: ignore[arg-type]
        labels=Labels(grades=grades),
    )


def passages(ids: list[str]) -> tuple[Passage, ...]:
    return tuple(Passage(id=one, text=f"text of {one}", rank=n) for n, one in enumerate(ids, start=1))


def scored(record: RagRecord, k: int, *names: str) -> dict[str, MetricResult]:
    case = EvalContext(record, options=MetricOptions(k_values=(k,)))
    return {result.name: result for result in asyncio.run(evaluate(select(names), case))}


def values(results: dict[str, MetricResult]) -> dict[str, Any]:
    return {name: (result.value, result.reason) for name, result in results.items()}


@given(records(), st.integers(1, 10))
def test_ra_nwg_lies_between_0_and_proc_and_is_proc_times_pct_proc(record: RagRecord, k: int) -> None:
    found = scored(record, k, "ra_nwg")
    ra, proc, pct = (found[name].value for name in ("ra_nwg_at_k", "proc_at_k", "pct_proc_at_k"))
    if ra is None or proc is None:
        assert found["ra_nwg_at_k"].reason == found["proc_at_k"].reason == "zero_oracle"
        return
    assert 0.0 <= ra <= proc <= 1.0
    if pct is not None:
        assert ra == pytest.approx(proc * pct, rel=0, abs=1e-12)


@given(records(), st.randoms())
def test_the_order_of_what_was_delivered_changes_no_set_metric(record: RagRecord, random: Any) -> None:
    used = list(dict.fromkeys(passage.id for passage in record.pools[1].passages))
    names = ("ra_nwg", "precision4", "harm", "selection_efficiency")
    orders = (used, random.sample(used, len(used)))
    first, second = (
        scored(
            replace(record, pools=(record.pools[0], Pool(stage="used", passages=passages(order)))),
            len(used),
            *names,
        )
        for order in orders
    )
    assert values(first) == values(second)


@given(records(), st.lists(st.integers(1, 2), max_size=8), st.integers(1, 10))
def test_junk_in_the_universe_changes_no_weight_and_no_value(record: RagRecord, junk: list[int], k: int) -> None:
    assert record.labels is not None
    more = {**record.labels.grades, **{f"junk{n}": grade for n, grade in enumerate(junk)}}
    plain = scored(record, k, "ra_nwg")
    longer = scored(replace(record, labels=Labels(grades=more)), k, "ra_nwg")
    assert values(plain) == values(longer)
    assert plain["ra_nwg_at_k"].details["weights"] == longer["ra_nwg_at_k"].details["weights"]


@given(records(), st.integers(1, 10))
def test_labels_of_the_pool_alone_are_refused_and_give_selection_efficiency(record: RagRecord, k: int) -> None:
    """With U = Pool, PROC is 1 and RA-nWG is %PROC: as a universe of its own it keeps those names."""
    assert record.labels is not None
    pool = {passage.id: record.labels.grades[passage.id] for passage in record.pools[0].passages}
    as_pool = scored(
        replace(record, labels=Labels(grades=pool, label_scope="pool")), k, "ra_nwg", "selection_efficiency"
    )
    refused = ("ra_nwg_at_k", "proc_at_k", "pct_proc_at_k")
    assert {(as_pool[name].state, as_pool[name].reason) for name in refused} == {("na", "no_labels")}
    as_gold = scored(replace(record, labels=Labels(grades=pool)), k, "ra_nwg")
    assert as_gold["proc_at_k"].value in {1.0, None}
    assert as_pool["selection_efficiency_at_k"].value == as_gold["pct_proc_at_k"].value
