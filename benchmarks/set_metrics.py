"""The RA-nWG family against the published function in plain Python, in one process: ratios of time.

One query is RA-nWG, N-Recall4+, N-Recall5, Precision4+ and Harm at K = 10 of a labelled pool of 50. The published
function is written here from its formulas. Ours also removes copies, checks every grade and gives PROC and %PROC.
Rounds are interleaved, so that a slow moment of the machine hits all alike; the median of rounds counts.
"""

from __future__ import annotations

import random
import statistics
import time
from collections import Counter
from typing import TYPE_CHECKING

from ragtrace.metrics.selection.set_family import set_scores

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

K, POOL, QUERIES, ROUNDS = 10, 50, 400, 41
BASE = {5: 1.0, 4: 0.5, 3: 0.1}
CAPS = {4: 1.0, 3: 0.25}
FLOOR = 0.9

Query = tuple[dict[str, int], list[str], list[str]]


def weights_by_prevalence(labels: dict[str, int]) -> dict[int, float]:
    """Weight of each grade: base over prevalence, relative to a 5, capped."""
    counts = Counter(labels.values())
    total = len(labels)
    if not counts[5]:
        return {5: 1.0, 4: 1.0, 3: 0.2, 2: 0.0, 1: 0.0}
    r5 = BASE[5] / (counts[5] / total)
    weights = {5: 1.0, 4: 0.0, 3: 0.0, 2: 0.0, 1: 0.0}
    for grade in (4, 3):
        if counts[grade]:
            weights[grade] = min((BASE[grade] / (counts[grade] / total)) / r5, CAPS[grade])
    return weights


def ra_nwg(labels: dict[str, int], topk: Sequence[str], k: int) -> float | None:
    weights = weights_by_prevalence(labels)
    observed = sum(weights[labels[key]] for key in topk)
    oracle = sum(sorted((weights[grade] for grade in labels.values()), reverse=True)[:k])
    return observed / oracle if oracle else None


def n_recall(labels: dict[str, int], topk: Sequence[str], k: int, lowest: int) -> float | None:
    total = sum(1 for grade in labels.values() if grade >= lowest)
    return sum(1 for key in topk if labels[key] >= lowest) / min(k, total) if total else None


def published(labels: dict[str, int], topk: Sequence[str], k: int) -> tuple[float | None, ...]:
    return (
        ra_nwg(labels, topk, k),
        n_recall(labels, topk, k, 4),
        n_recall(labels, topk, k, 5),
        sum(1 for key in topk if labels[key] >= 4) / k,
        sum(1 for key in topk if labels[key] <= 2) / k,
    )


def made(seed: int = 0) -> list[Query]:
    draw = random.Random(seed)
    queries = []
    for number in range(QUERIES):
        pool = [f"doc-{number}-{place}" for place in range(POOL)]
        labels = {key: draw.choices((1, 2, 3, 4, 5), (30, 30, 20, 12, 8))[0] for key in pool}
        queries.append((labels, draw.sample(pool, K), pool))
    return queries


def seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def measured() -> dict[str, float]:
    """Return the CPU time of one query in µs, by form; the median of interleaved rounds."""
    queries = made()
    forms: dict[str, Callable[[], object]] = {
        "published": lambda: [published(labels, topk, K) for labels, topk, _ in queries],
        "one query": lambda: [set_scores(labels, topk, pool, K) for labels, topk, pool in queries],
    }
    times: dict[str, list[float]] = {name: [] for name in forms}
    for _ in range(ROUNDS):
        for name, work in forms.items():
            times[name].append(seconds(work))
    return {name: statistics.median(rounds) / QUERIES * 1e6 for name, rounds in times.items()}


def check_agreement() -> None:
    """Stop when the two forms differ: a fast wrong answer is not worth measuring."""
    for labels, topk, pool in made():
        ours = set_scores(labels, topk, pool, K)
        single = (ours.ra_nwg, ours.n_recall4, ours.n_recall5, ours.precision4, ours.harm)
        for theirs, mine in zip(published(labels, topk, K), single, strict=True):
            assert mine == theirs or abs(mine - theirs) < 1e-9


def main() -> int:
    """Print times and the ratio; 0 when the floor is met."""
    check_agreement()
    times = measured()
    ratio = times["published"] / times["one query"]
    for name, us in times.items():
        print(f"set metrics, {name}: {us:.2f} us a query, {times['published'] / us:.2f} x the published function")
    print(f"floor: {ratio:.2f} >= {FLOOR}")
    return 0 if ratio >= FLOOR else 1


if __name__ == "__main__":
    raise SystemExit(main())
