"""Two judges on human-labelled sets: interval widths against a uniform choice of as many runs.

People stand for the second judge, and the offline judge is the first. Days are drawn with replacement from a set.
The rates are those that docs/how-to/two-judges.md gives to begin with.
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
from ragtrace.sampling.second import SecondRates
from ragtrace.stats.two_phase import JudgedRun, bounds, combined_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SETS = ("mtrag", "begin", "wice", "summedits")
RATES = SecondRates(lows=(0.0, 0.8), rates=(0.40, 0.15), without=0.40)
RUNS, DAYS, SEED = 1_000, 200, 7


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSet:
    """Scores of the offline judge (NaN where it gives none), and human labels."""

    name: str
    first: Array
    second: Array
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


def compare(given: LabelledSet, *, days: int = DAYS, runs: int = RUNS) -> Comparison:
    """Simulate days of `runs` runs under both designs, with as many calls of the second judge in each."""
    rng = np.random.default_rng(SEED)
    rows = np.array([_day(given, runs, rng) for _ in range(days)])
    width, uniform, error, held, uniform_held, spent = rows.mean(axis=0)
    return Comparison(
        width=width,
        uniform_width=uniform,
        bias=error,
        coverage=held,
        uniform_coverage=uniform_held,
        calls=spent,
    )


def _day(given: LabelledSet, runs: int, rng: np.random.Generator) -> tuple[float, ...]:
    rows = rng.choice(len(given.first), runs)
    second = given.second[rows]
    judged = [
        _judged(first, float(label), RATES.of(first), rng.random())
        for first, label in zip((None if np.isnan(x) else float(x) for x in given.first[rows]), second, strict=True)
    ]
    found = combined_mean(judged)
    assert found is not None
    truth = float(second.mean())
    spent = sum(run.probability is not None for run in judged)
    chosen = second[rng.choice(runs, spent, replace=False)]
    variance = float(chosen.var(ddof=1)) * (1.0 / spent - 1.0 / runs)
    low, high = bounds(float(chosen.mean()), variance, spent)
    held = found.low <= truth <= found.high
    return found.high - found.low, high - low, found.mean - truth, held, low <= truth <= high, spent


def _judged(first: float | None, second: float, rate: float, number: float) -> JudgedRun:
    if number >= rate:
        return JudgedRun(weight=1.0, first=first)
    return JudgedRun(weight=1.0, first=first, probability=rate, second=second)


def main() -> int:
    if not DATA.is_dir():
        print("the labelled data folder ../shared is not on this machine")
        return 0
    print(f"{DAYS} days of {RUNS} runs; people are the second judge; 95 % intervals, both with four added labels")
    print("set         calls  width  uniform  ratio  bias     coverage  uniform  offline CPU")
    for name in SETS:
        given = labelled_set(name)
        found = compare(given)
        print(
            f"{name:<10} {found.calls:>6.0f}  {found.width:.3f}  {found.uniform_width:>7.3f}"
            f"  {found.ratio:>5.2f}  {found.bias:+.4f}  {found.coverage:>8.3f}  {found.uniform_coverage:>7.3f}"
            f"  {given.cpu_ms:.0f} ms a run"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
