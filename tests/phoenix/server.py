"""A real Phoenix server on loopback, offline, with a key, and how to ask it."""

from __future__ import annotations

import os
import time
import urllib.error
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from tests.environments import Server, free_port, python_of

if TYPE_CHECKING:
    from pathlib import Path

KEY = "a-key-of-these-tests-alone-0123456789"
START_S = 150.0  # 16 s on two cores; a cold disk takes longer


def phoenix_python() -> Path:
    return python_of("phoenix", "Phoenix server")


class Phoenix(Server):
    """One server with a key, offline; without `has_login` it asks nobody for one."""

    def __init__(self, python: Path, folder: Path, *, has_login: bool = True) -> None:
        port, grpc_port = free_port(), free_port()
        environ = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(folder),
            "PHOENIX_WORKING_DIR": str(folder),
            "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_PORT": str(port),
            "PHOENIX_GRPC_PORT": str(grpc_port),
            "PHOENIX_TELEMETRY_ENABLED": "false",
            "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
            "PHOENIX_DISABLE_AGENT_ASSISTANT": "true",
            "PHOENIX_ENABLE_AUTH": str(has_login).lower(),
            "PHOENIX_SECRET": "a-secret-of-these-tests-alone-0123456789",
            "PHOENIX_ADMIN_SECRET": KEY,
        }
        super().__init__([str(python), "-m", "phoenix.server.main", "serve"], environ, folder, port)

    def wait_ready(self) -> None:
        self.wait_until_it_answers("/healthz", START_S)

    def get(self, path: str, **query: Any) -> Any:
        return self._ask_with_key(f"{path}?{urlencode(query, doseq=True)}")

    def graphql(self, query: str, **variables: Any) -> Any:
        answer = self._ask_with_key("/graphql", {"query": query, "variables": variables})
        assert not answer.get("errors"), answer
        return answer["data"]

    def _ask_with_key(self, path: str, body: Any = None) -> Any:
        return self.ask(path, body, {"Authorization": f"Bearer {KEY}"})

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
