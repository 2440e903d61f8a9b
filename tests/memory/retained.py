"""A thousand runs of an application, and what they leave: objects of the garbage collector, and blocks of memory."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opentelemetry.sdk.trace import TracerProvider

from ragtrace.capture import Recorder, finished_run
from ragtrace.telemetry import SpanWriter
from ragtrace.testing.plan import Barrier, PlannedFailure, plan_of

if TYPE_CHECKING:
    from collections.abc import Callable

RUNS = 1_000
WARM_UP = 500  # caches fill, of patterns for instance, and the memory of 256 answers
FEWER_RUNS = 100  # enough to see a planted leak of an object
SOME_RUNS = 500  # and of an integer
# The interpreter's own: free lists, the frames of the exception last raised. Bare or captured, 1,000 runs leave one
# object, the count itself, and 45 to 260 blocks, and 3,000 leave no more. A leak of an integer a run is 1,200 blocks.
MOST_OBJECTS = 10
MOST_BLOCKS = 400

CHOICE = ((3, 0.9), (1, 0.8))
FAILING = {"no retriever": "retriever", "no reranker": "reranker", "no model": "model"}
PLANS = {
    name: plan_of(4, f"{name}-", choice=CHOICE, question=f"{name}?", fails=FAILING.get(name))
    for name in ("whole", *FAILING)
}
GATED = plan_of(4, "gated-", choice=CHOICE, question="gated?", gate=Barrier())


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
        captured = finished_run(ended)
        if captured is None:
            return
        self.ended += 1
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


class Runs:
    """As many runs of one application as are wanted; every tenth kind of end among them."""

    def __init__(self):
        self.listener = Dropping()
        self.recorder = Recorder(self.listener)
        self.ways = (
            self.fails, self.half_read, self.never_read, self.leaked, self.breaks, self.cancelled, self.at_once,
            self.asked, self.asked, self.streamed,
        )  # fmt: skip

    def ask(self, name):
        """Ask for the answer of a plan."""
        raise NotImplementedError

    def pieces(self, name="whole"):
        """Ask for a stream."""
        raise NotImplementedError

    async def ask_gated(self):
        """Ask what waits at the gate."""
        raise NotImplementedError

    def at_once(self, number):
        """Ask three times together."""
        raise NotImplementedError

    def __call__(self, count):
        for number in range(count):
            self.ways[number % len(self.ways)](number)
        gc.collect()
        self.recorder.sweep(now=1e12)

    def asked(self, number):
        self.ask("whole")

    def streamed(self, number):
        assert "".join(self.pieces()) == PLANS["whole"].answer

    def fails(self, number):
        with contextlib.suppress(PlannedFailure):
            self.ask([*FAILING][number // 10 % 3])

    def half_read(self, number):
        pieces = self.pieces()
        next(pieces)
        del pieces

    def never_read(self, number):
        self.pieces()

    def leaked(self, number):
        pieces = self.pieces()
        next(pieces)
        self.recorder.sweep(now=1e12)  # the time limit ends it; the reader lets go of it later
        del pieces

    def breaks(self, number):
        with contextlib.suppress(PlannedFailure):
            list(self.pieces("no model"))

    def cancelled(self, number):
        async def one():
            task = asyncio.ensure_future(self.ask_gated())
            await GATED.gate.reached.wait()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

        GATED.gate.__init__()
        asyncio.run(one())


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
