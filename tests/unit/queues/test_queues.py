"""The promises of the queue in a file, beside those of every queue."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing

import pytest

from ragtrace.capture import internal_errors
from ragtrace.queues import MOST_BYTES, Spool, SqliteQueue
from ragtrace.testing.queue import Ends
from ragtrace.testing.queue import names_of as names
from ragtrace.testing.queue import unit_of as unit
from tests.broken_file import break_file
from tests.unit.queues.conftest import HandClock


@pytest.fixture
def ends():
    return Ends()


def counters(queue):
    queue.requeue_expired()
    return queue.counters()


def test_a_full_buffer_evicts_units_and_says_so(tmp_path, ends):
    folder = tmp_path / "spool"
    folder.mkdir()
    queue = SqliteQueue(folder / "s", capacity=2, ended=ends)
    with sqlite3.connect(folder / "s") as other:  # nobody can write while this holds the file
        other.execute("BEGIN IMMEDIATE")
        first = queue.put(unit("a"))
        assert not queue.flush(0.1)  # which has taken the first into its hand
        evicted = [u.record.id for name in "bcde" for u in queue.put(unit(name))]
    assert (first, len(evicted)) == ([], 2)
    assert queue.flush(10)
    jobs = queue.lease(9)
    assert names(jobs) == ["a", *sorted({*"bcde"} - {*evicted})]
    assert jobs[0].unit.kept == 1.0  # it was in the hand
    assert all(job.unit.kept < 1.0 for job in jobs[1:])
    queue.close()
    assert ends == {("spooled", ""): 3}


def test_a_unit_over_the_size_cap_ends_as_too_large_and_the_next_goes_on(tmp_path, ends):
    queue = SqliteQueue(tmp_path / "s", ended=ends)
    for name, text in (("a", "Oslo."), ("b", "\x01" * (MOST_BYTES // 5)), ("c", "Oslo.")):
        assert queue.put(unit(name, text)) == []
    assert queue.flush(10)
    assert names(queue.lease(9)) == ["a", "c"]
    queue.close()
    assert ends == {("spooled", ""): 2, ("dropped", "too_large"): 1}


def test_what_is_forced_goes_first(tmp_path):
    queue = SqliteQueue(tmp_path / "s")
    queue.put(unit("random"))
    queue.put(unit("forced", decision="forced"))
    assert queue.flush(10)
    assert names(queue.lease(9)) == ["forced", "random"]
    queue.close()


def test_a_broken_spool_is_put_aside_and_a_new_one_begun(tmp_path, caplog):
    path = tmp_path / "s"
    queue = SqliteQueue(path)
    queue.put(unit("a"))
    assert queue.flush(10)
    queue.close()
    break_file(path)
    queue = SqliteQueue(path)
    queue.put(unit("b"))
    assert queue.flush(10)
    assert names(queue.lease(9)) == ["b"]
    queue.close()
    assert [one.name for one in tmp_path.iterdir() if "corrupt" in one.name]
    assert "was put aside" in caplog.text


def test_a_spool_that_breaks_under_way_is_left_by_both_sides(tmp_path):
    path = tmp_path / "s"
    queue = SqliteQueue(path)
    queue.put(unit("a"))
    assert queue.flush(10)
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.write(os.urandom(size))
    path.with_name("s-wal").write_bytes(b"")
    queue.lease(9)  # what stood in the file is lost, and is kept aside for a look
    assert [one.name for one in tmp_path.iterdir() if "corrupt" in one.name]
    queue.put(unit("b"))  # the writer had the old file open
    assert queue.flush(20)
    assert names(queue.lease(9)) == ["b"]
    queue.close()


def remove(path):
    for one in path.parent.glob("s*"):
        one.unlink()


def move(path):
    path.rename(path.with_name("elsewhere"))


def replace(path):
    Spool(path.with_name("other")).close()
    remove(path)
    path.with_name("other").rename(path)


def truncate_behind_a_checkpoint(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    os.truncate(path, 0)


def cut(path):
    truncate_behind_a_checkpoint(path)
    path.write_bytes(b"SQLite format 3\0" + bytes(5_000))


def producer(path):
    return SqliteQueue(path, is_producer=True)


@pytest.mark.parametrize("kind", [SqliteQueue, producer])
@pytest.mark.parametrize("damage", [remove, move, replace, truncate_behind_a_checkpoint, cut])
def test_a_spool_that_goes_under_a_living_process_is_noticed_counted_and_told_once(tmp_path, caplog, kind, damage):
    path = tmp_path / "s"
    queue, before = kind(path), sum(internal_errors().values())
    for number in range(5):
        queue.put(unit(str(number)))
    assert queue.flush(10)
    queue.requeue_expired()
    damage(path)
    for _ in range(3):  # a service does so once a second
        queue.requeue_expired()
    told = [text for text in caplog.messages if "about 5 units that waited in it" in text]
    assert len(told) == 1
    assert sum(internal_errors().values()) - before in {5, 6}  # and the look at it that failed
    queue.put(unit("new"))
    assert queue.flush(10)
    assert queue.counters(is_fresh=True).pending == 1
    queue.close()


def test_a_spool_that_is_truncated_beside_its_journal_goes_on(tmp_path):
    path = tmp_path / "s"
    queue = SqliteQueue(path)
    for number in range(5):
        queue.put(unit(str(number)))
    assert queue.flush(10)
    queue.requeue_expired()
    os.truncate(path, 0)
    queue.put(unit("new"))
    assert queue.flush(10)
    deadline = time.monotonic() + 10
    found = []
    while len(found) < 1 and time.monotonic() < deadline:
        queue.requeue_expired()
        found += names(queue.lease(9))
    assert "new" in found
    queue.close()


def test_a_payload_of_another_version_ends_as_invalid(tmp_path):
    queue = SqliteQueue(tmp_path / "s")
    queue.put(unit("a"))
    assert queue.flush(10)
    with sqlite3.connect(tmp_path / "s") as connection:
        connection.execute("UPDATE jobs SET payload = '[]'")
    assert queue.lease(9) == []
    assert counters(queue).ends == {("invalid", "unreadable"): 1}
    queue.close()


def test_a_read_only_disk_keeps_units_in_memory(tmp_path, ends):
    path = tmp_path / "s"
    queue = SqliteQueue(path, ended=ends)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TRIGGER full BEFORE INSERT ON jobs BEGIN SELECT RAISE(ABORT, 'disk'); END")
    queue.put(unit("a"))
    assert not queue.flush(0.5)
    assert queue.size == 1
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TRIGGER full")
    assert queue.flush(10)
    assert names(queue.lease(9)) == ["a"]
    queue.close()
    assert ends == {("spooled", ""): 1}


def test_a_full_disk_keeps_units_in_memory(tmp_path, ends, monkeypatch):
    """A real disk that is full: SQLite's own limit of pages gives the same error as the file system."""
    path = tmp_path / "s"
    queue = SqliteQueue(path, ended=ends)
    prepare = Spool._prepare

    pages = [30]

    def limited(spool, connection):
        prepare(spool, connection)
        connection.execute(f"PRAGMA max_page_count = {pages[-1]}")

    monkeypatch.setattr(Spool, "_prepare", limited)
    for number in range(40):
        queue.put(unit(str(number), text="x" * 10_000))
    assert not queue.flush(1.0)
    pages.append(1_000_000)
    assert queue.flush(60)
    assert len(queue.lease(99)) == 40
    queue.close()


def test_a_forked_child_has_a_buffer_and_leases_of_its_own(tmp_path):
    queue = SqliteQueue(tmp_path / "s")
    queue.put(unit("parent"))
    assert queue.flush(10)
    assert queue.next_due_s() == 0.0  # the parent's scoring side is open
    child = os.fork()
    if child == 0:
        status = 1
        try:
            own = SqliteQueue(queue.path)  # as a forked child's service does
            own.put(unit("child"))
            status = 0 if own.flush(10) else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert sorted(names(queue.lease(9))) == ["child", "parent"]
    queue.close()


def test_a_process_whose_host_lost_the_spool_says_so_once_and_scores_nothing(tmp_path, caplog, ends):
    mine, other = HandClock(), HandClock()
    mine.name, other.name, other.boot, other.wall_at = "one", "two", "boot-2", mine.wall_at + 600
    queue = SqliteQueue(tmp_path / "s", clock=mine, ended=ends)
    queue.put(unit("a"))
    assert queue.flush(10)
    Spool(tmp_path / "s", clock=other).close()
    for _ in range(3):
        queue.requeue_expired()
        assert queue.lease(9) == []
    queue.put(unit("b"))
    assert not queue.flush(0.5)
    assert [text for text in caplog.messages if "another host" in text][1:] == []
    assert "is in use by another host" in caplog.text
    mine.wall_at += 1_200
    assert queue.flush(60)
    assert names(queue.lease(9)) == ["a", "b"]
    queue.close()
