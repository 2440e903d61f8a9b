"""Scores parts in this process, one after the other."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from ragtrace.batch.work import Limits, score_limited

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ragtrace.batch.parts import Part
    from ragtrace.batch.work import BatchJob, PartResult


def run(job: BatchJob, parts: Sequence[Part], workers: int | None) -> Iterator[PartResult]:  # noqa: ARG001 - one process
    """Yield the result of each part, in order."""
    with closing(Limits(job)) as limits:
        for part in parts:
            yield score_limited(job, part, limits)
