"""Summary of a scored file, and its thresholds."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ragtrace.cli.io.label_ids import LabelIds
from ragtrace.cli.io.verdicts import VerdictShares
from ragtrace.errors import ConfigError, nearest
from ragtrace.metrics.consistency.runs import query_key
from ragtrace.model.printable import count_text, printable
from ragtrace.model.reading import signed_text
from ragtrace.model.score import ERROR_REASONS, SeriesKey
from ragtrace.scoring.limits.trouble import DOCTOR
from ragtrace.scoring.offline.scored_row import clusters_of, ends_of, home, key_of, label_of, unit_of
from ragtrace.stats.intervals import clustered_interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rich.console import Console

    from ragtrace.metrics.base import Output
    from ragtrace.model import RagRecord
    from ragtrace.model.codec import ScoreJson
    from ragtrace.stats.intervals import Interval

_TOP, _BOTTOM, _RATIO = "ra_nwg_at_k", "proc_at_k", "pct_proc_micro"
OF_THE_JUDGE = frozenset({reason for reason in ERROR_REASONS if reason.startswith("judge_")} | {"budget_exceeded"})
_MOST_MESSAGES, _MOST_MESSAGE = 1_000, 500  # messages, and characters of one
_MOST_SHOWN = 10  # unknown fields, and files without a record
WIDE = 120  # columns below which reasons would be cut in the middle of words


@dataclass(slots=True)
class SummaryColumn:
    """Values, passes and reasons of one metric at one K and scale; `units` are hashes of what each belongs to."""

    values: array[float] = field(default_factory=lambda: array("d"))
    units: array[int] = field(default_factory=lambda: array("q"))
    passed: int = 0
    judged: int = 0
    na: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    makers: Counter[str] = field(default_factory=Counter)

    @property
    def lines(self) -> int:
        """Lines that say anything of the metric."""
        return len(self.values) + self.na.total() + self.errors.total()

    @property
    def mean(self) -> float:
        """Mean of the values, of which there is at least one; ten times 0.1 is not below 0.1."""
        return math.fsum(self.values) / len(self.values)

    def interval(self, key: str) -> Interval:
        """Return the mean with its 95 % interval; three None without values."""
        return clustered_interval(self.values, clusters_of(self.units), ends=ends_of(key, self.values))

    def add(self, score: ScoreJson, unit: int) -> None:
        """Take one score as it stands in the output."""
        state, reason = score.get("state"), str(score.get("reason"))
        value = score.get("value")
        if state == "ok" and value is not None:
            self.values.append(value)
            self.units.append(unit)
            maker = maker_text(score.get("judge"), score.get("version"))
            self.makers[f"{maker} over {score['universe']}" if score.get("universe") else maker] += 1
            if score.get("passed") is not None:
                self.judged += 1
                self.passed += bool(score["passed"])
        elif state == "error":
            self.errors[reason] += 1
        else:
            self.na[reason] += 1


@dataclass(slots=True)
class Ratio:
    """Two values of each line, for the ratio of their means."""

    tops: array[float] = field(default_factory=lambda: array("d"))
    bottoms: array[float] = field(default_factory=lambda: array("d"))
    units: array[int] = field(default_factory=lambda: array("q"))


class Summary:
    """Adds scored lines up; memory is sixteen bytes a value.

    Lines of one session, else of one user, else of one query count as one in the intervals.

    Values of another K or label scale are another mean, in a row of its own. Beside the mean of
    %PROC, which is a mean of ratios, stands ``pct_proc_micro``: the mean of RA-nWG over the mean of PROC, of the
    lines that have both.

    Args:
        asked: every output that each line should hold, with its `maker_text`, None where that depends on the line.
            A missing one is a warning.
    """

    def __init__(self, asked: Mapping[str, str | None] | None = None) -> None:
        self.asked = asked or {}
        self.columns: dict[str, dict[SeriesKey, SummaryColumn]] = {}
        self.ratios: dict[str, dict[SeriesKey, Ratio]] = {}
        self.verdicts = VerdictShares()
        self.label_ids = LabelIds()
        self.lines = 0
        self.signed = 0  # lines whose run carries a sign
        self.before: int | None = None  # lines of an earlier run, when one is resumed
        self.broken = 0
        self.unknown: Counter[str] = Counter()  # fields that no metric reads
        self.without_records: Sequence[str] = ()  # names of files
        self.messages: Counter[str] = Counter()  # of a judge that failed, by the lines that have them
        self.failed_lines = 0

    def add(self, scores: Mapping[str, ScoreJson], record: RagRecord | None = None) -> None:
        """Take the scores of one line, and the record that they are of."""
        self.lines += 1
        known = None if record is None else unit_of(record) or query_key(record)
        unit = hash(self.lines if known is None else known)
        self.verdicts.add(scores, unit)
        if record is not None:
            self.label_ids.add(record)
            self.signed += record.reading is not None and record.reading.is_signed
        failures = {message for score in scores.values() if (message := _failure_of(score))}
        self.failed_lines += bool(failures)
        self.messages.update(one for one in failures if one in self.messages or len(self.messages) < _MOST_MESSAGES)
        for key, score in scores.items():
            self.columns.setdefault(key, {}).setdefault(_kind(key, score), SummaryColumn()).add(score, unit)
            if key.partition("@")[0] == _TOP:
                self._add_ratio(key.removeprefix(_TOP), score, scores, unit)

    def _add_ratio(self, suffix: str, top: ScoreJson, scores: Mapping[str, ScoreJson], unit: int) -> None:
        bottom = scores.get(f"{_BOTTOM}{suffix}", {})
        if top.get("state") == bottom.get("state") == "ok":
            key = f"{_RATIO}{suffix}"
            ratio = self.ratios.setdefault(key, {}).setdefault(_kind(key, top), Ratio())
            ratio.tops.append(top["value"] or 0.0)
            ratio.bottoms.append(bottom["value"] or 0.0)
            ratio.units.append(unit)

    def show(self, console: Console) -> None:
        """Print the table; a narrow console has the reasons below it."""
        from rich.table import Table

        is_wide = console.width >= WIDE
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("metric", no_wrap=True)
        for head in ("n", "mean", "95 % interval", "passed"):
            table.add_column(head, justify="right", no_wrap=True)
        for head in ("na", "errors"):
            table.add_column(head, justify="left" if is_wide else "right", no_wrap=not is_wide)
        rows = [(key, label, column) for key in self.columns for label, column in self._rows(key)]
        for key, label, column in rows:
            table.add_row(label, *_cells(key, column), *_failures(column, is_wide=is_wide))
        for ratios in self.ratios.values():
            for kind in sorted(ratios, key=_order):
                table.add_row(label_of(kind, ratios), *_ratio_cells(ratios[kind]), "", "", "")
        console.print(table)
        if not is_wide:
            for _, label, column in rows:
                for state, counts in (("na", column.na), ("error", column.errors)):
                    if counts:
                        console.print(f"{label} {state}: {_reasons(counts)}")
        self.verdicts.show(console)
        if self.signed:
            console.print(f"{signed_text(self.signed, self.lines)}; `ragtrace worst --sign any` lists them")

    def _rows(self, key: str) -> list[tuple[str, SummaryColumn]]:
        found = _by_kind(self.columns.get(key, {}))
        return [(label_of(kind, found), column) for kind, column in found.items()]

    def warnings(self) -> list[str]:
        """Return warnings of mixed or failing judges, missing scores, label ids, unknown fields and empty files."""
        keys = dict.fromkeys((*self.columns, *self.asked))
        found = [warning for key in keys for warning in self._warnings(key)]
        of_labels = filter(None, [self.label_ids.warning()])
        return [*self._failures(), *found, *of_labels, *self._of_one_unit(), *self._passed_over(), *self._empty()]

    def _failures(self) -> Iterator[str]:
        """Say what a judge that failed said most often."""
        if self.messages:
            (message, count), *_ = self.messages.most_common(1)
            lines = count_text(self.lines, "line")
            yield f"the judge failed on {self.failed_lines} of {lines}, on {count} of them: {message}; {DOCTOR}"

    def _of_one_unit(self) -> Iterator[str]:
        """Say why the intervals are the whole scale where all lines belong together."""
        units = {unit for kinds in self.columns.values() for column in kinds.values() for unit in column.units}
        if self.lines > 1 and len(units) == 1:
            yield (
                "all lines are of one session, user or query and count as one, so no interval is narrower than the "
                "scale; if they are independent, leave that field out"
            )

    def _passed_over(self) -> Iterator[str]:
        if self.unknown:
            fields = ", ".join(f"{name} ({count})" for name, count in self.unknown.most_common(_MOST_SHOWN))
            if (more := len(self.unknown) - _MOST_SHOWN) > 0:
                fields += f" and {count_text(more, 'more field')}"
            yield f"ignored, since they are not part of a record (see `ragtrace schema`): {fields}"

    def _empty(self) -> Iterator[str]:
        if self.without_records:
            shown = ", ".join(self.without_records[:_MOST_SHOWN])
            more = len(self.without_records) - _MOST_SHOWN
            others = f" and {count_text(more, 'more file')}" if more > 0 else ""
            yield f"no record in {shown}{others}"

    def _warnings(self, key: str) -> Iterator[str]:
        rows = self._rows(key)
        for label, column in rows:
            if len(column.makers) > 1:
                makers = ", ".join(sorted(column.makers))
                yield f"{label}: scores of different judges or versions in one mean: {makers}"
        without = self.lines - sum(column.lines for _, column in rows)
        if without:
            yield f"{key}: {without} of {count_text(self.lines, 'line')} scored without it"
        asked, found = self.asked.get(key), sorted({maker for _, column in rows for maker in column.makers})
        if asked is not None and found and asked not in found:
            yield f"{key}: asked of {asked}, but every score is of {', '.join(found)}"

    def missed(self, limits: Sequence[Limit]) -> list[str]:
        """Return a line for each threshold that was missed or not measured."""
        return [line for limit in limits if (line := self._verdict(limit)) is not None]

    def unjudged(self) -> str | None:
        """Return a line on metrics without a value after judge failures, else None."""
        failed: dict[str, Counter[str]] = {}
        for key, kinds in self.columns.items():
            errors = sum((column.errors for column in kinds.values()), Counter[str]())
            has_values = any(column.values for column in kinds.values())
            if not has_values and errors.keys() & OF_THE_JUDGE:
                failed[key] = errors
        if not failed:
            return None
        (reason, n), *_ = sum(failed.values(), Counter[str]()).most_common(1)
        total = sum(errors.total() for errors in failed.values())
        errors_text = (
            f"1 score is an error, {reason}" if total == 1 else f"{total} scores are errors, {n} of them {reason}"
        )
        return f"no value of {', '.join(failed)}: {errors_text}"

    def column(self, key: str) -> SummaryColumn:
        """Return the values and reasons of a metric, empty where there is none.

        Raises:
            ConfigError: its scores are over several K or label scales, which have no common mean.
        """
        by_kind = _by_kind(self.columns.get(key, {}))
        if len(by_kind) > 1:
            raise ConfigError(_mixture(by_kind))
        return next(iter(by_kind.values()), SummaryColumn())

    def _verdict(self, limit: Limit) -> str | None:
        try:
            column = self.column(limit.name)
        except ConfigError as error:
            return f"{limit.name}: no mean to hold against {limit.value:g}: {error}"
        if not column.values:
            return f"{limit.name}: no score to hold against {limit.value:g} (n = 0)"
        mean = column.mean
        if limit.is_met(mean):
            return None
        return f"{limit.name}: mean {mean:.4f} {'is below' if limit.is_up else 'is above'} {limit.value:g}"


@dataclass(frozen=True, slots=True)
class Limit:
    """One ``--fail-under``; where lower is better it is the most."""

    name: str
    value: float
    is_up: bool

    def is_met(self, value: float) -> bool:
        """Return whether a value is at least as good as the limit."""
        return value >= self.value if self.is_up else value <= self.value


def limits_from(texts: Iterable[str], outputs: Mapping[str, Output], k_values: Sequence[int] = ()) -> list[Limit]:
    """Read ``METRIC=VALUE`` arguments; ``NAME@K`` is one of several K.

    Raises:
        ConfigError: an unknown metric or K, or not a finite number.
    """
    limits = []
    for text in texts:
        name, _, number = text.partition("=")
        bare, _, cutoff = name.partition("@")
        if bare not in outputs:
            raise ConfigError(f"--fail-under {text}: {bare!r} is not among the metrics{nearest(bare, outputs)}")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise ConfigError(f"--fail-under {text}: write METRIC=NUMBER, for example {name}=0.8")
        limits.append(Limit(_key(text, bare, cutoff, k_values), value, outputs[bare].direction == "up"))
    return limits


def _key(text: str, bare: str, cutoff: str, k_values: Sequence[int]) -> str:
    known = [str(k) for k in k_values]
    if not cutoff:
        return bare
    if cutoff not in known:
        raise ConfigError(f"--fail-under {text}: K {cutoff} is not computed; add it to --k-values")
    return bare if cutoff == known[0] else f"{bare}@{cutoff}"


def _failure_of(score: ScoreJson) -> str:
    """Return the message of a judge that failed, "" without one; control characters are escaped."""
    reason = score.get("reason")
    if score.get("state") != "error" or reason not in OF_THE_JUDGE:
        return ""
    details = score.get("details")
    said = details.get("message") if isinstance(details, dict) else None
    return printable(said)[:_MOST_MESSAGE] if isinstance(said, str) else ""


def maker_text(judge: str | None, version: str | None) -> str:
    """Return the judge or labels behind a score, as warnings name them.

    Example:
        >>> maker_text(None, "a1")
        'labels a1'
    """
    return f"{judge or 'labels'} {version}"


def _kind(name: str, score: ScoreJson) -> SeriesKey:
    """Return the key of K and label scale only: a mean over several judges has a warning."""
    key = key_of(name, score)
    return SeriesKey(name, k=key.k, label_scale=key.label_scale)


def _order(kind: SeriesKey) -> tuple[int, str]:
    return kind.k or 0, kind.label_scale or ""


def _by_kind(columns: Mapping[SeriesKey, SummaryColumn]) -> dict[SeriesKey, SummaryColumn]:
    valued = sorted((kind for kind, column in columns.items() if column.values), key=_order)
    found = {kind: replace(columns[kind]) for kind in valued or list(columns)[:1]}
    for kind, column in columns.items():
        if kind not in found:
            own = found[home(kind, list(found))]
            own.na, own.errors = own.na + column.na, own.errors + column.errors
    return found


def _mixture(kinds: Iterable[SeriesKey]) -> str:
    cutoffs = [kind.k or 0 for kind in kinds]
    if min(cutoffs) < max(cutoffs):
        return f"K goes from {min(cutoffs)} to {max(cutoffs)}; choose one with --k-values"
    scales = ", ".join(sorted(str(kind.label_scale or "none") for kind in kinds))
    return f"the label scales are {scales}; score each in a file of its own"


def _cells(key: str, column: SummaryColumn) -> list[str]:
    return [
        str(len(column.values)),
        *_mean_cells(column.interval(key)),
        f"{column.passed / column.judged:.1%}" if column.judged else "",
    ]


def _ratio_cells(ratio: Ratio) -> list[str]:
    """Return the cells of a ratio of means, the mean of the lines' ratios with their denominators as weights."""
    rows = [row for row in zip(ratio.tops, ratio.bottoms, ratio.units, strict=True) if row[1] > 0.0]
    shares, weights = [min(top / bottom, 1.0) for top, bottom, _ in rows], [bottom for _, bottom, _ in rows]
    units = [unit for _, _, unit in rows]
    return [str(len(ratio.tops)), *_mean_cells(clustered_interval(shares, clusters_of(units), weights))]


def _mean_cells(interval: Interval) -> tuple[str, str]:
    bounds = "" if interval.low is None else f"{interval.low:.3f} to {interval.high:.3f}"
    return "" if interval.mean is None else f"{interval.mean:.3f}", bounds


def _failures(column: SummaryColumn, *, is_wide: bool) -> list[str]:
    both = (column.na, column.errors)
    return [_reasons(counts) if is_wide else str(counts.total() or "") for counts in both]


def _reasons(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in counts.most_common())
