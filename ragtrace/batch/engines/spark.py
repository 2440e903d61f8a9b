"""Scores parts as jobs of Spark, in the session that exists, that spark-submit gives, or on this machine."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from ragtrace.batch.engines import starting
from ragtrace.batch.work import PartResult, reason_of, score_part

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark import SparkContext

    from ragtrace.batch.parts import Part
    from ragtrace.batch.work import BatchJob


def run(job: BatchJob, parts: Sequence[Part], workers: int | None) -> Iterator[PartResult]:
    """Yield the result of each part as it ends.

    Each part is a job of its own. A task that fails for the fourth time ends its job, and would end all parts.
    """
    existing = SparkSession.getActiveSession()
    with starting("spark"):
        session = existing or _session(workers)
    context = session.sparkContext
    slots = workers or context.defaultParallelism
    try:
        with ThreadPoolExecutor(slots) as threads:
            jobs = {threads.submit(_scored, context, job, part): part for part in parts}
            for done in as_completed(jobs):
                error = done.exception()
                yield done.result() if error is None else PartResult(part=jobs[done], failure=reason_of(error))
    finally:
        if existing is None:
            session.stop()


def _scored(context: SparkContext, job: BatchJob, part: Part) -> PartResult:
    found: list[PartResult] = context.parallelize([part], 1).map(partial(score_part, job)).collect()
    return found[0]


def _session(workers: int | None) -> SparkSession:
    builder = SparkSession.builder.appName("ragtrace score")
    if "PYSPARK_GATEWAY_PORT" in os.environ or os.environ.get("MASTER") or os.environ.get("SPARK_REMOTE"):
        return builder.getOrCreate()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    local = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    return builder.master(f"local[{workers or '*'}]").config(map=local).getOrCreate()
