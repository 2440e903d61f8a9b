"""Scoring a stream: bounded, nothing held up by a slow record, and closed in any case."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from ragtrace.judges import OverlapJudge
from ragtrace.metrics import MetricOptions, MetricSpec, Output
from ragtrace.model import MetricResult, RagRecord
from ragtrace.scoring import Scorer, score_stream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ragtrace.metrics import EvalContext


@dataclass
class Gated:
    """A user's metric that waits for a gate a record; it notes who is being scored."""

    gates: dict[str, asyncio.Event]
    busy: set[str] = field(default_factory=set)
    most: int = 0
    begun: list[str] = field(default_factory=list)
    spec: MetricSpec = field(
        default=MetricSpec(
            name="gated", summary="-", needs=(), outputs=(Output(name="gated"),), calls="none", source="a test"
        )
    )

    async def compute(self, case: EvalContext) -> list[MetricResult]:
        name = case.record.query
        self.begun.append(name)
        self.busy.add(name)
        self.most = max(self.most, len(self.busy))
        try:
            if name in self.gates:
                await self.gates[name].wait()
            else:
                await asyncio.sleep(0)
        finally:
            self.busy.discard(name)
        return [MetricResult(name="gated", state="ok", value=1.0)]


def items(*names: str) -> Iterator[tuple[str, RagRecord]]:
    """Yield records by tag; the id is what stands before a slash."""
    for name in names:
        yield name, RagRecord(id=name.split("/")[0], query=name)


def scorer_of(metric: Gated) -> Scorer:
    return Scorer(metrics=(metric,), judge=OverlapJudge(), embedder=None, options=MetricOptions())


async def test_every_record_comes_out_once_and_in_order_when_nothing_waits() -> None:
    metric = Gated({})
    names = [f"r{i}" for i in range(40)]
    found = [tag async for tag, _ in score_stream(items(*names), scorer_of(metric), jobs=7)]
    assert found == names
    assert metric.most == 7


async def test_a_slow_record_holds_up_nothing_that_is_scored() -> None:
    gate = asyncio.Event()
    found = []
    async for tag, results in score_stream(items("slow", "a", "b", "c"), scorer_of(Gated({"slow": gate})), jobs=2):
        found.append(tag)
        assert results[0].value == 1.0
        if len(found) == 3:
            gate.set()
    assert found == ["a", "b", "c", "slow"]


async def test_lines_of_one_id_keep_their_order() -> None:
    gate = asyncio.Event()
    metric = Gated({"x/first": gate})
    found = []
    async for tag, _ in score_stream(items("x/first", "a", "b", "x/second", "c"), scorer_of(metric), jobs=4):
        found.append(tag)
        if tag == "b":
            assert "x/second" not in metric.begun
            gate.set()
    assert found.index("x/first") < found.index("x/second")
    assert sorted(found) == ["a", "b", "c", "x/first", "x/second"]


async def test_the_input_is_read_no_further_than_there_are_jobs() -> None:
    read = []

    def endless() -> Iterator[tuple[str, RagRecord]]:
        for i in range(10**9):
            read.append(i)
            yield from items(f"r{i}")

    async with aclosing(score_stream(endless(), scorer_of(Gated({})), jobs=3)) as scored:
        async for tag, _ in scored:
            if tag == "r20":
                break
    assert len(read) <= 21 + 3 + 1


async def test_closing_early_cancels_what_is_under_way() -> None:
    metric = Gated({"stuck": asyncio.Event()})
    async with aclosing(score_stream(items("stuck", "a"), scorer_of(metric), jobs=2)) as scored:
        async for tag, _ in scored:
            assert tag == "a"
            break
    assert metric.busy == set()


async def test_a_failing_input_closes_the_judge_too() -> None:
    @dataclass
    class Closing(OverlapJudge):
        closed: bool = False

        async def aclose(self) -> None:
            self.closed = True

    judge = Closing()

    def broken() -> Iterator[tuple[str, RagRecord]]:
        yield from items("a")
        raise OSError("the disk is gone")

    scorer = Scorer(metrics=(Gated({}),), judge=judge, embedder=None, options=MetricOptions())
    with pytest.raises(OSError, match="gone"):
        _ = [tag async for tag, _ in score_stream(broken(), scorer, jobs=4)]
    assert judge.closed
