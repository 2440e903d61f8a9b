"""Anchors in a real store: order, pace, reference, retention, and erasing."""

from __future__ import annotations

import stat

import pytest
from msgspec.structs import replace

from ragtrace.model import SeriesKey
from ragtrace.stores import Anchor, AnchorScore, Label
from tests import make

KEY = SeriesKey("faithfulness", judge="openai:m", version="v1")


class Clock:
    def __init__(self):
        self.now = 1_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def store(path, clock):
    made = make.store(path, has_content=True, wall=clock)
    made.anchors.replace([anchor(number) for number in range(4)], repeats=2)
    yield made
    made.close()


def anchor(number, **given):
    facts = {"query": "Q?", "answer": "A.", "session": f"s{number}", "user": "ada" if number else "bob"}
    record = make.record(f"secret passage {number}", n=number, **facts)
    return Anchor(record=record, band=4, share=1.0, **given)


def score(value, **other):
    return AnchorScore(key=replace(KEY, **other), value=value)


def test_the_records_come_back_whole_and_the_file_is_its_owners_alone(store, path):
    first = store.anchors.all()[0]
    assert first.record.contexts[0].text == "secret passage 0"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_one_anchor_a_gap_in_a_fixed_order_over_restarts_and_scorers(store, path, clock):
    other = make.store(path, wall=clock)
    taken = []
    for turn in range(9):
        for each in (store, other):
            claimed = each.anchors.claim(gap_s=100.0, hurried_gap_s=5.0)
            if claimed is not None:
                taken.append(claimed.id)
        clock.now += 50.0
        if turn == 4:
            other.close()
            other = make.store(path, wall=clock)
    other.close()
    assert taken == [1, 2, 3, 4, 1]


def test_an_anchor_that_is_given_back_is_the_next(store, clock):
    first = store.anchors.claim(gap_s=100.0, hurried_gap_s=5.0)
    store.anchors.give_back(first)
    clock.now += 100.0
    assert store.anchors.claim(gap_s=100.0, hurried_gap_s=5.0).id == first.id


def test_a_hurried_round_scores_each_once_and_then_the_pace_is_steady(store, clock):
    store.anchors.claim(gap_s=100.0, hurried_gap_s=5.0)
    clock.now += 1.0
    assert store.anchors.hurry(every_s=400.0)
    taken = []
    for _ in range(20):
        claimed = store.anchors.claim(gap_s=100.0, hurried_gap_s=5.0)
        taken.append(claimed.id if claimed else 0)
        clock.now += 5.0
    assert [it for it in taken if it] == [2, 3, 4, 1, 2], "the fifth begins the next round"
    assert not store.anchors.hurry(every_s=400.0), "once in a round"


def test_a_clock_that_was_set_back_stops_nothing(store, clock):
    store.anchors.claim(gap_s=100.0, hurried_gap_s=5.0)
    clock.now -= 86_400.0
    assert store.anchors.claim(gap_s=100.0, hurried_gap_s=5.0) is not None


def test_the_first_scores_are_the_reference_and_later_ones_the_latest(store, clock):
    one = store.anchors.all()[0]
    for value in (0.5, 0.75, 0.25, 0.0):
        store.anchors.note(one, [score(value)])
        clock.now += 10.0
    (found,) = store.anchors.series(fresh_s=60.0)
    (pair,) = found.pairs
    assert (pair.reference, pair.now, found.n_reference) == ((0.5, 0.75), 0.0, 1)
    assert store.anchors.series(fresh_s=5.0)[0].pairs == [], "stale"


def test_a_new_version_has_a_reference_of_its_own(store):
    one = store.anchors.all()[0]
    for value in (0.5, 0.5, 0.5):
        store.anchors.note(one, [score(value)])
    store.anchors.note(one, [score(0.0, version="v2")])
    found = {it.key.version: it for it in store.anchors.series(fresh_s=60.0)}
    assert len(found["v1"].pairs) == 1
    assert (found["v2"].pairs, found["v2"].n_reference) == ([], 0)


def note_all(note, store, value, times=1, left_out=0):
    for one in store.anchors.all()[left_out:]:
        for _ in range(times):
            note(one, [score(value)])


def test_a_draft_stands_beside_the_reference_until_it_is_adopted(store, clock):
    note_all(store.anchors.note, store, 0.5, times=3)
    before = store.anchors.series(fresh_s=60.0)
    assert store.anchors.begin_draft(repeats=1, signature="j") == {}
    note_all(store.anchors.note_draft, store, 0.25, left_out=1)
    assert store.anchors.series(fresh_s=60.0) == before
    assert not store.anchors.adopt_draft(), "three runs of four"
    assert store.anchors.series(fresh_s=60.0) == before
    assert store.anchors.facts().repeats == 2
    assert store.anchors.begin_draft(repeats=1, signature="j") == {2: 1, 3: 1, 4: 1}
    store.anchors.note_draft(store.anchors.all()[0], [score(0.25)])
    clock.now += 5.0
    assert store.anchors.adopt_draft()
    (found,) = store.anchors.series(fresh_s=60.0)
    assert (found.n_reference, found.pairs, store.anchors.facts().repeats) == (4, [], 1)
    assert store.anchors.facts().frozen_at == clock.now
    note_all(store.anchors.note, store, 1.0)
    (found,) = store.anchors.series(fresh_s=60.0)
    assert {(it.reference, it.now) for it in found.pairs} == {((0.25,), 1.0)}


def by(value, judge="overlap", metric="faithfulness"):
    return score(value, judge=judge, metric=metric)


def test_a_draft_replaces_the_reference_of_its_own_judge_and_metrics_alone(store):
    others = [by(0.5, "openai:m"), by(0.75, metric="answered")]
    for one in store.anchors.all():
        for _ in range(3):
            store.anchors.note(one, [by(0.5), *others])
    before = {(it.key.judge, it.key.metric): it for it in store.anchors.series(fresh_s=60.0)}
    store.anchors.begin_draft(repeats=3, signature="overlap faithfulness")
    for one in store.anchors.all():
        for _ in range(3):
            store.anchors.note_draft(one, [by(0.25)])
    assert store.anchors.adopt_draft()
    found = {(it.key.judge, it.key.metric): it for it in store.anchors.series(fresh_s=60.0)}
    new = found["overlap", "faithfulness"]
    assert (new.n_reference, new.repeats, new.pairs) == (4, 3, [])
    for kept in (("openai:m", "faithfulness"), ("overlap", "answered")):
        assert found[kept] == before[kept]
        assert (found[kept].n_reference, found[kept].repeats, len(found[kept].pairs)) == (4, 2, 4)
    for one in store.anchors.all():
        store.anchors.note(one, [by(0.0), *others])
    pairs = {it.key.judge: {(len(pair.reference), pair.now) for pair in it.pairs}
             for it in store.anchors.series(fresh_s=60.0) if it.key.metric == "faithfulness"}  # fmt: skip
    assert pairs == {"overlap": {(3, 0.0)}, "openai:m": {(2, 0.5)}}


def test_a_new_judge_needs_no_runs_of_the_old_ones_reference(store):
    note_all(store.anchors.note, store, 0.5, times=2)
    store.anchors.begin_draft(repeats=1, signature="overlap")
    store.anchors.note_draft(store.anchors.all()[0], [by(0.25)])
    assert store.anchors.adopt_draft()
    assert {it.key.judge: it.n_reference for it in store.anchors.series(fresh_s=60.0)} == {
        "openai:m": 4,
        "overlap": 1,
    }


def test_dropped_anchors_leave_no_repeats_to_the_next_ones(store):
    note_all(store.anchors.note, store, 0.5, times=2)
    store.anchors.begin_draft(repeats=1, signature="overlap")
    store.anchors.note_draft(store.anchors.all()[0], [by(0.25)])
    assert store.anchors.adopt_draft()
    store.anchors.replace([anchor(1)], repeats=1)
    note_all(store.anchors.note, store, 0.5)
    assert store.anchors.series(fresh_s=60.0)[0].n_reference == 1


def test_a_draft_without_scores_replaces_nothing(store):
    note_all(store.anchors.note, store, 0.5, times=2)
    store.anchors.begin_draft(repeats=1, signature="j")
    assert not store.anchors.adopt_draft()
    assert store.anchors.series(fresh_s=60.0)[0].n_reference == 4


def test_a_draft_of_a_reference_without_a_whole_run_needs_none(store):
    note_all(store.anchors.note, store, 0.5)
    store.anchors.begin_draft(repeats=1, signature="j")
    note_all(store.anchors.note_draft, store, 0.25, left_out=3)
    assert store.anchors.adopt_draft()
    assert store.anchors.series(fresh_s=60.0)[0].n_reference == 1


@pytest.mark.parametrize(
    ("repeats", "signature", "later_s"), [(2, "j", 0.0), (1, "other", 0.0), (1, "j", 86_400.0), (1, "j", -1.0)]
)
def test_a_draft_of_another_kind_or_day_is_begun_anew(store, clock, repeats, signature, later_s):
    store.anchors.begin_draft(repeats=1, signature="j")
    note_all(store.anchors.note_draft, store, 0.25)
    clock.now += later_s
    assert store.anchors.begin_draft(repeats=repeats, signature=signature) == {}


def test_a_draft_that_has_gone_takes_no_score(store):
    store.anchors.begin_draft(repeats=1, signature="j")
    kept = store.anchors.all()
    store.anchors.drop()
    store.anchors.note_draft(kept[0], [score(0.5)])
    assert not store.anchors.adopt_draft()


FIRST = {"repeats": 2, "signature": "openai:m faithfulness@v1", "judge": "openai:m"}


@pytest.fixture
def stopped(store):
    """Four anchors with one score of four runs' first reference of two scores each, and two of the last run's."""
    store.anchors.replace([anchor(number) for number in range(4)], repeats=2, signature=FIRST["signature"])
    note_all(store.anchors.note, store, 0.5)
    note_all(store.anchors.note, store, 0.5, left_out=3)
    return store.anchors


def test_a_stopped_first_reference_goes_on_until_it_is_finished(stopped, clock):
    stopped.note(stopped.all()[0], [by(0.5), by(0.5, metric="answered")])
    assert stopped.resume_first(**FIRST) == {1: 1, 2: 1, 3: 1, 4: 2}
    found = stopped.unfinished()
    assert (found.judge, found.n_scores, found.n_wanted, found.is_first) == ("openai:m", 5, 8, True)
    assert found.until == clock.now + 86_400.0
    stopped.finish_first()
    assert (stopped.resume_first(**FIRST), stopped.unfinished()) == (None, None)


@pytest.mark.parametrize("other", [{"repeats": 1}, {"signature": "overlap faithfulness@v1"}])
def test_a_first_reference_of_another_kind_does_not_go_on(stopped, other):
    assert stopped.resume_first(**FIRST | other) is None


def test_a_first_reference_does_not_go_on_a_day_later(stopped, clock):
    clock.now += 86_400.0
    assert (stopped.resume_first(**FIRST), stopped.unfinished()) == (None, None)


def test_a_draft_ends_a_stopped_first_reference(stopped):
    stopped.begin_draft(repeats=1, signature="j")
    assert stopped.resume_first(**FIRST) is None
    for one in stopped.all()[1:]:
        stopped.note_draft(one, [score(0.25)])
    found = stopped.unfinished()
    assert (found.judge, found.n_scores, found.n_wanted, found.is_first) == ("openai:m", 3, 4, False)


def test_forget_erases_the_scores_of_a_draft(store):
    store.anchors.begin_draft(repeats=1, signature="j")
    note_all(store.anchors.note_draft, store, 0.25)
    store.forget("session", "s3")
    assert store.anchors.begin_draft(repeats=1, signature="j") == {1: 1, 2: 1, 3: 1}


def test_neither_age_nor_size_deletes_an_anchor(path, clock):
    store = make.store(path, has_content=True, file_bytes=1_048_576, wall=clock)
    store.anchors.replace([anchor(1)], repeats=1)
    clock.now += 400 * 86_400.0
    store.apply_retention()
    for number in range(1, 301):
        store.rate([Label(trace_id=f"{number:032x}", value=1.0)])
    assert store.anchors.facts().n == 1
    store.close()


@pytest.mark.parametrize(
    ("subject", "identity", "left"),
    [("trace", f"{2:032x}", [0, 1, 3]), ("session", "s3", [0, 1, 2]), ("user", "ada", [0])],
)
def test_forget_erases_anchors_with_their_scores_to_the_last_byte(store, path, subject, identity, left):
    for one in store.anchors.all():
        store.anchors.note(one, [score(0.5)])
    assert store.would_forget(subject, identity).anchors == 4 - len(left)
    assert store.forget(subject, identity).anchors == 4 - len(left)
    assert [int(it.record.id) for it in store.anchors.all()] == left
    assert store.anchors.series(fresh_s=60.0)[0].n_reference == 0
    gone = ({0, 1, 2, 3} - set(left)).pop()
    assert f"secret passage {gone}".encode() not in path.read_bytes()


def test_a_score_of_an_erased_anchor_is_not_written(store):
    last = store.anchors.all()[-1]
    store.forget("session", "s3")
    store.anchors.note(last, [score(0.5)])
    assert store.anchors.series(fresh_s=60.0) == []


def test_forgetting_a_rater_takes_their_labels_of_anchors(store):
    store.anchors.replace([anchor(1, labels={"faithfulness": {"human:eve": 1.0, "human": 0.0}})], repeats=1)
    assert store.forget("user", "eve").labels == 1
    assert store.anchors.all()[0].labels == {"faithfulness": {"human": 0.0}}


def test_a_store_without_anchors(path):
    store = make.store(path)
    assert store.anchors.all() == []
    assert store.anchors.claim(gap_s=1.0, hurried_gap_s=1.0) is None
    assert not store.anchors.hurry(every_s=1.0)
    assert store.anchors.drop() == 0
    assert store.forget("user", "ada").anchors == 0
    store.close()
