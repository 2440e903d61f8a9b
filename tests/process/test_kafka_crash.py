"""Kill -9 of workers during rebalances: nothing is lost, and nothing but the calls under way is repeated."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from tests import make

pytest.importorskip("confluent_kafka", reason="the extra kafka")

from ragtrace.queues import KafkaAddress, KafkaQueue
from ragtrace.testing.queue import unit_of
from tests.kafka_broker import mock_cluster, tansu
from tests.process.kafka_hand import CONCURRENCY, SESSION_S

pytestmark = pytest.mark.slow

WORKERS = 3
TAKEN_S = SESSION_S + 2.5  # until a killed worker's partitions have owners: its session, and the rebalance after it


def hand(address, number, folder):
    log = (folder / f"log-{number}").open("a")
    command = [sys.executable, "-m", "tests.process.kafka_hand", address, str(number), str(folder)]
    return subprocess.Popen(command, stderr=log)


def lines(path):
    return path.read_text().split("\n")[:-1] if path.exists() else []


def filled(address, units):
    queue = KafkaQueue(KafkaAddress.parse(address), is_producer=True, capacity=units)
    for n in range(units):
        assert queue.put(unit_of(f"{n + 1:032x}")) == []
    assert queue.flush(60)
    queue.close(5)


def kill(hands, folder, moment):
    """Kill a worker, and take it from the list: at once, or in the middle of the rebalance of the last one's join."""
    if moment == "any":
        victim = hands.pop(0)
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        return
    (folder / f"die-{moment}").touch()
    died = []

    def has_died():
        died[:] = [one for one in hands if one.poll() is not None]
        return died

    wait_for(has_died, lambda: f"no worker gave a partition back ({moment})")
    assert [one.returncode for one in died] == [-signal.SIGKILL]
    assert not (folder / f"die-{moment}").exists()
    hands.remove(died[0])


def wait_for(condition, what):
    ends_at = time.monotonic() + 150
    while not condition():
        assert time.monotonic() < ends_at, what()
        time.sleep(0.05)


def killed(address, folder, units, moments):
    """Score everything with kills, and return the calls by unit."""
    filled(address, units)
    hands = [hand(address, n, folder) for n in range(WORKERS)]
    step = units // (len(moments) + 2)

    def ended():
        return len(set(lines(folder / "ends")))

    try:
        for n, moment in enumerate(moments):
            wait_for(lambda n=n: ended() > step * (n + 1), ended)
            if n:  # the partitions of the worker killed before have owners again: a join takes one from a living worker
                time.sleep(TAKEN_S)
            hands.append(hand(address, WORKERS + n, folder))  # its join is a rebalance
            kill(hands, folder, moment)
        wait_for(lambda: ended() == units, ended)
    finally:
        for one in hands:
            one.kill()
            one.wait()
    calls = Counter(line.split()[0] for line in lines(folder / "calls"))
    assert set(calls) == {f"{n + 1:032x}" for n in range(units)}
    check_outputs(folder, calls, len(moments))
    repeated = sum(calls.values()) - units
    print(f"{repeated} repeated calls of {units}, {len(moments)} kills")  # noqa: T201 - shown by pytest -s
    return repeated


def check_outputs(folder, calls, kills):
    """Check that the store has one score of each trace, and that a repeated event has the key of the first."""
    rows = list(make.store(folder / "store.sqlite").rows())
    assert Counter(row["trace_id"] for row in rows) == Counter(dict.fromkeys(calls, 1))
    events = set(lines(folder / "events"))
    assert events <= {f"{row['trace_id']}:{row['span_id']}:{row['metric']}:{row['version']}" for row in rows}
    assert len(events) >= len(rows) - (kills + WORKERS) * CONCURRENCY  # the outbox owes what a kill left


@pytest.mark.timeout(900)
def test_kills_on_a_broker_that_keeps_metadata_repeat_the_calls_under_way(tmp_path):
    # Four partitions, so that one worker of three gives one back. Where two did, units that had ended were scored again
    # (34 repeats in 4 kills): while members join, the mock cluster refuses every commit with REBALANCE_IN_PROGRESS.
    # Kafka takes commits until every member has joined (PreparingRebalance), and one joins after its last commit.
    moments = ["any", "leaving", "left"]
    with mock_cluster(topics={"units": 4}) as brokers:
        repeated = killed(f"kafka://{brokers}/units", tmp_path, 5_000, moments)
    assert 0 < repeated <= len(moments) * CONCURRENCY


@pytest.mark.timeout(900)
def test_kills_on_tansu_lose_nothing(tmp_path):
    """Tansu keeps no metadata of commits, so that what ended beyond the watermark is repeated too."""
    with tansu() as brokers:
        repeated = killed(f"kafka://{brokers}/units?partitions=6", tmp_path, 1_500, ["leaving", "any"])
    assert repeated <= 2 * CONCURRENCY * 6
