"""Comparison of scored files by means and differences with intervals."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import astuple

from ragtrace.errors import ConfigError
from ragtrace.metrics.registry import output, select
from ragtrace.scoring.offline.repeated import over_runs, repeated_queries
from ragtrace.scoring.offline.scored_row import ANSWERED, clusters_of, ends_of, home, label_of, shown
from ragtrace.stats.differences import Difference, paired_difference, unpaired_difference
from ragtrace.stats.intervals import Interval, clustered_interval

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from ragtrace.model import SeriesKey
    from ragtrace.scoring.offline.scored_row import ScoredRow

    RowKey = tuple[str, int]

PAIRED_SHARE = 0.5  # of the smaller side's values must have a partner, else all values count, unpaired
_OTHER_MAKER = "refused: another judge, version, K or scale"
_OTHER_LABELS = "refused: other labels"


class ComparedFile(NamedTuple):
    """One scored file."""

    name: str
    rows: Sequence[ScoredRow]
    broken: int = 0


class Observation(NamedTuple):
    """One value with its unit, query and version of labels."""

    value: float
    unit: Hashable
    query: str
    labels: str | None


@dataclass(slots=True)
class MetricColumn:
    """Scores of one file in one series."""

    found: dict[RowKey, Observation] = field(default_factory=dict)
    na: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One file's part of a line of the comparison.

    Attributes:
        values: of state ``ok``.
        mean: with its interval.
        na: how often there is no value by reason; ``skipped`` scores count here.
        errors: how often the metric failed, by reason.
        units: what counts as one: rows, sessions, users or queries.
    """

    values: tuple[float, ...]
    mean: Interval
    na: Mapping[str, int]
    errors: Mapping[str, int]
    units: str

    def to_json(self) -> dict[str, object]:
        """Return it as JSON-ready values, without the single values."""
        mean = self.mean
        counts = {"n": len(self.values), "na": dict(self.na), "errors": dict(self.errors)}
        return {**counts, "mean": mean.mean, "low": mean.low, "high": mean.high, "units": self.units}


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """Difference of another file from the first, or the reason without one.

    Attributes:
        difference: of the pairs, or of all values.
        reason: why there is none.
        other_labels: pairs left out, as their two values are over other versions of the labels.
    """

    difference: Difference | None = None
    reason: str | None = None
    other_labels: int = 0

    def to_json(self) -> dict[str, object]:
        """Return it as JSON-ready values."""
        found = self.difference.to_json() if self.difference else {"value": None, "reason": self.reason}
        return {**found, "other_labels": self.other_labels}


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One series over all files.

    Attributes:
        key: its metric is the key of the scores in the files.
        label: the metric, with what tells it from another line of it.
        direction: which way is better; None for a metric that is not installed here.
        is_over_runs: it is about repeated runs, one value a query.
        sides: one a file.
        contrasts: one for each file but the first: it minus the first.
    """

    key: SeriesKey
    label: str
    direction: str | None
    is_over_runs: bool
    sides: tuple[Side, ...]
    contrasts: tuple[Contrast, ...]

    def to_json(self) -> dict[str, object]:
        """Return it as JSON-ready values."""
        return {
            "metric": self.key.metric,
            **self.key.maker(),
            "direction": self.direction,
            "over_runs": self.is_over_runs,
            "files": [side.to_json() for side in self.sides],
            "differences": [contrast.to_json() for contrast in self.contrasts],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The whole comparison.

    Attributes:
        arms: name, good lines, broken lines and repeated queries of each file.
        lines: one a series.
        refused: a sentence for each metric that two files give by different judges, versions, K or scales, or over
            different labels.
        answered: share of questions answered in each file, with its interval.
    """

    arms: tuple[dict[str, object], ...]
    lines: tuple[Compared, ...]
    refused: tuple[str, ...]
    answered: tuple[Interval, ...]

    def to_json(self) -> dict[str, object]:
        """Return everything as JSON-ready values."""
        return {
            "files": [dict(arm) for arm in self.arms],
            "answered": [share._asdict() for share in self.answered],
            "metrics": [line.to_json() for line in self.lines],
            "refused": list(self.refused),
        }


def compare(arms: Sequence[ComparedFile], *, metrics: Sequence[str] = ()) -> Comparison:
    """Compare scored files with the first of them.

    Scores are averaged and compared where judge, version, K, label scale and universe agree. Two files are compared
    over pairs where at least half of the smaller one's values have a partner: the same id (of lines of one id, the
    same place among them) and no other query. Pairs over other labels are left out; where fewer than that half are
    left, nothing is compared. A session, else a user, else the runs of a query count as one.

    Args:
        arms: at least one.
        metrics: metrics or their outputs to keep, an output with or without ``@K``; empty keeps all.

    Raises:
        ConfigError: no file has any of the metrics.

    Example:
        >>> from ragtrace.scoring.offline.scored_row import scored_row
        >>> def arm(name, values):
        ...     scores = [{"mrr": {"state": "ok", "value": value, "version": "a"}} for value in values]
        ...     return ComparedFile(name, [scored_row({"scores": score}, n) for n, score in enumerate(scores, 1)])
        >>> found = compare([arm("a", [0.5, 0.5, 0.25]), arm("b", [1.0, 1.0, 1.0])]).lines[0].contrasts[0]
        >>> found.difference.is_paired, round(found.difference.value, 3)
        (True, 0.583)
    """
    wanted = {output for name in metrics for output in _outputs(name)}
    plain = _lines([arm.rows for arm in arms], arms, wanted, is_over_runs=False)
    repeated = [over_runs(arm.rows) for arm in arms]
    runs = _lines(repeated, arms, wanted, is_over_runs=True) if any(repeated) else ([], [])
    kept = [*plain[0], *runs[0]]
    if wanted and not kept:
        raise ConfigError(f"--metrics {','.join(metrics)}: no file has such a score")
    facts = [
        {
            "name": arm.name,
            "lines": len(arm.rows),
            "broken": arm.broken,
            "repeated": len(repeated_queries(arm.rows)),
        }
        for arm in arms
    ]
    return Comparison(
        arms=tuple(facts),
        lines=tuple(kept),
        refused=tuple(plain[1]),
        answered=tuple(_answered(arm.rows) for arm in arms),
    )


def _lines(
    tables: Sequence[Sequence[ScoredRow]],
    arms: Sequence[ComparedFile],
    wanted: set[str],
    *,
    is_over_runs: bool,
) -> tuple[list[Compared], list[str]]:
    names = dict.fromkeys(name for rows in tables for row in rows for name in row.scores)
    lines, refused = [], []
    units = [_units(rows) for rows in tables]
    for name in names:
        if wanted and not _is_wanted(name, wanted):
            continue
        keys = _keys(name, tables)
        columns = [_columns(name, rows, keys, unit) for rows, unit in zip(tables, units, strict=True)]
        differing = _refusals(name, columns, arms)
        refused += list(filter(None, differing))
        for key in keys:
            sides = [by_key.get(key, MetricColumn()) for by_key in columns]
            line = Compared(
                key=key,
                label=label_of(key, keys),
                direction=_direction(name),
                is_over_runs=is_over_runs,
                sides=tuple(_side(column, name) for column in sides),
                contrasts=tuple(_contrasts(name, sides, differing)),
            )
            lines.append(line)
            refused += _over_other_labels(line, arms)
    return lines, refused


def _outputs(name: str) -> list[str]:
    try:
        spec = select([name])[0].spec
    except ConfigError:  # a metric that is not installed here
        return [name]
    return [one.name for one in spec.outputs] if name == spec.name else [name]


def _is_wanted(name: str, wanted: set[str]) -> bool:
    inner = name.partition("(")[2].rstrip(")") or name
    return inner in wanted or inner.partition("@")[0] in wanted


def _keys(name: str, tables: Sequence[Sequence[ScoredRow]]) -> list[SeriesKey]:
    """Return the keys of values, sorted by K; without values, of the failures."""
    scores = [row.scores[name] for rows in tables for row in rows if name in row.scores]
    found = {score.key for score in scores if score.value is not None} or {scores[0].key}
    return sorted(
        found, key=lambda key: tuple(f"{it:09}" if isinstance(it, int) else it or "" for it in astuple(key))
    )


def _units(rows: Sequence[ScoredRow]) -> list[Hashable]:
    """Return what each row belongs to: a session or user, else a repeated query."""
    again = repeated_queries(rows)
    return [row.unit or (("query", row.key) if row.key in again else ("row", i)) for i, row in enumerate(rows)]


def _columns(
    name: str, rows: Sequence[ScoredRow], keys: Sequence[SeriesKey], units: Sequence[Hashable]
) -> dict[SeriesKey, MetricColumn]:
    columns: dict[SeriesKey, MetricColumn] = {}
    seen: Counter[str] = Counter()
    own = [key for key in keys if any(name in row.scores and row.scores[name].key == key for row in rows)]
    for row, unit in zip(rows, units, strict=True):
        place, seen[row.id] = seen[row.id], seen[row.id] + 1
        score = row.scores.get(name)
        if score is None:
            continue
        if score.value is not None:
            query = row.key.query if row.key else ""
            found = columns.setdefault(score.key, MetricColumn()).found
            found[row.id, place] = Observation(score.value, unit, query, score.labels)
            continue
        column = columns.setdefault(home(score.key, own or keys), MetricColumn())
        (column.errors if score.state == "error" else column.na)[str(score.reason)] += 1
    return columns


def _refusals(
    name: str, columns: Sequence[Mapping[SeriesKey, MetricColumn]], arms: Sequence[ComparedFile]
) -> list[str | None]:
    """Return for each other file the reason why it cannot be compared, or None."""
    found = [{key for key, column in by_key.items() if column.found} for by_key in columns]
    lines: list[str | None] = []
    for arm, keys in zip(arms[1:], found[1:], strict=True):
        if not keys or not found[0] or keys & found[0]:
            lines.append(None)
            continue
        one, other = min(found[0], key=str).maker(), min(keys, key=str).maker()
        parts = [
            f"{field_name.replace('_', ' ')} {shown(part)} and {shown(other[field_name])}"
            for field_name, part in one.items()
            if part != other[field_name]
        ]
        lines.append(f"{name}: {arms[0].name} and {arm.name} are not compared: {', '.join(parts)}")
    return lines


def _over_other_labels(line: Compared, arms: Sequence[ComparedFile]) -> Iterator[str]:
    for arm, contrast in zip(arms[1:], line.contrasts, strict=True):
        if contrast.reason == _OTHER_LABELS:
            yield (
                f"{line.label}: {arms[0].name} and {arm.name} are not compared: the labels changed between them; "
                "score both again over the same labels"
            )


def _direction(name: str) -> str | None:
    try:
        return output(name.partition("(")[0]).direction
    except ConfigError:
        return None


def _side(column: MetricColumn, name: str) -> Side:
    found = list(column.found.values())
    values = [one.value for one in found]
    clusters = clusters_of([one.unit for one in found])
    return Side(
        values=tuple(values),
        mean=clustered_interval(values, clusters, ends=ends_of(name, values)),
        na=dict(column.na.most_common()),
        errors=dict(column.errors.most_common()),
        units=_kinds(clusters),
    )


def _kinds(clusters: Sequence[Hashable] | None) -> str:
    names = {"session": "sessions", "user": "users", "query": "queries"}  # beside single rows
    kinds = {str(unit[0]) for unit in clusters or () if isinstance(unit, tuple)}
    return ", ".join(shown for kind, shown in names.items() if kind in kinds) or "rows"


def _contrasts(name: str, sides: Sequence[MetricColumn], refusals: Sequence[str | None]) -> Iterator[Contrast]:
    for column, refusal in zip(sides[1:], refusals, strict=True):
        yield _contrast(name, sides[0], column) if refusal is None else Contrast(reason=_OTHER_MAKER)


def _contrast(name: str, first: MetricColumn, other: MetricColumn) -> Contrast:
    if not first.found or not other.found:
        return Contrast(reason="no value in the first file" if not first.found else "no value in this file")
    partners = _partners(first.found, other.found)
    least = PAIRED_SHARE * min(len(first.found), len(other.found))
    if len(partners) < least:
        return _unpaired(name, first, other)
    pairs = [(a, b) for a, b in partners if a.labels == b.labels]
    left_out = len(partners) - len(pairs)
    if len(pairs) < least:
        return Contrast(reason=_OTHER_LABELS, other_labels=left_out)
    before, after = ([one.value for one in side] for side in zip(*pairs, strict=True))
    units = [[one.unit for one in side] for side in zip(*pairs, strict=True)]
    clusters = clusters_of(min(units, key=lambda side: len(set(side))))
    ends = ends_of(name, [*before, *after])
    return Contrast(difference=paired_difference(before, after, clusters, ends=ends), other_labels=left_out)


def _unpaired(name: str, first: MetricColumn, other: MetricColumn) -> Contrast:
    sides = [list(column.found.values()) for column in (first, other)]
    if len({frozenset(one.labels for one in side) for side in sides}) > 1:
        return Contrast(reason=_OTHER_LABELS)
    first_values, second_values = ([one.value for one in side] for side in sides)
    clusters = (clusters_of([one.unit for one in side]) for side in sides)
    ends = ends_of(name, [*first_values, *second_values])
    return Contrast(difference=unpaired_difference(first_values, second_values, *clusters, ends=ends))


def _partners(
    first: Mapping[RowKey, Observation], other: Mapping[RowKey, Observation]
) -> list[tuple[Observation, Observation]]:
    """Return values of the same id; ids may be line numbers, so queries must agree."""
    both = [(first[key], other[key]) for key in first if key in other]
    return [(a, b) for a, b in both if a.query == b.query or not a.query or not b.query]


def _answered(rows: Sequence[ScoredRow]) -> Interval:
    known = [
        (value, unit)
        for row, unit in zip(rows, _units(rows), strict=True)
        if ANSWERED in row.scores and (value := row.scores[ANSWERED].value) is not None
    ]
    return clustered_interval([value for value, _ in known], clusters_of([unit for _, unit in known]))
