"""Units into the spool, beside a bare batched insert of the same rows; and what queueing adds to the application.

The application's thread draws, and puts one run in twenty into a buffer; the spool is written by a thread of its
own. Its p99 is over single calls, with 100,000 records offered while nobody scores.
"""

from __future__ import annotations

import resource
import sqlite3
import statistics
import sys
import tempfile
import time
from pathlib import Path

from ragtrace.model import Passage, Pool, RagRecord
from ragtrace.queues import MemoryQueue, Unit
from ragtrace.queues.payload import key_of, to_bytes
from ragtrace.queues.spool import Entry, Spool
from ragtrace.queues.sqlite import SqliteQueue
from ragtrace.sampling import Load, Pressure, Rates, Sampler

ROWS, BATCH, ROUNDS = 4_000, 50, 7
OFFERED, RATE = 100_000, 0.05
SHARE, P99_US = 0.5, 50.0


def record(number: int) -> RagRecord:
    """A run of 8 contexts of 1,800 characters: 16 KiB as JSON."""
    passages = tuple(
        Passage(id=f"doc-{number}-{i}", text=f"{number} {i} ".ljust(1_800, "x"), rank=i) for i in range(1, 9)
    )
    return RagRecord(
        id=str(number),
        trace_id=f"{number:032x}",
        span_id=f"{number:016x}",
        query="What does the plan cover?",
        answer="Filters, pumps and valves.",
        pools=(Pool(stage="used", passages=passages),),
    )


def bare(path: Path, entries: list[Entry]) -> float:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("CREATE TABLE jobs (seq INTEGER PRIMARY KEY, key TEXT UNIQUE, payload BLOB)")
    start = time.perf_counter()
    for first in range(0, len(entries), BATCH):
        connection.execute("BEGIN IMMEDIATE")
        rows = [(entry.key, entry.payload) for entry in entries[first : first + BATCH]]
        connection.executemany("INSERT INTO jobs (key, payload) VALUES (?, ?)", rows)
        connection.execute("COMMIT")
    spent = time.perf_counter() - start
    connection.close()
    return len(entries) / spent


def spooled(path: Path, entries: list[Entry]) -> float:
    spool = Spool(path)
    start = time.perf_counter()
    for first in range(0, len(entries), BATCH):
        spool.put(entries[first : first + BATCH])
    spent = time.perf_counter() - start
    spool.close()
    return len(entries) / spent


def rates() -> tuple[float, float, float]:
    """Return rows a second bare and into the spool, and the median of their ratios by round."""
    entries = [
        Entry(key=key_of(unit), payload=to_bytes(unit)) for unit in (Unit(record=record(n)) for n in range(ROWS))
    ]
    found = []
    for number in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            found.append((bare(Path(folder) / f"bare-{number}", entries), spooled(Path(folder) / "s", entries)))
    ratio = statistics.median(ours / its for its, ours in found)
    return statistics.median(its for its, _ in found), statistics.median(ours for _, ours in found), ratio


def added_us(queue: MemoryQueue | SqliteQueue) -> tuple[float, float]:
    """Offer records; return median and p99 of drawing and queueing one, in microseconds."""

    def load() -> Load:
        own = queue.stats()[0]
        return Load(size=own.size, capacity=own.capacity, served=0)

    sampler = Sampler(Rates(rate=RATE), pressure=Pressure(load))
    given = [record(number) for number in range(500)]
    spent = []
    for number in range(OFFERED):
        one = given[number % len(given)]
        start = time.perf_counter_ns()
        draw = sampler.decide(one, ("faithfulness",))
        if draw.decision == "random":
            queue.put(Unit(record=one, probability=draw.probability, rates=draw.rates))
        spent.append(time.perf_counter_ns() - start)
    spent.sort()
    return spent[len(spent) // 2] / 1e3, spent[int(len(spent) * 0.99)] / 1e3


def main() -> int:
    its, ours, ratio = rates()
    print(f"units of 16 KiB into the spool, {BATCH} a transaction: {ours:,.0f} a second, bare insert {its:,.0f}")
    print(f"  {ratio:.2f} of the bare insert's rate (bound: at least {SHARE})")
    worst = 0 if ratio >= SHARE else 1
    with tempfile.TemporaryDirectory() as folder:
        for name, queue in (("memory", MemoryQueue()), ("spool", SqliteQueue(Path(folder) / "spool.sqlite"))):
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            median, p99 = added_us(queue)
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
            print(
                f"drawing, queueing at {RATE:.0%}, {name}: {median:.1f} us, p99 {p99:.1f} us (bound {P99_US:.0f});"
                f" {OFFERED:,} offered to nobody: peak memory +{grown:.0f} MB"
            )
            worst |= p99 > P99_US
            if isinstance(queue, SqliteQueue):
                queue.close()
    return int(worst)


if __name__ == "__main__":
    sys.exit(main())
