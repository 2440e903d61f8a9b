"""Environments of other packages in build/, and servers that run in them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).resolve().parents[1]


def python_of(name: str, packages: str) -> Path:
    """Return the interpreter of NAME_PYTHON or of build/NAME; a visible skip where there is none."""
    variable = f"{name.upper()}_PYTHON"
    given = os.environ.get(variable)
    if given and not Path(given).is_file():
        pytest.fail(f"{variable}={given} does not exist")
    found = Path(given) if given else ROOT / "build" / name / "bin" / "python"
    if not found.is_file():
        reason = f"no {packages} on this machine: `make test-{name}` makes build/{name}"
        pytest.skip(reason, allow_module_level=True)
    return found


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


class Server:
    """A server on loopback in a process group of its own; everything it writes is under `folder`."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], folder: Path, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._log = folder / "server.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, env=environ, cwd=folder, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def wait_until_it_answers(self, path: str, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                urllib.request.urlopen(self.url + path, timeout=2).close()  # noqa: S310 - http on loopback
            except OSError:
                time.sleep(0.2)
            else:
                return
        pytest.fail(f"{type(self).__name__} did not start: {self._log.read_text(errors='replace')[-2_000:]}")

    def stop(self) -> None:
        with suppress(ProcessLookupError):  # where it never started
            os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(15)

    def ask(self, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Any:
        """Get JSON, or post it where there is a body."""
        request = urllib.request.Request(  # noqa: S310 - http on loopback
            self.url + path,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", **(headers or {})},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            return json.loads(answer.read() or b"{}")
