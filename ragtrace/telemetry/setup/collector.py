"""Check the default OTLP address before each export, and limit the log lines of our exporters."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_log = logging.getLogger("ragtrace")
_PORTS = {"http/protobuf": 4318, "grpc": 4317}
_CONNECT_S = 0.5
_SAME_LINE_EVERY_S = 60.0
_LOGGERS = (
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "opentelemetry.exporter.otlp.proto.http.metric_exporter",
    "opentelemetry.exporter.otlp.proto.http._log_exporter",
    "opentelemetry.exporter.otlp.proto.grpc.exporter",
)
_own = threading.local()
_warned: set[int] = set()


def is_endpoint_set(signal: str) -> bool:
    """Return whether the environment asks for OTLP or names its endpoint.

    Args:
        signal: TRACES, METRICS or LOGS.
    """
    names = (
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT",
        f"OTEL_{signal}_EXPORTER",
    )
    return any(os.environ.get(name, "").strip() for name in names)


def default_listener(protocol: str) -> Callable[[], bool]:
    """Return a check that the default address of a protocol takes connections; the first failure is a warning.

    The check comes before each export, so that a collector that starts later gets the items from then on. It takes
    about 0.1 ms on loopback.

    Args:
        protocol: ``http/protobuf`` or ``grpc``.
    """
    port = _PORTS[protocol]

    def listens() -> bool:
        try:
            socket.create_connection(("localhost", port), timeout=_CONNECT_S).close()
        except OSError:
            _warn_once(port)
            return False
        return True

    return listens


def _warn_once(port: int) -> None:
    if port not in _warned:
        _warned.add(port)
        _log.warning(
            "ragtrace: no OpenTelemetry collector answers at localhost:%d, so spans, events and metrics are not"
            " sent; scoring goes on. Start one, set OTEL_EXPORTER_OTLP_ENDPOINT, or set"
            " OTEL_{TRACES,METRICS,LOGS}_EXPORTER=none.",
            port,
        )


@contextmanager
def own_export() -> Iterator[None]:
    """Mark log lines of this thread as those of our own exporters inside the block."""
    _own.depth = getattr(_own, "depth", 0) + 1
    try:
        yield
    finally:
        _own.depth -= 1


class _FewLines(logging.Filter):
    """Pass each kind of line of our own exporters once a minute, without a traceback.

    An endpoint that is down gives several lines a batch for as long as it is down. Lines of other exporters in the
    process pass unchanged.
    """

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if not getattr(_own, "depth", 0):
            return True
        if "already shutdown" in str(record.msg):  # we end an exporter whose provider ends it again
            return False
        record.exc_info = record.exc_text = None
        kind, now = (record.name, str(record.msg)), time.monotonic()
        if now - self._last.get(kind, -_SAME_LINE_EVERY_S) < _SAME_LINE_EVERY_S:
            return False
        self._last[kind] = now
        return True


_few_lines = _FewLines()


def spare_log() -> None:
    """Filter the loggers of OTLP exporters; a second call does nothing."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_few_lines)
