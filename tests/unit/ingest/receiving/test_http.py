"""The HTTP server's answers, and clients that are slow, large or strangers."""

from __future__ import annotations

import gzip
import http.client
import json
import logging
import socket
import threading
import time

import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from ragtrace.errors import ConfigError
from ragtrace.ingest import ListenAddress, Receiver, ReceiverLimits
from tests.unit.ingest.receiving.requests import Kept, logs_request, some_spans

PROTOBUF = {"Content-Type": "application/x-protobuf"}
JSON = {"Content-Type": "application/json"}
LIMITS = ReceiverLimits(
    head_timeout_s=1.0, body_timeout_s=1.5, idle_timeout_s=2.0, request_bytes=200_000, connections=20
)


@pytest.fixture
def kept():
    return Kept()


@pytest.fixture
def receiver(kept):
    with Receiver(kept, http=ListenAddress(), limits=LIMITS) as started:
        yield started


def ask(receiver, body=b"", headers=PROTOBUF, path="/v1/traces", method="POST"):
    connection = http.client.HTTPConnection("127.0.0.1", receiver.http_port, timeout=20)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


def status_of(body):
    return Status.FromString(body)


def raw(receiver, *pieces, wait_s=20.0):
    """Send bytes and return everything that comes until the connection ends."""
    with socket.create_connection(("127.0.0.1", receiver.http_port), timeout=wait_s) as client:
        for piece in pieces:
            client.sendall(piece)
        found = b""
        try:
            while piece := client.recv(65_536):
                found += piece
        except ConnectionResetError:
            pass
        return found


def test_a_request_is_answered_in_its_own_encoding(receiver, kept):
    body = some_spans().SerializeToString()
    response, said = ask(receiver, body)
    assert (response.status, response.getheader("Content-Type"), said) == (200, "application/x-protobuf", b"")
    response, said = ask(receiver, gzip.compress(body), PROTOBUF | {"Content-Encoding": "gzip"})
    assert response.status == 200
    response, said = ask(receiver, b'{"resourceSpans": []}', {"Content-Type": "application/json; charset=utf-8"})
    assert (response.status, response.getheader("Content-Type"), said) == (200, "application/json", b"{}")
    assert len(kept.spans) == 40
    response, _ = ask(receiver, logs_request("gen_ai.evaluation.result").SerializeToString(), path="/v1/logs")
    assert (response.status, len(kept.logs)) == (200, 1)
    response, _ = ask(receiver, b"")
    assert response.status == 200, "an empty body is a request without spans"


def test_rejected_spans_are_told(receiver, kept):
    kept.rejects = 3
    _, said = ask(receiver, some_spans().SerializeToString())
    partial = ExportTraceServiceResponse.FromString(said).partial_success
    assert partial.rejected_spans == 3
    assert "were rejected" in partial.error_message
    _, said = ask(receiver, b'{"resourceSpans": []}', JSON)
    assert json.loads(said)["partialSuccess"]["rejectedSpans"] == "3"


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        ({"path": "/v1/metrics"}, 404), ({"path": "/"}, 404), ({"path": "/v1/traces/"}, 404), ({"method": "GET"}, 405),
        ({"method": "OPTIONS"}, 405), ({"headers": {}}, 415), ({"headers": {"Content-Type": "text/plain"}}, 415),
        ({"headers": PROTOBUF | {"Content-Encoding": "br"}}, 415), ({"body": b"\xff\xff"}, 400),
        ({"body": b"{", "headers": JSON}, 400), ({"body": b"x" * 200_001}, 413), ({"body": b"[" * 99_999, "headers": JSON}, 400),
        ({"body": b"no gzip", "headers": PROTOBUF | {"Content-Encoding": "gzip"}}, 400),
        ({"headers": PROTOBUF | {"Host": "evil.example:4318"}}, 403), ({"headers": PROTOBUF | {"Host": "a/b"}}, 403),
    ],
)  # fmt: skip
def test_a_wrong_request_is_refused_with_a_status(receiver, wrong, status):
    response, said = ask(receiver, **wrong)
    assert response.status == status
    if response.getheader("Content-Type") == "application/json":
        assert json.loads(said)["message"]
    else:
        assert status_of(said).message
        assert status_of(said).code
    assert response.getheader("Access-Control-Allow-Origin") is None
    assert ask(receiver)[0].status == 200


def test_metrics_are_refused_with_a_clear_text(receiver):
    assert "metrics are not taken here" in status_of(ask(receiver, path="/v1/metrics")[1]).message
    assert ask(receiver, method="GET")[0].getheader("Allow") == "POST"


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/v1/traces/v1/traces", "there is no /v1/traces/v1/traces; send to /v1/traces"),
        ("/", "there is no /; send"),
        ("/a%0A%1B[31m", "there is no /a\\n\\x1b[31m; send"),
        (f"/{'a' * 500}", f"there is no /{'a' * 79}...; send"),
    ],
)
def test_an_unknown_path_is_named_in_one_printable_line(receiver, path, shown):
    message = status_of(ask(receiver, path=path)[1]).message
    assert message.startswith(shown)
    assert "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" in message


def test_the_token_is_asked_of_every_request(kept, caplog):
    caplog.set_level(logging.DEBUG)
    with Receiver(kept, http=ListenAddress(), token="open sesame") as receiver:
        for given in (
            {},
            *({"Authorization": v} for v in ("", "Bearer", "Bearer open", "Basic open sesame", "\xff")),
        ):
            for path in ("/v1/traces", "/v1/other"):
                response, said = ask(receiver, some_spans().SerializeToString(), PROTOBUF | given, path)
                assert (response.status, response.getheader("WWW-Authenticate")) == (401, "Bearer")
                assert b"sesame" not in said
        for given in ("Bearer open sesame", "bearer  open sesame"):
            assert ask(receiver, b"", PROTOBUF | {"Authorization": given})[0].status == 200
    assert receiver.refused == {"unauthenticated": 12}
    assert kept.spans == []
    assert "sesame" not in caplog.text


def test_back_pressure_is_told_with_its_time(receiver, kept):
    kept.wait_s = 2.3
    response, said = ask(receiver, some_spans().SerializeToString())
    assert (response.status, response.getheader("Retry-After")) == (429, "3")
    assert status_of(said).details[0].type_url.endswith("RetryInfo")
    kept.wait_s = None
    assert ask(receiver)[0].status == 200


def test_more_bytes_than_may_be_in_flight_are_told_to_come_later(kept):
    limits = ReceiverLimits(in_flight_bytes=100_000)
    with Receiver(kept, http=ListenAddress(), limits=limits) as receiver:
        assert ask(receiver, bytes(100_001))[0].status == 429
        packed = gzip.compress(bytes(200_000))
        assert ask(receiver, packed, PROTOBUF | {"Content-Encoding": "gzip"})[0].status == 429
        for _ in range(3):  # bytes are given back, also of the refused
            body = some_spans(count=100).SerializeToString()
            assert len(body) > 20_000
            assert ask(receiver, body)[0].status == 200


def test_a_bomb_is_refused(kept):
    with Receiver(
        kept, http=ListenAddress(), limits=ReceiverLimits(inflated_bytes=2**20, json_bytes=2**19)
    ) as receiver:
        for headers in (PROTOBUF, JSON):
            body = gzip.compress(b" " * (2**20 + 1))
            assert ask(receiver, body, headers | {"Content-Encoding": "gzip"})[0].status == 413


def test_bodies_in_chunks_are_taken_and_bounded(receiver, kept):
    head = b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\nConnection: close\r\n"
    body = some_spans().SerializeToString()
    chunked = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (body[:100], body[100:])) + b"0\r\n\r\n"
    assert raw(receiver, head + b"Transfer-Encoding: chunked\r\n\r\n", chunked).startswith(b"HTTP/1.1 200")
    assert len(kept.spans) == 20
    endless = b"8000\r\n%s\r\n" % bytes(0x8000) * 8 + b"0\r\n\r\n"
    said = raw(receiver, head + b"Transfer-Encoding: chunked\r\n\r\n", endless)
    assert said.startswith(b"HTTP/1.1 413")


def test_the_answer_to_100_continue_comes_before_the_body(receiver):
    body = b"x" * 300_000
    head = (
        b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\n"
        b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body)
    )
    assert b"HTTP/1.1 413" in raw(receiver, head)


@pytest.mark.slow
def test_a_slow_head_is_cut(receiver):
    for start in (b"", b"POST /v1/tr", b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\n"):
        began = time.monotonic()
        assert raw(receiver, start) == b""
        assert time.monotonic() - began < 10


def test_a_head_that_trickles_is_cut(receiver):
    with socket.create_connection(("127.0.0.1", receiver.http_port), timeout=20) as client:
        client.sendall(b"POST /v1/traces HTTP/1.1\r\n")
        for number in range(200):
            try:
                client.sendall(b"X-%d: 1\r\n" % number)
            except OSError:
                break
            time.sleep(0.05)
        else:
            pytest.fail("the connection was not cut")


def test_a_slow_body_is_cut_with_408(receiver):
    head = b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\nContent-Length: 9\r\n\r\n"
    assert raw(receiver, head, b"1234").startswith(b"HTTP/1.1 408")


def test_an_idle_connection_is_closed(receiver):
    head = b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n"
    assert raw(receiver, head).startswith(b"HTTP/1.1 200")


@pytest.mark.slow
def test_a_reader_that_never_reads_is_cut(receiver):
    request = b"GET /v1/traces HTTP/1.1\r\nHost: localhost\r\n\r\n" * 500
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        client.settimeout(30)
        client.connect(("127.0.0.1", receiver.http_port))
        with pytest.raises(OSError, match=r"reset|Broken pipe"):
            _sent_for_ever(client, request)


def _sent_for_ever(client, data):
    while True:
        client.sendall(data)


def test_a_connection_over_the_limit_takes_the_place_of_the_one_that_was_silent_for_longest(receiver):
    held = [socket.create_connection(("127.0.0.1", receiver.http_port)) for _ in range(LIMITS.connections)]
    try:
        time.sleep(0.2)
        assert ask(receiver)[0].status == 200
        for client in held[5:]:
            client.setblocking(False)
            with pytest.raises(BlockingIOError):
                client.recv(100)
        assert _received(held[0]) == b""
    finally:
        for client in held:
            client.close()


def test_a_body_that_is_held_back_makes_room_for_others(kept):
    limits = ReceiverLimits(in_flight_bytes=100_000, crowded_timeout_s=0.2)
    head = b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\nContent-Length: 99000\r\n\r\n"
    body = some_spans(count=100).SerializeToString()
    with (
        Receiver(kept, http=ListenAddress(), limits=limits) as receiver,
        socket.create_connection(("127.0.0.1", receiver.http_port), timeout=20) as slow,
    ):
        slow.sendall(head + bytes(90_000))
        time.sleep(0.5)
        response, _ = ask(receiver, body)
        assert (response.status, response.getheader("Retry-After")) == (429, "1")
        assert slow.recv(100).startswith(b"HTTP/1.1 429")
        assert ask(receiver, body)[0].status == 200


def _received(client):
    try:
        return client.recv(100)
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize(
    "bytes_sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00", b"GARBAGE\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x00" * 5_000,
        b"POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"POST /v1/traces HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /v1/traces HTTP/1.1\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n\xff\xff\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    ],
)  # fmt: skip
def test_broken_http_ends_its_connection_alone(receiver, bytes_sent):
    raw(receiver, bytes_sent)
    assert ask(receiver)[0].status == 200


def test_a_failing_intake_is_a_500_and_counted(receiver, kept):
    def fails(trace_id):
        raise ValueError("secret contents")

    kept.wants = fails
    response, said = ask(receiver, some_spans().SerializeToString())
    assert response.status == 500
    assert b"secret" not in said
    assert receiver.refused == {"internal": 1}


def test_a_stopping_receiver_answers_503_and_ends_within_its_grace(kept):
    entered, leave = threading.Event(), threading.Event()

    def wants(trace_id):
        entered.set()
        leave.wait(20)
        return True

    kept.wants = wants
    receiver = Receiver(kept, http=ListenAddress())
    receiver.start()
    found = []
    asking = threading.Thread(
        target=lambda: found.append(ask(receiver, some_spans().SerializeToString())[0].status)
    )
    second = http.client.HTTPConnection("127.0.0.1", receiver.http_port, timeout=20)
    second.request("POST", "/v1/traces", b"", PROTOBUF)
    second.getresponse().read()
    asking.start()
    assert entered.wait(20)
    receiver._service.is_stopping = True
    second.request("POST", "/v1/traces", b"", PROTOBUF)
    response = second.getresponse()
    assert (response.status, response.getheader("Retry-After")) == (503, "1")
    second.close()
    stopping = threading.Thread(target=receiver.stop)
    stopping.start()
    leave.set()
    asking.join(20)
    stopping.join(20)
    assert found == [200], "a request under way is answered"
    with pytest.raises(OSError, match="refused"):
        ask(receiver)


def test_a_taken_port_is_one_line(receiver):
    for protocol in ("http", "grpc"):
        with pytest.raises(ConfigError, match=r"cannot listen on 127\.0\.0\.1:\d+"):
            Receiver(Kept(), **{protocol: ListenAddress(port=receiver.http_port)})


def test_an_open_address_without_protection_is_warned_of(caplog):
    for token, word in ((None, "without a token"), ("t", "without TLS")):
        caplog.clear()
        Receiver(Kept(), http=ListenAddress(host="0.0.0.0"), token=token).stop(0)
        assert [word in line for line in caplog.messages] == [True]
