"""Real `ragtrace worker` processes over a spool, beside the model of `benchmarks.capacity`.

A judge on loopback replies after a fixed time. Before each run, the time that a trace takes of the core is measured
with a judge of 1 ms, so that a busy machine moves model and measurement alike.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.capacity import rate_of_worker
from benchmarks.judging.sample import another, record
from ragtrace.model import RagRecord
from ragtrace.queues import Unit
from ragtrace.queues.payload import key_of, to_bytes
from ragtrace.queues.spool import Entry, Spool

FIRST, LAST = 0.2, 0.9  # shares of the units between which the rate is taken: no start, no end
CASES = ((200, 4, 1), (200, 8, 1), (200, 16, 1), (50, 4, 1), (200, 4, 2))  # judge ms, at once, workers
CALLS = 2  # of the default metrics for one trace
SECONDS, LEAST, ROUNDS = 5.0, 60, 3
TOLERANCE = 0.25
UNLIMITED = {
    "RAGTRACE_JUDGE_API_KEY": "none",
    **dict.fromkeys(("RAGTRACE_JUDGE_RPM", "RAGTRACE_JUDGE_TPM", "RAGTRACE_CANARY_EVERY_S"), "0"),
    **dict.fromkeys(("RAGTRACE_BUDGET_USD_PER_DAY", "RAGTRACE_BUDGET_TOKENS_PER_DAY"), "0"),
    **dict.fromkeys(("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_LOGS_EXPORTER"), "none"),
}


class Letters:
    """Counts tokens as a fourth of the letters, which needs no vocabulary."""

    def count(self, text: str) -> int:
        return len(text) // 4

    def cut(self, text: str, tokens: int) -> str:
        return text[: tokens * 4]


@dataclass(frozen=True)
class Run:
    """Traces a second of all workers together, and CPU seconds that one trace took."""

    rate: float
    cpu_s: float
    store_bytes: float


@contextlib.contextmanager
def judge(latency_s: float) -> Iterator[str]:
    """Run a judge on loopback; yield its address."""
    command = [sys.executable, "-m", "benchmarks.judging.server", str(latency_s)]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
    finally:
        server.stdin.close()
        server.wait(10)


def sample() -> RagRecord:
    return record(Letters(), with_citations=False)


def fill(path: Path, count: int) -> None:
    """Put so many traces into a new spool."""
    given, spool = sample(), Spool(path)
    units = [Unit(record=another(given, number), probability=1.0) for number in range(count)]
    for start in range(0, count, 100):
        spool.put(
            [
                Entry(key=f"{start + i}-{key_of(u)}", payload=to_bytes(u))
                for i, u in enumerate(units[start : start + 100])
            ]
        )
    spool.close()


def run(latency_ms: float, at_once: int, workers: int, count: int, *, name: str = "openai:m") -> Run:
    """Score a spool with so many worker processes, and measure between two shares of it."""
    with tempfile.TemporaryDirectory() as folder, judge(latency_ms / 1e3) as url:
        spool, store = Path(folder) / "spool.sqlite", Path(folder) / "store.sqlite"
        fill(spool, count)
        env = {k: v for k, v in os.environ.items() if not k.startswith(("RAGTRACE_", "OTEL_", "OPENAI_"))}
        env |= UNLIMITED | {
            "RAGTRACE_JUDGE_BASE_URL": url,
            "RAGTRACE_CONCURRENCY": str(at_once),
            "RAGTRACE_STORE": str(store),
        }
        command = [sys.executable, "-m", "ragtrace", "worker", "--once", "--spool", str(spool), "--judge", name]
        with contextlib.ExitStack() as stack:
            log = stack.enter_context((Path(folder) / "log").open("wb"))
            begun = [subprocess.Popen(command, env=env, stderr=log) for _ in range(workers)]
            try:
                found = _watch(spool, [one.pid for one in begun], count)
                statuses = [one.wait(60) for one in begun]
            finally:
                for one in begun:
                    one.kill()
        if any(statuses):
            raise RuntimeError((Path(folder) / "log").read_text())
        return Run(*found, store_bytes=_stored(store) / count)


def _watch(spool: Path, pids: list[int], count: int) -> tuple[float, float]:
    """Return traces a second and CPU seconds a trace, between two shares of the traces."""
    marks: list[tuple[float, float, int]] = []
    connection = sqlite3.connect(f"file:{spool}?mode=ro", uri=True)
    until = time.monotonic() + 180
    while len(marks) < 2 and time.monotonic() < until:
        left = connection.execute("SELECT count(*) FROM jobs WHERE state != 'ended'").fetchone()[0]
        done = count - left
        if done >= count * (FIRST, LAST)[len(marks)]:
            marks.append((time.monotonic(), sum(map(_cpu_s, pids)), done))
        time.sleep(0.02)
    connection.close()
    if len(marks) < 2:
        raise TimeoutError(f"{len(marks)} marks of 2 within 180 s")
    (t0, cpu0, n0), (t1, cpu1, n1) = marks
    return (n1 - n0) / (t1 - t0), (cpu1 - cpu0) / (n1 - n0)


def _cpu_s(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _stored(path: Path) -> int:
    return sum(one.stat().st_size for one in path.parent.glob(f"{path.name}*"))


def main() -> int:
    offline = run(1, 8, 1, 400, name="overlap")
    print(f"one worker, offline judge: {offline.rate:,.0f} traces/s, {offline.cpu_s * 1e3:.1f} ms CPU a trace")
    print("| judge ms | at once | workers | measured/s | measured over model, by round |")
    print("|---|---|---|---|---|")
    bases, worst = [], 0
    for latency_ms, at_once, workers in CASES:
        rates, ratios = [], []
        for _ in range(ROUNDS):
            bases.append(saturated())
            model = predicted(latency_ms, at_once, workers, 1 / bases[-1].rate)
            rates.append(run(latency_ms, at_once, workers, max(LEAST, int(model * SECONDS))).rate)
            ratios.append(rates[-1] / model)
        # The model gives each worker a core of its own, beside the judge's.
        if (os.cpu_count() or 1) > workers:
            worst |= abs(statistics.median(ratios) - 1) > TOLERANCE
        shown = ", ".join(f"{ratio:.2f}" for ratio in sorted(ratios))
        print(f"| {latency_ms} | {at_once} | {workers} | {statistics.median(rates):.0f} | {shown} |", flush=True)
    rate, cpu_ms, stored = (
        statistics.median(found)
        for found in zip(*((one.rate, one.cpu_s * 1e3, one.store_bytes) for one in bases), strict=True)
    )
    print(f"one busy worker: {rate:,.0f} traces/s, {cpu_ms:.1f} ms CPU and {stored:,.0f} bytes of store a trace")
    print(f"bound: the median within {TOLERANCE:.0%}, where every worker and the judge have a core")
    return int(worst)


def saturated(count: int = 240) -> Run:
    """Run one worker whose judge hardly waits, so that its core is the bound."""
    return run(1, 16, 1, count)


def predicted(latency_ms: float, at_once: int, workers: int, core_s: float) -> float:
    """Return the model's traces a second."""
    return workers * rate_of_worker(at_once, CALLS * latency_ms / 1e3, core_s)


if __name__ == "__main__":
    sys.exit(main())
