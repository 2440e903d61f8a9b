"""The processes: one receiver, and one worker for each candidate and framework."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.overhead.candidates import Candidate
from benchmarks.overhead.environments import HOME, ROOT, Unavailable, python_of, python_path

# What both sides must have alike; a peer that has another version is named under the table.
SHARED = ("langchain-core", "llama-index-core", "opentelemetry-sdk", "protobuf")
# Measured programs tell nobody, and nothing of the caller's own settings gets in.
_QUIET = {"LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false", "PYTHONHASHSEED": "0"}
_FOREIGN = ("OTEL_", "RAGTRACE_", "OPENINFERENCE_", "TRACELOOP_", "LANGCHAIN_", "LANGSMITH_")


class Receiver:
    """The OTLP receiver's process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.overhead.receiver"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            text=True,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self.endpoint = f"http://127.0.0.1:{int(self._process.stdout.readline())}"

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


class Hand:
    """One worker process.

    Attributes:
        candidate: who it is.
        framework: langchain or llamaindex.
        versions: of what it shares with the others.
        note: what is to be said of its environment.

    Args:
        source: the checkout that the worker's code comes from.
    """

    def __init__(self, candidate: Candidate, framework: str, endpoint: str, source: Path = ROOT) -> None:
        self.candidate, self.framework, self._source = candidate, framework, source
        python, self.note = python_of(candidate)
        HOME.mkdir(parents=True, exist_ok=True)
        self._log = HOME / f"{candidate.key}-{framework}.log"
        self._process = self._start(python, endpoint)
        self.versions: dict[str, str] = self._read()["versions"]

    def _start(self, python: Path, endpoint: str) -> subprocess.Popen[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
        environment = {**kept, **_QUIET, **self.candidate.variables, "PYTHONPATH": python_path(self._source)}
        role = self.candidate.role or self.candidate.key
        command = [str(python), "-m", "benchmarks.overhead.worker", role, self.framework, endpoint]
        with self._log.open("w") as log:
            return subprocess.Popen(
                [*command, *SHARED],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self._source,
                env=environment,
                text=True,
                start_new_session=True,  # Ctrl-C is the main process's, which then prints what is there
            )

    def ask(self, **order: Any) -> dict[str, Any]:
        """Give an order and wait for its answer.

        Raises:
            Unavailable: the worker failed at it, or is gone.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise Unavailable(f"the worker is gone, see {self._log.relative_to(ROOT)}") from None
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise Unavailable(f"the worker is gone, see {self._log.relative_to(ROOT)}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise Unavailable(answer["error"])
        return answer

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
