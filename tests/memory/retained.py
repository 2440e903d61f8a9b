"""Counts what a thousand runs leave behind: objects that the garbage collector knows, and blocks of memory."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opentelemetry.sdk.trace import TracerProvider

from ragtrace.capture import Recorder, finished_run
from ragtrace.telemetry.spans.writer import SpanWriter

if TYPE_CHECKING:
    from collections.abc import Callable

RUNS = 1_000
WARM_UP = 100
FEWER_RUNS = 100  # enough to see a planted leak of an object
SOME_RUNS = 500  # and of an integer
# The interpreter's own: free lists, the frames of the exception last raised. Bare or captured, 1,000 runs leave one
# object, the count itself, and 45 to 260 blocks, and 3,000 leave no more. A leak of an integer a run is 1,200 blocks.
MOST_OBJECTS = 10
MOST_BLOCKS = 400


class Dropping:
    """A listener that writes real spans and keeps neither them nor the runs."""

    def __init__(self):
        provider = TracerProvider(shutdown_on_exit=False)
        self._writer = SpanWriter(provider.get_tracer("ragtrace"), content="full")
        self.begun = 0
        self.ended = 0

    def on_start(self, workflow, started_ns):
        self.begun += 1
        return self._writer.open_root(workflow, started_ns)

    def on_end(self, ref, ended):
        self.ended += 1
        captured = finished_run(ended)
        self._writer.write(ref, captured, decision="none", reason="not_sampled", probability=0.0)
        ref.end(captured.ended_ns)


@dataclass
class Growth:
    """What was there more behind `runs` runs than before them."""

    runs: int
    objects: int
    blocks: int
    kinds: dict[str, int]

    def check(self) -> None:
        assert self.objects <= MOST_OBJECTS, (self.objects, self.kinds)
        assert self.blocks <= MOST_BLOCKS, (self.blocks, self.kinds)
        ours = {kind: n for kind, n in self.kinds.items() if kind.startswith("ragtrace")}
        assert sum(ours.values()) <= 4, ours  # trees that the next root looks over


def recorder():
    listener = Dropping()
    return Recorder(listener), listener


def growth(some: Callable[[int], None], runs: int = RUNS, warm_up: int = WARM_UP) -> Growth:
    """Run `some(number of runs)`, first to warm up, then between two counts."""
    some(min(warm_up, runs))
    _kinds()  # the first count leaves objects of its own
    before = _kinds()
    blocks = sys.getallocatedblocks()
    some(runs)
    gc.collect()
    blocks = sys.getallocatedblocks() - blocks
    after = _kinds()
    return Growth(runs, after.total() - before.total(), blocks, dict((after - before).most_common(8)))


def _kinds() -> Counter[str]:
    for _ in range(3):
        gc.collect()
    return Counter(f"{type(one).__module__}.{type(one).__qualname__}" for one in gc.get_objects())
