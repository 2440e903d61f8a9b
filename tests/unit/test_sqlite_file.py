"""Files that processes share: another program's, one that is replaced, one that is locked."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from ragtrace.errors import QueueError, StoreError
from ragtrace.judges import GradeFile
from ragtrace.queues import Entry, Spool, SqliteQueue
from ragtrace.scoring import Budget, Caps
from ragtrace.sqlite_file import ForeignFileError, SharedFile
from ragtrace.stores import SqliteStore


def books(path):
    made = Budget(path, host="judge", caps=Caps(tokens_per_day=28_800_000))
    made.left()
    return made


def foreign(path):
    """Make another program's database, with a table that has a name of ours and a version of its own."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE jobs (title TEXT)")
        connection.execute("CREATE TABLE users (name TEXT)")
        connection.execute("PRAGMA user_version = 1")


@pytest.mark.parametrize(
    ("open_", "error"),
    [(Spool, QueueError), (SqliteQueue, QueueError), (SqliteStore, StoreError), (books, ForeignFileError)],
)
def test_another_program_s_database_is_refused_and_left_as_it_is(open_, error, tmp_path):
    path = tmp_path / "shop.db"
    foreign(path)
    before = path.read_bytes()
    with pytest.raises(error, match=r"it has other tables \(jobs, users\): use a file of its own"):
        open_(path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["shop.db"]


@pytest.mark.parametrize("table", ["ledger (account, amount)", "labels (image, label)", "reservations (guest)"])
@pytest.mark.parametrize("open_", [Spool, SqliteQueue, SqliteStore, books])
def test_another_program_s_table_of_a_name_of_ours_is_no_mark_of_ours(open_, table, tmp_path):
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE {table}")
    before = path.read_bytes()
    with pytest.raises((QueueError, StoreError, ForeignFileError), match="it has other tables"):
        open_(path)
    assert path.read_bytes() == before


def text(path):
    path.write_text('{"query": "Where?", "answer": "In Oslo."}\n' * 200)


def image(path):
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40)


def blank_database_of_another_program(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA application_id = 42")
        connection.execute("VACUUM")


def broken_database_of_another_program(path):
    foreign(path)
    path.write_bytes(path.read_bytes()[:100] + b"\xa5" * 12_000)


def ours_without_a_header(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE ledger (n)")
    path.write_bytes(b"\xa5" * 4_096 + path.read_bytes()[4_096:])


@pytest.mark.parametrize("open_", [Spool, SqliteQueue, SqliteStore, books])
@pytest.mark.parametrize(
    "make",
    [
        text,
        image,
        blank_database_of_another_program,
        broken_database_of_another_program,
        ours_without_a_header,
    ],
)
def test_a_file_that_is_not_ours_is_refused_and_neither_renamed_nor_written(open_, make, tmp_path):
    path = tmp_path / "notes"
    make(path)
    before = path.read_bytes()
    with pytest.raises((QueueError, StoreError, ForeignFileError), match="use a file of its own") as caught:
        open_(path)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["notes"]


@pytest.mark.parametrize("open_", [Spool, SqliteQueue, SqliteStore])
def test_an_empty_folder_is_refused_and_an_empty_file_is_ours_to_fill(open_, tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises((QueueError, StoreError), match="cannot be opened"):
        open_(tmp_path / "folder")
    (tmp_path / "file").touch()
    open_(tmp_path / "file").close()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "folder"]


def test_a_file_of_ours_has_its_mark_in_the_header(tmp_path):
    Spool(tmp_path / "s").close()
    assert (tmp_path / "s").read_bytes()[68:72] == b"RAGT"


def test_spool_and_store_may_be_one_file_in_either_order(tmp_path):
    for number, kinds in enumerate([(Spool, SqliteStore), (SqliteStore, Spool)]):
        for open_ in kinds:
            open_(tmp_path / str(number)).close()


def test_who_has_a_deleted_file_open_writes_to_the_one_of_its_name(tmp_path):
    path = tmp_path / "limits"
    first = books(path)
    assert first.settle(first.reserve(usd=None, tokens=5), usd=None, tokens=5)
    for one in tmp_path.iterdir():
        one.unlink()
    second = books(path)
    assert second.settle(second.reserve(usd=None, tokens=7), usd=None, tokens=7)
    assert first.left() == second.left()
    grades = GradeFile(tmp_path / "grades")
    assert grades.facts().labels == 0
    (tmp_path / "grades").unlink()
    assert grades.facts().labels == 0
    assert (tmp_path / "grades").exists()


def test_a_queue_begins_while_another_process_holds_its_spool_and_writes_when_it_is_free(tmp_path, monkeypatch):
    monkeypatch.setattr("ragtrace.queues.sqlite._FIRST_BUSY_S", 0.1)
    path = tmp_path / "spool"
    Spool(path).close()
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    queue = SqliteQueue(path)
    holder.execute("ROLLBACK")
    holder.close()
    assert queue.counters(is_fresh=True).offered == 0
    queue.close()


def test_a_failure_inside_a_transaction_leaves_nothing_of_it(tmp_path):
    file = SharedFile(tmp_path / "f", prepare=lambda c: c.execute("CREATE TABLE IF NOT EXISTS labels (n)"))

    def write():
        with file.transaction() as connection:
            connection.execute("INSERT INTO labels VALUES (1)")
            raise ValueError("half-way")

    with pytest.raises(ValueError, match="half-way"):
        write()
    with file.connection() as connection:
        assert connection.execute("SELECT count(*) FROM labels").fetchone() == (0,)
    file.close()


def test_a_spool_s_entry_outlives_its_connection(tmp_path):
    spool = Spool(tmp_path / "s")
    spool.put([Entry(key="a", payload=b"{}")])
    spool.close()
    assert [job.key for job in spool.lease("w", 9)] == ["a"]  # opened again by itself
