"""The spool over a real file: states, leases, accounts, and clocks that jump."""

from __future__ import annotations

import random
import re
import sqlite3
import stat
import time

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ragtrace import sqlite_file
from ragtrace.errors import QueueError
from ragtrace.queues import Entry, Spool
from tests.unit.queues.conftest import HandClock


@pytest.fixture
def spool(tmp_path, clock):
    made = Spool(tmp_path / "spool.sqlite", clock=clock, lease_s=10, max_attempts=3, expire_s=1000)
    yield made
    made.close()


def put(spool, *keys, priority=0, size=10):
    return spool.put([Entry(key=key, payload=b"x" * size, priority=priority) for key in keys])


def keys(jobs):
    return [job.key for job in jobs]


def balanced(spool):
    accounts = spool.counters()
    assert accounts.offered == sum(accounts.ends.values()) + accounts.pending
    return accounts


def test_first_in_first_out_and_the_higher_priority_first(spool):
    put(spool, "a", "b")
    put(spool, "urgent", priority=5)
    assert keys(spool.lease("w", 2)) == ["urgent", "a"]
    assert keys(spool.lease("w", 9)) == ["b"]
    assert spool.lease("w", 9) == []


def test_a_key_is_taken_once_also_after_its_end(spool):
    assert put(spool, "a") == 1
    (job,) = spool.lease("w", 1)
    assert spool.ack("w", job.key, "scored")
    assert put(spool, "a") == 0
    assert balanced(spool).ends == {("scored", ""): 1, ("skipped", "duplicate"): 1}


def test_a_job_that_kills_every_worker_is_dead_in_the_end(spool, clock):
    put(spool, "poison")
    for _ in range(3):
        assert spool.lease("w", 1)
        clock.at += 11
        spool.requeue_expired()
    assert spool.lease("w", 1) == []
    assert balanced(spool).ends == {("dead", "lease_expired"): 1}


def test_a_full_spool_gives_up_the_lowest_priority_first(tmp_path):
    spool = Spool(tmp_path / "s", capacity_bytes=30)
    put(spool, "old", "new")
    put(spool, "urgent", priority=5)
    put(spool, "newest")
    urgent, *others = spool.lease("w", 9)
    assert (urgent.key, urgent.kept, len(others)) == ("urgent", 1.0, 2)
    assert [job.kept for job in others] == [pytest.approx(2 / 3)] * 2  # three of its priority waited
    assert balanced(spool).ends == {("skipped", "evicted"): 1}
    assert spool.counters().bytes == 30


def spiked(spool, clock, chance):
    """Return the mean over a spike in which answers get worse, and its estimate from the jobs that were kept."""
    values, done = {}, []
    for number in range(0, 400, 8):
        for one in range(number, number + 8):
            values[str(one)] = float(chance.random() > one / 800)
        put(spool, *map(str, range(number, number + 8)), size=10 + chance.randrange(20))
        for job in spool.lease("w", 2):
            match chance.randrange(4):
                case 0:
                    spool.nack("w", job.key, 0.0, "judge_unavailable")
                case 1:
                    spool.release("w", [job.key])
                case 2:  # its lease runs out
                    clock.at += 11
                    spool.requeue_expired()
                case _ if spool.ack("w", job.key, "scored"):
                    done.append(job)
    done += spool.lease("w", 400)
    weights = [1.0 / job.kept for job in done]
    weighted = sum(w * values[job.key] for w, job in zip(weights, done, strict=True))
    return sum(values.values()) / len(values), weighted / sum(weights)


def test_the_weighted_mean_over_a_spike_is_unbiased(tmp_path):
    chance, differences = random.Random(1), []
    for number in range(40):
        clock = HandClock()
        spool = Spool(
            tmp_path / str(number), clock=clock, capacity_bytes=2_000, lease_s=10, max_attempts=50, expire_s=1e6
        )
        truth, estimate = spiked(spool, clock, chance)
        assert balanced(spool).ends["skipped", "evicted"] > 150
        differences.append(estimate - truth)
        spool.close()
    assert abs(sum(differences) / len(differences)) < 0.025, differences  # sd of one .05; the oldest first: .17


def test_a_spool_of_the_first_version_goes_on(tmp_path):
    spool = Spool(tmp_path / "s")
    put(spool, "a")
    spool.close()
    with sqlite3.connect(tmp_path / "s") as file:
        file.execute("ALTER TABLE jobs DROP COLUMN log_kept")
        file.execute("PRAGMA user_version = 1")
    spool = Spool(tmp_path / "s")
    put(spool, "b")
    assert [(job.key, job.kept) for job in spool.lease("w", 9)] == [("a", 1.0), ("b", 1.0)]
    spool.close()


def test_what_is_too_old_expires_and_ends_are_forgotten(spool, clock):
    put(spool, "a", "b")
    spool.lease("w", 1)
    spool.ack("w", "a", "scored")
    clock.at += 1001
    spool.requeue_expired()
    assert balanced(spool).ends == {("scored", ""): 1, ("skipped", "expired"): 1}
    assert put(spool, "a") == 1


def test_an_old_job_without_a_note_is_told_of(spool, clock):
    put(spool, "a", "b")
    spool.lease("w", 1)
    spool.release("w", ["a"], missed="noted")
    clock.at += 1001
    lost = []
    spool.requeue_expired(lost.append)
    assert keys(lost) == ["b"]
    assert balanced(spool).ends == {("skipped", "expired"): 2}


def test_a_note_outlives_later_tries_without_one_and_the_process(tmp_path, clock):
    spool = Spool(tmp_path / "s", clock=clock, lease_s=10)
    put(spool, "a")
    assert [job.missed for job in spool.lease("w", 1)] == [""]
    assert spool.nack("w", "a", 0.0, "judge_timeout", "noted")
    for give_back in (lambda: spool.nack("w", "a", 0.0, "judge_timeout"), lambda: spool.release("w", ["a"])):
        assert [job.missed for job in spool.lease("w", 1)] == ["noted"]
        assert give_back()
    spool.lease("w", 1)
    spool.close()  # as a kill leaves it: leased
    clock.at += 11
    other = Spool(tmp_path / "s", clock=clock, lease_s=10)
    other.requeue_expired()
    assert [job.missed for job in other.lease("v", 1)] == ["noted"]
    other.close()


def test_the_wall_s_clock_may_jump_both_ways(spool, clock):
    put(spool, "a")
    for jump in (10**9, -2 * 10**9):
        clock.wall_at += jump
        spool.requeue_expired()
    assert keys(spool.lease("w", 1)) == ["a"]


def test_after_a_restart_of_the_host_leases_are_over_and_nothing_is_lost(tmp_path, clock):
    path = tmp_path / "s"
    spool = Spool(path, clock=clock)
    put(spool, "a", "b")
    spool.lease("w", 1)
    spool.close()
    clock.at, clock.boot = 5.0, "boot-2"
    spool = Spool(path, clock=clock)
    clock.at += 1
    assert spool.requeue_expired() == 1
    assert keys(spool.lease("w", 9)) == ["a", "b"]
    assert balanced(spool).oldest_s == 1.0


def test_names_are_shared_once_and_within_a_bound(spool, tmp_path):
    assert spool.publish_names([]) == set()
    assert spool.publish_names(["a", "é", "a"]) == {"a", "é"}
    other = Spool(spool.path)
    assert other.publish_names(["b"]) == {"a", "b", "é"}
    many = [f"{number:04}" for number in range(2_000)]
    assert len(other.publish_names(many)) == 1_000
    other.close()
    assert {"a", "b", "é"} < spool.publish_names([])
    assert len(spool.publish_names(["one more"])) == 1_000


def test_the_file_is_for_its_owner_alone(tmp_path):
    Spool(tmp_path / "s").close()
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o600


def test_a_newer_spool_is_refused_in_one_line(tmp_path):
    path = tmp_path / "s"
    Spool(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(QueueError, match="newer ragtrace") as caught:
        Spool(path)
    assert "\n" not in str(caught.value)


def test_a_folder_that_is_not_there_is_said_in_one_line(tmp_path):
    with pytest.raises(QueueError, match="cannot be opened"):
        Spool(tmp_path / "no" / "s")


class Life(RuleBasedStateMachine):
    """Any sequence of operations keeps the accounts: offered = ends + pending."""

    def __init__(self):
        super().__init__()
        import tempfile
        from pathlib import Path

        self.folder = tempfile.TemporaryDirectory()
        self.clock = HandClock()
        self.spool = Spool(
            Path(self.folder.name) / "s",
            clock=self.clock,
            lease_s=10,
            max_attempts=2,
            expire_s=100,
            capacity_bytes=60,
        )
        self.held: list[tuple[str, str]] = []

    @rule(key=st.sampled_from("abcdefgh"), priority=st.integers(0, 2), size=st.integers(0, 30))
    def put(self, key, priority, size):
        put(self.spool, key, priority=priority, size=size)

    @rule(owner=st.sampled_from("xy"), limit=st.integers(1, 3))
    def lease(self, owner, limit):
        self.held += [(owner, job.key) for job in self.spool.lease(owner, limit)]

    @rule(state=st.sampled_from(["scored", "invalid"]))
    def end(self, state):
        if self.held:
            self.spool.ack(*self.held.pop(0), state)

    @rule(wait_s=st.floats(0, 20))
    def retry(self, wait_s):
        if self.held:
            owner, key = self.held.pop()
            self.spool.nack(owner, key, wait_s, "judge_timeout")

    @rule(owner=st.sampled_from("xy"))
    def release(self, owner):
        self.spool.release(owner)

    @rule(seconds=st.floats(0, 60))
    def pass_time(self, seconds):
        self.clock.at += seconds
        self.spool.requeue_expired()

    @rule()
    def restart(self):
        self.clock.boot, self.clock.at = self.clock.boot + "+", 0.0
        self.spool.close()
        self.spool.__init__(
            self.spool.path, clock=self.clock, lease_s=10, max_attempts=2, expire_s=100, capacity_bytes=60
        )

    @invariant()
    def balanced(self):
        accounts = balanced(self.spool)
        # A job that a worker holds is never thrown out, so these may stand above the bound.
        assert accounts.bytes >= 0
        with self.spool._file.connection() as connection:
            size = connection.execute("SELECT total(size) FROM jobs WHERE state != 'ended'").fetchone()
        assert accounts.bytes == size[0]

    def teardown(self):
        self.spool.close()
        self.folder.cleanup()


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)


@pytest.mark.parametrize("seed", [8, 12, 20])
def test_no_byte_of_an_ended_job_is_left_where_sqlite_moves_rows(tmp_path, seed):
    """These seeds left texts of 86, 32 and 53 jobs that wait, and of 7 that had ended."""
    chance, path, n = random.Random(seed), tmp_path / "s", 0
    spool = Spool(path, capacity_bytes=chance.choice([10**9, 200_000]))
    for _ in range(chance.randint(5, 60)):
        batch = []
        for _ in range(chance.randint(1, 40)):
            n += 1
            size = chance.randint(10, chance.choice([30, 100, 400, 1_000, 1_500, 3_000, 5_000, 9_000, 20_000]))
            payload = f"<M{n:06d}>".encode() * (size // 9 + 1)
            batch.append(Entry(key=f"{chance.random()}", payload=payload, priority=chance.randint(0, 2)))
        spool.put(batch)
        jobs = spool.lease("w", chance.randint(1, 60))
        chance.shuffle(jobs)
        for job in jobs:
            fate = chance.random()
            if fate < 0.7:
                spool.ack("w", job.key, "scored")
            elif fate < 0.8:
                spool.nack("w", job.key, 0.0, "x")
            else:
                spool.release("w", [job.key])
    with spool._file.connection() as connection:
        rows = connection.execute("SELECT payload FROM jobs WHERE payload IS NOT NULL").fetchall()
    waiting = {re.findall(rb"M\d{6}", payload)[0] for (payload,) in rows}
    spool.close()
    assert set(re.findall(rb"M\d{6}", path.read_bytes())) == waiting


def test_the_journal_is_emptied_when_its_reader_has_ended(spool, monkeypatch):
    monkeypatch.setattr(sqlite_file, "EMPTY_EVERY_S", 0.0)
    monkeypatch.setattr(sqlite_file, "_EMPTY_AGAIN_S", 0.0)
    spool = Spool(spool.path)
    journal = spool.path.with_name(f"{spool.path.name}-wal")
    spool.put([Entry(key="a", payload=b"a secret of the user")])
    reader = sqlite3.connect(spool.path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM jobs").fetchall()
    spool.lease("w", 1)
    spool.ack("w", "a", "scored")
    began = time.monotonic()
    spool.empty_journal()
    assert time.monotonic() - began < 5.0  # not the time that a transaction waits
    assert b"a secret of the user" in journal.read_bytes()
    reader.execute("COMMIT")
    spool.empty_journal()
    assert journal.stat().st_size == 0
    assert b"a secret of the user" not in spool.path.read_bytes()
    reader.close()
    spool.close()


# -- one boot of one host --


@pytest.fixture
def on_host(tmp_path):
    """Open the spool on a host."""
    opened = []

    def open_(clock, name, boot):
        clock.name, clock.boot = name, boot
        opened.append(Spool(tmp_path / "spool.sqlite", clock=clock))
        return opened[-1]

    yield open_
    for spool in opened:
        spool.close()


def host_clock(at=1_000.0):
    clock = HandClock()
    clock.at = at
    return clock


def test_a_second_living_host_is_refused_in_one_line_and_the_first_keeps_its_leases(on_host):
    spool = on_host(host_clock(), "one", "boot-1")
    put(spool, "a")
    spool.lease("w", 1)
    with pytest.raises(QueueError, match="in use by another host: give each host a file of its own") as caught:
        on_host(host_clock(), "two", "boot-2")
    assert "\n" not in str(caught.value)
    assert spool.ack("w", "a", "scored")


def test_a_host_that_showed_no_sign_of_life_for_a_minute_is_taken_over(on_host, caplog):
    caplog.set_level("INFO", "ragtrace")
    put(on_host(host_clock(), "one", "boot-1"), "a")
    later = host_clock()
    later.wall_at += 61
    assert keys(on_host(later, "two", "boot-2").lease("w", 1)) == ["a"]
    assert [text.partition(":")[0][-20:] for text in caplog.messages] == ["another boot or host"]


def test_work_is_a_sign_of_life(on_host):
    clock = host_clock()
    spool = on_host(clock, "one", "boot-1")
    for _ in range(9):
        clock.at += 11
        clock.wall_at += 11
        spool.requeue_expired()
    later = host_clock()
    later.wall_at = clock.wall_at + 50
    with pytest.raises(QueueError, match="another host"):
        on_host(later, "two", "boot-2")


@pytest.mark.parametrize("ahead", [0, 300], ids=["in step", "ahead"])
def test_a_host_whose_file_was_taken_while_it_slept_stops_and_goes_on_when_the_other_has_gone(on_host, ahead):
    one, two = host_clock(), host_clock(at=5.0)
    sleeping = on_host(one, "one", "boot-1")
    put(sleeping, "a", "b")
    sleeping.lease("w-1", 1)
    one.at += 600
    one.wall_at += 600
    two.wall_at += 600 + ahead
    awake = on_host(two, "two", "boot-2")
    awake.requeue_expired()
    assert keys(awake.lease("w-2", 9)) == ["a", "b"]
    for write in (
        lambda: sleeping.ack("w-1", "a", "scored"),
        lambda: sleeping.lease("w-1", 1),
        sleeping.requeue_expired,
        lambda: put(sleeping, "c"),
    ):
        with pytest.raises(QueueError, match="another host"):
            write()
    assert sleeping.next_due_s() is None
    assert awake.ack("w-2", "a", "scored")
    one.wall_at += 600
    sleeping.requeue_expired()
    assert keys(sleeping.lease("w-1", 9)) == ["b"]


def test_of_two_hosts_whose_clocks_differ_one_goes_on(on_host):
    behind, ahead = host_clock(), host_clock()
    ahead.wall_at += 300
    first = on_host(behind, "behind", "boot-1")
    second = on_host(ahead, "ahead", "boot-2")
    put(second, "a")
    for _ in range(3):
        with pytest.raises(QueueError, match="another host"):
            first.requeue_expired()
        second.requeue_expired()


def test_containers_of_one_host_share_a_file_and_each_takes_it_over_after_a_quick_reboot(on_host):
    spools = [on_host(host_clock(), name, "boot-1") for name in ("application", "worker")]
    for spool in spools:
        put(spool, "a")
        spool.close()
    for name in ("application", "worker"):
        on_host(host_clock(at=3.0), name, "boot-2").requeue_expired()
