"""Reads the past scores behind a plan: of both judges from a store, or of a judge and people from a file."""

from __future__ import annotations

import asyncio
import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ragtrace.cli.io.stored import opened_store
from ragtrace.errors import ConfigError
from ragtrace.stores.base import is_by_person

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ragtrace.cli.io.jsonl_reader import Line
    from ragtrace.metrics.base import Output
    from ragtrace.model.codec import ScoreJson
    from ragtrace.scoring import Scorer
    from ragtrace.settings import Settings
    from ragtrace.stats.two_judges.judging_plan import PastScores
    from ragtrace.stores.tables import Row

PEOPLE = "people"
_LEAST_SPAN_S = 3_600.0
_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRuns:
    """The runs that a plan is made from.

    Attributes:
        first_judge: name and version of the first judge.
        second_judge: name and version of the other judge, or ``people``.
        runs: the first score of each run, None without one, and its weight.
        pairs: of the runs that both judged: first score, second score, and weight.
        runs_a_day: runs with a first score a day; None where the source does not tell it.
        usd_a_run: mean cost of the second judge for one run; None where no price is known.
    """

    first_judge: str
    second_judge: str
    runs: Sequence[tuple[float | None, float]]
    pairs: Sequence[tuple[float | None, float, float]]
    runs_a_day: float | None
    usd_a_run: float | None

    def past_scores(self, where: str, least: int) -> PastScores:
        """Return the columns for a plan.

        Raises:
            ConfigError: too few runs that both judges scored.
        """
        import numpy as np

        from ragtrace.stats.two_judges.judging_plan import PastScores

        if len(self.pairs) < least:
            raise ConfigError(
                f"{where}: {len(self.pairs)} runs have a score of both {self.first_judge} and {self.second_judge},"
                f" and a plan needs {least}; run with first_judge=overlap and judge_rates=0.1 for a while"
            )

        def column(values: Iterable[float | None]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
            return np.array([math.nan if value is None else value for value in values], dtype=np.float64)

        return PastScores(
            column(value for value, _ in self.runs),
            column(weight for _, weight in self.runs),
            column(first for first, _, _ in self.pairs),
            column(second for _, second, _ in self.pairs),
            column(weight for _, _, weight in self.pairs),
        )


def from_store(path: str, output: Output, settings: Settings, first_judge: str) -> PastRuns:
    """Read the scores that both judges gave, or the judge and people where no second judge scored.

    Of each judge the latest version counts, on the random stratum. People's labels count under the metric's name.

    Raises:
        ConfigError: the file cannot be read, or has no scores of the first judge, or none beside them.
    """
    with opened_store(Path(path)) as store:
        rows = [row for row in store.rows() if row["source"] == "human" or row["stratum"] == "random"]
    of_metric = [row for row in rows if row["metric"] == output.name]
    first = _latest([row for row in of_metric if row["judge"] == first_judge and row["source"] != "human"])
    if not first:
        raise ConfigError(
            f"{path}: no run has a score of {output.name} by {first_judge}; run with first_judge={first_judge}"
            " for a while, or choose another --metric"
        )
    others = Counter(
        row["judge"] for row in of_metric if row["judge"] not in {None, first_judge} and row["source"] != "human"
    )
    name = others.most_common(1)[0][0] if others else PEOPLE
    second = _latest([row for row in of_metric if row["judge"] == name]) if others else _human(of_metric)
    firsts = {row["trace_id"]: row for row in first}
    pairs = [
        (_shown(output, firsts[row["trace_id"]]), _shown(output, row) or 0.0, row["weight"] or 1.0)
        for row in second
        if row["trace_id"] in firsts and row["value"] is not None
    ]
    return PastRuns(
        first_judge=f"{first_judge} {first[0]['version']}",
        second_judge=f"{name} {second[0]['version']}" if others and second else PEOPLE,
        runs=[(_shown(output, row), row["weight"]) for row in first if row["weight"]],
        pairs=pairs,
        runs_a_day=_a_day(first),
        usd_a_run=_usd_a_run(rows, name, settings) if others else None,
    )


def from_file(
    name: str, labels: Sequence[str], scorer: Scorer, output: Output, *, is_inverted: bool, jobs: int
) -> PastRuns:
    """Score the records of a file with the first judge, and take its human labels for the second judge's scores.

    Raises:
        ConfigError: no label, or the file cannot be read twice.
        InputError: a broken line, or a label of no scale.
    """
    from ragtrace.cli.calibrate.label_reader import good_lines, read_labelled
    from ragtrace.cli.score.command import score_lines
    from ragtrace.scoring.offline.human_labels import consensus

    labelled = read_labelled(name, labels, is_inverted=is_inverted)
    form = labelled.form
    found: dict[int, float | None] = {}

    def add(line: Line, scores: Mapping[str, ScoreJson]) -> None:
        value = scores[output.name]["value"]
        found[line.number] = None if value is None else output.exported(value)

    asyncio.run(score_lines(good_lines(name, None), scorer, jobs=jobs, add=add))
    pairs = [
        (value, (consensus(labelled.ratings[line]) - form.low) / (form.high - form.low), 1.0)
        for line, value in found.items()
        if labelled.ratings[line]
    ]
    return PastRuns(
        first_judge=scorer.judge.name if scorer.judge is not None else "",
        second_judge=PEOPLE,
        runs=[(value, 1.0) for value in found.values()],
        pairs=pairs,
        runs_a_day=None,
        usd_a_run=None,
    )


def _shown(output: Output, row: Row) -> float | None:
    return None if row["value"] is None else min(max(output.exported(row["value"]), 0.0), 1.0)


def _latest(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of the version that was used last, one a trace."""
    if not rows:
        return []
    version = max(rows, key=lambda row: row["scored_at"])["version"]
    return list({row["trace_id"]: row for row in rows if row["version"] == version}.values())


def _human(rows: Iterable[Row]) -> list[Row]:
    """Return one label a trace: the mean of its raters."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if is_by_person(row):
            found[row["trace_id"]].append(row)
    return [{**given[0], "value": sum(row["value"] for row in given) / len(given)} for given in found.values()]


def _a_day(rows: Sequence[Row]) -> float | None:
    """Return the scored runs a day; None where they span less than an hour."""
    times = [row["scored_at"] for row in rows]
    span_s = max(times) - min(times)
    return len(rows) * _DAY_S / span_s if span_s >= _LEAST_SPAN_S else None


def _usd_a_run(rows: Iterable[Row], judge: str, settings: Settings) -> float | None:
    """Return the mean cost of a judge for one run, over all its metrics."""
    from ragtrace.service.limits import build_prices

    prices, traces, costs = build_prices(settings), set(), []
    for row in rows:
        if row["judge"] == judge and row["source"] != "human":
            traces.add(row["trace_id"])
            costs.append(prices.price_of(judge, row["prompt_tokens"], row["completion_tokens"]))
    known = [cost for cost in costs if cost is not None]
    return sum(known) / len(traces) if traces and len(known) == len(costs) and sum(known) > 0.0 else None
