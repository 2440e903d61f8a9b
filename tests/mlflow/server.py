"""A real MLflow server on loopback, offline, from an environment of its own; and how to ask it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
DEFAULT_PYTHON = ROOT / "build" / "mlflow" / "bin" / "python"
START_S = 200.0  # 17 to 70 s on two cores: it makes its tables first
CLIENT = """
import json, sys
from mlflow import MlflowClient
found = MlflowClient(tracking_uri=sys.argv[1]).get_trace(sys.argv[2])
shown = [
    {"id": it.assessment_id, "name": it.name, "value": it.feedback.value, "rationale": it.rationale,
     "error": it.feedback.error and it.feedback.error.error_code, "metadata": it.metadata, "span_id": it.span_id,
     "source": [it.source.source_type, it.source.source_id]}
    for it in found.info.assessments
]
print(json.dumps({"spans": [span.name for span in found.data.spans], "assessments": shown}))
"""


def mlflow_python() -> Path:
    """The interpreter of the environment that has mlflow; a visible skip where there is none."""
    given = os.environ.get("MLFLOW_PYTHON")
    if given and not Path(given).is_file():
        pytest.fail(f"MLFLOW_PYTHON={given} does not exist")
    found = Path(given) if given else DEFAULT_PYTHON
    if not found.is_file():
        pytest.skip("no MLflow on this machine: `make test-mlflow` installs one in build/mlflow")
    return found


class Mlflow:
    """One server process group; everything it writes is under `folder`."""

    def __init__(self, python: Path, folder: Path) -> None:
        self._python = python
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self._log = folder / "server.log"
        self._environ = {
            "PATH": f"{python.parent}:{os.environ.get('PATH', '')}",
            "HOME": str(folder),
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # ten processes less
        }
        command = [
            str(python), "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1",
            "--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--artifacts-destination", f"{folder}/artifacts",
        ]  # fmt: skip
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, env=self._environ, cwd=folder, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def wait_ready(self) -> None:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                urllib.request.urlopen(f"{self.url}/health", timeout=2).close()  # noqa: S310 - http on loopback
            except OSError:
                time.sleep(0.2)
            else:
                return
        pytest.fail(f"MLflow did not start: {self._log.read_text(errors='replace')[-2_000:]}")

    def stop(self) -> None:
        os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(15)

    def experiment(self, name: str) -> str:
        return str(self._asked("/api/2.0/mlflow/experiments/create", {"name": name})["experiment_id"])

    def take_trace(self, trace_id: str, span_id: str) -> None:
        """Send a trace of one span over OTLP."""
        now = time.time_ns()
        span = {
            "traceId": trace_id, "spanId": span_id, "name": "rag", "kind": 1,
            "startTimeUnixNano": str(now - 10**9), "endTimeUnixNano": str(now),
        }  # fmt: skip
        sent = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
        self._asked("/v1/traces", sent, {"x-mlflow-experiment-id": "0"})

    def assessments(self, trace_id: str) -> list[dict[str, Any]]:
        """Every assessment of a trace, empty while MLflow does not know the trace."""
        try:
            found = self._asked(f"/api/3.0/mlflow/traces/tr-{trace_id}", None)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return []
            raise
        assessments: list[dict[str, Any]] = found["trace"]["trace_info"].get("assessments", [])
        return assessments

    def client(self, trace_id: str) -> dict[str, Any]:
        """What MLflow's own client shows of a trace."""
        command = [str(self._python), "-c", CLIENT, self.url, f"tr-{trace_id}"]
        done = subprocess.run(command, env=self._environ, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found

    def _asked(self, path: str, body: Any, headers: dict[str, str] | None = None) -> Any:
        request = urllib.request.Request(  # noqa: S310 - http on loopback
            self.url + path,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"} | (headers or {}),
        )
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            return json.loads(answer.read() or b"{}")
