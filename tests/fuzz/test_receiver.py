"""20,000 fuzzed requests, and ten times more bytes than there is room for: the receiver goes on within its memory."""

from __future__ import annotations

import gzip
import json
import os
import random
import threading
from collections import Counter
from pathlib import Path

import grpc
import pytest

from tests.fuzz.receiver_drive import (
    BEARER,
    SERVICES,
    HttpSender,
    drive,
    good_grpc,
    good_http,
    started_server,
)
from tests.unit.ingest.receiving.requests import field, pair, span, spans_request

REQUESTS = int(os.environ.get("RAGTRACE_FUZZ_REQUESTS", "20000"))
MEMORY_MB = 150
ANSWERS = {
    "200", "400", "401", "403", "404", "405", "413", "415", "garbage",
    "OK", "INVALID_ARGUMENT", "UNAUTHENTICATED", "UNIMPLEMENTED", "RESOURCE_EXHAUSTED",
}  # fmt: skip
reads_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")


@pytest.mark.slow
@pytest.mark.timeout(240 + REQUESTS // 50)
@reads_proc
def test_the_receiver_goes_on_after_fuzzed_requests():
    seed = int(os.environ.get("RAGTRACE_FUZZ_SEED", "16"))
    report = drive(seed, REQUESTS)
    print(f"RAGTRACE_FUZZ_SEED={seed}: {json.dumps(report)}")  # noqa: T201 - shown where a check fails
    assert report["sent"] >= REQUESTS - 4
    assert report["good"] == ["200"] * 20, "good requests are answered after it"
    assert report["exit"] == 0
    assert set(report["answers"]) >= {"200", "400", "401", "404", "413", "415", "OK", "INVALID_ARGUMENT"}
    assert set(report["answers"]) <= ANSWERS | {"408", "429", "reset"}
    assert report["answers"].get("reset", 0) + report["answers"].get("408", 0) <= REQUESTS / 1_000
    assert "internal" not in report["refused"]
    assert (report["losses"], report["logged"]) == ({}, []), "nothing of ours failed"
    assert report["free"], "every byte in flight was given back"
    assert report["memory_mb"] < MEMORY_MB
    assert report["taken"] > REQUESTS / 100


@pytest.mark.slow
@reads_proc
def test_memory_is_bounded_under_ten_times_overload():
    """480 MB arrive at once, again and again, where 16 MB may be in flight."""
    mib = 2**20
    limits = {
        "request_bytes": 4 * mib,
        "inflated_bytes": 8 * mib,
        "in_flight_bytes": 16 * mib,
        "body_timeout_s": 30.0,
    }
    body = large_request(4 * mib)
    with started_server(limits) as server:
        answers = overload(server.ports, body, senders=60, rounds=6)
        good = [good_http(server.ports[0]), good_grpc(server.ports[1])]
        report = server.end()
    print(json.dumps([answers, report]))  # noqa: T201 - shown where a check fails
    # Measured 160 to 230, whatever the number of rounds: what is in flight, one request decompressed, the messages that
    # gRPC's 8 workers read, 120 connections' buffers of up to .6 MB, and what malloc keeps for each thread.
    assert report["memory_mb"] < 300
    assert good == ["200", "200"]
    assert answers["200"] + answers["OK"] >= 10, "what there is room for is taken"
    assert answers["429"] + answers["RESOURCE_EXHAUSTED"] + answers["reset"] >= 10, "the rest is told to come later"
    assert report["free"]
    assert (report["losses"], report["exit"]) == ({}, 0)


def large_request(size):
    rng = random.Random(3)
    spans = [span(rng) for _ in range(80)]
    for one in spans:
        one.attributes.append(pair("text", rng.randbytes(size // 170).hex()))
    body = spans_request(spans).SerializeToString()
    assert size // 2 < len(body) < size
    return body


def overload(ports, body, *, senders, rounds):
    """Send the body from many connections of both protocols at the same moment, again and again."""
    head = b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\n"
    head += b"Authorization: %s\r\n" % BEARER.encode()
    packed = gzip.compress(body, 1)
    requests = [
        head + b"Content-Length: %d\r\n\r\n" % len(body) + body,
        head + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed) + packed,
    ]
    answers, together = Counter(), threading.Barrier(2 * senders)

    def over_http(number):
        sender = HttpSender(ports[0], random.Random(number))
        for _ in range(rounds):
            together.wait(60)
            answers[sender.ask(requests[number % 2], attempts=1)] += 1
        sender.close()

    def over_grpc(_):
        options = [("grpc.use_local_subchannel_pool", 1)]
        with grpc.insecure_channel(f"127.0.0.1:{ports[1]}", options=options) as channel:
            call = channel.unary_unary(f"/opentelemetry.proto.collector.{SERVICES[0]}/Export")
            for _ in range(rounds):
                together.wait(60)
                one = call.future(body, timeout=60, metadata=[("authorization", BEARER)])
                answers[one.code().name] += 1

    threads = [threading.Thread(target=kind, args=(n,)) for kind in (over_http, over_grpc) for n in range(senders)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


@pytest.mark.slow
@reads_proc
def test_the_dearest_request_takes_bounded_memory():
    """Sixty megabytes of empty attributes; they would take 1,680 MB if they were parsed at once."""
    mib = 2**20
    limits = {
        "request_bytes": 16 * mib, "inflated_bytes": 64 * mib, "span_bytes": 4 * mib, "items": 100_000,
        "in_flight_bytes": 128 * mib, "body_timeout_s": 60.0,
    }  # fmt: skip
    wanted = span(random.Random(1))
    wanted.trace_id = bytes(15) + b"\x01"
    one = wanted.SerializeToString() + field(9, b"") * (2 * mib - 1_000)
    packed = gzip.compress(field(1, field(2, field(2, one) * 15)), 1)
    head = b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\nContent-Encoding: gzip\r\n"
    with started_server(limits) as server:
        sender = HttpSender(server.ports[0], random.Random(0))
        said = sender.ask(
            head + b"Authorization: %s\r\nContent-Length: %d\r\n\r\n" % (BEARER.encode(), len(packed)) + packed
        )
        sender.close()
        report = server.end()
    assert (said, report["taken"]) == ("200", 15)
    assert report["memory_mb"] < 500  # measured 340 to 400: the body twice, and a portion
