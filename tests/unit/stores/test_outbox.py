"""Several services at one file: what a dead one left is published by one of them, and by none while it lives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from itertools import count
from pathlib import Path

import pytest

from ragtrace.stores import OutboxEntry, Owner, is_over, this_process
from tests import make
from tests.guards.processes import until
from tests.unit.stores.conftest import NOW, marks

N = 60
ENDED, HIDDEN = "another-boot pid:[1] 7 7", ""  # processes: of another boot, and one that nobody can look at


@pytest.fixture
def stores(tmp_path, wall):
    made = [make.store(tmp_path / "store", wall=wall) for _ in range(3)]
    yield made
    for store in made:
        store.close()


def write(store, n, owner):
    r = make.record(n=n)
    made = [make.score(r, metric, at=NOW) for metric in ("mrr", "faithfulness")]
    store.emit(r, made, owner=owner, entry=OutboxEntry(seq=n))


def claimed(store, owner, limit=100):
    return [int(it.record.trace_id, 16) for it in store.claim(owner, limit, next_seq=count(1).__next__)]


@pytest.fixture
def sleeper():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
    yield process
    process.kill()
    process.wait()


def process_of(pid):
    boot, namespace, _, _ = this_process().split()
    started = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return f"{boot} {namespace} {pid} {started}"


def test_scorers_that_begin_at_once_share_what_is_there(stores):
    dead = Owner(process=ENDED)
    for n in range(1, N + 1):
        write(stores[0], n, dead)
    taken = [[] for _ in stores]
    together = threading.Barrier(len(stores))

    def take(store, mine):
        owner = Owner()
        together.wait(30)
        while runs := claimed(store, owner, limit=7):
            mine += runs

    threads = [threading.Thread(target=take, args=pair) for pair in zip(stores, taken, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(run for mine in taken for run in mine) == list(range(1, N + 1))


@pytest.mark.skipif(not this_process(), reason="this system does not tell of processes")
def test_a_process_s_scores_are_its_own_until_it_is_dead_and_then_at_once_the_next_one_s(stores, sleeper, wall):
    first, second, _ = stores
    owner = Owner(process=process_of(sleeper.pid))
    write(first, 1, owner)
    wall.at += 10**6  # stopped, or asleep: it lives
    assert not second.leftovers()
    assert claimed(second, Owner()) == []
    sleeper.send_signal(signal.SIGKILL)
    until(lambda: is_over(owner.process))  # a zombie, as nobody has waited for it
    assert second.leftovers()
    assert claimed(second, Owner()) == [1]


@pytest.mark.skipif(not this_process(), reason="this system does not tell of processes")
def test_another_process_with_the_same_number_is_another(sleeper):
    boot, namespace, _, _ = this_process().split()
    assert is_over(f"{boot} {namespace} {sleeper.pid} 1")
    assert is_over(f"{boot} pid:[1] {sleeper.pid} 1") is None
    assert is_over(f"{boot} {namespace} {os.getpid()} nonsense")
    assert is_over("nonsense") is None


def test_where_nobody_can_look_at_the_process_its_last_sign_of_life_says(stores, wall):
    first, second, _ = stores
    hidden = Owner(process=HIDDEN)
    write(first, 1, hidden)
    for _ in range(10):
        wall.at += 200.0
        first.beat(hidden)
        assert claimed(second, Owner()) == []
    wall.at += 301.0
    assert claimed(second, Owner()) == [1]


def test_a_clock_that_was_ahead_holds_nothing_for_ever(stores, wall):
    wall.at += 10**9
    write(stores[0], 1, Owner(process=HIDDEN))
    wall.at = NOW
    assert claimed(stores[1], Owner()) == [1]


def test_who_leaves_lets_the_next_one_go_on_at_once(stores):
    first, second = Owner(), Owner()
    write(stores[0], 1, first)
    assert claimed(stores[1], second) == []
    stores[0].leave(first)
    (left,) = stores[1].claim(second, next_seq=count(8).__next__)
    assert (left.entry.seq, len(left.scores)) == (8, 2)
    stores[1].exported(marks(left))
    assert not stores[1].leftovers()


def test_what_its_owner_wrote_and_never_published_is_given_to_it_again(stores):
    owner = Owner()
    write(stores[0], 1, owner)
    write(stores[0], 2, owner)
    found = stores[0].claim(owner, seqs=[2], next_seq=count(3).__next__)
    assert [(int(it.record.trace_id, 16), it.entry.seq) for it in found] == [(2, 3)]


def test_owners_with_nothing_left_are_forgotten(stores):
    gone, mine = Owner(process=ENDED), Owner()
    write(stores[0], 1, gone)
    for pending in stores[0].claim(mine, next_seq=count(1).__next__):
        stores[0].exported(marks(pending))
    stores[0].beat(mine)
    with stores[0]._file.connection() as connection:
        assert connection.execute("SELECT count(*) FROM owners").fetchone() == (0,)
