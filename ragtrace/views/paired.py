"""Comparison of two scored files by pairs, as ``ragtrace compare`` makes it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ragtrace.errors import InputError
from ragtrace.scoring.offline.comparison import ComparedFile, compare
from ragtrace.scoring.offline.scored_row import scored_row
from ragtrace.views.figures import output_of
from ragtrace.views.periods import MOST_RUNS, verdict_of, verdict_pairs
from ragtrace.views.scored_answer import first_metric
from ragtrace.views.types import ComparedMetric, ComparedRun, ComparisonView

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ragtrace.scoring.offline.comparison import Compared, Contrast
    from ragtrace.scoring.offline.scored_row import ScoredRow
    from ragtrace.views.columns import Snapshot
    from ragtrace.views.file_runs import FileRuns

    Side = tuple[str, Snapshot, FileRuns]


def compared_files(before: Side, after: Side, *, metric: str | None) -> ComparisonView:
    """Return the comparison of two files, and the questions that became worse."""
    rows = [_rows(snapshot, source) for _, snapshot, source in (before, after)]
    arms = [ComparedFile(side[0], [row for _, row in own]) for side, own in zip((before, after), rows, strict=True)]
    found = compare(arms)
    names = {line.key.metric for line in found.lines if not line.is_over_runs}
    wanted = metric or (first_metric(names) if names else None)
    sides = [(snapshot, snapshot.is_alive) for _, snapshot, _ in (before, after)]
    return ComparisonView(
        names=(before[0], after[0]),
        counts=(len(rows[0]), len(rows[1])),
        metric=wanted,
        metrics=tuple(sorted(map(_line, found.lines), key=lambda it: it.metric != wanted)),
        pairing="runs of the same id, each with its own pair",
        runs=tuple(_regressions(rows[0], rows[1], wanted, (before[1], after[1]))) if wanted else (),
        verdicts=tuple(verdict_pairs(sides[0], sides[1])),
        refused=found.refused,
        notes=(*before[1].notes, *after[1].notes),
    )


def _rows(snapshot: Snapshot, source: FileRuns) -> list[tuple[int, ScoredRow]]:
    found = []
    for row, run_id in enumerate(snapshot.ids):
        try:
            found.append((row, scored_row(source.record_row(int(snapshot.place[row])), int(run_id))))
        except (InputError, LookupError):
            continue
    return found


def _line(line: Compared) -> ComparedMetric:
    before, after = line.sides
    contrast = line.contrasts[0]
    found = contrast.difference
    return ComparedMetric(
        metric=line.key.metric,
        label=line.label,
        direction=line.direction,  # type: ignore[arg-type]
        before=before.mean,
        after=after.mean,
        n=(len(before.values), len(after.values)),
        difference=None if found is None else found.value,
        low=None if found is None else found.low,
        high=None if found is None else found.high,
        pairs=found.n[0] if found is not None and found.is_paired else 0,
        verdict=_verdict(line, contrast),
    )


def _verdict(line: Compared, contrast: Contrast) -> str:
    if contrast.difference is None:
        return str(contrast.reason)
    return verdict_of(contrast.difference, line.direction, has_sides=(True, True))


def _regressions(
    before: Sequence[tuple[int, ScoredRow]],
    after: Sequence[tuple[int, ScoredRow]],
    metric: str,
    snapshots: tuple[Snapshot, Snapshot],
) -> list[ComparedRun]:
    return sorted(_pairs(before, after, metric, snapshots), key=lambda it: it.change)[:MOST_RUNS]


def _pairs(
    before: Sequence[tuple[int, ScoredRow]],
    after: Sequence[tuple[int, ScoredRow]],
    metric: str,
    snapshots: tuple[Snapshot, Snapshot],
) -> Iterator[ComparedRun]:
    """Yield the pairs of `ragtrace compare`: the same id and place among equal ids, and no other question."""
    known = output_of(metric)
    sign = -1.0 if known is not None and known.direction == "down" else 1.0
    old = dict(_keyed(before, metric))
    for key, (place, row, value) in _keyed(after, metric):
        if key not in old:
            continue
        old_place, old_row, was = old[key]
        same_query = not old_row.query or not row.query or old_row.key == row.key
        if same_query and old_row.scores[metric].key == row.scores[metric].key:
            yield ComparedRun(
                before_id=snapshots[0].ids[old_place],
                after_id=snapshots[1].ids[place],
                query=row.query,
                before=was,
                after=value,
                change=sign * (value - was),
                before_verdict=snapshots[0].verdict_of(old_place),
                after_verdict=snapshots[1].verdict_of(place),
            )


def _keyed(
    rows: Sequence[tuple[int, ScoredRow]], metric: str
) -> Iterator[tuple[tuple[str, int], tuple[int, ScoredRow, float]]]:
    seen: Counter[str] = Counter()
    for place, row in rows:
        key = row.id, seen[row.id]
        seen[row.id] += 1
        score = row.scores.get(metric)
        if score is not None and score.value is not None:
            yield key, (place, row, score.value)
