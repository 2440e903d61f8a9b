"""Runs that may become anchors, from a store or a file of records."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ragtrace.cli.io.jsonl_reader import BrokenLines
from ragtrace.cli.io.scored_files import read_scored
from ragtrace.model.codec import record_from_json
from ragtrace.scoring.anchors.choosing import Candidate, band_of, level_of
from ragtrace.stores.base import is_by_person

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ragtrace.metrics.base import Output
    from ragtrace.stores.anchors import Anchor
    from ragtrace.stores.sqlite import SqliteStore


def stored_candidates(
    store: SqliteStore, outputs: Mapping[str, Output], workflow: str | None, *, since: float = 0.0
) -> tuple[list[Candidate], dict[int, float]]:
    """Return the kept records of runs that were drawn at random, and the weight of all such runs by band.

    A record that was kept for a low score stands for itself, and one of the random 1 % for a hundred. The weight of
    a band is that of all scored runs: of good ones few records are kept, or none.

    Args:
        store: the file.
        outputs: the metrics that make a level, by name.
        workflow: of this workflow alone; None = all.
        since: Unix seconds of the oldest scores.
    """
    levels = _stored_levels(store, outputs, workflow, since)
    traffic: defaultdict[int, float] = defaultdict(float)
    for level, weight in levels.values():
        traffic[band_of(level)] += weight
    found = []
    for record, probability in store.records(workflow=workflow):
        known = levels.get((record.trace_id or record.id, record.span_id))
        if known is not None:
            found.append(Candidate(record=record, weight=known[1] / probability, level=known[0]))
    return found, dict(traffic)


def _stored_levels(
    store: SqliteStore, outputs: Mapping[str, Output], workflow: str | None, since: float
) -> dict[tuple[str, str], tuple[float, float]]:
    """Return level and weight of each scored run of the random stratum, by trace and span."""
    latest: defaultdict[tuple[str, str], dict[str, tuple[float, float]]] = defaultdict(dict)
    weights: dict[tuple[str, str], float] = {}
    rows = (row for row in store.rows(since=since, workflow=workflow) if row["source"] != "human")
    for row in rows:
        if row["stratum"] != "random" or row["weight"] is None:
            continue
        run = (row["trace_id"], row["span_id"])
        weights[run] = min(weights.get(run, row["weight"]), row["weight"])
        if row["name"] in outputs and row["value"] is not None:
            found = (row["scored_at"], row["value"])
            latest[run][row["name"]] = max(found, latest[run].get(row["name"], found))
    down = _down(outputs)
    levels = {run: level_of({name: x for name, (_, x) in by.items()}, down) for run, by in latest.items()}
    return {run: (level, weights[run]) for run, level in levels.items() if level is not None}


def file_candidates(path: str, outputs: Mapping[str, Output], workflow: str | None) -> list[Candidate]:
    """Return the records of a file; lines of ``ragtrace score`` have a level.

    Raises:
        ConfigError: the file cannot be opened.
        InputError: its first lines are not JSON.
    """

    def read(given: Any, number: int) -> Candidate:
        record = record_from_json(given, fallback_id=str(number))
        scores = given.get("scores") if isinstance(given, dict) else None
        values = _read_values(scores, outputs) if isinstance(scores, dict) else {}
        return Candidate(record=record, level=level_of(values, _down(outputs)))

    broken = BrokenLines(path)
    found = list(read_scored(path, broken, read))
    broken.close()
    return [it for it in found if workflow is None or it.record.workflow == workflow]


def labelled(store: SqliteStore, anchors: Iterable[Anchor]) -> list[Anchor]:
    """Return anchors with the human labels of their traces."""
    labels: defaultdict[str, defaultdict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in store.rows():
        if is_by_person(row) and row["value"] is not None:
            labels[row["trace_id"]][row["name"]][row["version"]] = row["value"]
    return [
        replace(anchor, labels=labels[anchor.record.trace_id]) if anchor.record.trace_id in labels else anchor
        for anchor in anchors
    ]


def _read_values(scores: Mapping[str, object], outputs: Mapping[str, Output]) -> dict[str, float]:
    found = {}
    for name, score in scores.items():
        value = score.get("value") if isinstance(score, dict) else None
        if name in outputs and isinstance(value, int | float) and not isinstance(value, bool):
            found[name] = min(max(float(value), 0.0), 1.0)
    return found


def _down(outputs: Mapping[str, Output]) -> list[str]:
    return [name for name, output in outputs.items() if output.direction == "down"]
