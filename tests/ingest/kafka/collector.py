"""Writes traces to a topic as the Collector's kafka exporter does, and answers as a slow judge."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import threading
import time
from pathlib import Path

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.guards.judge_server import completion

FIXTURE = Path(__file__).parents[1] / "fixtures" / "openinference" / "openinference-langchain-0.1.80.jsonl"
_IDS = ("traceId", "spanId", "parentSpanId")
AUDIT = {
    "attempted": True,
    "noncommittal": False,
    "claims": ["It takes five days."],
    "verdicts": [{"id": 1, "sources": [1], "reason": "", "verdict": "supported"}],
    "citations": [],
}


def template():
    """Return the first recorded trace as protobuf."""
    request = json.loads(FIXTURE.read_text().splitlines()[0])
    for resource in request["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                span |= {
                    name: base64.b64encode(bytes.fromhex(span[name])).decode() for name in _IDS if span.get(name)
                }
    return ParseDict(request, ExportTraceServiceRequest(), ignore_unknown_fields=True)


def write(brokers, topic, numbers, *, records=1):
    """Produce one trace for each number, its spans over some records; key and partitioner are the Collector's."""
    import confluent_kafka

    producer = confluent_kafka.Producer({"bootstrap.servers": brokers, "partitioner": "fnv1a_random"})
    parts = split(template(), records)
    for number in numbers:
        trace_id = number.to_bytes(16, "big")
        for part in parts:
            for resource in part.resource_spans:
                for scope in resource.scope_spans:
                    for span in scope.spans:
                        span.trace_id = trace_id
            producer.produce(topic, part.SerializeToString(), trace_id.hex().encode())
        producer.poll(0)
    assert producer.flush(30) == 0


def split(request, records):
    """Return the spans of a request in several requests."""
    parts = []
    for n in range(records):
        part = ExportTraceServiceRequest()
        part.CopyFrom(request)
        for resource in part.resource_spans:
            for scope in resource.scope_spans:
                kept = list(scope.spans)[n::records]
                del scope.spans[:]
                scope.spans.extend(kept)
        parts.append(part)
    return parts


class SlowJudge:
    """An OpenAI-compatible server on loopback that waits before each reply, and notes when it was asked."""

    def __init__(self, latency_s):
        self.asked_at = []
        body = json.dumps(completion(AUDIT)).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self._latency_s, self._reply = latency_s, head.encode() + body
        self._loop, started = asyncio.new_event_loop(), threading.Event()

        def run():
            self._server = self._loop.run_until_complete(asyncio.start_server(self._handle, "127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
            started.set()
            self._loop.run_forever()

        threading.Thread(target=run, daemon=True).start()
        assert started.wait(10)

    async def _handle(self, reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(re.search(rb"(?i)content-length: (\d+)", head).group(1)))
                self.asked_at.append(time.monotonic())
                await asyncio.sleep(self._latency_s)
                writer.write(self._reply)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def close(self):
        self._loop.call_soon_threadsafe(self._server.close)
