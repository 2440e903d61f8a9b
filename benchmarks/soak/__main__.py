"""``make soak``: an application at 50 runs a second, a worker over its spool, and faults of each kind.

Every run is accounted for at the end: offered = the ends of the application's ledger, and what it spooled = the
ends of the spool. Memory of both processes is read every five seconds after a warm-up. Over an hour its slope is
shown to be below 50 bytes a run (upper 95 % bound).

A short soak cannot show that: one step of the allocator by two megabytes is 500 bytes a run over five minutes. Of
the worker it fails when the slope is shown to be above and the growth is more than the allocator's own: in the hour
of record readings went up and down by 8 megabytes. Of the application it counts the blocks that Python holds at two
rests, after the warm-up and at the end: a run has several hundred, and one a run fails. Between rests the
queues of the SDK hold up to 12,000 blocks, and other work on the machine fills or empties them.

What a short soak does show is races: the application's threads switch after nearly every bytecode. At the
interpreter's 5 ms one lost a run of 15,000 in one soak of several. The hour keeps to the 5 ms: an allocator that
threads enter by turns keeps 90 bytes a run that nobody holds (in use were 27 MB after 5,000 runs and after 26,000).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.overhead.memory import line_through
from benchmarks.soak.app import WARM_UP
from ragtrace.queues.spool import Spool

RATE, SHARE, SLOPE_BYTES = 50.0, 0.01, 50.0
WHOLE_MINUTES = 60.0
HELD_BLOCKS = 1.0
SWITCH_S, OFTEN_S = 0.005, 1e-6
ALLOCATOR_BYTES = 8e6
DELIVERY = {f"ragtrace.telemetry.delivery.{what}" for what in ("spans", "events", "metrics")}


def hand(*args: object, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", *map(str, args)],
        env={**os.environ, **(env or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def resident(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


class Soak:
    """The processes of one soak and what they said."""

    def __init__(self, folder: Path, minutes: float, rate: float) -> None:
        self.spool = folder / "spool.sqlite"
        self.reports: list[dict[str, Any]] = []
        self.worker_rss: list[tuple[int, int]] = []
        self.weather = hand("benchmarks.soak.weather", SHARE)
        where = f"http://127.0.0.1:{int(self.weather.stdout.readline())}"  # type: ignore[union-attr]
        env = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": where,
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "RAGTRACE_JUDGE_BASE_URL": f"{where}/v1",
            "RAGTRACE_JUDGE_TIMEOUT_S": "2",
            # 600 calls a minute are more than the limits that stand by default.
            "RAGTRACE_JUDGE_RPM": "0",
            "RAGTRACE_JUDGE_TPM": "0",
            "RAGTRACE_BUDGET_TOKENS_PER_DAY": "0",
            "RAGTRACE_BUDGET_USD_PER_DAY": "0",
            "RAGTRACE_WINDOW_S": "20",  # the window of mean gauges holds its scores by design: let it fill
        }
        Spool(self.spool).close()
        self.worker = hand(
            "ragtrace", "worker", "--spool", self.spool, "--judge", "openai:m", "--metrics",
            "faithfulness,no_answer,contradictions", env=env,
        )  # fmt: skip
        switch_s = SWITCH_S if minutes >= WHOLE_MINUTES else OFTEN_S
        self.app = hand("benchmarks.soak.app", self.spool, rate, minutes * 60, SHARE, switch_s, env=env)

    def follow(self) -> None:
        """Read the application's reports until it ends, and the worker's memory beside them."""
        for line in self.app.stdout:  # type: ignore[union-attr]
            self.reports.append(json.loads(line))
            if self.worker.poll() is None:
                done = sum(self.accounts().ends.values())
                self.worker_rss.append((done, resident(self.worker.pid)))
            last = self.reports[-1]
            print(
                f"{last['asked']:7} runs, {last['rss'] / 1e6:6.1f} MB;"
                f" worker {self.worker_rss[-1][1] / 1e6:6.1f} MB, {self.worker_rss[-1][0]:6} units",
                flush=True,
            )
        self.app.wait()

    def accounts(self) -> Any:
        spool = Spool(self.spool)
        try:
            return spool.counters()
        finally:
            spool.close()

    def drain(self, seconds: float = 300.0) -> None:
        """Wait until the worker has ended all that was spooled."""
        deadline = time.monotonic() + seconds
        while self.accounts().pending and time.monotonic() < deadline:
            time.sleep(0.5)

    def close(self) -> None:
        self.worker.terminate()
        self.worker.wait(60)
        self.weather.stdin.close()  # type: ignore[union-attr]
        self.weather.wait(10)


def memory(name: str, points: list[tuple[int, int]], *, is_whole: bool) -> tuple[str, bool]:
    """Say what the slope after the warm-up is in bytes a run, with its 95 % interval, and whether that will do."""
    kept = points[int(len(points) * WARM_UP) :]
    slope, half = line_through([float(at) for at, _ in kept], [float(size) for _, size in kept])
    line = f"{name}: {slope:.1f} bytes a run, between {slope - half:.1f} and {slope + half:.1f} (95 %)"
    if is_whole:
        return line, slope + half < SLOPE_BYTES
    growth = slope * (kept[-1][0] - kept[0][0])
    return f"{line}, {growth / 1e6:+.1f} MB in all", slope - half < SLOPE_BYTES or growth < ALLOCATOR_BYTES


def held(name: str, rests: list[tuple[int, int]]) -> tuple[str, bool]:
    """Say how many blocks of memory Python holds more for each run between two rests, and whether that will do."""
    (before, least), (after, most) = rests
    slope = (most - least) / (after - before)
    rested = f"{least:,} at rest after {before:,} runs, {most:,} after {after:,}"
    line = f"{name}: {slope:.3f} blocks held a run ({rested})"
    return line, slope < HELD_BLOCKS


def verdicts(soak: Soak, *, is_whole: bool) -> list[tuple[str, bool]]:
    *reports, last = soak.reports
    accounts = soak.accounts()
    ends = last["ends"]
    offered = sum(ends.values()) + last["pending"]
    return [
        (
            f"every run was offered: {last['asked']} asked, {last['offered']} offered",
            last["asked"] == last["offered"],
        ),
        (f"the application's accounts: {ends}, {last['pending']} pending", offered == last["offered"]),
        (f"nothing pends: {last['pending']}", last["pending"] == 0),
        (f"what it spooled was taken: {accounts.offered}", ends.get("spooled", 0) == accounts.offered),
        (
            f"the spool's accounts: {dict(accounts.ends)}, {accounts.pending} pending",
            accounts.offered == sum(accounts.ends.values()) and accounts.pending == 0,
        ),
        memory("application", [(r["asked"], r["rss"]) for r in reports if not r["at_rest"]], is_whole=True)
        if is_whole
        else held("application", [(r["asked"], r["blocks"]) for r in reports if r["at_rest"]]),
        memory("worker", soak.worker_rss[:-1], is_whole=is_whole),
        # The collector refuses on purpose: what is not delivered is counted, and is no defect.
        (f"losses in the application: {last['losses'] or 'none'}", set(last["losses"]) <= DELIVERY),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=RATE, help="runs a second")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder), options.minutes, options.rate)
        try:
            soak.follow()
            soak.drain()
            found = verdicts(soak, is_whole=options.minutes >= WHOLE_MINUTES)
        finally:
            soak.close()
    for line, holds in found:
        print(f"{'holds' if holds else 'FAILS':6} {line}")
    return 0 if all(holds for _, holds in found) else 1


if __name__ == "__main__":
    sys.exit(main())
