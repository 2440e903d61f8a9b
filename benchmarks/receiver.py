"""Spans a second and core through the OTLP receiver, beside the parser alone, and over loopback gRPC.

``python -m benchmarks.receiver``. A request has 512 spans with 10 documents of 500 characters; one trace in 20 is
wanted. Documents are one JSON text, as ragtrace and OTel GenAI write them, or flattened as OpenInference does. The
floor is ``ExportTraceServiceRequest.FromString`` in the same rounds.
"""

from __future__ import annotations

import gzip
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

import grpc
import orjson
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from ragtrace.ingest.base import RawLog, RawSpan
from ragtrace.ingest.receiving import ListenAddress, Receiver, ReceiverLimits
from ragtrace.ingest.receiving.exporting import ExportService

SPANS, DOCUMENTS, CHARACTERS = 512, 10, 500
WANTED_BELOW = int(0.05 * 2**56)
ROUNDS, ROUND_S = 5, 0.3
SENDERS, SENDING_S = 2, 3.0
BOUND, BOUND_GRPC = 100_000, 20_000
METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


class Counted:
    """An intake that counts; it draws as ragtrace and OTel do, on the last seven bytes of the trace id."""

    def __init__(self) -> None:
        self.wanted = 0

    def is_wanted(self, trace_id: bytes) -> bool:
        return int.from_bytes(trace_id[9:]) < WANTED_BELOW

    def retry_after_s(self) -> float | None:
        return None

    def put_spans(self, spans: Sequence[RawSpan], *, skipped_roots: int, rejected: int = 0) -> int:
        self.wanted += len(spans)
        return 0

    def put_logs(self, logs: Sequence[RawLog]) -> list[str]:
        return []


def request(*, is_flat: bool) -> ExportTraceServiceRequest:
    rng = random.Random(7)
    found = ExportTraceServiceRequest()
    resource = found.resource_spans.add()
    resource.resource.attributes.append(text("service.name", "shop"))
    scope = resource.scope_spans.add()
    scope.scope.name = "bench"
    for number in range(SPANS):
        scope.spans.append(
            Span(
                trace_id=rng.randbytes(16),
                span_id=rng.randbytes(8),
                parent_span_id=rng.randbytes(8),
                flags=257,
                name="retrieve",
                start_time_unix_nano=1_700_000_000_000_000_000 + number,
                end_time_unix_nano=1_700_000_001_000_000_000 + number,
                attributes=[text("input.value", "Where is the lab?"), *documents(rng, is_flat=is_flat)],
            )
        )
    return found


def documents(rng: random.Random, *, is_flat: bool) -> list[KeyValue]:
    words = [f"w{n}" for n in range(2_000)]
    given = [
        {"id": f"doc-{n}", "content": " ".join(rng.choices(words, k=120))[:CHARACTERS], "score": rng.random()}
        for n in range(DOCUMENTS)
    ]
    if not is_flat:
        return [text("gen_ai.retrieval.documents", json.dumps(given))]
    flat = []
    for number, document in enumerate(given):
        prefix = f"retrieval.documents.{number}.document"
        flat += [text(f"{prefix}.id", str(document["id"])), text(f"{prefix}.content", str(document["content"]))]
        flat.append(KeyValue(key=f"{prefix}.score", value=AnyValue(double_value=float(str(document["score"])))))
    return flat


def text(key: str, value: str) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(string_value=value))


def as_json(given: ExportTraceServiceRequest) -> bytes:
    """OTLP/JSON, whose ids are hexadecimal and not protobuf's base64."""
    loaded = json_format.MessageToDict(given)
    for resource, of_resource in zip(loaded["resourceSpans"], given.resource_spans, strict=True):
        for scope, of_scope in zip(resource["scopeSpans"], of_resource.scope_spans, strict=True):
            for span, its in zip(scope["spans"], of_scope.spans, strict=True):
                ids = {"traceId": its.trace_id, "spanId": its.span_id, "parentSpanId": its.parent_span_id}
                span |= {name: value.hex() for name, value in ids.items()}
    return orjson.dumps(loaded)


def rate(work: Callable[[], object]) -> float:
    """Spans a second of CPU, in one round."""
    start, count = time.process_time(), 0
    while (spent := time.process_time() - start) < ROUND_S:
        work()
        count += SPANS
    return count / spent


def cases() -> dict[str, Callable[[], object]]:
    service = ExportService(Counted(), ReceiverLimits(), None, str)

    def exported(body: bytes, **how: bool) -> Callable[[], object]:
        def work() -> None:
            with service.hold() as held:
                service.export("traces", body, held, **how)

        return work

    one, flat = request(is_flat=False), request(is_flat=True)
    body, flat_body, packed = (
        one.SerializeToString(),
        flat.SerializeToString(),
        gzip.compress(one.SerializeToString(), 6),
    )
    return {
        "floor, documents as JSON": lambda: ExportTraceServiceRequest.FromString(body),
        "floor, documents flattened": lambda: ExportTraceServiceRequest.FromString(flat_body),
        "protobuf, documents as JSON": exported(body),
        "protobuf, documents flattened": exported(flat_body),
        "protobuf, documents as JSON, gzip": exported(packed, is_packed=True),
        "OTLP/JSON, documents as JSON": exported(as_json(one), is_json=True),
        "OTLP/JSON, documents flattened": exported(as_json(flat), is_json=True),
    }


def over_grpc() -> tuple[float, float]:
    """Return spans a second over loopback from processes of their own, and spans a second of the receiver's CPU."""
    counted = Counted()
    with Receiver(counted, grpc=ListenAddress()) as receiver:
        command = [sys.executable, "-m", "benchmarks.receiver", "send", str(receiver.grpc_port)]
        senders = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(SENDERS)]
        for sender in senders:
            sender.stdout.readline()
        for sender in senders:
            sender.stdin.write(b"go\n")
            sender.stdin.flush()
        start, cpu = time.perf_counter(), time.process_time()
        sent = sum(int(sender.stdout.readline()) for sender in senders)
        spent, cpu = time.perf_counter() - start, time.process_time() - cpu
        for sender in senders:
            sender.communicate()
    (resource,) = request(is_flat=False).resource_spans
    drawn = sum(counted.is_wanted(span.trace_id) for span in resource.scope_spans[0].spans)
    assert counted.wanted * SPANS == drawn * sent, (counted.wanted, drawn, sent)
    return sent / spent, sent / cpu


def send(port: str) -> None:
    body = request(is_flat=False).SerializeToString()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_unary(METHOD)
        call(b"")
        print("ready", flush=True)
        sys.stdin.readline()
        start, sent = time.perf_counter(), 0
        while time.perf_counter() - start < SENDING_S:
            call(body)
            sent += SPANS
        print(sent, flush=True)


def main() -> int:
    works = cases()
    rates: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, work in works.items():
            rates[name].append(rate(work))
    print(f"spans a second and core, {SPANS} a request, {DOCUMENTS} x {CHARACTERS} characters, 5 % wanted")
    for name, found in rates.items():
        floor = rates["floor, documents flattened" if "flattened" in name else "floor, documents as JSON"]
        ratio = statistics.median(ours / its for ours, its in zip(found, floor, strict=True))
        print(f"  {name:36} {statistics.median(found):12,.0f}   {ratio:6.2f} of the floor")
    ours = statistics.median(rates["protobuf, documents as JSON"])
    wall, core = over_grpc()
    print(f"over loopback gRPC from {SENDERS} processes: {wall:,.0f} spans a second, {core:,.0f} a core of ours")
    print(f"bounds: {BOUND:,} a core of protobuf, {BOUND_GRPC:,} over gRPC")
    return int(ours < BOUND or wall < BOUND_GRPC)


if __name__ == "__main__":
    if sys.argv[1:2] == ["send"]:
        send(sys.argv[2])
    else:
        sys.exit(main())
