"""The store over real files: upserts, outbox, retention, room, erasing, faults."""

from __future__ import annotations

import math
import sqlite3
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ragtrace import sqlite_file
from ragtrace.capture import internal_errors
from ragtrace.errors import StoreError
from ragtrace.model import JudgeInfo, Passage, Pool
from ragtrace.model.reading import Found, Reading, Sign
from ragtrace.queues import Entry, Spool
from ragtrace.sqlite_file import used_bytes
from ragtrace.stores import COUNT, EVENT, FACTS, Label, OutboxEntry, Owner, Policy
from tests import make
from tests.broken_file import JUNK, break_file
from tests.unit.stores.conftest import NOW, age_until, marks, unpublished

ENDED = "another-boot pid:[1] 7 7"  # a process
FULL = Policy(has_content=True, payload_share=0.0)
SECRET = "Ada Lovelace lives at 12 St James's Square. "


@pytest.fixture
def store(tmp_path, wall):
    made = make.store(tmp_path / "store", FULL, wall=wall, uptime=lambda: 0.0)
    yield made
    made.close()


def score(r, metric="faithfulness", value=0.9, *, judge="overlap", **more):
    judged = JudgeInfo(model=judge, prompt_hash="0a1b2c3d")
    return make.score(r, metric, value, **{"version": "v1", "at": NOW, "passed": True, "judge": judged} | more)


def shown(store, *columns, **wanted):
    return [tuple(row[name] for name in columns) for row in store.rows(**wanted)]


# -- upsert --


def test_a_score_comes_back_as_it_went_in(store):
    r = make.record(
        workflow="support", session="s", user="u", environment="prod", corpus="faq", model="m", revision=2
    )
    one = score(r, details={"claims": ["It rains."], "n": 3}, weight=20.0, stratum="forced")
    store.emit(r, [one])
    assert store.scores_of(r) == [one]
    (pending,) = unpublished(store)
    assert pending.scores == (one,)
    facts = ("trace_id", "span_id", "workflow", "session", "user", "environment", "corpus", "model", "revision")
    assert all(getattr(pending.record, name) == getattr(r, name) for name in facts)


def test_the_same_key_replaces_and_another_version_is_a_series_of_its_own(store):
    r = make.record()
    store.emit(r, [score(r, value=0.9)])
    store.emit(r, [score(r, value=0.4, at=NOW + 1)])
    store.emit(r, [score(r, value=0.7, version="v2")])
    assert shown(store, "version", "value") == [("v1", 0.4), ("v2", 0.7)]


def test_one_key_is_one_score_even_under_another_judge_s_name(store):
    r = make.record()
    store.emit(r, [score(r, value=0.9, judge="overlap")])
    store.emit(r, [score(r, value=0.4, judge="other", at=NOW + 1)])
    assert shown(store, "judge", "value") == [("other", 0.4)]


def test_an_older_revision_that_comes_late_changes_nothing(store):
    new, old = make.record(revision=1, workflow="new"), make.record(revision=0, workflow="old")
    store.emit(new, [score(new, value=0.8, passed=False)])
    store.emit(old, [score(old, value=0.2, passed=False, at=NOW + 5)])
    assert shown(store, "value", "workflow") == [(0.8, "new")]
    assert [r.revision for r, _ in store.records()] == [1]


WRITES = st.lists(
    st.tuples(
        st.integers(1, 3), st.sampled_from(["mrr", "p_at_k"]), st.sampled_from(["v1", "v2"]), st.integers(0, 2),
        st.floats(0, 1),
    ),
    max_size=12,
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(WRITES, st.data())
def test_writing_twice_is_writing_once(writes, data):
    with TemporaryDirectory() as folder:
        made = [make.store(Path(folder) / name, FULL, wall=lambda: NOW) for name in ("once", "twice")]
        for n, metric, version, revision, value in writes:
            r = make.record(n=n, revision=revision)
            one = [score(r, metric, value, version=version, at=NOW + revision)]
            for store, times in zip(made, (1, data.draw(st.integers(1, 3))), strict=True):
                for _ in range(times):
                    store.emit(r, one)
        ids = {"run", "series"}
        rows = [[{k: v for k, v in row.items() if k not in ids} for row in store.rows()] for store in made]
        found = [sorted(map(str, each)) for each in rows]
        assert found[0] == found[1]
        keys = {(n, metric, version) for n, metric, version, _, _ in writes}
        assert len(found[0]) == len(keys)
        for store in made:
            store.close()


def test_times_that_no_clock_can_mean_become_now(store):
    r = make.record()
    for n, at in enumerate((0.0, float("nan"), NOW + 10**9, NOW - 60)):
        store.emit(r, [score(r, f"m{n}", at=at)])
    assert [at for (at,) in shown(store, "scored_at")] == [NOW, NOW, NOW, NOW - 60]


def test_one_number_that_json_does_not_know_takes_no_other_with_it(tmp_path):
    store, r = make.store(tmp_path / "s"), make.record()
    store.emit(r, [score(r, details={"n": 3, "ratio": float("inf"), "claims": ["The Hague"]})])
    assert shown(store, "details") == [('{"n":3}',)]


def test_texts_that_sqlite_cannot_hold_are_mended(store):
    r = make.record(query="a\ud800b", user="u\udfff")
    store.emit(r, [score(r, passed=False, details={"claim": "c\ud800"})])
    assert shown(store, "user", "details") == [("u\ufffd", '{"claim":"c\ufffd"}')]
    assert next(iter(store.records()))[0].query == "a\ufffdb"


# -- outbox --


def test_what_was_published_is_not_given_out_again_and_what_was_replaced_is(store):
    r = make.record()
    store.emit(r, [score(r)])
    (before,) = unpublished(store)
    store.emit(r, [score(r, value=0.1, at=NOW + 1)])
    store.exported(marks(before))
    (after,) = unpublished(store)
    assert after.scores[0].result.value == 0.1
    store.exported(marks(after))
    assert unpublished(store) == []
    store.emit(r, [score(r, value=0.1, at=NOW + 1)])
    assert unpublished(store) == []


def test_a_score_leaves_the_outbox_when_its_event_and_its_count_arrived(store):
    owner, entry, r = Owner(), OutboxEntry(seq=1), make.record()
    store.emit(r, [score(r), score(r, "mrr")], owner=owner, entry=entry)
    first, _ = entry.marks.values()
    store.exported([first], EVENT)
    assert shown(store, "exported") == [(0,), (0,)]
    store.exported([], owner=owner, upto=[(COUNT, 0, 1)])
    assert shown(store, "metric", "exported") == [("faithfulness", 1), ("mrr", 0)]
    store.leave(owner)
    (left,) = unpublished(store)
    assert [(it.key.metric, left.entry.owed[it.key]) for it in left.scores] == [("mrr", EVENT)]


def test_what_was_written_behind_a_place_is_not_meant_by_it(store):
    owner = Owner()
    for n in (1, 2, 3):
        store.emit(make.record(n=n), [score(make.record(n=n))], owner=owner, entry=OutboxEntry(seq=n))
    store.exported([], owner=owner, upto=[(COUNT, 0, 2), (EVENT, 1, 3)])
    assert shown(store, "exported") == [(0,), (1,), (0,)]


def test_a_unit_that_is_scored_again_stands_as_it_was_published(store):
    """Its scorer died between the scores and the end of the job."""
    dead, second, r = Owner(process=ENDED), Owner(), make.record()
    store.emit(r, [score(r), score(r, "mrr")], owner=dead, entry=(first := OutboxEntry(seq=1)))
    store.exported([first.marks[score(r).key]], EVENT)
    again = OutboxEntry(seq=1)
    store.emit(r, [score(r, value=0.1, at=NOW + 9), score(r, "mrr", 0.1, at=NOW + 9)], owner=second, entry=again)
    assert shown(store, "metric", "value") == [("faithfulness", 0.9), ("mrr", 0.1)]
    assert [again.is_owed(score(r), EVENT), again.is_owed(score(r), COUNT)] == [False, True]
    assert again.is_owed(score(r, "mrr"), EVENT)
    assert unpublished(store) == []  # the second answers for both


def test_a_unit_whose_scores_another_scorer_is_about_to_publish_is_its_own(store):
    """A lease ran out while its holder lived."""
    first, second, r = Owner(), Owner(), make.record()
    store.emit(r, [score(r)], owner=first, entry=OutboxEntry(seq=1))
    again = OutboxEntry(seq=1)
    store.emit(r, [score(r, value=0.1, at=NOW + 9)], owner=second, entry=again)
    assert not again.is_owed(score(r))
    assert shown(store, "value") == [(0.9,)]
    store.leave(second)
    assert unpublished(store) == []
    store.leave(first)
    assert len(unpublished(store)) == 1


def test_an_event_that_did_not_arrive_is_given_out_again_once_a_while(store, wall):
    owner, r = Owner(), make.record()
    store.emit(r, [score(r)], owner=owner, entry=OutboxEntry(seq=1))
    assert store.unsent(owner, older_s=60.0) == []
    wall.at += 61.0
    (missing,) = store.unsent(owner, older_s=60.0)
    assert missing.scores == (score(r),)
    assert store.unsent(owner, older_s=60.0) == []
    wall.at += 61.0
    store.exported(marks(missing), EVENT)
    assert store.unsent(owner, older_s=60.0) == []


def without_facts(path):
    """Take the columns away that version 3 brought."""
    with sqlite3.connect(path) as connection:
        for name in FACTS:
            connection.execute(f"ALTER TABLE runs DROP COLUMN {name}")
        connection.execute("UPDATE store_facts SET value = 2")
    connection.close()


def test_a_store_of_version_2_keeps_its_scores_and_takes_facts_of_new_runs(tmp_path):
    path = tmp_path / "s"
    old = make.store(path)
    old.emit(make.record(n=1), [score(make.record(n=1))])
    old.close()
    without_facts(path)
    store = make.store(path)
    store.emit(replace(make.record(n=2), tags=("beta",), query="Where is the lab?"), [score(make.record(n=2))])
    found = {row["trace_id"]: row for row in store.scores_with_facts("faithfulness", since=0.0, until=math.inf)}
    assert found[make.record(n=1).trace_id]["tags"] is None
    assert found[make.record(n=2).trace_id]["tags"] == '["beta"]'
    assert found[make.record(n=2).trace_id]["language"] == "en"
    store.close()


def test_a_store_of_version_1_is_taken_over(tmp_path):
    path = tmp_path / "s"
    old = make.store(path)
    for n in (1, 2):
        old.emit(make.record(n=n), [score(make.record(n=n))])
    old.close()
    without_facts(path)
    with sqlite3.connect(path) as connection:
        connection.executescript(
            "UPDATE store_facts SET value = 1; DROP TABLE outbox; DROP TABLE owners;"
            "UPDATE scores SET exported = 1 WHERE run = 1;"
            "CREATE INDEX scores_outbox ON scores (run) WHERE exported = 0;"
            "CREATE TABLE claims (run INTEGER PRIMARY KEY, until REAL NOT NULL)"
        )
    connection.close()
    store = make.store(path)
    (left,) = unpublished(store)
    assert left.record.trace_id == make.record(n=2).trace_id
    with store._file.connection() as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    assert not names & {"claims", "scores_outbox"}
    assert names >= {"outbox", "owners"}
    store.close()


def test_the_outbox_gives_whole_traces_the_oldest_first(store):
    for n in range(1, 6):
        store.emit(make.record(n=n), [score(make.record(n=n)), score(make.record(n=n), "mrr")])
    found = unpublished(store, 2)
    assert [len(p.scores) for p in found] == [2, 2]
    assert [p.record.trace_id for p in found] == [make.record(n=1).trace_id, make.record(n=2).trace_id]


# -- what is kept --


def test_records_are_kept_for_a_reason_and_with_its_probability(tmp_path, wall):
    store = make.store(tmp_path / "s", has_content=True, payload_share=0.25, wall=wall)
    total = 400
    for n in range(1, total + 1):
        store.emit(make.record(n=n), [score(make.record(n=n))])
    for n, scores in {
        1001: [score(make.record(n=1001), value=None, state="error", reason="judge_timeout", passed=None)],
        1002: [score(make.record(n=1002), passed=False)],
        1003: [score(make.record(n=1003), stratum="forced")],
    }.items():
        store.emit(make.record(n=n), scores)
    probabilities = {r.id: p for r, p in store.records()}
    sample = [p for p in probabilities.values() if p == 0.25]
    assert sum(p == 1.0 for p in probabilities.values()) == 3
    assert 60 < len(sample) < 140  # 100 expected, sd 8.7


def test_where_all_records_are_kept_the_reason_is_none_of_their_scores(tmp_path, wall):
    store = make.store(tmp_path / "s", has_content=True, has_all_texts=True, wall=wall)
    for n, facts in enumerate(({}, {"passed": False}, {"stratum": "forced"}), start=1):
        store.emit(make.record(n=n), [score(make.record(n=n), **facts)])
    failed = score(make.record(n=4), value=None, state="error", reason="judge_timeout", passed=None)
    store.emit(make.record(n=4), [failed])
    assert [store.kept_for(make.record(n=n).trace_id) for n in range(1, 5)] == ["all", "all", "flagged", "all"]
    assert [(r.id, p) for r, p in store.records()] == [(str(n), 1.0) for n in range(1, 5)]


def test_the_reason_to_keep_a_record_stays_as_long_as_its_scores(store, wall):
    for n in (1, 2):
        store.emit(make.record(n=n), [score(make.record(n=n), passed=n == 2)])
    age_until(store, wall, NOW + 72 * 3600 + 1)
    assert list(store.records()) == []
    assert [store.kept_for(make.record(n=n).trace_id) for n in (1, 2)] == ["low", None]
    late = replace(make.record(n=2), revision=1, answer="Paris.")
    store.emit(late, [score(late, passed=False)])
    assert store.kept_for(make.record(n=2).trace_id) == "low"


def test_a_store_of_version_3_learns_why_its_records_were_kept(tmp_path):
    path = tmp_path / "s"
    old = make.store(path, FULL)
    for n in (1, 2):
        old.emit(make.record(n=n), [score(make.record(n=n), passed=n == 2)])
    old.close()
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE runs DROP COLUMN kept_for")
        connection.execute("UPDATE store_facts SET value = 3 WHERE name = 'schema'")
    connection.close()
    store = make.store(path, FULL)
    assert [store.kept_for(make.record(n=n).trace_id) for n in (1, 2)] == ["low", None]
    assert store.record(make.record(n=1).trace_id) == make.record(n=1)
    store.close()


@pytest.mark.parametrize(
    "policy", [Policy(), Policy(payload_share=1.0), Policy(has_all_texts=True)], ids=["none", "share", "all"]
)
def test_without_content_no_text_reaches_the_file(tmp_path, policy):
    path = tmp_path / "s"
    store = make.store(path, policy)
    r = make.record(query=SECRET, answer=SECRET)
    store.emit(r, [score(r, passed=False, details={"claims": [SECRET], "n": 3, "explanation": SECRET})])
    store.rate([Label(trace_id=r.trace_id, value=0.0, comment=SECRET)])
    assert shown(store, "details") == [('{"n":3}',), (None,)]
    store.close()
    assert b"Lovelace" not in path.read_bytes()


def read_of(*signs, **facts):
    return make.record(reading=Reading(Found("input.body", "guess"), signs=signs), **facts)


def test_what_capture_read_of_a_run_stays_when_its_texts_go_and_the_words_of_a_sign_go_with_them(tmp_path, wall):
    path = tmp_path / "s"
    store = make.store(path, FULL, wall=wall)
    r = read_of(Sign("question_guessed", "input.body", SECRET, 'question="input.body"'))
    store.emit(r, [score(r, passed=False)])
    assert store.record(r.trace_id).signs[0].text == SECRET
    age_until(store, wall, NOW + 72 * 3600 + 1)
    assert store.record(r.trace_id) is None
    bare = replace(r.reading, signs=(replace(r.signs[0], text=""),))
    assert store.reading(r.trace_id) == bare
    assert (store.signed_traces(), store.signed_traces("tool_unused")) == ({r.trace_id}, set())
    store.forget("trace", r.trace_id)
    assert (store.reading(r.trace_id), store.signed_traces()) == (None, set())
    store.close()
    assert b"Lovelace" not in path.read_bytes()


def test_without_content_the_words_of_a_sign_do_not_reach_the_file(tmp_path):
    path = tmp_path / "s"
    store = make.store(path)
    r = read_of(Sign("question_guessed", "input.body", SECRET))
    store.emit(r, [score(r, passed=False)])
    assert store.signed_traces("question_guessed") == {r.trace_id}
    store.close()
    assert b"Lovelace" not in path.read_bytes()


def test_a_reading_too_long_to_keep_leaves_the_names_of_its_signs(store):
    r = read_of(*[Sign("tool_unused", "tool" * 30) for _ in range(200)])
    store.emit(r, [score(r)])
    assert (store.reading(r.trace_id), store.signed_traces("tool_unused")) == (None, {r.trace_id})


def test_a_later_revision_says_anew_what_was_read(store):
    r = read_of(Sign("question_guessed"))
    store.emit(r, [score(r)])
    late = replace(r, revision=1, reading=replace(r.reading, signs=()))
    store.emit(late, [score(late)])
    assert store.signed_traces() == set()
    assert store.reading(r.trace_id) == late.reading


def test_a_store_of_version_5_takes_readings_of_new_runs(tmp_path):
    path = tmp_path / "s"
    old = make.store(path)
    old.emit(make.record(n=1), [score(make.record(n=1))])
    old.close()
    with sqlite3.connect(path) as connection:
        for name in ("signs", "signed", "reading"):
            connection.execute(f"ALTER TABLE runs DROP COLUMN {name}")
        connection.execute("UPDATE store_facts SET value = 5 WHERE name = 'schema'")
    connection.close()
    store = make.store(path)
    new = read_of(Sign("question_guessed"), n=2)
    store.emit(new, [score(new)])
    assert store.signed_traces() == {new.trace_id}
    assert [store.reading(make.record(n=n).trace_id) for n in (1, 2)] == [None, new.reading]
    store.close()


# -- the time of a run --


def times_of(store):
    """Return when each run ended, as a search reads it, by its number."""
    rows = store.scores_with_facts("faithfulness", since=0.0, until=math.inf)
    return {int(row["trace_id"], 16): row["at"] for row in rows}


def test_the_time_of_a_run_is_that_of_its_end_and_not_of_its_scoring(store):
    for n, times in enumerate(({"started": NOW - 7_201, "ended": NOW - 7_200}, {"started": NOW - 60}), start=1):
        r = make.record(n=n, **times)
        store.emit(r, [score(r)])
    assert times_of(store) == {1: NOW - 7_200, 2: NOW - 60}
    late = [row["trace_id"] for row in store.scores_with_facts("faithfulness", since=NOW - 3_600, until=NOW + 1)]
    assert late == [make.record(n=2).trace_id]


@pytest.mark.parametrize("bogus", [0.0, -1.0, NOW + 864_000.0, NOW * 1_000.0, math.nan, math.inf])
def test_a_time_that_no_clock_can_have_meant_is_that_of_arrival(store, wall, bogus):
    r = make.record(ended=bogus)
    store.emit(r, [score(r)])
    assert times_of(store) == {1: NOW}
    wall.at += 86_400.0
    store.emit(r, [score(r, value=0.4)])
    assert times_of(store) == {1: NOW}, "scored again, and it did not run again"


def test_a_run_that_came_without_its_time_takes_the_time_of_a_later_revision(store):
    r = make.record()
    store.emit(r, [score(r)])
    late = replace(r, revision=1, ended=NOW - 60)
    store.emit(late, [score(late)])
    assert times_of(store) == {1: NOW - 60}


def test_a_store_of_version_6_keeps_the_arrival_of_its_runs_and_takes_the_end_of_new_ones(tmp_path, wall):
    path = tmp_path / "s"
    old = make.store(path, wall=wall)
    r = make.record(ended=NOW - 7_200)
    old.emit(r, [score(r)])
    old.close()
    with sqlite3.connect(path) as connection:
        connection.executescript(
            "DROP INDEX runs_ended; ALTER TABLE runs DROP COLUMN ended;"
            "UPDATE store_facts SET value = 6 WHERE name = 'schema'"
        )
    connection.close()
    wall.at += 60
    store = make.store(path, wall=wall)
    new = make.record(n=2, ended=NOW - 3_600)
    store.emit(new, [score(new)])
    assert times_of(store) == {1: NOW, 2: NOW - 3_600}
    with store._file.connection() as connection:
        assert connection.execute("SELECT value FROM store_facts WHERE name = 'schema'").fetchone() == (7,)
        assert connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'runs_ended'").fetchone()
    store.close()


def test_runs_that_ended_at_one_time_are_each_read_once_where_a_page_ends_among_them(store):
    for n in range(1, 1_203):
        r = make.record(n=n, ended=NOW - 60)
        store.emit(r, [score(r)])
    found = [row["trace_id"] for row in store.scores_with_facts("faithfulness", since=0.0, until=NOW)]
    assert (len(found), len(set(found))) == (1_202, 1_202)


def test_a_search_reads_while_a_writer_holds_a_transaction_and_no_writer_waits_for_a_search(store, tmp_path):
    for n in range(1, 1_203):
        r = make.record(n=n)
        store.emit(r, [score(r)])
    with store._file.transaction() as connection:
        connection.execute("UPDATE runs SET model = 'not yet'")
        assert {row["model"] for row in store.scores_with_facts("faithfulness", since=0.0, until=NOW + 1)} == {None}
    rows = store.scores_with_facts("faithfulness", since=0.0, until=NOW + 1)
    next(rows)
    with sqlite3.connect(tmp_path / "store", timeout=0.0) as other:
        other.execute("UPDATE runs SET model = 'new'")
    other.close()
    assert [row["model"] for row in rows].count("new") == 202, "the next page is of the new moment"


FORKED = """
import os, sys, time
from pathlib import Path
from tests import make

store = make.store(Path(sys.argv[1]))

def put(first, last):
    for n in range(first, last):
        record = make.record(n=n)
        store.emit(record, [make.score(record, at=time.time())])

put(1, 1_202)
rows = store.scores_with_facts("faithfulness", since=0.0, until=9e9)
next(rows)
(child_reads, parent_writes), (parent_reads, child_writes) = os.pipe(), os.pipe()
if os.fork():
    os.read(parent_reads, 1)
    assert len(list(rows)) >= 1_200
    put(3_000, 3_100)
    store.close()
    os.write(parent_writes, b".")
    os.wait()
else:
    put(2_000, 2_100)
    os.write(child_writes, b".")
    os.read(child_reads, 1)
    put(2_100, 2_200)
    store.close()
    os._exit(0)
"""


def test_a_process_that_forks_amid_a_search_loses_no_score_of_its_child(tmp_path):
    path = tmp_path / "store"
    done = subprocess.run(
        [sys.executable, "-c", FORKED, str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    store = make.store(path)
    assert len(list(store.rows())) == 1_201 + 200 + 100
    store.close()


# -- time --


def test_payloads_go_before_scores_and_both_in_time(store, wall):
    r = make.record()
    store.emit(r, [score(r, passed=False)])
    age_until(store, wall, NOW + 72 * 3600 - 1)
    assert len(list(store.records())) == 1
    age_until(store, wall, wall.at + 2)
    assert (len(list(store.records())), len(list(store.rows()))) == (0, 1)
    age_until(store, wall, NOW + 14 * 86400 + 1)
    assert list(store.rows()) == []


def test_scores_wait_for_the_end_of_their_label(store, wall):
    for n in (1, 2):
        store.emit(make.record(n=n), [score(make.record(n=n))])
    wall.at = NOW + 10 * 86400
    store.rate([Label(trace_id=make.record(n=1).trace_id, value=1.0)])
    age_until(store, wall, NOW + 39 * 86400)
    assert shown(store, "trace_id", "source") == [
        (make.record(n=1).trace_id, "judge"),
        (make.record(n=1).trace_id, "human"),
    ]
    age_until(store, wall, NOW + 41 * 86400)
    assert list(store.rows()) == []


def test_a_label_may_come_before_its_scores(store):
    r = make.record(workflow="support")
    store.rate([Label(trace_id=r.trace_id, value=0.0, comment="wrong", rater="ada")])
    store.rate([Label(trace_id=r.trace_id, value=1.0, comment="right after all", rater="ada", at=NOW + 1)])
    store.rate([Label(trace_id=r.trace_id, value=0.5, rater="bob")])
    store.emit(r, [score(r)])
    assert sorted(shown(store, "source", "version", "value", workflow="support")) == [
        ("human", "human:ada", 1.0),
        ("human", "human:bob", 0.5),
        ("judge", "v1", 0.9),
    ]
    assert [p.scores[0].key.metric for p in unpublished(store)] == [
        "faithfulness"
    ]  # labels are not ours to publish


def test_a_clock_that_was_ahead_leaves_nothing_for_ever(store, wall):
    wall.at = NOW + 10**9
    r = make.record()
    store.emit(r, [score(r, passed=False)])
    wall.at = NOW
    store.apply_retention()
    assert len(list(store.rows())) == 1
    age_until(store, wall, NOW + 15 * 86400)
    assert list(store.rows()) == []


def test_a_jump_of_the_wall_s_clock_ages_nothing(tmp_path, monkeypatch):
    store = make.store(tmp_path / "s")
    r = make.record()
    store.emit(r, [score(r, at=0.0)])
    import time

    monkeypatch.setattr(time, "time", lambda: NOW * 2)
    store.apply_retention()
    assert len(list(store.rows())) == 1


DAY = 86_400.0


def grown(store, wall, days=10):
    """Write a score an hour for some days, with what a service does beside."""
    for hour in range(days * 24):
        r = make.record(n=hour)
        store.emit(r, [score(r, passed=False, at=wall.at)])
        age_until(store, wall, wall.at + 3_600.0)


def traces_left(store):
    return len(list(store.rows()))


@pytest.fixture
def again(tmp_path, store):
    """Open the file in a process of its own clock."""
    opened = []

    def open_(wall):
        opened.append(make.store(tmp_path / "store", FULL, wall=wall, uptime=lambda: 0.0))
        return opened[-1]

    yield open_
    for one in opened:
        one.close()


def test_a_clock_that_is_30_days_ahead_at_start_deletes_nothing(store, wall, again):
    grown(store, wall)
    kept = len(list(store.records()))
    wall.at += 30 * DAY
    ahead = again(wall)
    r = make.record(n=999)
    ahead.emit(r, [score(r, passed=False, at=wall.at)])
    ahead.apply_retention()
    assert traces_left(store) == 241
    assert len(list(store.records())) == kept + 1
    age_until(ahead, wall, wall.at + 2 * DAY)  # what is due by the days that really passed, and no more
    assert traces_left(store) == 241
    wall.at -= 30 * DAY
    right = again(wall)
    right.apply_retention()
    assert traces_left(store) == 241
    age_until(right, wall, wall.at + 4 * DAY)
    assert 190 < traces_left(store) < 194  # two days' worth is older than 14 days


def test_a_file_that_was_not_opened_for_a_month_ages_a_day_s_worth_a_day(store, wall, again):
    grown(store, wall)
    wall.at += 30 * DAY
    late = again(wall)
    left = [traces_left(store)]
    for _ in range(16):
        r = make.record(n=1_000 + len(left))
        late.emit(r, [score(r, passed=False, at=wall.at)])
        age_until(late, wall, wall.at + DAY)
        left.append(traces_left(store))
    assert left[0] == 240
    assert all(before - after <= 25 for before, after in pairwise(left))
    assert left[-1] == 14  # the old ones have gone, and of the new ones those that are too old


@pytest.mark.parametrize("gap_days", [1.0, 7.0, 40.0])
def test_a_store_that_is_opened_now_and_then_on_a_host_that_runs_ages_in_full(tmp_path, wall, gap_days):
    def opened():
        return make.store(tmp_path / "seldom", FULL, wall=wall, uptime=lambda: wall.at - NOW + 7_000.0)

    for session in range(4):
        wall.at += gap_days * DAY
        store = opened()
        r = make.record(n=session)
        store.emit(r, [score(r, passed=False, at=wall.at)])
        store.apply_retention()
        store.close()
    wall.at += 15 * DAY
    last = opened()
    last.apply_retention()
    assert traces_left(last) == 0
    last.close()


@pytest.mark.parametrize("gap_days", [1.01, 1.04])
def test_a_daily_session_after_a_nightly_restart_ages_in_full(tmp_path, wall, gap_days, monkeypatch):
    boots = iter(range(100))
    for session in range(20):
        wall.at += gap_days * DAY
        boot = str(next(boots))
        monkeypatch.setattr("ragtrace.stores.sqlite.boot_id", lambda boot=boot: boot)
        store = make.store(tmp_path / "daily", FULL, wall=wall, uptime=lambda: 60.0)
        r = make.record(n=session)
        store.emit(r, [score(r, passed=False, at=wall.at)])
        store.apply_retention()
        left = traces_left(store)
        store.close()
    assert left == 14


def test_a_night_off_is_no_leap(store, wall, again):
    grown(store, wall, days=1)
    age_until(store, wall, NOW + 14 * DAY - 3_600.0)
    wall.at += 12 * 3_600.0
    again(wall).apply_retention()
    assert 8 <= 24 - traces_left(store) <= 12


def test_a_file_from_before_the_look_at_leaps_is_not_emptied(store, wall, again):
    for hour in range(48):
        r = make.record(n=hour)
        store.emit(r, [score(r, at=wall.at)])
        wall.at += 3_600.0
    wall.at += 30 * DAY
    ahead = again(wall)
    ahead.emit(make.record(n=99), [score(make.record(n=99), at=wall.at)])
    ahead.apply_retention()
    assert traces_left(store) == 49


# -- room --


@pytest.mark.parametrize("has_all_texts", [False, True], ids=["selected", "all"])
def test_the_file_stays_within_its_limit_and_payloads_go_first(tmp_path, wall, has_all_texts):
    path, limit = tmp_path / "s", 3_000_000
    policy = Policy(has_content=True, has_all_texts=has_all_texts, file_bytes=limit)
    store = make.store(path, policy, wall=wall)
    before = internal_errors()
    for n in range(1, 401):
        wall.at += 1
        r = make.record(n=n, answer="x" * 20_000)
        store.emit(r, [score(r, passed=False, at=wall.at)])
        assert path.stat().st_size <= limit
    kept = [int(r.id) for r, _ in store.records()]
    assert kept == list(range(401 - len(kept), 401))
    assert len(kept) > 60  # of 20 KB each: the room is used
    assert len(list(store.rows())) == 400
    gone = internal_errors()["ragtrace.stores.evicted_payloads"] - before.get("ragtrace.stores.evicted_payloads", 0)
    assert gone == 400 - len(kept)


def test_without_payloads_the_oldest_scores_go(tmp_path, wall):
    path, limit = tmp_path / "s", 1_100_000
    store = make.store(path, file_bytes=limit, wall=wall)
    with store._file.transaction() as connection:
        for n in range(1, 6_001):
            wall.at += 1
            r = make.record(n=n)
            store.writer([score(r, at=wall.at)], r)(connection)
    store.close()
    assert path.stat().st_size <= limit
    left = [int(trace, 16) for (trace,) in shown(store, "trace_id")]
    assert left == list(range(6_001 - len(left), 6_001))
    assert len(left) > 2_000


def test_where_a_spool_fills_the_file_scores_are_lost_and_counted_and_the_job_ends(tmp_path):
    path = tmp_path / "shared"
    spool = Spool(path)
    store = make.store(path, file_bytes=1_100_000)
    spool.put([Entry(key=str(n), payload=b"x" * 50_000) for n in range(30)])
    (job,) = spool.lease("w", 1)
    before = internal_errors().get("ragtrace.stores.full", 0)
    r = make.record()
    assert spool.ack("w", job.key, "scored", also=store.writer([score(r)], r))
    assert internal_errors()["ragtrace.stores.full"] == before + 1
    assert list(store.rows()) == []
    assert spool.counters().ends == {("scored", ""): 1}


def test_a_score_costs_about_a_hundred_bytes(tmp_path):
    store = make.store(tmp_path / "s")
    with store._file.transaction() as connection:
        for n in range(1, 2_001):
            r = make.record(n=n, workflow="support", session=f"session-{n % 100}", model="gpt-4o-mini")
            scores = [score(r, m) for m in ("faithfulness", "answer_relevancy", "no_answer", "citations")]
            store.writer(scores, r)(connection)
        assert used_bytes(connection) / 8_000 < 200  # while they are owed to a receiver
    for pending in unpublished(store, 2_000):
        store.exported(marks(pending))
    with store._file.connection() as connection:
        assert used_bytes(connection) / 8_000 < 130


# -- with a spool --


def test_scores_and_the_end_of_a_job_stand_together_or_not_at_all(tmp_path):
    path = tmp_path / "shared"
    store = make.store(path, FULL)  # made by the store first, then by the spool
    spool = Spool(path)
    spool.put([Entry(key="a", payload=b"{}"), Entry(key="b", payload=b"{}")])
    spool.lease("w", 2)
    r = make.record()

    def broken(connection):
        store.writer([score(r)], r)(connection)
        raise sqlite3.OperationalError("disk is full")

    with pytest.raises(sqlite3.OperationalError):
        spool.ack("w", "a", "scored", also=broken)
    assert list(store.rows()) == []
    assert spool.ack("w", "a", "scored", also=store.writer([score(r)], r))
    assert not spool.ack("other", "b", "scored", also=store.writer([score(make.record(n=2))], make.record(n=2)))
    assert shown(store, "trace_id") == [(r.trace_id,)]


def test_a_spool_that_was_put_aside_gets_the_tables_again(tmp_path):
    path = tmp_path / "shared"
    store = make.store(path)
    path.rename(tmp_path / "aside")
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    spool = Spool(path)
    spool.put([Entry(key="a", payload=b"{}")])
    spool.lease("w", 1)
    r = make.record()
    assert spool.ack("w", "a", "scored", also=store.writer([score(r)], r))
    assert shown(store, "trace_id") == [(r.trace_id,)]


# -- erasing --


def payload_of(r):
    from ragtrace.queues import Unit, to_bytes

    return to_bytes(Unit(record=r))


@pytest.mark.parametrize("subject", ["trace", "session", "user"])
def test_what_is_forgotten_leaves_no_byte_in_the_file(tmp_path, subject):
    path = tmp_path / "shared"
    spool = Spool(path)
    store = make.store(path, FULL)
    context = Pool(stage="used", passages=(Passage(id="p", text=SECRET * 400, rank=1),))
    mine = make.record(n=1, session="s-1", user="ada-4711", answer=SECRET, pools=(context,))
    other = make.record(n=2, session="s-2", user="bob", answer="Nothing of hers.")
    for r in (mine, other):
        store.emit(r, [score(r, passed=False, details={"claims": [r.answer]})])
        store.rate([Label(trace_id=r.trace_id, value=0.0, comment=r.answer)])
    spool.put([Entry(key=r.id, payload=payload_of(r)) for r in (mine, other)])
    spool.put([Entry(key="leased", payload=payload_of(mine), priority=5), Entry(key="junk", payload=b"\xff{")])
    spool.lease("w", 1)
    assert b"Lovelace" in path.read_bytes() + Path(f"{path}-wal").read_bytes()

    identity = {"trace": mine.trace_id, "session": "s-1", "user": "ada-4711"}[subject]
    would = store.would_forget(subject, identity)
    erased = store.forget(subject, identity)

    assert would == erased
    assert (erased.scores, erased.labels, erased.payloads, erased.jobs) == (1, 1, 1, 2)
    content = path.read_bytes() + Path(f"{path}-wal").read_bytes()
    assert b"Lovelace" not in content
    assert b"ada-4711" not in content
    assert {trace for (trace,) in shown(store, "trace_id")} == {other.trace_id}
    assert not spool.ack("w", "leased", "scored", also=store.writer([score(mine)], mine))
    accounts = spool.counters()
    assert accounts.offered == sum(accounts.ends.values()) + accounts.pending
    assert accounts.ends == {("skipped", "forgotten"): 2}
    with spool._file.connection() as connection:
        size = connection.execute("SELECT total(size) FROM jobs WHERE state != 'ended'").fetchone()[0]
    assert accounts.bytes == size
    assert {job.key for job in spool.lease("w", 9)} == {other.id, "junk"}


# -- faults --


def test_a_broken_file_is_put_aside_and_a_new_one_begun(tmp_path):
    path = tmp_path / "s"
    break_file(path)
    store = make.store(path)
    store.emit(make.record(), [score(make.record())])
    assert len(list(store.rows())) == 1
    (aside,) = tmp_path.glob("s.corrupt-*")
    assert JUNK in aside.read_bytes()


def test_a_full_disk_is_an_error_of_each_call_and_nothing_is_half_written(tmp_path):
    store = make.store(tmp_path / "s", FULL)
    store.emit(make.record(n=1), [score(make.record(n=1))])
    with store._file.connection() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 2}")  # SQLite says SQLITE_FULL as for a full disk
    big = make.record(n=2, answer="x" * 50_000)
    with pytest.raises(sqlite3.OperationalError, match="full"):
        store.emit(big, [score(big, passed=False)])
    assert shown(store, "trace_id") == [(make.record(n=1).trace_id,)]
    store.emit(big, [score(big, passed=False)])  # the connection was opened anew, without the limit
    assert len(list(store.rows())) == 2


def test_what_cannot_be_opened_is_said_in_one_line(tmp_path):
    for path in (tmp_path / "no" / "s", tmp_path):
        with pytest.raises(StoreError) as caught:
            make.store(path)
        assert "\n" not in str(caught.value)
    with pytest.raises(StoreError, match="no store"):
        make.store(tmp_path / "missing", is_made=False)
    assert not (tmp_path / "missing").exists()


def test_a_newer_store_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "s"
    make.store(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE store_facts SET value = 99")
    connection.close()
    with pytest.raises(StoreError, match="newer ragtrace"):
        make.store(path)
    assert list(tmp_path.glob("s.corrupt-*")) == []


def test_a_score_of_a_newer_ragtrace_is_passed_over_and_counted(store):
    r = make.record()
    store.emit(r, [score(r), score(r, "mrr")])
    with store._file.transaction() as connection:
        connection.execute("UPDATE scores SET state = 'unheard_of' WHERE series = 1")
    (pending,) = unpublished(store)
    assert [s.key.metric for s in pending.scores] == ["mrr"]
    store.exported(marks(pending))
    assert unpublished(store) == []


KILLED = """
import sys
sys.path.insert(0, {tests!r})
from itertools import pairwise
from pathlib import Path
from test_sqlite import *
store = make.store(Path(sys.argv[1]), FULL)
for n in range(1, 10**6):
    r = make.record(n=n)
    store.emit(r, [score(r, m, passed=False) for m in ("faithfulness", "mrr", "p_at_k")])
    print(n, flush=True)
"""


def test_after_kill_9_every_write_is_there_whole_or_not_at_all(tmp_path):
    path = tmp_path / "s"
    for _ in range(3):
        child = subprocess.Popen(
            [sys.executable, "-c", KILLED.format(tests=str(Path(__file__).parent)), str(path)],
            stdout=subprocess.PIPE,
        )
        for line in child.stdout:
            said = int(line)
            if said >= 100:
                break
        child.kill()
        rest = child.communicate()[0].split()
        said = int(rest[-1]) if rest and rest[-1].isdigit() else said
        store = make.store(path)
        runs = {}
        for trace, metric in shown(store, "trace_id", "metric"):
            runs.setdefault(int(trace, 16), []).append(metric)
        assert len(runs) >= 100
        assert set(runs) >= set(range(1, said))
        assert all(len(metrics) == 3 for metrics in runs.values())
        assert len(list(store.records())) == len(runs)
        with store._file.connection() as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        store.close()


def test_a_record_that_was_kept_for_its_time_leaves_no_byte(tmp_path, wall, monkeypatch):
    monkeypatch.setattr(sqlite_file, "EMPTY_EVERY_S", 0.0)
    path = tmp_path / "s"
    store = make.store(path, FULL, wall=wall)
    for n in range(60):
        r = make.record(n=n, answer=SECRET * (n % 7 * 20 + 1))
        store.emit(r, [score(r, passed=False)])
    store.record(make.record(n=1).trace_id)
    store.empty_journal()
    assert b"Lovelace" in path.read_bytes()
    store.apply_retention()
    age_until(store, wall, wall.at + FULL.payloads_s + 1)
    store.empty_journal()
    assert b"Lovelace" not in path.read_bytes() + Path(f"{path}-wal").read_bytes()
    store.close()
