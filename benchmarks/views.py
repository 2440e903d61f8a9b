"""Views of 100,000 scored runs: seconds to load, memory, and the median of each page's work.

Run ``python -m benchmarks.views [--runs N]``. It makes a scored file and a store, each with eight metrics a run,
claims and passages, in a temporary folder that needs 2 GB at 100,000 runs. Each source is read in a process of its
own, whose peak memory is printed. Caches are emptied before each call.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ragtrace.model.codec import record_to_json
from ragtrace.model.passage import Passage, Pool
from ragtrace.model.record import RagRecord
from ragtrace.sqlite_file import APPLICATION_ID, PAD
from ragtrace.stores.run_facts import facts_of
from ragtrace.stores.tables import columns, tables
from ragtrace.views.source import Views
from ragtrace.views.types import NewRating, RunFilter

METRICS = (
    "faithfulness", "answer_relevancy", "context_use", "hallucination", "contradictions", "context_relevance",
    "no_answer", "diagnosis",
)  # fmt: skip
TOPICS = ("refunds", "shipping", "invoices", "passwords", "warranties", "deliveries", "accounts", "discounts")
FAILURES = ("not_retrieved", "lost_in_rerank", "unsupported", "contradicted")
START = 1_790_000_000.0
REPEATS = 9
PAYLOAD_SHARE = 0.1


def record(number: int) -> RagRecord:
    """Return one run of a shop's assistant."""
    rng = random.Random(number)
    topic = rng.choice(TOPICS)
    passages = tuple(
        Passage(
            id=f"doc-{rng.randrange(5_000)}",
            text=f"Section {i} on {topic}: requests are answered within {rng.randrange(2, 9)} days. " * 3,
            rank=i + 1,
            score=1.0 - i / 10,
            source="handbook",
        )
        for i in range(6)
    )
    answer = " ".join(f"Part {i} of order {number} on {topic} takes {rng.randrange(2, 9)} days." for i in range(5))
    return RagRecord(
        id=str(number),
        trace_id=f"{number + 1:032x}",
        span_id=f"{number + 1:016x}",
        workflow=rng.choice(("support", "shop", "billing")),
        session=f"session-{number // 2}",
        query=f"How long do {topic} of order {number} take?",
        answer=answer,
        pools=(Pool(stage="retrieved", passages=passages), Pool(stage="used", passages=passages[:3])),
        model=rng.choice(("model-a", "model-b")),
        tags=(rng.choice(("app", "web")),),
        started=START + number * 6.0,
        ended=START + number * 6.0 + 2.0,
    )


def scores(number: int, run: RagRecord) -> dict[str, dict[str, Any]]:
    """Return eight scores with the details of a real judge's."""
    rng = random.Random(-number - 1)
    bad = rng.random() < 0.15
    claims = [
        {"text": f"{part}.", "verdict": "not_supported" if bad and i == 1 else "supported",
         "support": round(rng.random(), 3), "sources": [i % 3], "reason": "nearest: requests are answered"}
        for i, part in enumerate(run.answer.rstrip(".").split(". "))
    ]  # fmt: skip
    found = {}
    for name in METRICS:
        value = round(rng.betavariate(2, 5) if bad else rng.betavariate(8, 2), 4)
        details: dict[str, Any] = {"n_claims": len(claims)}
        if name == "faithfulness":
            details["claims"] = claims
        if name == "diagnosis":
            details = {"verdict": rng.choice(FAILURES) if bad else "ok", "n_claims": 5}
        found[name] = {
            "state": "ok", "value": value, "passed": value >= 0.5, "reason": None, "details": details,
            "judge": "overlap", "version": "0a1b2c3d", "k": None, "universe": None, "label_scale": None,
        }  # fmt: skip
    return found


def runs(n: int) -> Iterator[tuple[int, RagRecord, dict[str, dict[str, Any]]]]:
    """Yield the runs with their scores."""
    for number in range(n):
        run = record(number)
        yield number, run, scores(number, run)


def make_file(path: Path, n: int) -> None:
    """Write the scored file."""
    with path.open("w") as out:
        for _, run, found in runs(n):
            out.write(json.dumps({**record_to_json(run), "scores": found}) + "\n")


def make_store(path: Path, n: int) -> None:
    """Write the store's rows at once; its own writer takes a transaction a run."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute("BEGIN")
    tables(connection)
    for i, name in enumerate(METRICS, start=1):
        connection.execute(
            "INSERT INTO series VALUES (?, ?, '0a1b2c3d', ?, '', 'judge', 'overlap', 'p', '', '')", (i, name, name)
        )
    for number, run, found in runs(n):
        named = ("workflow", "session", "user", "environment", "corpus", "model")
        row = {
            "id": number + 1, "trace_id": run.trace_id, "span_id": run.span_id, "revision": 0, "at": run.ended,
            **{name: getattr(run, name) for name in named}, **facts_of(run),
        }  # fmt: skip
        connection.execute(f"INSERT INTO runs {columns(*row)}", tuple(row.values()))
        for i, score in enumerate(found.values(), start=1):
            values = (
                number + 1,
                i,
                "ok",
                score["value"],
                score["passed"],
                2.0,
                run.ended,
                json.dumps(score["details"]),
            )
            connection.execute(
                "INSERT INTO scores (run, series, state, value, passed, weight, scored_at, details, stratum,"
                " llm_calls,"
                " embed_calls, prompt_tokens, completion_tokens, revision)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'random', 0, 0, 0, 0, 0)",
                values,
            )
        if number % round(1 / PAYLOAD_SHARE) == 0:
            payload = PAD + json.dumps(record_to_json(run)).encode()
            connection.execute(
                "INSERT INTO payloads VALUES (?, 'sample', ?, ?, ?)",
                (number + 1, PAYLOAD_SHARE, run.ended, payload),
            )
    connection.execute("COMMIT")
    connection.close()


def median_ms(views: Views, call: Callable[[], object]) -> float:
    """Return the median time of a call with empty caches."""
    times = []
    for _ in range(REPEATS):
        views.forget_results()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def measure(kind: str, path: Path) -> None:
    """Print the figures of one source."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    start = time.perf_counter()
    views = Views.of_store(path) if kind == "store" else Views.of_file(path)
    print(f"{kind}: loaded {len(views.snapshot()):,} runs in {time.perf_counter() - start:.1f} s")
    worst = views.runs(RunFilter())
    middle = START + len(views.snapshot()) * 3.0
    views.rate([NewRating(run_id=line.id, value=1.0, metric="faithfulness") for line in worst.lines])
    time.sleep(0.6)
    start = time.perf_counter()
    views.version()
    print(f"  50 ratings read again in {(time.perf_counter() - start) * 1e3:.0f} ms")
    calls: dict[str, Callable[[], object]] = {
        "overview": views.overview,
        "overview of a workflow": lambda: views.overview(RunFilter(workflow="shop")),
        "overview of a text": lambda: views.overview(RunFilter(text="warranties")),
        "runs, worst first": lambda: views.runs(RunFilter()),
        "runs, page 1000": lambda: views.runs(RunFilter(), page=1_000),
        "runs by text": lambda: views.runs(RunFilter(text="order 999")),
        "runs by verdict, tag and range": lambda: views.runs(RunFilter(verdict="failed", tag="app", high=0.5)),
        "runs, newest first": lambda: views.runs(RunFilter(order="newest")),
        "one run": lambda: views.run(worst.lines[0].id),
        "its neighbours": lambda: views.neighbours(RunFilter(), worst.lines[0].id),
        "compare periods": lambda: views.compare_periods((0.0, middle), (middle, 2e9)),
        "queue": lambda: views.queue("faithfulness"),
        "choices": views.choices,
        "version": views.version,
        "investigate": views.investigate,
    }
    for name, call in calls.items():
        print(f"  {name:32} {median_ms(views, call):8.1f} ms")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  peak memory {peak:.0f} MB, of which {before:.0f} MB are Python and packages")
    views.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--source", nargs=2, metavar=("KIND", "PATH"), help="measure this one, without making it")
    given = parser.parse_args()
    if given.source:
        measure(given.source[0], Path(given.source[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        for kind, make in (("file", make_file), ("store", make_store)):
            path = Path(folder) / f"runs.{'sqlite' if kind == 'store' else 'jsonl'}"
            make(path, given.runs)
            command = [sys.executable, "-m", "benchmarks.views", "--source", kind, str(path)]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
