"""The offline judge: CPU an answer over 4 kB of context, against splitting and lower-casing the same words."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time

from ragtrace.judges.offline.judge import OverlapJudge
from ragtrace.model import Passage, Pool, RagRecord

ROUNDS, RUNS = 15, 40
SENTENCE = (
    "The warehouse number {i} pays refunds within {i} working days after the parcel of customer {i} returns. "
)


def record() -> RagRecord:
    texts = ["".join(SENTENCE.format(i=i) for i in range(n * 10, n * 10 + 8)) for n in range(5)]
    pool = Pool(stage="used", passages=tuple(Passage(id=str(i), text=t, rank=i + 1) for i, t in enumerate(texts)))
    answer = " ".join(SENTENCE.format(i=i).strip() for i in (3, 14, 25, 999))
    return RagRecord(id="1", query="When are refunds paid?", answer=answer, pools=(pool,))


def main() -> None:
    given, judge = record(), OverlapJudge()
    size = sum(len(p.text) for p in given.contexts)
    ours, bare = [], []
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(RUNS):
            asyncio.run(judge.audit(given))
        middle = time.process_time()
        for _ in range(RUNS):
            asyncio.run(split(given))
        ours.append((middle - start) / RUNS)
        bare.append((time.process_time() - middle) / RUNS)
    ratio = statistics.median(ours) / statistics.median(bare)
    print(f"overlap judge over {size} characters: {statistics.median(ours) * 1e3:.2f} ms CPU an answer (bound: 15)")
    print(f"  {ratio:.1f} x splitting and lower-casing the same words")
    code = (
        "import time as t; a = t.process_time(); import ragtrace.judges.offline.judge; print(t.process_time() - a)"
    )
    times = [float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(5)]
    print(f"  its import: {statistics.median(times) * 1e3:.0f} ms CPU (bound: 50)")


async def split(given: RagRecord) -> int:
    return sum(len({word.lower() for word in p.text.split()}) for p in given.contexts)


if __name__ == "__main__":
    main()
