"""Scores parts in this process, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.batch.work import score_part

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ragtrace.batch.parts import Part
    from ragtrace.batch.work import BatchJob, PartResult


def run(job: BatchJob, parts: Sequence[Part], workers: int | None) -> Iterator[PartResult]:  # noqa: ARG001 - one process
    """Yield the result of each part, in order."""
    for part in parts:
        yield score_part(job, part)
