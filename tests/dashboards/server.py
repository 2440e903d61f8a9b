"""A real Prometheus on loopback over blocks that promtool made."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

needs_prometheus = pytest.mark.skipif(
    shutil.which("prometheus") is None or shutil.which("promtool") is None,
    reason="prometheus and promtool are not on this machine",
)


class Server:
    """A Prometheus to ask."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=30):  # noqa: S310 - http on loopback
                return True
        except OSError:
            return False

    def ask(self, expr: str, at: float) -> list[dict[str, Any]]:
        """Result of an instant query."""
        return self._post("query", query=expr, time=at)

    def series(self, expr: str, begin: float, end: float, step: float) -> list[dict[str, Any]]:
        """Result of a range query."""
        return self._post("query_range", query=expr, start=begin, end=end, step=step)

    def _post(self, path: str, **asked: str | float) -> list[dict[str, Any]]:
        body = urllib.parse.urlencode(asked).encode()
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/{path}", data=body, timeout=120) as reply:  # noqa: S310 - http on loopback
                return json.load(reply)["data"]["result"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{error.read().decode()} for {asked['query']}") from error


def backfill(folder: Path, lines: Iterable[str]) -> None:
    """Make blocks of OpenMetrics text in the folder's data; a server sees them when it starts."""
    with (folder / "month.txt").open("w") as out:
        out.writelines(lines)
    blocks = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "--max-block-duration=720h", "--quiet"]
    subprocess.run([*blocks, folder / "month.txt", folder / "data"], check=True, capture_output=True, timeout=240)


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """Run a Prometheus over the folder's data."""
    (folder / "prometheus.yml").write_text("global: {}\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        "prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.retention.time=100y",
    ]  # fmt: skip
    with (folder / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        found, deadline = Server(port), time.monotonic() + 60
        while not found.is_ready():
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.1)
        try:
            yield found
        finally:
            process.terminate()
