"""Generated replies of a judge server, 20,000 of them: the scorer goes on, and neither memory nor budgets are taken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
REPLIES = int(os.environ.get("FUZZ_REPLIES", "20000"))
PROCESSES = 2  # as many as CI has cores; most of the time is the client's, 2 to 3 ms a call
MEMORY_MB = 100


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peak memory is read from /proc")
def test_a_scorer_goes_on_after_hostile_replies(tmp_path: Path) -> None:
    first = int(os.environ.get("RAGTRACE_FUZZ_SEED", "13"))
    seeds = [str(first + number) for number in range(PROCESSES)]
    running = [_begun(seed, tmp_path) for seed in seeds]
    try:
        for seed, process in zip(seeds, running, strict=True):
            out, err = process.communicate(timeout=800)
            said = f"RAGTRACE_FUZZ_SEED={seed}: {out}\n{err[-4_000:]}"
            assert process.returncode == 0, said
            print(said)  # noqa: T201 - shown where a check fails
            _check(json.loads(out))
    finally:
        for process in running:
            process.kill()


def _begun(seed: str, folder: Path) -> subprocess.Popen[str]:
    own = folder / seed
    own.mkdir()
    command = [sys.executable, "-m", "tests.fuzz.drive", seed, str(REPLIES // PROCESSES), str(own)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _check(report: dict[str, Any]) -> None:
    assert report["requests"] >= REPLIES // PROCESSES
    assert report["memory_mb"] < MEMORY_MB
    assert (report["under_way"], report["open"], report["reservations"]) == (0, 0, 0), "no slot is held"
    # The driver checks each call's tokens against what its request and reply can hold.
    assert 0 < report["booked"] == report["charged"], "the budget holds what the calls took"
    assert set(report["losses"]) == {"usage_invalid"}, "nothing else of ours failed"
    assert report["losses"]["usage_invalid"] > report["requests"] / 10
    fates = {"answered", "failed", "rate_limited", "refused", "rejected", "timed_out", "unfit"}
    assert set(report["fates"]) == fates
    assert report["fates"]["answered"] > report["requests"] / 3, "the replies are not all alike"
    assert (report["scored_by_judge"], report["scored_by_service"]) == (20, 20), "a sound server is asked again"
