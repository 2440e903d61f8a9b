"""A real MLflow server on loopback, offline, and how to ask it."""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.error
from typing import TYPE_CHECKING, Any

from tests.environments import Server, free_port, python_of

if TYPE_CHECKING:
    from pathlib import Path

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
    return python_of("mlflow", "MLflow server")


class Mlflow(Server):
    """One server, offline."""

    def __init__(self, python: Path, folder: Path) -> None:
        self._python = python
        port = free_port()
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
        super().__init__(command, self._environ, folder, port)

    def wait_ready(self) -> None:
        self.wait_until_it_answers("/health", START_S)

    def experiment(self, name: str) -> str:
        return str(self.ask("/api/2.0/mlflow/experiments/create", {"name": name})["experiment_id"])

    def take_trace(self, trace_id: str, span_id: str) -> None:
        """Send a trace of one span over OTLP."""
        now = time.time_ns()
        span = {
            "traceId": trace_id, "spanId": span_id, "name": "rag", "kind": 1,
            "startTimeUnixNano": str(now - 10**9), "endTimeUnixNano": str(now),
        }  # fmt: skip
        sent = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
        self.ask("/v1/traces", sent, {"x-mlflow-experiment-id": "0"})

    def assessments(self, trace_id: str) -> list[dict[str, Any]]:
        """Every assessment of a trace, empty while MLflow does not know the trace."""
        try:
            found = self.ask(f"/api/3.0/mlflow/traces/tr-{trace_id}")
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
