"""Scores a stream of records, several at once, in the order in which they came."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from ragtrace.model import MetricResult, RagRecord
    from ragtrace.scoring.scorer import Scorer

Tag = TypeVar("Tag")


async def score_stream(
    items: Iterable[tuple[Tag, RagRecord]], scorer: Scorer, *, jobs: int
) -> AsyncGenerator[tuple[Tag, list[MetricResult]]]:
    """Yield each item's tag with its results, in the order of the input, at most `jobs` being scored at once.

    The input is read as results are taken, so memory does not grow with it. Closing the iterator cancels what is
    under way.
    """
    under_way: deque[tuple[Tag, asyncio.Task[list[MetricResult]]]] = deque()
    try:
        for tag, record in items:
            under_way.append((tag, asyncio.create_task(scorer.results(record))))
            if len(under_way) >= jobs:
                done, task = under_way.popleft()
                yield done, await task
        while under_way:
            done, task = under_way.popleft()
            yield done, await task
    finally:
        for _, task in under_way:
            task.cancel()
        await scorer.aclose()
