"""The summary of a scored file: n, mean with interval, passed, na and errors by reason; and thresholds."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ragtrace.errors import ConfigError, nearest
from ragtrace.stats.intervals import bootstrap_mean_ci

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.table import Table

    from ragtrace.metrics.base import Output


@dataclass(slots=True)
class Column:
    """What was seen of one metric: values, passes, and why there was none."""

    values: array[float] = field(default_factory=lambda: array("d"))
    passed: int = 0
    judged: int = 0
    na: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    makers: Counter[str] = field(default_factory=Counter)

    def add(self, score: Mapping[str, Any]) -> None:
        """Take one score as it stands in the output."""
        state, reason = score.get("state"), str(score.get("reason"))
        if state == "ok":
            self.values.append(float(score["value"]))
            self.makers[f"{score.get('judge') or 'labels'} {score.get('version')}"] += 1
            if score.get("passed") is not None:
                self.judged += 1
                self.passed += bool(score["passed"])
        elif state == "error":
            self.errors[reason] += 1
        else:
            self.na[reason] += 1


class Summary:
    """Adds scored lines up; memory is eight bytes a value."""

    def __init__(self) -> None:
        self.columns: dict[str, Column] = {}
        self.lines = 0
        self.broken = 0

    def add(self, scores: Mapping[str, Mapping[str, Any]]) -> None:
        """Take the scores of one line."""
        self.lines += 1
        for key, score in scores.items():
            self.columns.setdefault(key, Column()).add(score)

    def table(self) -> Table:
        """Return the table that is printed at the end."""
        from rich.table import Table

        table = Table("metric", box=None, pad_edge=False, header_style="bold")
        for head in ("n", "mean", "95 % interval", "passed"):
            table.add_column(head, justify="right", no_wrap=True)
        table.add_column("na", overflow="fold")
        table.add_column("errors", overflow="fold")
        for key, column in self.columns.items():
            table.add_row(key, *_cells(column))
        return table

    def mixed(self) -> list[str]:
        """Return a warning for each metric whose scores come from more than one judge or version."""
        return [
            f"{key}: scores of different judges or versions in one mean: {', '.join(sorted(column.makers))}"
            for key, column in self.columns.items()
            if len(column.makers) > 1
        ]

    def missed(self, limits: Sequence[Limit]) -> list[str]:
        """Return a line for each threshold that was missed or had nothing to measure."""
        return [line for limit in limits if (line := self._verdict(limit)) is not None]

    def _verdict(self, limit: Limit) -> str | None:
        column = self.columns.get(limit.name)
        if column is None or not column.values:
            return f"{limit.name}: no score to hold against {limit.value:g} (n = 0)"
        mean = sum(column.values) / len(column.values)
        is_met = mean >= limit.value if limit.is_up else mean <= limit.value
        if is_met:
            return None
        return f"{limit.name}: mean {mean:.4f} {'is below' if limit.is_up else 'is above'} {limit.value:g}"


@dataclass(frozen=True, slots=True)
class Limit:
    """One ``--fail-under``: for a metric where lower is better the mean must not be above it."""

    name: str
    value: float
    is_up: bool


def limits_from(texts: Iterable[str], outputs: Mapping[str, Output]) -> list[Limit]:
    """Read ``METRIC=VALUE`` arguments.

    Raises:
        ConfigError: an unknown metric, or not a number.
    """
    limits = []
    for text in texts:
        name, _, number = text.partition("=")
        if name not in outputs:
            raise ConfigError(f"--fail-under {text}: {name!r} is not among the metrics{nearest(name, outputs)}")
        try:
            value = float(number)
        except ValueError:
            raise ConfigError(f"--fail-under {text}: write METRIC=NUMBER, for example {name}=0.8") from None
        limits.append(Limit(name, value, outputs[name].direction == "up"))
    return limits


def _cells(column: Column) -> list[str]:
    interval = bootstrap_mean_ci(column.values)
    bounds = "" if interval.low is None else f"{interval.low:.3f} to {interval.high:.3f}"
    return [
        str(len(column.values)),
        "" if interval.mean is None else f"{interval.mean:.3f}",
        bounds,
        f"{column.passed / column.judged:.1%}" if column.judged else "",
        _reasons(column.na),
        _reasons(column.errors),
    ]


def _reasons(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in counts.most_common())
