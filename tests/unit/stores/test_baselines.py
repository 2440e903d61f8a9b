"""Frozen baselines in the store's file: written over, read again, and left alone by all that deletes scores."""

from __future__ import annotations

import sqlite3

import pytest
from msgspec.structs import replace

from ragtrace.model import SeriesKey
from ragtrace.queues import Entry, Spool
from ragtrace.stats import Baseline
from ragtrace.stores import FrozenBaseline
from tests import make

WHOLE = Baseline(mean=0.91, sd=0.2, n=512, mean_weight=12.5, n_eff=430.5, max_weight=20.0, design_effect=1.7)


KEY = SeriesKey("p_at_k", "rag", version="v", k=3)


def frozen(key=KEY, *, baseline=WHOLE, frozen_at=5.0, note=""):
    return FrozenBaseline(key=key, baseline=baseline, frozen_at=frozen_at, note=note)


@pytest.fixture
def store(tmp_path):
    made = make.store(tmp_path / "s")
    yield made
    made.close()


def test_a_store_without_any_has_none_and_reading_makes_no_table(store):
    assert store.baselines() == []
    assert store.freeze([]) == 0


def test_every_field_comes_back_also_in_a_new_process_s_connection(store):
    normal = Baseline(mean=0.5, sd=0.0, n=2)
    bare = frozen(replace(KEY, metric="mrr", k=None), baseline=normal, frozen_at=4.0, note="Zürich 1.4")
    assert store.freeze([frozen(), bare]) == 2
    other = make.store(store.path)
    assert other.baselines() == [bare, frozen()], "the oldest first"
    other.close()


def test_a_series_has_one_and_series_differ_in_every_part(store):
    others = (
        {"k": None},
        {"k": 5},
        {"version": "w"},
        {"workflow": "x"},
        {"label_scale": "1-5"},
        {"universe": "pool"},
    )
    keys = [replace(KEY, **other) for other in others]
    store.freeze([frozen(), *map(frozen, keys)])
    store.freeze([frozen(frozen_at=9.0, note="new"), frozen(replace(KEY, k=None), frozen_at=9.0)])
    found = {it.key: it for it in store.baselines()}
    assert len(found) == len(store.baselines()) == 7
    assert found[KEY].note == "new"
    assert [found[key].frozen_at for key in keys] == [9.0, 5.0, 5.0, 5.0, 5.0, 5.0]
    assert [found[key] for key in keys[-2:]] == [frozen(key) for key in keys[-2:]]


def test_one_that_cannot_be_written_takes_the_others_with_it(store):
    store.freeze([frozen()])
    with pytest.raises(sqlite3.IntegrityError):
        store.freeze([frozen(baseline=Baseline(mean=0.1, sd=0.1, n=3)), frozen(replace(KEY, metric=None))])
    assert store.baselines() == [frozen()]


def test_it_stands_in_a_spool_s_file_and_outlives_ageing_erasing_and_a_full_file(tmp_path):
    path = tmp_path / "spool"
    Spool(path).put([Entry(key="a", payload=b"{}")])
    store = make.store(path, scores_s=1.0, file_bytes=1_048_576, wall=lambda: 1e10)
    store.freeze([frozen()])
    store.apply_retention()
    store.forget("user", "ada")
    assert store.baselines() == [frozen()]
    store.close()


def test_a_table_without_the_design_effect_is_read_and_written(store):
    """Older versions made it; where nobody measured the design effect it is 1."""
    store.freeze([frozen()])
    with sqlite3.connect(store.path) as connection:
        connection.execute("ALTER TABLE baselines DROP COLUMN design_effect")
    (read,) = store.baselines()
    assert read.baseline.design_effect == 1.0
    store.freeze([frozen()])
    assert store.baselines() == [frozen()]
