"""One look at a store, in a process of its own: what fell, of each watched metric and workflow.

`python -m ragtrace.scoring.investigation.look STORE` prints a line of JSON for each pair, as `Finding` has it. The
process only reads the store. It ends after 60 s of CPU or beyond 300 MB, and when the scorer that began it is gone.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from ragtrace.scoring.investigation.comparison import HISTORY_S, NoMetric, TooFewScores, is_watched
from ragtrace.scoring.investigation.finding import Finding, Part
from ragtrace.scoring.investigation.runs import StoreSource
from ragtrace.scoring.investigation.search import investigated
from ragtrace.stores.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ragtrace.scoring.investigation.runs import RunScore
    from ragtrace.scoring.investigation.search import Investigation

CPU_S = 60
MEMORY_MB = 300
MOST_WORKFLOWS = 10
"""Workflows of a metric that are looked at, those with the most scores."""
_GENTLE = 10
EXPORTED = ("model", "environment", "corpus", "prompt")
"""Facts whose values may become labels: each process has few of them."""


class _Given:
    """The scores of one metric and workflow, as a source."""

    def __init__(self, metric: str, runs: list[RunScore]) -> None:
        self._metric = metric
        self._runs = runs

    def metrics(self) -> list[str]:
        return [self._metric]

    def scores(self, _metric: str, _since: float, _until: float) -> list[RunScore]:
        return self._runs


def findings(path: Path, *, now: float) -> Iterator[Finding]:
    """Yield what is found in a store, of each metric and its ten largest workflows.

    The scores of each metric are read once, those of its last 100,000 runs and 14 days.

    Raises:
        StoreError: it cannot be opened.
        sqlite3.Error: it cannot be read.
    """
    store = SqliteStore(path, is_made=False)
    try:
        source = StoreSource(store)
        for metric in filter(is_watched, store.metric_names()):
            by_workflow: defaultdict[str, list[RunScore]] = defaultdict(list)
            for run in source.scores(metric, now - HISTORY_S, now):
                names = (it.value for it in run.slices if it.dimension == "workflow")
                by_workflow[next(names, "")].append(run)
            largest = Counter({name: len(runs) for name, runs in by_workflow.items()}).most_common(MOST_WORKFLOWS)
            for workflow, _ in largest:
                with suppress(TooFewScores, NoMetric):
                    given = _Given(metric, by_workflow.pop(workflow))
                    yield _finding(workflow, investigated(given, metric=metric, before=now - HISTORY_S, until=now))
    finally:
        store.close()


def _finding(workflow: str, found: Investigation) -> Finding:
    if not found.is_fallen:
        return Finding(metric=found.key.metric, workflow=workflow, is_found=False)
    change, grown = found.change, found.verdict
    sign = 1.0 if change.value > 0.0 else -1.0
    low, high = sorted((sign * (change.low or 0.0), sign * (change.high or 0.0)))
    return Finding(
        metric=found.key.metric,
        workflow=workflow,
        is_found=True,
        since=found.since,
        n=change.window.n,
        size=abs(change.value),
        low=low,
        high=high,
        parts=tuple(
            Part(
                rank=rank,
                dimension=it.slice.dimension,
                value=it.slice.value,
                how=it.how,
                share=min(it.explained / change.value, 1.0),
            )
            for rank, it in enumerate(found.explained.slices, start=1)
            if it.slice.dimension in EXPORTED
        ),
        verdict=grown.verdict if grown else "",
        growth=grown.share.difference if grown else 0.0,
    )


def main() -> int:
    """Look at the store of the first argument."""
    os.nice(_GENTLE)
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_MB * 2**20, MEMORY_MB * 2**20))
    parent = os.getppid()
    for finding in findings(Path(sys.argv[1]), now=time.time()):
        sys.stdout.write(f"{json.dumps(asdict(finding))}\n")
        sys.stdout.flush()
        if os.getppid() != parent:
            break
    return 0


if __name__ == "__main__":
    sys.exit(main())
