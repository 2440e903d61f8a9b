"""Samples a second against a judge of 50 ms on loopback, 64 in flight, beside bare calls of the openai client.

A sample is faithfulness, answer relevancy and context precision: three calls. The bare client sends the very same
requests and parses nothing. Both run in this process, in turn, so that load of the machine meets both.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from benchmarks.judging.sample import Vocabulary, another, record
from ragtrace.judges.llm.judge import LLMJudge
from ragtrace.judges.offline.embedder import OverlapEmbedder
from ragtrace.judges.openai.client import OpenAIChat
from ragtrace.metrics.eval_context import MetricOptions
from ragtrace.metrics.registry import select
from ragtrace.model import RagRecord
from ragtrace.scoring.limits import Caps, JudgeLimiter
from ragtrace.scoring.offline.file import score_stream
from ragtrace.scoring.scorer import Scorer

LATENCY_S, IN_FLIGHT, SAMPLES, ROUNDS = 0.05, 64, 256, 9
METRICS = ("faithfulness", "answer_relevancy", "context_precision")
RATE, CPU = 0.55, 1.6  # the bounds: share of the bare client's rate, and times its CPU


class Recorded(OpenAIChat):
    """Keeps the bodies of one sample, for the bare client to send."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.bodies: list[dict[str, Any]] = []

    async def complete(self, **asked: Any) -> Any:
        self.bodies.append({"model": self.name, **self._ladder.current.body(**asked)})
        return await super().complete(**asked)


def limiter(folder: Path) -> JudgeLimiter:
    """The limits as a service has them, with books in a file, too wide to hold anything up."""
    caps = Caps(usd_per_day=0, tokens_per_day=10**12, requests_per_minute=10**6, tokens_per_minute=10**12)
    return JudgeLimiter(host="loopback", caps=caps, path=folder / "books", calls=64)


def ours(
    base_url: str,
    records: list[RagRecord],
    chat: type[OpenAIChat] = OpenAIChat,
    limits: JudgeLimiter | None = None,
) -> tuple[Any, OpenAIChat]:
    model = chat("m", base_url=base_url, api_key="none", limiter=limits)
    scorer = Scorer(
        metrics=tuple(select(METRICS)), judge=LLMJudge(model), embedder=OverlapEmbedder(), options=MetricOptions()
    )

    async def work() -> None:
        items = ((None, one) for one in records)
        async for _, results in score_stream(items, scorer, jobs=IN_FLIGHT):
            failed = [result for result in results if result.state != "ok"]
            if failed:
                raise AssertionError(failed)

    return work, model


def bare(base_url: str, bodies: list[dict[str, Any]], count: int) -> Callable[[], Awaitable[None]]:
    async def work() -> None:
        from openai import AsyncOpenAI

        async with AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0) as client:
            limiter = asyncio.Semaphore(IN_FLIGHT)

            async def one() -> None:
                async with limiter:
                    for body in bodies:
                        await client.chat.completions.create(**body)

            await asyncio.gather(*(one() for _ in range(count)))

    return work


def timed(work: Callable[[], Awaitable[None]]) -> tuple[float, float]:
    """Return samples a second and CPU milliseconds a sample."""
    wall, cpu = time.perf_counter(), time.process_time()
    asyncio.run(work())
    return SAMPLES / (time.perf_counter() - wall), (time.process_time() - cpu) / SAMPLES * 1e3


def main() -> int:
    server = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.judging.server", str(LATENCY_S)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        return _report(f"http://127.0.0.1:{int(server.stdout.readline())}/v1")
    finally:
        server.stdin.close()
        server.wait(10)


def _report(base_url: str) -> int:
    sample = record(Vocabulary(), with_citations=False)
    records = [another(sample, number) for number in range(SAMPLES)]
    work, model = ours(base_url, records[:1], Recorded)
    asyncio.run(work())
    calls = bare(base_url, model.bodies, SAMPLES)
    rows: dict[str, list[tuple[float, float]]] = {"bare": [], "ragtrace": [], "with limits": []}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            rows["bare"].append(timed(calls))
            rows["ragtrace"].append(timed(ours(base_url, records)[0]))
            limits = limiter(Path(folder))
            rows["with limits"].append(timed(ours(base_url, records, limits=limits)[0]))
            limits.close()
    print(
        f"{SAMPLES} samples, {IN_FLIGHT} in flight, judge of {LATENCY_S * 1e3:.0f} ms, medians of {ROUNDS} rounds"
    )
    for name, found in rows.items():
        rate, cpu = (statistics.median(column) for column in zip(*found, strict=True))
        print(f"  {name:11} {rate:6.1f} samples/s, {cpu:5.2f} ms CPU a sample")
    worst = 0
    for name, most in (("ragtrace", CPU), ("with limits", None)):
        pairs = list(zip(rows[name], rows["bare"], strict=True))
        rate = statistics.median(mine[0] / its[0] for mine, its in pairs)
        cpu = statistics.median(mine[1] / its[1] for mine, its in pairs)
        bound = f" (at most {most})" if most else ""
        print(f"  {name}: rate {rate:.2f} of the bare client's (at least {RATE}), CPU {cpu:.2f} times{bound}")
        worst |= rate < RATE or (most is not None and cpu > most)
    return int(worst)


if __name__ == "__main__":
    sys.exit(main())
