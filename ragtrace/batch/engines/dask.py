"""Scores parts as tasks of Dask, on the cluster of DASK_SCHEDULER_ADDRESS or on one of this machine."""

from __future__ import annotations

import os
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from dask import config
from distributed import Client, LocalCluster, as_completed

from ragtrace.batch.engines import starting
from ragtrace.batch.work import PartResult, reason_of, score_part

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ragtrace.batch.parts import Part
    from ragtrace.batch.work import BatchJob


def run(job: BatchJob, parts: Sequence[Part], workers: int | None) -> Iterator[PartResult]:
    """Yield the result of each part as it ends; a worker that dies is tried as Dask's configuration says."""
    address = os.environ.get("DASK_SCHEDULER_ADDRESS") or config.get("scheduler-address", None)
    with ExitStack() as open_until_done:
        with starting("dask"):
            cluster = address or open_until_done.enter_context(_own(workers))
            client = open_until_done.enter_context(Client(cluster))
        yield from _results(client, job, parts)


def _own(workers: int | None) -> LocalCluster:
    return LocalCluster(n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None)


def _results(client: Client, job: BatchJob, parts: Sequence[Part]) -> Iterator[PartResult]:
    futures = client.map(partial(score_part, job), parts, pure=False)
    part_of = {future.key: part for future, part in zip(futures, parts, strict=True)}
    for future in as_completed(futures):
        error, part = future.exception(), part_of[future.key]
        yield future.result() if error is None else PartResult(part=part, failure=reason_of(error))
