"""OTLP JSON of recorded requests, without facts of the machine that recorded them."""

from __future__ import annotations

import base64
import getpass
import json
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

from google.protobuf.json_format import MessageToDict

if TYPE_CHECKING:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

ROOT = Path(__file__).resolve().parent.parent.parent.parent
KEPT_OF_RESOURCE = ("service.name", "telemetry.sdk.", "openinference.", "langfuse.", "langsmith.", "mlflow.")
_IDS = ("traceId", "spanId", "parentSpanId")


def otlp_line(request: ExportTraceServiceRequest, *, loopback: str) -> str:
    """Return the request as one line of OTLP JSON.

    Args:
        request: as received; its resources lose all but the names in `KEPT_OF_RESOURCE`.
        loopback: address of the recording's server, replaced by an example.

    Raises:
        ValueError: the line would name this machine, its user or a folder.
    """
    for part in request.resource_spans:
        kept = [pair for pair in part.resource.attributes if pair.key.startswith(KEPT_OF_RESOURCE)]
        del part.resource.attributes[:]
        part.resource.attributes.extend(kept)
    value = _with_hex_ids(MessageToDict(request, use_integers_for_enums=True))
    line = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    line = line.replace(loopback, "http://llm.example.com").replace("127.0.0.1", "llm.example.com")
    _check(line)
    return line


def _with_hex_ids(value: Any) -> Any:
    """OTLP JSON writes ids as hex digits, where protobuf's JSON has base64."""
    if isinstance(value, list):
        return [_with_hex_ids(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: base64.b64decode(item).hex() if key in _IDS else _with_hex_ids(item) for key, item in value.items()
    }


def _check(line: str) -> None:
    private = (socket.gethostname(), f"/{getpass.getuser()}/", str(Path.home()), "site-packages", "127.0.0.1")
    found = [word for word in private if word and word in line]
    if found:
        raise ValueError(f"the fixture names this machine: {found}")
