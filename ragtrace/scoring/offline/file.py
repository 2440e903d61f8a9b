"""Scores a stream of records, several at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol, TypeVar

from ragtrace.errors import JudgeOverBudget

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping

    from ragtrace.model import MetricResult, RagRecord
    from ragtrace.model.codec import ScoreJson

Tag = TypeVar("Tag")


def left_by_budget(scores: Mapping[str, ScoreJson]) -> str:
    """Return why a budget left some scores of a record out; "" where it left none.

    Example:
        >>> left_by_budget({"faithfulness": {"reason": "budget_exceeded", "details": {"message": "all is spent"}}})
        'all is spent'
        >>> left_by_budget({"faithfulness": {"state": "ok", "value": 1.0}})
        ''
    """
    over = [score for score in scores.values() if score.get("reason") == JudgeOverBudget.reason]
    return str(over[0].get("details", {}).get("message") or "no calls are left") if over else ""


class Scores(Protocol):
    """Scorer of records, such as `ragtrace.scoring.Scorer`."""

    async def results(self, record: RagRecord) -> list[MetricResult]:
        """Return every result of a record; never raises because of a judge."""
        ...

    async def aclose(self) -> None:
        """Release connections."""
        ...


async def score_stream(
    items: Iterable[tuple[Tag, RagRecord]],
    scorer: Scores,
    *,
    jobs: int,
    fits: Callable[[int], bool] = lambda _: True,
) -> AsyncGenerator[tuple[Tag, list[MetricResult]]]:
    """Yield each item's tag with its results as soon as they exist.

    A slow record holds up nothing that is already scored. Records of the same id come out in the order in which
    they went in; those that finish together do too, so that a judge that never waits keeps the order of the input.
    The input is read as results are taken, so memory does not grow with it. Closing the iterator cancels what is
    under way; the scorer is closed in any case.

    Args:
        items: tags and records.
        scorer: scores them.
        jobs: most records under way.
        fits: tells whether so many may be under way now; where not even one may, the rest of the input is left.
    """
    under_way: dict[asyncio.Task[list[MetricResult]], tuple[Tag, str]] = {}
    try:
        for tag, record in items:
            while under_way and (
                len(under_way) >= jobs
                or any(busy == record.id for _, busy in under_way.values())
                or not fits(len(under_way) + 1)
            ):
                for done in await _finished(under_way):
                    yield under_way.pop(done)[0], done.result()
            if not fits(len(under_way) + 1):
                break
            under_way[asyncio.create_task(scorer.results(record))] = (tag, record.id)
        while under_way:
            for done in await _finished(under_way):
                yield under_way.pop(done)[0], done.result()
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        await scorer.aclose()


async def _finished(tasks: Iterable[asyncio.Task[list[MetricResult]]]) -> list[asyncio.Task[list[MetricResult]]]:
    begun = list(tasks)
    await asyncio.wait(begun, return_when=asyncio.FIRST_COMPLETED)
    return [task for task in begun if task.done()]
