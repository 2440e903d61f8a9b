"""Command ``ragtrace serve``, which receives traces of other instrumentations and scores them."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from ragtrace import semconv
from ragtrace.cli.io.accounts import accounts, ends_of, sinks_text
from ragtrace.cli.io.arguments import Judge, Metrics, MetricsPort, SampleRate, Spool, Store, name_service
from ragtrace.cli.io.say import say
from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry.util.types import AttributeValue

    from ragtrace.ingest.receiving import ListenAddress, Receiver
    from ragtrace.service.intake.intake import TraceIntake
    from ragtrace.service.service import Service

EPILOG = """\
Applications and Collectors send OTLP to this command as to any backend. It reads spans of OpenInference,
OpenTelemetry GenAI, OpenLLMetry, MLflow, Langfuse and ragtrace, and scores a share of the traces. Scores leave by
OTLP to OTEL_EXPORTER_OTLP_ENDPOINT, whose default is localhost:4318. For that reason this command itself listens at
4328 (HTTP) and 4327 (gRPC) by default, and not at 4318 and 4317, where a Collector or a backend of the same machine
listens.

With --spool and RAGTRACE_SCORER=worker it receives alone, and `ragtrace worker` scores.

On SIGTERM and Ctrl-C it refuses new requests, scores the complete traces within --deadline, and counts the others
as dropped. A spool keeps what was not scored.

Exit status: 0 stopped by a signal; 1 something was not scored or not sent within --deadline; 2 usage.
"""
_REPORT_EVERY_S = 60.0
_LOOK_EVERY_S = 0.1
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_ANY_HOST = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared, not bound
_OFF = "off"

Listen = Annotated[str, typer.Option(metavar="HOST:PORT", help="Address of OTLP/gRPC; off turns it off.")]
ListenHttp = Annotated[str, typer.Option(metavar="HOST:PORT", help="Address of OTLP/HTTP; off turns it off.")]
Seconds = Annotated[
    float,
    typer.Option(min=0.1, max=300, metavar="S", help="Seconds without a span that end a trace with its root."),
]


def command(
    *,
    grpc: Listen = "127.0.0.1:4327",
    http: ListenHttp = "127.0.0.1:4328",
    spool: Spool = None,
    store: Store = None,
    judge: Judge = None,
    metrics: Metrics = None,
    sample_rate: SampleRate = None,
    metrics_port: MetricsPort = None,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File with the bearer token that senders must give.")
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(metavar="FILE", help="Certificate chain, PEM.")] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Its private key, PEM.")] = None,
    settle: Seconds = 10.0,
    deadline: Annotated[
        float, typer.Option(min=0, max=86_400, metavar="S", help="Seconds to finish and to export at the end.")
    ] = 30.0,
) -> int:
    """Receive traces of any instrumentation by OTLP, and score them."""
    from ragtrace.ingest.assembly.assembler import AssemblyLimits
    from ragtrace.ingest.receiving import Receiver, ServerTls
    from ragtrace.service import runtime
    from ragtrace.service.intake.intake import TraceIntake

    places = (_address(grpc, "--grpc"), _address(http, "--http"))
    if not any(places):
        raise ConfigError(
            "serve: --grpc off and --http off leave nothing to listen at: leave one of them out, or give it"
            " HOST:PORT"
        )
    token = _token(token_file)
    if (tls_cert is None) != (tls_key is None):
        raise ConfigError("serve: --tls-cert and --tls-key need each other")
    tls = ServerTls(cert=tls_cert, key=tls_key) if tls_cert is not None and tls_key is not None else None
    _check_free(places)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    name_service()
    runtime.configure(
        spool=spool,
        store=store,
        judge=judge,
        metrics=metrics or None,
        sample_rate=sample_rate,
        metrics_port=metrics_port,
    )
    is_done = True
    try:
        service = runtime.current()
        if service is None:
            raise ConfigError("serve: RAGTRACE_ENABLED turns ragtrace off; unset it where serve runs")
        intake = TraceIntake(service, limits=AssemblyLimits(settle_s=settle), say=_say)
        receiver = Receiver(intake, grpc=places[0], http=places[1], token=token, tls=tls, say=_say)
        _refuse_loop(receiver)
        service.instruments.observe({semconv.RECEIVER_REFUSED: lambda: _refused_points(receiver)})
        before = ends_of(service)
        _say_where(service, receiver, places, is_tls=tls is not None, has_token=token is not None)
        try:
            _serve(service, intake, receiver, stop)
        except KeyboardInterrupt:  # as SIGTERM
            pass
        finally:
            receiver.stop(min(deadline, 5.0))
            intake.close()
    finally:
        is_done = runtime.shutdown(deadline)
    _say(f"stopped; {accounts(service, before)}; {intake.report()}{_refused(receiver)}")
    return 0 if is_done else 1


def _serve(service: Service, intake: TraceIntake, receiver: Receiver, stop: threading.Event) -> None:
    """Receive and score until the end, with a report a minute."""
    if service.settings.scorer == "thread":
        service.begin()
    intake.start()
    receiver.start()
    told_at, before = time.monotonic(), ends_of(service)
    while not stop.wait(_LOOK_EVERY_S):
        if not intake.is_alive:
            raise RuntimeError("the thread that closes traces has ended")
        if time.monotonic() - told_at >= _REPORT_EVERY_S:
            told_at = time.monotonic()
            _say(f"{accounts(service, before)}; {intake.report()}{_refused(receiver)}")


def _refused(receiver: Receiver) -> str:
    shown = ", ".join(f"{n} ({why})" for why, n in sorted(receiver.refused.items()))
    return f"; requests refused: {shown}" if shown else ""


def _refused_points(receiver: Receiver) -> list[tuple[float, dict[str, AttributeValue]]]:
    return [(float(n), {semconv.REASON: why}) for why, n in receiver.refused.items()]


def _say_where(
    service: Service, receiver: Receiver, places: Sequence[ListenAddress | None], *, is_tls: bool, has_token: bool
) -> None:
    settings, scheme = service.settings, "https" if is_tls else "http"
    who = (
        f"judge {settings.judge.name}"
        if settings.scorer == "thread"
        else f"ragtrace worker scores from {settings.spool.path}"
    )
    sinks = sinks_text(service) if settings.scorer == "thread" else ""
    _say(f"{who}, {settings.sample_rate:.4%} of traces".replace(".0000%", "%") + sinks)
    token = " OTEL_EXPORTER_OTLP_TRACES_HEADERS='authorization=Bearer%20TOKEN'" if has_token else ""
    headers = ", headers: {authorization: 'Bearer TOKEN'}" if has_token else ""
    grpc, http = places
    if http is not None:
        listening = http._replace(port=receiver.http_port or 0)
        url = f"{scheme}://{_as_sent_to(listening)}/v1/traces"
        _say(
            f"OTLP/HTTP at {scheme}://{listening}; in an application:"
            f" OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf OTEL_EXPORTER_OTLP_TRACES_ENDPOINT={url}{token}"
        )
        _say(f"in a Collector: exporters: {{otlphttp/ragtrace: {{traces_endpoint: '{url}'{headers}}}}}")
    if grpc is not None:
        listening = grpc._replace(port=receiver.grpc_port or 0)
        _say(
            f"OTLP/GRPC at {scheme}://{listening}; in an application: OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc"
            f" OTEL_EXPORTER_OTLP_TRACES_ENDPOINT={scheme}://{_as_sent_to(listening)}{token}"
        )
    if service.endpoint is not None:
        _say(f"metrics at {service.endpoint.url}")


def _as_sent_to(address: ListenAddress) -> ListenAddress:
    """Return the address that a sender on another host writes."""
    return address._replace(host="YOUR-HOST") if address.host in _ANY_HOST else address


def _refuse_loop(receiver: Receiver) -> None:
    """Refuse to send scores to this receiver itself."""
    name, given = next(
        ((name, os.environ[name]) for name in _ENDPOINTS if os.environ.get(name)),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318"),
    )
    parts = urlsplit(given if "://" in given else f"//{given}")
    if parts.hostname in _LOOPBACK and parts.port in {receiver.grpc_port, receiver.http_port}:
        receiver.stop(0.0)
        raise ConfigError(
            f"serve: scores would be sent to this receiver itself ({name}={given}): listen at another port, or set"
            " OTEL_EXPORTER_OTLP_ENDPOINT to your Collector or backend"
        )


def _address(text: str, option: str) -> ListenAddress | None:
    from ragtrace.ingest.receiving import ListenAddress

    if text == _OFF:
        return None
    host, _, port = text.rpartition(":")
    example = f"127.0.0.1:{text if text.isdecimal() else 4328 if option == '--http' else 4327}"
    if not (host and port.isdecimal() and int(port) < 1 << 16):
        raise ConfigError(f"{option} {text}: write HOST:PORT, for example {example}, or off")
    return ListenAddress(host.strip("[]"), int(port))


def _check_free(places: Sequence[ListenAddress | None]) -> None:
    """Refuse an address that is taken, before anything is set up; gRPC itself would print a line of its own."""
    with ExitStack() as until_all_are_bound:
        for protocol, address in zip(("gRPC", "HTTP"), places, strict=True):
            if address is not None:
                until_all_are_bound.enter_context(address.bound(protocol))


def _token(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--token-file {path}: {getattr(error, 'strerror', None) or 'no text'}") from None
    if not token:
        raise ConfigError(f"--token-file {path}: the file is empty; write a token into it")
    return token


def _say(text: str) -> None:
    say(f"ragtrace serve: {text}", file=sys.stderr, flush=True)
