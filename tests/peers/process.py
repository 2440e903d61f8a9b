"""The peers' libraries in a process of their own, asked over its standard streams."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.environments import python_of

WORKER = Path(__file__).with_name("worker.py")


def peers_python() -> Path:
    return python_of("peers", "ragas, ranx and other peers")


class PeerError(Exception):
    """A peer raised; `kind` is the name of its error."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


class Peers:
    """One worker process; what it writes is under `folder`, and it is told to send no usage anywhere."""

    def __init__(self, python: Path, folder: Path) -> None:
        self._log = folder / "worker.log"
        environ = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(folder),
            "RAGAS_DO_NOT_TRACK": "true",
            "HF_HUB_OFFLINE": "1",
            "MPLCONFIGDIR": str(folder),
            # ranx runs the same source uncompiled: compiling it takes two minutes at first use.
            "NUMBA_DISABLE_JIT": "1",
        }
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(python), str(WORKER)],
                env=environ, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
            )  # fmt: skip

    def ask(self, op: str, **arguments: Any) -> Any:
        """Return what an operation of the worker gives; raises PeerError when the library raised."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"op": op, **arguments}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            pytest.fail(f"the peers' worker ended: {self._log.read_text(errors='replace')[-2_000:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise PeerError(answer["error"], answer["message"])
        return answer["value"]

    def stop(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(15)
        self._process.stdout.close()
