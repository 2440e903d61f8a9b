"""A real Prometheus on loopback over blocks that promtool made."""

from __future__ import annotations

import json
import re
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

    from ragtrace_dashboards import Rule

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


def backfill(folder: Path, lines: Iterable[str], limit_s: float = 240.0) -> None:
    """Make blocks of OpenMetrics text in the folder's data; a server sees them when it starts."""
    with (folder / "month.txt").open("w") as out:
        out.writelines(lines)
    blocks = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "--max-block-duration=720h", "--quiet"]
    subprocess.run(
        [*blocks, folder / "month.txt", folder / "data"], check=True, capture_output=True, timeout=limit_s
    )


def record(folder: Path, rules: Iterable[Rule], begin: int, end: int, step: int) -> None:
    """Add what recording rules give over the folder's data, as blocks; a rule comes after those that it reads.

    A baseline that rests in an incident reads its own past, which is empty here: it does not rest.
    """
    left = {it.record: it.expr for it in rules}
    while left:
        ready = {
            name: expr
            for name, expr in left.items()
            if not (set(re.findall(r"ragtrace:[\w:]+", expr)) - {name}) & set(left)
        }
        assert ready, f"rules read each other: {sorted(left)}"
        with serving(folder) as server:
            found = {name: server.series(expr, begin, end, step) for name, expr in ready.items()}
        if any(found.values()):  # promtool takes no text without a sample
            backfill(folder, _lines(found))
        left = {name: expr for name, expr in left.items() if name not in ready}


def _lines(found: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    for name, series in found.items():
        yield f"# TYPE {name} gauge\n"
        joined: dict[str, list[list[Any]]] = {}  # series of two names may be one by turns
        for it in series:
            labels = ",".join(f'{key}="{value}"' for key, value in it["metric"].items() if key != "__name__")
            joined.setdefault(labels, []).extend(it["values"])
        for labels, values in joined.items():
            for at, value in sorted(values):
                yield f"{name}{{{labels}}} {value} {at}\n"
    yield "# EOF\n"


@contextmanager
def serving(folder: Path, config: str = "global: {}\n") -> Iterator[Server]:
    """Run a Prometheus over the folder's data."""
    (folder / "prometheus.yml").write_text(config)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        "prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.retention.time=100y",
        "--query.lookback-delta=14m",  # samples are 10 or 15 minutes apart, and none stands for a later one that is missing
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
