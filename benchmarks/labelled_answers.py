"""The offline judge on human labels: AUROC and balanced accuracy, and what `invented_specifics` flags."""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from ragtrace.judges.offline.judge import OverlapJudge
from ragtrace.metrics.eval_context import EvalContext
from ragtrace.metrics.evaluate import evaluate
from ragtrace.metrics.registry import select
from ragtrace.model.codec import record_from_json

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SETS = ("mtrag", "begin", "wice", "summedits")


class Judged(NamedTuple):
    """One answer: whether people call it unfaithful, and what the judge says; None for `na`."""

    is_bad: bool
    faithfulness: float | None
    passed: bool
    is_flagged: bool | None


def main() -> int:
    if not DATA.is_dir():
        print(f"the labelled sets are not on this machine: {DATA}", file=sys.stderr)
        return 1
    print(f"{'set':10} {'answers':>7} {'AUROC':>6} {'balanced':>8}   flagged as invented: supported, unsupported")
    for name in SETS:
        rows = list(judged(DATA / f"faith_{name}_dev.jsonl.gz"))
        good, bad = ([row for row in rows if row.is_bad is which] for which in (False, True))
        scored = [row for row in rows if row.faithfulness is not None]
        print(
            f"{name:10} {len(scored):7} {auroc(rows):6.3f} {balanced(rows):8.3f}   "
            f"{flagged(good):.1%}, {flagged(bad):.1%}"
        )
    return 0


def judged(path: Path) -> Iterator[Judged]:
    metrics = select(["faithfulness", "invented_specifics"])
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            given = json.loads(line)
            case = EvalContext(record_from_json(given, fallback_id=str(number)), judge=OverlapJudge())
            found = {result.name: result for result in asyncio.run(evaluate(metrics, case))}
            faithful, invented = found["faithfulness"], found["invented_specifics"]
            is_flagged = None if invented.value is None else bool(invented.value)
            yield Judged(bool(given["hallucinated"]), faithful.value, faithful.passed is True, is_flagged)


def auroc(rows: list[Judged]) -> float:
    """Return the share of pairs in which the unfaithful answer has the lower score; ties count half."""
    good, bad = (
        [row.faithfulness for row in rows if row.is_bad is which and row.faithfulness is not None]
        for which in (False, True)
    )
    return fmean((one > other) + 0.5 * (one == other) for one in good for other in bad)


def balanced(rows: list[Judged]) -> float:
    scored = [row for row in rows if row.faithfulness is not None]
    return fmean(
        fmean(row.passed is not is_bad for row in scored if row.is_bad is is_bad) for is_bad in (False, True)
    )


def flagged(rows: list[Judged]) -> float:
    return fmean(row.is_flagged for row in rows if row.is_flagged is not None)


if __name__ == "__main__":
    sys.exit(main())
