"""A worker on Kafka that notes each call, end and event: `python -m tests.process.kafka_hand ADDRESS NAME FOLDER`.

All workers of a folder write one store. The first to give partitions back while the folder has a file
``die-leaving`` or ``die-left`` kills itself before, or after, its units under way have ended.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import threading
from pathlib import Path

from ragtrace.model import MetricResult, Score, ScoreKey
from ragtrace.queues import KafkaAddress, KafkaQueue
from ragtrace.scoring import Outcome, Worker
from ragtrace.stores import SqliteStore
from ragtrace.telemetry import event_key

CONCURRENCY = 8
CALL_S = 0.03
SESSION_S = 3  # half of a worker's, so that the group takes a killed one's partitions back sooner


def note(file, text):
    os.write(file, f"{text}\n".encode())  # one write of an appended line survives a kill of its process whole


class MortalQueue(KafkaQueue):
    """Dies in the middle of a rebalance when it is told to."""

    folder = Path()

    def _on_leaving(self, owners):
        self._die("leaving", owners)
        super()._on_leaving(owners)
        self._die("left", owners)

    def _die(self, moment, owners):
        try:
            if owners:
                (self.folder / f"die-{moment}").unlink()  # of several workers, one succeeds
                os.kill(os.getpid(), signal.SIGKILL)
        except FileNotFoundError:
            pass


def score_of(record):
    key = ScoreKey(trace_id=record.trace_id, span_id="", metric="faithfulness", version="00000001")
    return Score(key=key, result=MetricResult(name="faithfulness", state="ok", value=1.0, version="00000001"))


def main(address, name, folder):
    calls, ends, events = (
        os.open(Path(folder, kind), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        for kind in ("calls", "ends", "events")
    )
    store = SqliteStore(Path(folder, "store.sqlite"))
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())

    async def handle(job):
        record, score = job.unit.record, score_of(job.unit.record)

        def write():
            store.emit(record, [score])
            note(ends, record.id)

        note(calls, f"{record.id} {name}")
        await asyncio.sleep(CALL_S * random.uniform(0.5, 1.5))
        return Outcome(write=write, then=lambda: note(events, event_key(record, score.key)))

    MortalQueue.folder = Path(folder)
    queue = MortalQueue(KafkaAddress.parse(address, f"session.timeout.ms={SESSION_S * 1_000}"))
    worker = Worker(queue, handle, concurrency=CONCURRENCY)
    worker.begin()
    stop.wait()
    worker.stop(5)
    queue.close(5)


if __name__ == "__main__":
    main(*sys.argv[1:])
