"""A process of the crash test: ``produce PATH NUMBER FIRST LAST`` or ``work PATH NAME CALLS``.

A worker's judge call is a line in its own file, written and flushed before the end of the job is committed, so that
a repeated call is seen. The score stands in the same file as the spool, upserted in the transaction of the end.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from ragtrace.queues.spool import Entry, Spool

LEASE_S, BATCH, CALL_S = 1.0, 8, 0.004


def produce(path: Path, number: str, first: int, last: int) -> None:
    """Put units in batches of 10; say which were accepted, once they are."""
    spool = Spool(path)
    done = Path(f"{path}.produced-{number}")
    begin = int(done.read_text().split()[-1]) if done.exists() and done.read_text() else first
    for start in range(begin, last, 10):
        spool.put([Entry(key=f"unit-{i}", payload=b"x" * 2_000) for i in range(start, min(start + 10, last))])
        with done.open("a") as file:
            file.write(f"{min(start + 10, last)}\n")
        time.sleep(0.005)


def work(path: Path, name: str, calls: Path) -> None:
    spool = Spool(path, lease_s=LEASE_S, max_attempts=50)
    owner = f"{name}-{os.getpid()}"
    with calls.open("a") as file:
        while True:
            spool.requeue_expired()
            jobs = spool.lease(owner, BATCH)
            for job in jobs:
                file.write(f"{job.key}\n")
                file.flush()
                time.sleep(CALL_S)
                spool.ack(owner, job.key, "scored", also=lambda connection, job=job: _score(connection, job.key))
            if not jobs:
                time.sleep(0.02)


def _score(connection, key: str) -> None:
    connection.execute("INSERT INTO scores VALUES (?, 1) ON CONFLICT (key) DO UPDATE SET times = times + 1", (key,))


if __name__ == "__main__":
    kind, path, *rest = sys.argv[1:]
    if kind == "produce":
        produce(Path(path), rest[0], int(rest[1]), int(rest[2]))
    else:
        work(Path(path), rest[0], Path(rest[1]))
