"""An application with spikes, for tests of weights: the first half of the answers is right, the second half wrong.

Its metric is known to this process only.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path

import ragtrace
from tests.guards import setting_up

RIGHT, WRONG = "The lab is in Oslo.", "Penguins rule Madrid."

gate = threading.Event()  # holds every score back until it is set


@ragtrace.metric(name="is_right", needs=("answer",), range=(0.0, 1.0))
async def is_right(ctx):
    """Whether the answer is the right one."""
    await asyncio.to_thread(gate.wait, 60.0)
    return ctx.record.answer == RIGHT


def spike(half):
    """Capture both halves of a spike, each of so many runs."""
    for answer in (RIGHT, WRONG):
        for _ in range(half):
            with ragtrace.query("Where is the lab?") as run:
                run.retrieved([{"id": "a", "text": "The lab is in Oslo.", "score": 0.9}])
                run.answered(answer)


def all_scored():
    """Score what was kept, and end."""
    gate.set()
    assert ragtrace.flush(60)
    ragtrace.shutdown(10)
    gate.clear()


def in_memory(store, half, bound):
    ragtrace.configure(**setting_up.weighed(store), **setting_up.SMALL_MEMORY[bound])
    spike(half)
    all_scored()


def in_a_spool(store, half):
    kept = setting_up.weighed(store) | setting_up.small_spool(store.parent)
    ragtrace.configure(**kept, **setting_up.HANDED_OVER)
    spike(half)
    assert ragtrace.flush(30)
    ragtrace.shutdown(5)
    ragtrace.configure(**kept)
    all_scored()


def sampled(store, half):
    ragtrace.configure(**setting_up.weighed(store, sample_rate=0.5), **setting_up.SMALL_MEMORY["units"])
    spike(half)
    all_scored()


if __name__ == "__main__":
    spikes, half, store, kind, *rest = sys.argv[1:]
    for _ in range(int(spikes)):
        {"memory": in_memory, "spool": in_a_spool, "sampled": sampled}[kind](Path(store), int(half), *rest)
