"""Forgetting a person who rated: her name as a rater, and labels of traces that nobody scored."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragtrace.stores import Label
from tests import make

ADA, BOB = "ada-4711", "bob-0815"
TRACE, UNSCORED = "a1" * 16, "b2" * 16


@pytest.fixture
def store(tmp_path):
    made = make.store(tmp_path / "store", has_content=True)
    yield made
    made.close()


def content(store):
    return store.path.read_bytes() + Path(f"{store.path}-wal").read_bytes()


def test_a_user_is_forgotten_as_a_rater_too(store):
    hers, his = make.record(n=1, user=ADA), make.record(n=2, user=BOB)
    for r in (hers, his):
        store.emit(r, [make.score(r, "mrr")])
    store.rate(
        [
            Label(trace_id=hers.trace_id, value=1.0, rater=ADA),
            Label(trace_id=his.trace_id, value=0.0, rater=ADA, comment="so says Ada"),
            Label(trace_id=his.trace_id, value=1.0, rater=BOB),
            Label(trace_id=UNSCORED, value=0.5, rater=ADA),
        ]
    )
    would = store.would_forget("user", ADA)
    erased = store.forget("user", ADA)
    assert would == erased
    assert (erased.runs, erased.scores, erased.labels) == (3, 1, 3)
    assert [(row["trace_id"], row["version"]) for row in store.rows()] == [
        (his.trace_id, "v"),
        (his.trace_id, f"human:{BOB}"),
    ]
    assert b"ada" not in content(store).lower()


def test_a_rater_s_labels_are_not_those_of_a_session_or_trace_of_her_name(store):
    store.rate([Label(trace_id=TRACE, value=1.0, rater=ADA)])
    assert store.forget("session", ADA).labels == 0
    assert store.forget("trace", ADA).labels == 0
    assert len(list(store.rows())) == 1


@pytest.mark.parametrize(("subject", "identity"), [("user", ADA), ("session", "s-1")])
def test_a_label_of_a_trace_that_nobody_scored_is_found_by_its_person(store, subject, identity):
    store.rate([Label(trace_id=TRACE, value=0.0, comment="my number is 42", user=ADA, session="s-1")])
    store.rate([Label(trace_id=TRACE, value=1.0, metric="mrr")])
    assert store.forget(subject, identity).labels == 2
    assert list(store.rows()) == []
    assert b"my number" not in content(store)


def test_whom_a_trace_is_of_may_be_known_with_its_second_label_alone(store):
    store.rate([Label(trace_id=TRACE, value=0.0)])
    store.rate([Label(trace_id=TRACE, value=1.0, metric="mrr", user=ADA)])
    store.rate([Label(trace_id=TRACE, value=1.0, metric="p_at_k")])
    assert store.forget("user", ADA).labels == 3


def test_a_series_that_others_use_stays(store):
    hers, his = make.record(n=1, user=ADA), make.record(n=2, user=BOB)
    for r in (hers, his):
        store.emit(r, [make.score(r, "mrr")])
    store.forget("user", ADA)
    store.emit(hers, [make.score(hers, "mrr")])
    assert [row["metric"] for row in store.rows()] == ["mrr", "mrr"]
