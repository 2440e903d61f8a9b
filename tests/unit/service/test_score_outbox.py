"""The outbox of a service: scores enter it as they are written, and leave it as they arrive."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor, wait
from types import SimpleNamespace

import pytest

from ragtrace.queues import Entry, Spool
from ragtrace.service import ScoreOutbox, Storing
from ragtrace.settings import Settings
from ragtrace.stores import Label, OutboxEntry, sqlite
from ragtrace.telemetry import Receipts
from tests import make

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def record(n=1):
    return make.record(n=n, trace_id=TRACE)


def score(n=1):
    return make.score(record(n), at=1.7e9)


@pytest.fixture
def made(tmp_path):
    found = []

    def make(receipts=None, **settings):
        given = {"store": str(tmp_path / "s"), "spool": str(tmp_path / "spool"), **settings}
        storing = Storing.of(Settings.resolve(given, {}))
        if receipts is None:
            receipts = Receipts()
            receipts.events = receipts.counts = "exporter"
        outbox = ScoreOutbox(storing, receipts)
        receipts.listen(outbox.take)
        found.append((outbox, storing))
        return outbox, storing.store, receipts

    yield make
    for outbox, storing in found:
        outbox.close(1.0)
        storing.close(1.0)


def exported(store):
    return [row["exported"] for row in store.rows()]


def arrived(*entries):
    """A batch of log records that an exporter delivered."""
    return [SimpleNamespace(log_record=SimpleNamespace(mark=mark)) for it in entries for mark in it.marks.values()]


def test_a_file_of_its_own_is_written_before_the_job_s_end(made):
    outbox, store, _ = made()
    entry = OutboxEntry()
    assert outbox.also([score()], record(), entry) is None
    outbox.write([score()], record(), entry)()
    assert exported(store) == [0]
    assert outbox.leftovers() == []  # its owner lives


def test_in_the_spool_s_file_scores_are_written_with_the_job_s_end(made, tmp_path):
    outbox, store, _ = made(store=str(tmp_path / "." / "spool"))
    spool, entry = Spool(tmp_path / "spool"), OutboxEntry()
    spool.put([Entry(key="a", payload=b"{}")])
    spool.lease("w", 1)
    assert outbox.write([score()], record(), entry) is None
    assert spool.ack("w", "a", "scored", also=outbox.also([score()], record(), entry))
    assert exported(store) == [0]
    outbox.close(1.0)  # what a process leaves is the next one's
    other, _, _ = made(store=str(tmp_path / "spool"))
    (pending,) = other.leftovers()
    assert (pending.scores, pending.record.trace_id) == ((score(),), TRACE)


def test_feedback_and_the_end_of_a_job_in_one_file_do_not_wait_for_each_other(made, tmp_path):
    outbox, store, _ = made(store=str(tmp_path / "spool"))
    store.kind_of = lambda _: store.question_mix("workflow") and None  # as the service's does for a new workflow
    label = Label(trace_id=TRACE, value=1.0)
    with ThreadPoolExecutor(1) as threads:
        also = outbox.also([score()], record(), OutboxEntry())
        with sqlite3.connect(tmp_path / "spool", isolation_level=None) as end_of_job:
            end_of_job.execute("BEGIN IMMEDIATE")
            feedback = threads.submit(store.rate, [label])
            assert not wait([feedback], 0.3).done
            also(end_of_job)
            end_of_job.execute("COMMIT")
        end_of_job.close()
        assert feedback.result() == 1
    assert exported(store) == [0, 1]  # the score, and the label, which nobody exports


def test_what_arrived_is_noted(made):
    outbox, store, receipts = made()
    entry = OutboxEntry()
    outbox.write([score()], record(), entry)()
    outbox.published(entry)
    receipts.delivered(arrived(entry))
    receipts.reported(2**62)
    assert outbox.note()
    assert exported(store) == [1]


def test_an_entry_that_is_not_published_yet_holds_the_counts_behind_it_back(made):
    outbox, store, receipts = made()
    entries = [OutboxEntry() for _ in range(3)]
    for n, entry in enumerate(entries, start=1):
        outbox.write([score(n)], record(n), entry)()
    for entry in (entries[0], entries[2]):
        outbox.published(entry)
    receipts.delivered(arrived(*entries))
    receipts.reported(2**62)
    assert outbox.drain(10.0)
    assert exported(store) == [1, 0, 0]
    outbox.published(entries[1])
    receipts.reported(2**62)
    assert outbox.drain(10.0)
    assert exported(store) == [1, 1, 1]


def test_where_nobody_is_to_be_told_scores_count_as_delivered_at_once(made):
    outbox, store, _ = made(Receipts())
    entry = OutboxEntry()
    outbox.write([score()], record(), entry)()
    outbox.published(entry)
    assert outbox.drain(10.0)
    assert exported(store) == [1]


def test_a_locked_file_holds_no_exporter_up_and_loses_no_note(made, monkeypatch, tmp_path):
    monkeypatch.setattr(sqlite, "BUSY_S", 0.05)
    outbox, store, receipts = made()
    entry = OutboxEntry()
    outbox.write([score()], record(), entry)()
    outbox.published(entry)
    store.close()
    other = sqlite3.connect(tmp_path / "s", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    receipts.delivered(arrived(entry))
    receipts.reported(2**62)
    assert not outbox.drain(0.3)
    other.execute("ROLLBACK")
    other.close()
    assert outbox.drain(10.0)
    assert exported(store) == [1]


def test_what_its_service_lost_sight_of_is_published_from_the_store(made):
    """The lease of its job had run out, so that the scorer published nothing."""
    outbox, store, receipts = made()
    lost, after = OutboxEntry(), OutboxEntry()
    outbox.write([score(1)], record(1), lost)()
    outbox.write([score(2)], record(2), after)()
    outbox.published(after)
    assert outbox.leftovers() == []
    (pending,) = outbox.leftovers(abandoned_s=0.0)
    assert pending.record.span_id == record(1).span_id
    outbox.published(pending.entry)
    receipts.delivered(arrived(pending.entry, after))
    receipts.reported(2**62)
    assert outbox.drain(10.0)
    assert exported(store) == [1, 1]


def test_a_note_of_many_places_is_written_in_short_transactions(made, monkeypatch):
    monkeypatch.setattr("ragtrace.service.score_outbox._AT_ONCE", 10)
    outbox, store, _ = made(Receipts())
    for n in range(1, 36):
        entry = OutboxEntry()
        outbox.write([score(n)], record(n), entry)()
        outbox._receipts.published(entry.seq)
    assert outbox.drain(10.0)
    assert exported(store) == [1] * 35
