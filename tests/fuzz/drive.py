"""Asks a hostile judge server through the real client, judge and limiter, and prints what became of it as JSON.

``python -m tests.fuzz.drive SEED COUNT FOLDER``
"""

from __future__ import annotations

import asyncio
import json
import math
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import ragtrace
from ragtrace.capture import internal_errors
from ragtrace.errors import JudgeError
from ragtrace.judges import ALLOWANCE_TOKENS, LLMJudge, OpenAIChat, OpenAIEmbedder, RetryPolicy
from ragtrace.scoring import Caps, JudgeLimiter, Prices
from ragtrace.scoring.limits.token_estimate import charged
from ragtrace.service import current
from tests.unit.judges.records import parts, record
from tests.unit.scoring.limits.clocks import HandClock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ragtrace.judges import AttemptResult, JudgeRequest, Permit

CONNECTIONS = 8
MOST_REPLY_BYTES = 1_000_001
RECORD = record("The lab is in Oslo.", "Since 2010.", ids=("a", "b"), answer_parts=parts(("a",), ("b",)))


class WatchedGate:
    """The real limiter, and the sum of what it was told; every number is one that the call can have taken."""

    def __init__(self, limiter: JudgeLimiter) -> None:
        self.limiter = limiter
        self.charged = self.entered = self.left = 0
        self.fates: Counter[str] = Counter()

    async def acquire(self, request: JudgeRequest) -> Permit:
        passed = await self.limiter.acquire(request)
        self.entered += 1
        outer = self

        class Told:
            def release(self, result: AttemptResult) -> None:
                outer.left += 1
                outer.fates[result.fate] += 1
                prompt, completion = charged(request, result)
                most = max(request.max_output_tokens, MOST_REPLY_BYTES if request.max_output_tokens else 0)
                assert type(prompt) is type(completion) is int
                assert 0 <= prompt <= request.request_bytes + ALLOWANCE_TOKENS
                assert 0 <= completion <= most + ALLOWANCE_TOKENS
                assert result.retry_after_s is None or 0.0 <= result.retry_after_s <= 86_400.0
                outer.charged += prompt + completion
                passed.release(result)

        return Told()


def served(url: str) -> int:
    with urllib.request.urlopen(f"{url.removesuffix('/v1')}/number") as reply:  # noqa: S310 - our own server
        return int(reply.read())


def memory_kb(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


async def asked_of(judge: LLMJudge, embedder: OpenAIEmbedder, number: int) -> None:
    """Ask one task; anything but a verdict or a judge error is a fault."""
    tasks: list[Callable[[], Awaitable[Any]]] = [
        lambda: judge.audit(RECORD),
        lambda: judge.grades(RECORD),
        lambda: judge.questions(RECORD, 2),
        lambda: judge.facts(RECORD),
        lambda: judge.relevance(RECORD, with_reference=False),
        lambda: embedder.embed(["one", "two", "three"]),
    ]
    said: Any
    try:
        said = await tasks[number % len(tasks)]()
    except JudgeError as failed:
        said = failed
    if isinstance(said, np.ndarray):
        assert np.isfinite(said).all()
        return
    if isinstance(said, JudgeError):
        assert str(said).isprintable(), ascii(said)
        assert len(str(said)) < 1_000, len(str(said))
        assert said.retry_after_s is None or said.retry_after_s >= 0.0
    if said.usage is not None:
        assert 0 <= said.usage.llm_calls <= 40
        assert 0 <= said.usage.input_tokens <= said.usage.llm_calls * 40_000
        assert 0 <= said.usage.output_tokens <= said.usage.llm_calls * (MOST_REPLY_BYTES + ALLOWANCE_TOKENS)


async def fuzzed(url: str, count: int, path: Path) -> dict[str, Any]:
    clock = HandClock()
    limiter = JudgeLimiter(
        host="judge",
        caps=Caps(usd_per_day=1_000.0, tokens_per_day=288_000_000, tokens_per_minute=10_000_000),
        path=path,
        prices=Prices(input_usd_per_million=1.0, output_usd_per_million=1.0),
        clock=clock,
        sleep=clock.sleep,
    )
    watched = WatchedGate(limiter)
    settings: dict[str, Any] = {
        "timeout_s": 1.0,
        "retry": RetryPolicy(attempts=2, backoff_s=0.001, retry_after_max_s=0.01),
    }
    chat = OpenAIChat("m", base_url=url, limiter=watched, **settings)
    embedder = OpenAIEmbedder("e", base_url=url, limiter=watched, **settings)
    judge = LLMJudge(chat, grade_cache="off")
    # The bounds of what is sent back, so that memory is at its usual level before it is measured.
    for number in range(12):
        await asked_of(LLMJudge(OpenAIChat("m", base_url=url, **settings), grade_cache="off"), embedder, number)
    reset_peak()
    before_kb, began_s = memory_kb("VmRSS"), time.monotonic()
    numbers = iter(range(10 * count))

    async def ask_on() -> None:
        while chat.requests_sent + embedder._transport.requests_sent < count:
            while (closed := limiter.blocked()) is not None:
                clock.turn(closed.wait_s + 0.01)
                await asyncio.sleep(0.0005)
            await asked_of(judge, embedder, next(numbers))

    async with asyncio.TaskGroup() as tasks:
        for _ in range(CONNECTIONS):
            tasks.create_task(ask_on())
    # On a busy machine some requests time out before the server reads them: its hostile replies are used up first.
    while await asyncio.to_thread(served, url) < count:
        while (closed := limiter.blocked()) is not None:
            clock.turn(closed.wait_s + 0.01)
        await asked_of(judge, embedder, next(numbers))
    seconds, peak_kb = time.monotonic() - began_s, memory_kb("VmHWM")
    return {
        "judge": judge, "limiter": limiter, "clock": clock, "watched": watched,
        "report": {
            "requests": chat.requests_sent + embedder._transport.requests_sent,
            "seconds": round(seconds, 1),
            "memory_mb": round((peak_kb - before_kb) / 1024, 1),
            "fates": dict(watched.fates),
            "losses": internal_errors(),
        },
    }  # fmt: skip


async def settled(found: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return what is left behind, and whether a sound server is asked again."""
    limiter, clock, watched = found["limiter"], found["clock"], found["watched"]
    report = found["report"] | {"under_way": limiter.reading().under_way, "open": watched.entered - watched.left}
    with sqlite3.connect(path) as file:
        report["reservations"] = file.execute("SELECT count(*) FROM reservations").fetchone()[0]
        report["booked"] = file.execute("SELECT sum(tokens) FROM days").fetchone()[0]
    file.close()
    report["charged"] = watched.charged
    scored = 0
    for _ in range(20):
        while (closed := limiter.blocked()) is not None:
            clock.turn(closed.wait_s + 0.01)
        verdicts = await found["judge"].audit(RECORD)
        scored += not math.isnan(verdicts.claims[0].support)
    report["scored_by_judge"] = scored
    await found["judge"].aclose()
    limiter.close()
    return report


def serviced(url: str) -> int:
    """Return how many units a real service scores with the same server, in the same process."""
    ragtrace.configure(
        judge="openai:m", judge_base_url=url, judge_api_key="k", metrics=["faithfulness"], sample_rate=1.0
    )
    for _ in range(20):
        with ragtrace.query("Where is the lab?") as run:
            run.retrieved([{"id": "a", "text": "The lab is in Oslo.", "score": 0.9}])
            run.answered("The lab is in Oslo.")
    ragtrace.flush(60)
    service = current()
    return service.ledger.snapshot()["scored"] if service is not None else 0


def main() -> None:
    seed, count, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    with subprocess.Popen(
        [sys.executable, "-m", "tests.fuzz.reply_server", seed, str(count)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as server:  # fmt: skip
        assert server.stdout is not None
        assert server.stdin is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        path = folder / "limits"

        async def run() -> dict[str, Any]:
            return await settled(await fuzzed(url, count, path), path)

        report = asyncio.run(run())
        report["scored_by_service"] = serviced(url)
        server.stdin.close()
    print(json.dumps(report))  # noqa: T201 - for the test


if __name__ == "__main__":
    main()
