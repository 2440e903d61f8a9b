"""A real Phoenix server on loopback, offline, with a key, from an environment of its own; and how to ask it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
DEFAULT_PYTHON = ROOT / "build" / "phoenix" / "bin" / "python"
KEY = "a-key-of-these-tests-alone-0123456789"
START_S = 150.0  # 16 s on two cores; a cold disk takes longer


def phoenix_python() -> Path:
    """The interpreter of the environment that has arize-phoenix; a visible skip where there is none."""
    given = os.environ.get("PHOENIX_PYTHON")
    if given and not Path(given).is_file():
        pytest.fail(f"PHOENIX_PYTHON={given} does not exist")
    found = Path(given) if given else DEFAULT_PYTHON
    if not found.is_file():
        reason = "no Phoenix server on this machine: `make test-phoenix` installs one in build/phoenix"
        pytest.skip(reason, allow_module_level=True)
    return found


class Phoenix:
    """One server process; everything it writes is under `folder`."""

    def __init__(self, python: Path, folder: Path) -> None:
        self.port, grpc_port = _free_port(), _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._log = folder / "server.log"
        environ = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(folder),
            "PHOENIX_WORKING_DIR": str(folder),
            "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_PORT": str(self.port),
            "PHOENIX_GRPC_PORT": str(grpc_port),
            "PHOENIX_TELEMETRY_ENABLED": "false",
            "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
            "PHOENIX_DISABLE_AGENT_ASSISTANT": "true",
            "PHOENIX_ENABLE_AUTH": "true",
            "PHOENIX_SECRET": "a-secret-of-these-tests-alone-0123456789",
            "PHOENIX_ADMIN_SECRET": KEY,
        }
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(python), "-m", "phoenix.server.main", "serve"],
                env=environ, cwd=folder, stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def wait_ready(self) -> None:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            try:
                urllib.request.urlopen(f"{self.url}/healthz", timeout=2).close()  # noqa: S310 - http on loopback
            except OSError:
                time.sleep(0.2)
            else:
                return
        pytest.fail(f"Phoenix did not start: {self._log.read_text(errors='replace')[-2_000:]}")

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(15)

    def get(self, path: str, **query: Any) -> Any:
        return self._asked(f"{path}?{urlencode(query, doseq=True)}", None)

    def graphql(self, query: str, **variables: Any) -> Any:
        answer = self._asked("/graphql", {"query": query, "variables": variables})
        assert not answer.get("errors"), answer
        return answer["data"]

    def _asked(self, path: str, body: Any) -> Any:
        request = urllib.request.Request(  # noqa: S310 - http on loopback
            self.url + path,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
            return json.load(answer)

    def spans(self, project: str) -> list[dict[str, Any]]:
        """Every span of a project, empty while Phoenix does not know the project."""
        try:
            return self.get(f"/v1/projects/{quote(project)}/spans", limit=1_000)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return []
            raise

    def annotations(self, project: str, span_id: str) -> list[dict[str, Any]]:
        """Every annotation of a span, empty while Phoenix does not know the span."""
        try:
            return self.get(f"/v1/projects/{quote(project)}/span_annotations", span_ids=span_id, limit=1_000)[
                "data"
            ]
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return []
            raise


def wait_for(what: Any, timeout_s: float = 30.0) -> Any:
    """Ask until the answer is true, and return it; the last answer when the time is over."""
    deadline = time.monotonic() + timeout_s
    while not (found := what()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]
