"""The gRPC server's answers, and clients that are slow, large or strangers."""

from __future__ import annotations

import http.client
import ssl
import subprocess
import threading
import time

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from ragtrace.errors import ConfigError
from ragtrace.ingest import ListenAddress, Receiver, ReceiverLimits, ServerTls
from tests.unit.ingest.receiving.requests import Kept, logs_request, some_spans

TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
LOGS = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
METRICS = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
GZIP, DEFLATE, PLAIN = grpc.Compression.Gzip, grpc.Compression.Deflate, grpc.Compression.NoCompression


@pytest.fixture
def kept():
    return Kept()


@pytest.fixture
def receiver(kept):
    limits = ReceiverLimits(request_bytes=200_000, inflated_bytes=2**20, body_timeout_s=1.0, workers=2, calls=4)
    with Receiver(kept, grpc=ListenAddress(), limits=limits) as started:
        yield started


def call(receiver, body=b"", method=TRACES, packing=PLAIN, metadata=()):
    with grpc.insecure_channel(f"127.0.0.1:{receiver.grpc_port}") as channel:
        return channel.unary_unary(method)(body, timeout=20, compression=packing, metadata=metadata)


def refused(receiver, **request):
    with pytest.raises(grpc.RpcError) as error:
        call(receiver, **request)
    return error.value


@pytest.mark.parametrize("packing", [PLAIN, GZIP, DEFLATE])
def test_spans_and_logs_arrive(receiver, kept, packing):
    assert call(receiver, some_spans().SerializeToString(), packing=packing) == b""
    call(receiver, logs_request("gen_ai.evaluation.result").SerializeToString(), LOGS, packing)
    assert (len(kept.spans), len(kept.logs)) == (20, 1)


def test_rejected_spans_are_told(receiver, kept):
    kept.rejects = 3
    said = ExportTraceServiceResponse.FromString(call(receiver, some_spans().SerializeToString()))
    assert said.partial_success.rejected_spans == 3


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"body": b"\xff\xff"}, grpc.StatusCode.INVALID_ARGUMENT),
        ({"body": b"\x1f\x8bno gzip"}, grpc.StatusCode.INVALID_ARGUMENT),
        ({"method": METRICS}, grpc.StatusCode.UNIMPLEMENTED),
        ({"body": bytes(200_001)}, grpc.StatusCode.RESOURCE_EXHAUSTED),
        ({"body": bytes(10 * 2**20), "packing": GZIP}, grpc.StatusCode.RESOURCE_EXHAUSTED),
        ({"body": bytes(10 * 2**20), "packing": DEFLATE}, grpc.StatusCode.RESOURCE_EXHAUSTED),
    ],
)
def test_a_wrong_request_is_refused(receiver, request_, code):
    assert refused(receiver, **request_).code() == code
    assert call(receiver) == b""


def test_the_token_is_asked_before_the_message_is_read(kept):
    limits = ReceiverLimits(request_bytes=1_000)
    with Receiver(kept, grpc=ListenAddress(), token="open sesame", limits=limits) as receiver:
        for metadata in ((), (("authorization", "Bearer open"),), (("authorization", ""),)):
            error = refused(receiver, body=bytes(100_000), metadata=metadata)
            assert error.code() == grpc.StatusCode.UNAUTHENTICATED
            assert "sesame" not in error.details()
        call(receiver, metadata=(("authorization", "Bearer open sesame"),))


def test_back_pressure_is_told_with_its_time(receiver, kept):
    kept.wait_s = 2.5
    error = refused(receiver)
    trailers = dict(error.trailing_metadata())
    info = RetryInfo()
    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert Status.FromString(trailers["grpc-status-details-bin"]).details[0].Unpack(info)
    assert info.retry_delay.ToMilliseconds() == 2_500
    assert RetryInfo.FromString(trailers["google.rpc.retryinfo-bin"]) == info


def test_a_slow_message_is_cut_and_frees_its_worker(receiver):
    """More slow calls than workers: each is cut, and good calls are answered after."""
    leave = threading.Event()

    def never():
        leave.wait(30)
        yield b""

    with grpc.insecure_channel(f"127.0.0.1:{receiver.grpc_port}") as channel:
        slow = [channel.stream_unary(TRACES).future(never()) for _ in range(4)]
        began = time.monotonic()
        codes = {one.exception(20).code() for one in slow}
        assert codes <= {grpc.StatusCode.CANCELLED, grpc.StatusCode.RESOURCE_EXHAUSTED}
        assert time.monotonic() - began < 15
        leave.set()
    assert call(receiver) == b""


def test_a_call_without_a_message_is_refused(receiver):
    with grpc.insecure_channel(f"127.0.0.1:{receiver.grpc_port}") as channel, pytest.raises(grpc.RpcError) as error:
        channel.stream_unary(TRACES)(iter(()), timeout=20)
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_calls_over_the_limit_are_refused(receiver, kept):
    leave = threading.Event()
    kept.wants = lambda _: leave.wait(20)
    body = some_spans(count=1).SerializeToString()
    with grpc.insecure_channel(f"127.0.0.1:{receiver.grpc_port}") as channel:
        calls = [channel.unary_unary(TRACES).future(body) for _ in range(12)]
        for _ in range(2_000):
            if sum(one.done() for one in calls) >= 8:
                break
            time.sleep(0.01)
        leave.set()
        codes = [one.code() for one in calls]
    assert codes.count(grpc.StatusCode.OK) == 4
    assert codes.count(grpc.StatusCode.RESOURCE_EXHAUSTED) == 8


def test_a_stopping_receiver_is_unavailable(receiver):
    receiver._service.is_stopping = True
    assert refused(receiver).code() == grpc.StatusCode.UNAVAILABLE


@pytest.fixture(scope="module")
def pki(tmp_path_factory):
    """A certificate authority, and certificates of a server and a client."""
    folder = tmp_path_factory.mktemp("pki")

    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)  # noqa: S607

    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=ca", "-days", "2")
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
    for name in ("server", "client"):
        openssl("req", *curve, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        openssl(
            "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
            "-out", f"{name}.pem", "-days", "2", "-extfile", "names",
        )  # fmt: skip
    return folder


@pytest.mark.parametrize("with_client_ca", [False, True])
def test_both_servers_speak_tls(kept, pki, with_client_ca):
    tls = ServerTls(
        cert=pki / "server.pem", key=pki / "server.key", client_ca=pki / "ca.pem" if with_client_ca else None
    )
    root = (pki / "ca.pem").read_bytes()
    known = grpc.ssl_channel_credentials(root, (pki / "client.key").read_bytes(), (pki / "client.pem").read_bytes())
    context = ssl.create_default_context(cafile=pki / "ca.pem")
    with Receiver(kept, grpc=ListenAddress(), http=ListenAddress(), tls=tls) as receiver:
        with grpc.secure_channel(f"localhost:{receiver.grpc_port}", known) as channel:
            channel.unary_unary(TRACES)(some_spans().SerializeToString(), timeout=20)
        stranger = grpc.ssl_channel_credentials(root)
        with grpc.secure_channel(f"localhost:{receiver.grpc_port}", stranger) as channel:
            one = channel.unary_unary(TRACES).future(b"", timeout=5)
            assert one.code() == (grpc.StatusCode.UNAVAILABLE if with_client_ca else grpc.StatusCode.OK)
        if with_client_ca:
            with pytest.raises(OSError, match=r"(?i)certificate|reset|EOF|closed|Broken"):
                over_https(receiver, context)
            context.load_cert_chain(pki / "client.pem", pki / "client.key")
        assert over_https(receiver, context) == 200
    assert len(kept.spans) == 20


def over_https(receiver, context):
    connection = http.client.HTTPSConnection("localhost", receiver.http_port, context=context, timeout=20)
    try:
        connection.request("POST", "/v1/traces", b"{}", {"Content-Type": "application/json"})
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_broken_certificate_is_one_line(pki, tmp_path):
    with pytest.raises(ConfigError, match="tls key: cannot read"):
        ServerTls(cert=pki / "server.pem", key=tmp_path / "none.pem")
    broken = tmp_path / "broken.pem"
    broken.write_text("no certificate")
    for protocol in ("http", "grpc"):
        with pytest.raises(ConfigError, match="certificate"):
            Receiver(Kept(), **{protocol: ListenAddress()}, tls=ServerTls(cert=broken, key=pki / "server.key"))
