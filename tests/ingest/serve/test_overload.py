"""Ten times more traces than `ragtrace serve` can take: its memory stays bounded."""

from __future__ import annotations

import http.client
import json
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ragtrace.ingest.receiving.options import ReceiverLimits
from ragtrace.ingest.receiving.otlp_json import read_spans
from ragtrace.testing.otlp import OtlpReceiver
from tests.ingest.serve.serving import FIXTURES, serving, spans_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.ingest.serve.serving import Serve

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc"),
]
EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
SECONDS = 60.0
SENDERS = 4  # processes of each protocol
MOST_MB = 300
FIXTURES_SENT = ("openinference/openinference-langchain-0.1.80.jsonl", "ragtrace/ragtrace-langchain-full.jsonl")
FEW, MANY = 1, 40  # times that a request has the traces of a fixture


def peak_mb(serve: Serve) -> float:
    """Return the most memory that the process has had."""
    lines = Path(f"/proc/{serve.process.pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024 / 1e6


def test_ten_times_overload_stays_below_300_mb() -> None:
    with OtlpReceiver() as backend, serving(backend.endpoint, "--settle", "10") as serve:
        idle = peak_mb(serve)
        command = [sys.executable, "-m", "tests.ingest.serve.test_overload"]
        senders = [
            subprocess.Popen([*command, kind, str(serve.ports[kind]), str(seed)], stdout=subprocess.PIPE)
            for kind in ("HTTP", "GRPC") for seed in range(SENDERS)
        ]  # fmt: skip
        sent: Counter[str] = Counter()
        for sender in senders:
            out, _ = sender.communicate(timeout=SECONDS + 60)
            sent.update(json.loads(out))
        peak = peak_mb(serve)
        assert serve.post("{}") in {200, 429}
    shown = {"idle_mb": round(idle), "peak_mb": round(peak), **sent}
    print(json.dumps(shown))  # noqa: T201 - shown where a check fails
    assert peak < MOST_MB
    taken = sent["taken"]
    assert taken > 100
    assert sent["offered"] >= 10 * taken
    assert set(sent) <= {"offered", "taken", "200", "429", "OK", "RESOURCE_EXHAUSTED"}


def overload(kind: str, port: int, seed: int) -> Counter[str]:
    """Send traces as fast as the receiver answers, whatever it answers; count the traces."""
    rng, found = random.Random(f"{kind}/{seed}"), Counter[str]()
    requests = [request_of(name, count) for name in FIXTURES_SENT for count in (FEW, MANY)]
    ends_at = time.monotonic() + SECONDS
    send = over_http(port) if kind == "HTTP" else over_grpc(port)
    while time.monotonic() < ends_at:
        body, ids = rng.choices(requests, (8, 1, 8, 1))[0]
        for trace_id in ids:
            body = body.replace(trace_id, rng.randbytes(16))
        said = send(body)
        found[said] += 1
        found["offered"] += len(ids)
        found["taken"] += len(ids) * (said in {"200", "OK"})
    return found


def request_of(name: str, count: int) -> tuple[bytes, list[bytes]]:
    """Return the traces of a fixture `count` times in one request, and their ids."""
    given = (FIXTURES / name).read_text()
    request, ids = ExportTraceServiceRequest(), []
    for _ in range(count):
        text = given
        for trace_id in {span["traceId"] for line in given.splitlines() for span in spans_of(json.loads(line))}:
            ids.append(random.randbytes(16))
            text = text.replace(trace_id, ids[-1].hex())
        for line in text.splitlines():
            for raw in read_spans(line.encode(), ReceiverLimits(), lambda _: True).wanted:
                scope = request.resource_spans.add(resource=raw.resource).scope_spans.add()
                scope.scope.name = raw.scope
                scope.spans.append(raw.span)
    return request.SerializeToString(), ids


def over_http(port: int) -> Callable[[bytes], str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def send(body: bytes) -> str:
        try:
            connection.request("POST", "/v1/traces", body, {"Content-Type": "application/x-protobuf"})
            response = connection.getresponse()
            response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            return type(error).__name__
        return str(response.status)

    return send


def over_grpc(port: int) -> Callable[[bytes], str]:
    call = grpc.insecure_channel(f"127.0.0.1:{port}").unary_unary(EXPORT)

    def send(body: bytes) -> str:
        try:
            call(body, timeout=60)
        except grpc.RpcError as error:
            return str(error.code().name)
        return "OK"

    return send


if __name__ == "__main__":
    print(json.dumps(overload(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))  # noqa: T201 - for the test
