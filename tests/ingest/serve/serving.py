"""Starts ``ragtrace serve`` as a process of its own, beside a real OTLP receiver for its scores."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opentelemetry.proto.trace.v1.trace_pb2 import Span

    from ragtrace.testing.otlp import OtlpReceiver

FIXTURES = Path(__file__).parents[1] / "fixtures"
LONG_S = 60.0
_ADDRESS = re.compile(r"OTLP/(GRPC|HTTP) at https?://[^:]+:(\d+)")


class Serve:
    """A running ``ragtrace serve``: its ports, its lines, and its end."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.ports: dict[str, int] = {}

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))

    @property
    def http(self) -> str:
        """Base address of OTLP/HTTP."""
        return f"http://127.0.0.1:{self.ports['HTTP']}"

    @property
    def grpc(self) -> str:
        """Address of OTLP/gRPC."""
        return f"http://127.0.0.1:{self.ports['GRPC']}"

    def post(self, body: bytes | str, path: str = "/v1/traces") -> int:
        """Send one OTLP/JSON request, or a protobuf one; return the HTTP status."""
        kind = "application/json" if isinstance(body, str) else "application/x-protobuf"
        data = body.encode() if isinstance(body, str) else body
        request = urllib.request.Request(self.http + path, data, {"Content-Type": kind})  # noqa: S310 - loopback
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310 - loopback
                return int(reply.status)
        except urllib.error.HTTPError as error:
            return error.code

    def post_fixture(self, name: str) -> set[str]:
        """Send the requests of a recorded fixture, and return the ids of their traces."""
        trace_ids = set()
        for line in (FIXTURES / name).read_text().splitlines():
            assert self.post(line) == 200
            trace_ids |= {span["traceId"] for span in spans_of(json.loads(line))}
        return trace_ids

    def says(self, text: str, timeout_s: float = LONG_S) -> str:
        """Wait for a line with this text, and return it."""
        line = wait_for(lambda: next((line for line in self.lines if text in line), None), timeout_s)
        assert line is not None, "\n".join(self.lines)
        return line

    def stop(self, timeout_s: float = LONG_S) -> int:
        """Send SIGTERM and return the exit status."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout_s)
        self._reader.join(5.0)
        return status


def spans_of(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the spans of one OTLP/JSON request."""
    for resource in request["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            yield from scope["spans"]


def wait_for(condition: Callable[[], Any], timeout_s: float = LONG_S) -> Any:
    """Return the first true value of a condition, None after the timeout."""
    ends_at = time.monotonic() + timeout_s
    while time.monotonic() < ends_at:
        if value := condition():
            return value
        time.sleep(0.05)
    return None


@contextmanager
def serving(endpoint: str, *options: str, **environment: str) -> Iterator[Serve]:
    """Run ``ragtrace serve`` on free ports until the block ends; every trace is scored, after a short settle time."""
    given = {name: value for name, value in os.environ.items() if not name.startswith(("RAGTRACE_", "OTEL_"))}
    given |= {
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        "OTEL_BSP_SCHEDULE_DELAY": "200",
        "OTEL_BLRP_SCHEDULE_DELAY": "200",
    }
    given |= {"OTEL_METRIC_EXPORT_INTERVAL": "1000", **environment}
    defaults = ["--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--sample-rate", "1", "--settle", "0.5"]
    process = subprocess.Popen(
        [sys.executable, "-m", "ragtrace", "serve", *defaults, *options],
        env=given,
        stderr=subprocess.PIPE,
        text=True,
    )
    serve = Serve(process)
    try:
        yield started(serve)
    finally:
        process.kill()
        process.wait()


def started(serve: Serve) -> Serve:
    """Wait until both ports are known and served."""
    for name in ("GRPC", "HTTP"):
        if (match := _ADDRESS.search(serve.says(f"OTLP/{name} at"))) is not None:
            serve.ports[name] = int(match[2])
    assert wait_for(lambda: serve.post("{}") in {200, 401} if "HTTP" in serve.ports else True)
    return serve


def evaluations(receiver: OtlpReceiver) -> list[Span]:
    """Return the evaluation spans that arrived."""
    return [span for span in receiver.spans if span.name.startswith("evaluation")]


def has_evaluations(count: int) -> Callable[[OtlpReceiver], bool]:
    """Return a condition for `OtlpReceiver.wait_for`."""
    return lambda receiver: len(evaluations(receiver)) >= count
