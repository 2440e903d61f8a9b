"""Several scorers at one file: what a killed one left is published by one of them."""

from __future__ import annotations

import threading

import pytest

from ragtrace.model import MetricResult, RagRecord, Score, ScoreKey
from ragtrace.stores.sqlite import SqliteStore
from tests.unit.stores.conftest import NOW

N = 60


@pytest.fixture
def stores(tmp_path, wall):
    made = [SqliteStore(tmp_path / "store", wall=wall) for _ in range(3)]
    for n in range(1, N + 1):
        write(made[0], n)
    yield made
    for store in made:
        store.close()


def write(store, n, *metrics, at=NOW):
    r = RagRecord(id=str(n), trace_id=f"{n:032x}", span_id=f"{n:016x}")
    made = []
    for metric in metrics or ("mrr", "faithfulness"):
        key = ScoreKey(trace_id=r.trace_id, span_id=r.span_id, metric=metric, version="v")
        result = MetricResult(name=metric, state="ok", value=0.5, version="v")
        made.append(Score(key=key, result=result, scored_at=at))
    store.emit(r, made)


def claimed(store, limit=100, before=NOW + 1):
    return [int(it.record.trace_id, 16) for it in store.claim(limit, before=before, for_s=300.0)]


def test_scorers_that_begin_at_once_share_what_is_there(stores):
    taken = [[] for _ in stores]
    together = threading.Barrier(len(stores))

    def take(store, mine):
        together.wait(30)
        while runs := claimed(store, limit=7):
            mine += runs

    threads = [threading.Thread(target=take, args=pair) for pair in zip(stores, taken, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(run for mine in taken for run in mine) == list(range(1, N + 1))


def test_a_claim_that_nobody_made_good_is_anybody_s_again(stores, wall):
    first, second, _ = stores
    assert claimed(first, limit=2) == [1, 2]
    (third,) = first.claim(1, before=NOW + 1, for_s=300.0)
    assert [score.key.metric for score in third.scores] == ["mrr", "faithfulness"]
    first.exported(third.marks)
    wall.at += 301.0
    assert claimed(second, limit=3) == [1, 2, 4]


def test_a_clock_that_was_ahead_keeps_no_claim_for_ever(stores, wall):
    wall.at += 10**9
    assert claimed(stores[0], limit=1) == [1]
    wall.at = NOW
    assert claimed(stores[1], limit=1) == [1]


def test_what_was_just_written_is_left_to_its_writer(stores):
    write(stores[0], 1, "p_at_k", at=NOW + 5)
    assert claimed(stores[1], limit=1) == [2]
    assert claimed(stores[1], limit=1, before=NOW + 6) == [1]
