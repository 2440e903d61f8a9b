"""Two judges on human-labelled sets: interval widths against a uniform choice of as many runs.

People stand for the second judge, and the offline judge is the first. A set is split by its groups (conversation,
document). Rates are planned on one half, and days are drawn with replacement from the other.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ragtrace.judges.offline.judge import OverlapJudge
from ragtrace.metrics.eval_context import EvalContext
from ragtrace.metrics.evaluate import evaluate
from ragtrace.metrics.registry import select
from ragtrace.model import Passage, Pool, RagRecord
from ragtrace.stats.two_judges.judging_plan import LEAST_PAIRS, PastScores, bin_place
from ragtrace.stats.two_judges.two_phase import JudgedRun, bounds, combined_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SETS = ("mtrag", "begin", "wice", "summedits")
RUNS, DAYS, SEED = 5_000, 200, 7


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSet:
    """Scores of the offline judge (NaN where it gives none), human labels, and groups."""

    name: str
    first: Array
    second: Array
    group: NDArray[np.str_]
    cpu_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Means over the days: widths, error and coverage of both designs, and their calls of the second judge."""

    width: float
    uniform_width: float
    bias: float
    coverage: float
    uniform_coverage: float
    calls: float

    @property
    def ratio(self) -> float:
        return self.width / self.uniform_width


def labelled_set(name: str, folder: Path = DATA) -> LabelledSet:
    """Score one set with the offline judge."""
    with gzip.open(folder / f"faith_{name}_dev.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    began = time.process_time()
    first = [_offline(row) for row in rows]
    return LabelledSet(
        name=name,
        first=np.array(first, dtype=np.float64),
        second=np.array([1.0 - row["hallucinated"] for row in rows]),
        group=np.array([str(row["group"]) for row in rows]),
        cpu_ms=(time.process_time() - began) * 1e3 / len(rows),
    )


def _offline(row: dict[str, object]) -> float:
    texts = row["contexts"]
    assert isinstance(texts, list)
    passages = tuple(Passage(id=str(place), text=text, rank=place + 1) for place, text in enumerate(texts))
    pool = Pool(stage="used", passages=passages)
    record = RagRecord(id="1", query=str(row.get("query") or ""), answer=str(row["answer"]), pools=(pool,))
    result = asyncio.run(evaluate(select(["faithfulness"]), EvalContext(record, judge=OverlapJudge())))[0]
    return np.nan if result.value is None else result.value


def compare(given: LabelledSet, calls: int, *, days: int = DAYS, runs: int = RUNS) -> Comparison:
    """Simulate days of `runs` runs with `calls` calls of the second judge under both designs."""
    rng = np.random.default_rng(SEED)
    rows = np.array([_day(given, calls, runs, rng) for _ in range(days)])
    width, uniform, error, held, uniform_held, spent = rows.mean(axis=0)
    return Comparison(
        width=width,
        uniform_width=uniform,
        bias=error,
        coverage=held,
        uniform_coverage=uniform_held,
        calls=spent,
    )


def _day(given: LabelledSet, calls: int, runs: int, rng: np.random.Generator) -> tuple[float, ...]:
    past = _half(given, rng)
    rows = rng.choice(np.flatnonzero(~past), runs)
    first, second = given.first[rows], given.second[rows]
    ones = np.ones(int(past.sum()))
    plan = PastScores(first, np.ones(runs), given.first[past], given.second[past], ones)
    rates = plan.rates(runs, calls)
    judged = [
        _judged(one, other, float(rates[bin_place(one)]), rng.random())
        for one, other in zip((None if np.isnan(x) else float(x) for x in first), second, strict=True)
    ]
    found = combined_mean(judged)
    assert found is not None
    truth = float(second.mean())
    chosen = second[rng.choice(runs, calls, replace=False)]
    variance = float(chosen.var(ddof=1)) * (1.0 / calls - 1.0 / runs)
    low, high = bounds(float(chosen.mean()), variance, calls)
    spent = sum(run.probability is not None for run in judged)
    held = found.low <= truth <= found.high
    return found.high - found.low, high - low, found.mean - truth, held, low <= truth <= high, spent


def _half(given: LabelledSet, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return which rows are of the past: the groups of one half, with enough rows for a plan."""
    while True:
        names = rng.permutation(np.unique(given.group))
        past = np.isin(given.group, names[: len(names) // 2])
        if min(past.sum(), (~past).sum()) >= LEAST_PAIRS:
            return past


def _judged(first: float | None, second: float, rate: float, number: float) -> JudgedRun:
    if number >= rate:
        return JudgedRun(weight=1.0, first=first)
    return JudgedRun(weight=1.0, first=first, probability=rate, second=float(second))


def main() -> int:
    if not DATA.is_dir():
        print("the labelled data folder ../shared is not on this machine")
        return 0
    print(f"{DAYS} days of {RUNS} runs; people are the second judge; 95 % intervals, both with four added labels")
    print("set         calls  width  uniform  ratio  bias     coverage  uniform  offline CPU")
    for name in SETS:
        given = labelled_set(name)
        for calls in (100, 200):
            found = compare(given, calls)
            print(
                f"{name:<10} {found.calls:>6.0f}  {found.width:.3f}  {found.uniform_width:>7.3f}"
                f"  {found.ratio:>5.2f}  {found.bias:+.4f}  {found.coverage:>8.3f}  {found.uniform_coverage:>7.3f}"
                f"  {given.cpu_ms:.0f} ms a run"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
