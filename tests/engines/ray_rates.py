"""Prints the rows a second of one and of two Ray workers once they are warm: FILE OUT JUDGE_URL."""

from __future__ import annotations

import json
import sys

from ragtrace.batch import BatchJob, load_engine, scorer_settings
from ragtrace.batch.parts import plan
from ragtrace.batch.table import arguments
from ragtrace.settings import Settings

JOBS = 2  # so few calls under way that the judge binds, and not the processors


def rate(path: str, out: str, url: str, workers: int) -> float:
    """Score a file; its rate begins with the second part of each worker, since they import in the first."""
    given = arguments(metrics="faithfulness", judge="openai:m", judge_base_url=url)
    job = BatchJob(out=out, settings=scorer_settings(Settings.resolve(given)), jobs=JOBS)
    results = sorted(load_engine("ray")(job, plan(path), workers), key=lambda result: result.ended)
    assert not any(result.failure for result in results), results
    warm = results[workers - 1 :]
    return sum(result.rows for result in warm[1:]) / (warm[-1].ended - warm[0].ended)


if __name__ == "__main__":
    path, folder, url = sys.argv[1:]
    sys.stdout.write(json.dumps([rate(path, f"{folder}/{n}", url, n) for n in (1, 2)]))
