"""LangChain's own unit tests, as its sdists bring them, in a pytest of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.environments import python_of

if TYPE_CHECKING:
    from collections.abc import Mapping

SUITES = ("langchain-core", "langchain", "langchain-classic")
TIMEOUT_S = 600.0  # of one suite, once: 30 s on two idle cores
# As the Makefile of each sdist starts them, beside the time after which a test that hangs fails.
_COMMAND = (
    "-m pytest -q -n 2 -p outcomes -p no:ragtrace -p no:cacheprovider --benchmark-disable --disable-socket"
    " --allow-unix-socket --timeout 120 tests/unit_tests"
)


def frameworks_python() -> Path:
    return python_of("frameworks", "tests of LangChain")


def sdist_of(suite: str) -> Path:
    """Return the folder of a suite's sdist; its name is the suite's with a version."""
    folder = frameworks_python().parents[1] / "sdists"
    (found,) = folder.glob(f"{suite.replace('-', '_')}-[0-9]*[0-9]/")
    return found


@dataclass(frozen=True)
class Outcomes:
    """What became of each test of a suite, by its name, and what ragtrace captured meanwhile."""

    of: Mapping[str, str]
    scored: int = 0
    internal_errors: tuple[str, ...] = ()

    @property
    def passed(self) -> frozenset[str]:
        return frozenset(name for name, outcome in self.of.items() if outcome == "passed")


def run(suite: str, folder: Path, *, is_traced: bool) -> Outcomes:
    """Run a suite with ragtrace off or on; its output and the files of both plugins go to `folder`."""
    captured, outcomes, log = folder / "captured", folder / "outcomes.json", folder / "pytest.log"
    captured.mkdir(parents=True)
    environ = {
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(folder),
        "PYTHONPATH": str(Path(__file__).parent),
        "FRAMEWORKS_OUTCOMES": str(outcomes),
        "FRAMEWORKS_CAPTURED": str(captured),
        **{f"OTEL_{signals}_EXPORTER": "none" for signals in ("TRACES", "METRICS", "LOGS")},
    }
    command = [str(frameworks_python()), *_COMMAND.split(), *(["-p", "switched_on"] if is_traced else [])]
    with log.open("wb") as written:
        process = subprocess.Popen(
            command, env=environ, cwd=sdist_of(suite), stdout=written, stderr=written, start_new_session=True
        )
        try:
            process.wait(TIMEOUT_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if not outcomes.is_file():
        pytest.fail(f"{suite} did not run to its end: {log.read_text(errors='replace')[-2_000:]}")
    workers = [json.loads(one.read_text()) for one in captured.iterdir()]
    return Outcomes(
        json.loads(outcomes.read_text()),
        sum(worker["scored"] for worker in workers),
        tuple(f"{site}: {number}" for worker in workers for site, number in worker["internal_errors"].items()),
    )


@dataclass(frozen=True)
class Comparison:
    """One suite, plainly and with ragtrace on."""

    suite: str
    plain: Outcomes
    traced: Outcomes

    @property
    def broken(self) -> frozenset[str]:
        """Tests that pass plainly, and fail, are skipped or do not end with ragtrace on."""
        return self.plain.passed - self.traced.passed

    def __str__(self) -> str:
        plain, traced = self.plain, self.traced
        return (
            f"{self.suite}: {len(plain.of)} tests; pass plainly: {len(plain.passed)}; pass with ragtrace on:"
            f" {len(traced.passed)}, with {traced.scored} runs scored"
        )


def compare(suite: str, folder: Path) -> Comparison:
    """Run a suite plainly and with ragtrace on."""
    return Comparison(
        suite,
        run(suite, folder / "plain", is_traced=False),
        run(suite, folder / "traced", is_traced=True),
    )
