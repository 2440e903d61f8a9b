"""Scores parts as tasks of Ray, on the cluster of RAY_ADDRESS or on one of this machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import ray

from ragtrace.batch.engines import starting
from ragtrace.batch.work import PartResult, reason_of, score_part

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ragtrace.batch.parts import Part
    from ragtrace.batch.work import BatchJob

_STORE_BYTES = 200 * 2**20  # results are counts alone
_TRIES = 3


def run(job: BatchJob, parts: Sequence[Part], workers: int | None) -> Iterator[PartResult]:
    """Yield the result of each part as it ends; a worker that dies is tried three times."""
    is_own = not ray.is_initialized()
    if is_own:
        with starting("ray"):
            _begin(workers)
    try:
        yield from _results(job, parts, workers or int(ray.cluster_resources().get("CPU", 1)))
    finally:
        if is_own:
            ray.shutdown()


def _begin(workers: int | None) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    quiet = {"log_to_driver": False, "logging_level": "warning", "configure_logging": False}
    if os.environ.get("RAY_ADDRESS"):
        ray.init(**quiet)
        return
    own = {"num_cpus": workers, "include_dashboard": False, "object_store_memory": _STORE_BYTES}
    for left in reversed(range(_TRIES)):
        try:
            ray.init(_temp_dir=os.environ.get("RAY_TMPDIR"), _node_ip_address="127.0.0.1", **own, **quiet)
        except Exception:  # Ray gives a node 30 s, which are not enough on a busy machine
            ray.shutdown()
            if not left:
                raise
        else:
            return


def _results(job: BatchJob, parts: Sequence[Part], slots: int) -> Iterator[PartResult]:
    task: Any = ray.remote(num_cpus=1, max_retries=_TRIES)(score_part)
    left = iter(parts)
    busy: dict[Any, Part] = {}
    while True:
        while len(busy) < 2 * slots and (part := next(left, None)) is not None:
            busy[task.remote(job, part)] = part
        if not busy:
            return
        ready, _ = ray.wait(list(busy), num_returns=1)
        for one in ready:
            yield _result(one, busy.pop(one))


def _result(reference: Any, part: Part) -> PartResult:
    try:
        result: PartResult = ray.get(reference)
    except Exception as error:
        return PartResult(part=part, failure=reason_of(error))
    return result
