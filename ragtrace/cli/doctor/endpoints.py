"""Says what follows from OpenTelemetry's settings, and exports an empty batch of each signal over OTLP."""

from __future__ import annotations

import importlib
import logging
import os
import re
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ragtrace.address import shown_address
from ragtrace.cli.doctor.check_result import CheckResult, Level
from ragtrace.cli.doctor.otel import EVERY, SIGNALS, check_of, consequences
from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT_S = 3.0
_DEFAULTS = {"http/protobuf": "http://localhost:4318", "grpc": "http://localhost:4317"}
_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_EXPORTERS = {
    "TRACES": ("trace_exporter", "OTLPSpanExporter"),
    "METRICS": ("metric_exporter", "OTLPMetricExporter"),
    "LOGS": ("_log_exporter", "OTLPLogExporter"),
}
_LOGGER = "opentelemetry.exporter.otlp"
_REPLY = re.compile(r"(?:code: )?(?:StatusCode\.|code: )(\w+)")
_REMEDIES = {
    "401": "check OTEL_EXPORTER_OTLP_HEADERS",
    "403": "check OTEL_EXPORTER_OTLP_HEADERS",
    "404": "the server has no such path: check {variable}",
    "405": "the server takes no {name}: set OTEL_{signal}_EXPORTER=none",
}


def check_otlp(limit_s: float | None = None) -> list[CheckResult]:
    """Return the result of every signal, each within `limit_s` seconds, and those of other settings behind them."""
    found = consequences()
    told = {result.check: result for result in found}
    if EVERY in told:
        return [told[EVERY]]
    limit_s = LIMIT_S if limit_s is None else limit_s
    names = {signal: check_of(signal) for signal in SIGNALS}
    signals = [told[name] if name in told else _within(limit_s, signal) for signal, name in names.items()]
    return [*signals, *(result for result in found if result.check not in names.values())]


def _within(limit_s: float, signal: str) -> CheckResult:
    """Check one signal in a thread, since a DNS lookup may take minutes."""
    from ragtrace.telemetry.setup.exporters import protocol

    with suppress(ConfigError, ImportError):
        _exporter(signal, protocol(signal))  # its first import may take seconds
    found: list[CheckResult] = []
    thread = threading.Thread(target=lambda: found.append(_signal(signal, limit_s)), daemon=True)
    thread.start()
    thread.join(limit_s + 2.0)
    said = f"no answer within {limit_s:.0f} s"
    late = CheckResult(check_of(signal), "fail", said, "check the address")
    return found[0] if found else late


def _signal(signal: str, limit_s: float) -> CheckResult:
    from ragtrace.telemetry.setup.exporters import protocol

    def result(level: Level, said: str, todo: str = "") -> CheckResult:
        return CheckResult(check_of(signal), level, said, todo)

    try:
        spoken = protocol(signal)
    except ConfigError as error:
        return result("fail", str(error), "correct it or unset it")
    address, variable = _address(signal, spoken)
    if not _is_address(address):
        todo = f"set {variable} to an address like {_DEFAULTS[spoken]}; in a login / stands as %2F and # as %23"
        return result("fail", f"{variable} holds no address", todo)
    shown = shown_address(address)
    if spoken == "grpc" and "@" in address:
        todo = "send it with OTEL_EXPORTER_OTLP_HEADERS"
        return result("fail", f"{shown}: gRPC knows no login in an address", todo)
    try:
        reply = _export(signal, spoken, limit_s)
    except Exception as error:  # an unreadable certificate, a broken header
        return result("fail", f"{shown}: the exporter fails ({type(error).__name__})", "check OTEL_EXPORTER_OTLP_*")
    if reply is None:
        return result("ok", f"{shown} takes them")
    if reply and reply not in {"UNAVAILABLE", "DEADLINE_EXCEEDED"}:
        todo = _REMEDIES.get(reply, "look at that server, and at the protocol and port")
        return result(
            "fail", f"{shown} answers {reply}", todo.format(variable=variable, name=signal.lower(), signal=signal)
        )
    todo = f"start a collector, set {variable}, or OTEL_{signal}_EXPORTER=none"
    return result(_absent(signal), f"{shown} cannot be reached over {'gRPC' if spoken == 'grpc' else 'HTTP'}", todo)


def _exporter(signal: str, spoken: str) -> Any:
    module, name = _EXPORTERS[signal]
    folder = "grpc" if spoken == "grpc" else "http"
    return getattr(importlib.import_module(f"{_LOGGER}.proto.{folder}.{module}"), name)


def _export(signal: str, spoken: str, limit_s: float) -> str | None:
    """Export an empty batch; return None on success, else the status ("" without an answer)."""
    batch: Any = []
    if signal == "METRICS":
        from opentelemetry.sdk.metrics.export import MetricsData

        batch = MetricsData(resource_metrics=[])
    with _heard() as lines:
        exporter = _exporter(signal, spoken)(timeout=limit_s)
        is_taken = exporter.export(batch).name == "SUCCESS"
        exporter.shutdown()
    found = [reply[1] for line in lines for reply in [_REPLY.search(line)] if reply]
    return None if is_taken else found[-1] if found else ""


@contextmanager
def _heard() -> Iterator[list[str]]:
    """Collect the exporters' log lines, the only source of the reason."""
    lines: list[str] = []

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    logger, handler = logging.getLogger(_LOGGER), Collect()
    logger.addHandler(handler)
    before, logger.propagate = logger.propagate, False
    try:
        yield lines
    finally:
        logger.propagate = before
        logger.removeHandler(handler)


def _address(signal: str, spoken: str) -> tuple[str, str]:
    own = f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"
    if os.environ.get(own, "").strip():
        return os.environ[own].strip(), own
    base = os.environ.get(_ENDPOINT, "").strip() or _DEFAULTS[spoken]
    return (base if spoken == "grpc" else f"{base.rstrip('/')}/v1/{signal.lower()}"), _ENDPOINT


def _is_address(address: str) -> bool:
    """Return whether host and port can be read; a ``/`` in a password hides both."""
    try:
        parts = urlsplit(address if "://" in address else f"http://{address}")
        return bool(parts.hostname) and parts.port != 0 and parts.scheme in {"http", "https"}
    except ValueError:
        return False


def _absent(signal: str) -> Level:
    """Return a warning for the default address, which was not configured, else a failure."""
    from ragtrace.telemetry.setup.collector import is_endpoint_set

    return "fail" if is_endpoint_set(signal) else "warn"
