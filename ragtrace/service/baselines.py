"""Compute baselines from the scores of a store, as a running scorer would learn them."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from ragtrace.model import SeriesKey
from ragtrace.model.cluster import digest_of_party
from ragtrace.service.baseline_monitor import turned, watched
from ragtrace.stats.baselines import Learner
from ragtrace.stats.clusters import Clustered
from ragtrace.stores.baselines import FrozenBaseline
from ragtrace.telemetry.metrics.series import bounded_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.metrics.base import Output
    from ragtrace.stores.sqlite import SqliteStore

Weighed = tuple[float, float, float]  # when it was scored, score, weight


def watched_outputs() -> dict[str, Output]:
    """Return every output that is watched for a drop, by name.

    Example:
        >>> watched_outputs()["faithfulness"].direction
        'up'
    """
    from ragtrace.metrics.registry import all_metrics  # noqa: PLC0415 - brings all metrics in

    return watched({it.name: it for metric in all_metrics().values() for it in metric.spec.outputs})


def gathered(
    store: SqliteStore, *, since: float, until: float | None, metric: str | None, workflow: str | None
) -> dict[SeriesKey, list[Weighed]]:
    """Return the scores that a baseline is made of, by series, each in the order in which they were scored.

    Of a session's or a user's turns within an hour it is their mean, of the other runs of a trace the first. Taken
    are scores of the random stratum with a value and a weight, of judges and not of people; also those of
    ``ragtrace rescore``, so that a new judge can have its baseline before it begins.

    Raises:
        sqlite3.Error: the file cannot be read.
    """
    outputs = watched_outputs()
    found: dict[SeriesKey, list[tuple[float, float, float, str, str]]] = defaultdict(list)
    for row in store.rows(since=since, until=until, metric=metric, workflow=workflow):
        is_taken = row["source"] != "human" and row["stratum"] == "random" and row["name"] in outputs
        if is_taken and row["value"] is not None and row["weight"] is not None:
            workflow = bounded_text(row["workflow"] or "")  # as the score counters have it
            party = digest_of_party(workflow, row["session"], row["user"]) or ""
            key = SeriesKey(
                metric=row["name"],
                workflow=workflow,
                version=row["version"] or None,
                k=row["k"],
                label_scale=row["label_scale"] or None,
                universe=row["universe"] or None,
            )
            found[key].append((row["scored_at"], row["value"], row["weight"], party, row["trace_id"]))
    return {key: _clustered(sorted(found[key])) for key in sorted(found, key=str)}


def _clustered(scores: Sequence[tuple[float, float, float, str, str]]) -> list[Weighed]:
    clustered, taken = Clustered(), []
    for at, value, weight, party, trace in scores:
        taken += clustered.add(value, weight, at, party=party or None, repeats=[trace])
    return sorted((mean.at, mean.x, mean.weight) for mean in [*taken, *clustered.closed(math.inf)])


def frozen_baseline(key: SeriesKey, scores: Sequence[Weighed], *, at: float, note: str = "") -> FrozenBaseline:
    """Return the baseline of a series' scores.

    Args:
        key: of the scores.
        scores: (time, score, weight).
        at: Unix seconds of now.
        note: a person's remark.

    Raises:
        KeyError: that metric is not watched.
        ValueError: there is no score.

    Example:
        >>> key = SeriesKey("faithfulness", "rag", version="v")
        >>> found = frozen_baseline(key, [(0.0, 0.8, 1.0), (1.0, 1.0, 3.0)], at=2.0)
        >>> round(found.baseline.mean, 3), found.baseline.n, found.baseline.n_eff
        (0.95, 2, 1.6)
    """
    output = watched_outputs()[key.metric]
    learner, baseline = Learner(len(scores)), None
    for _, value, weight in scores:
        baseline = learner.add(turned(output, value), weight)
    if baseline is None:
        raise ValueError("a baseline needs a score")
    baseline = replace(baseline, mean=turned(output, baseline.mean))
    return FrozenBaseline(key=key, baseline=baseline, frozen_at=at, note=note)
