"""Endpoints: can OTLP be delivered where the ``OTEL_*`` variables say, and what time is it there?"""

from __future__ import annotations

import base64
import http.client
import importlib
import os
import ssl
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

from ragtrace.cli.doctor.check_result import Finding, Level
from ragtrace.errors import ConfigError
from ragtrace.settings import shown_address

if TYPE_CHECKING:
    from collections.abc import Callable
    from email.message import Message

LIMIT_S = 3.0
WARN_SKEW_S, FAIL_SKEW_S = 5.0, 60.0
SIGNALS = ("TRACES", "METRICS", "LOGS")
_DEFAULTS = {"http/protobuf": "http://localhost:4318", "grpc": "http://localhost:4317"}
_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


class Reached(NamedTuple):
    """A finding, and how far our clock is ahead of the server's in seconds, where it tells its time."""

    finding: Finding
    ahead_s: float | None = None


class _Reply(NamedTuple):
    status: int
    ahead_s: float | None


def check_otlp(limit_s: float = LIMIT_S) -> list[Reached]:
    """Look at the endpoint of every signal: one empty request each, or for gRPC a connection; nothing is stored."""
    from ragtrace.telemetry.setup.exporters import is_disabled

    if is_disabled():
        said = "OTEL_SDK_DISABLED=true: nothing is exported"
        return [Reached(Finding(check="otlp", level="warn", said=said, todo="unset it to get traces and metrics"))]
    if any(map(_is_grpc, SIGNALS)):
        with suppress(ImportError):  # the look says so
            importlib.import_module("grpc")  # cold it may take seconds, which are none of the collector's
    return [within(limit_s + 1.0, _name(signal), partial(_signal, signal, limit_s)) for signal in SIGNALS]


def within(limit_s: float, check: str, look: Callable[[], Reached]) -> Reached:
    """Return what a look finds, or that it took too long: names may be looked up for minutes."""
    found: list[Reached] = []

    def run() -> None:
        try:
            found.append(look())
        except Exception as error:
            said = f"the check itself failed ({type(error).__name__})"
            found.append(Reached(Finding(check=check, level="fail", said=said, todo="please report it")))

    thread = threading.Thread(target=run, name=f"ragtrace-doctor-{check}", daemon=True)
    thread.start()
    thread.join(limit_s)
    late = Finding(check=check, level="fail", said=f"no answer within {limit_s:.0f} s", todo="check the address")
    return found[0] if found else Reached(late)


def ahead_of(url: str, limit_s: float = LIMIT_S) -> float | None:
    """Return how far our clock is ahead of a web server's, None when it cannot be reached or tells no time."""
    try:
        return _asked(urllib.request.Request(url, method="GET"), limit_s).ahead_s  # noqa: S310 - `_asked` looks
    except (OSError, ValueError, http.client.HTTPException):
        return None


def check_clock(seen: list[tuple[str, float]]) -> Finding:
    """Compare with servers' clocks, each as (name, seconds we are ahead); without any, with our own monotonic one.

    Example:
        >>> check_clock([("judge", 90.0)]).level
        'fail'
    """
    if not seen:
        return _own_clock()
    name, ahead_s = max(seen, key=lambda one: abs(one[1]))
    skew_s = abs(ahead_s)
    level: Level = "fail" if skew_s > FAIL_SKEW_S else "warn" if skew_s > WARN_SKEW_S else "ok"
    if level == "ok":
        return Finding(check="clock", level=level, said=f"within {WARN_SKEW_S:.0f} s of {name}")
    said = f"{skew_s:.0f} s {'ahead of' if ahead_s > 0 else 'behind'} {name}"
    return Finding(check="clock", level=level, said=said, todo="synchronise this machine's clock (NTP)")


def _own_clock() -> Finding:
    wall, steady = time.time(), time.monotonic()
    time.sleep(0.05)
    moved_s = abs((time.time() - wall) - (time.monotonic() - steady))
    if moved_s > 1.0 or time.monotonic() <= steady:
        said = "the wall clock and the monotonic clock do not go together"
        return Finding(check="clock", level="fail", said=said, todo="look at what sets this machine's clock")
    return Finding(check="clock", level="ok", said="steady; no server to compare it with")


def _name(signal: str) -> str:
    return f"otlp {signal.lower()}"


def _is_grpc(signal: str) -> bool:
    from ragtrace.telemetry.setup.exporters import protocol

    try:
        return protocol(signal) == "grpc"
    except ConfigError:
        return False


def _signal(signal: str, limit_s: float) -> Reached:
    from ragtrace.telemetry.setup.exporters import exporter_names, protocol

    name = _name(signal)
    try:
        exporters = exporter_names(signal)
        spoken = protocol(signal)
        scraped = _scraped() if signal == "METRICS" else ""
    except ConfigError as error:
        return Reached(Finding(check=name, level="fail", said=str(error), todo="correct or unset it"))
    if "otlp" not in exporters:
        said = scraped or f"not sent (exporter {', '.join(exporters) or 'none'})"
        return Reached(Finding(check=name, level="ok", said=said))
    address, variable = _address(signal, spoken)
    shown = shown_address(address)
    try:
        _, login = _parted(address)
    except ValueError:
        todo = "correct it; in a login / stands as %2F, ? as %3F and # as %23"
        return Reached(Finding(check=name, level="fail", said=f"{variable} holds no address", todo=todo))
    if spoken == "grpc" and login:
        said, todo = f"{shown}: gRPC knows no login in an address", "send it with OTEL_EXPORTER_OTLP_HEADERS"
        return Reached(Finding(check=name, level="fail", said=said, todo=todo))
    if spoken == "grpc":
        return Reached(_over_grpc(name, signal, address, shown, variable, limit_s))
    return _over_http(name, signal, address, shown, variable, limit_s)


def _scraped() -> str:
    """Return where Prometheus finds the metrics under ``OTEL_METRICS_EXPORTER=prometheus``, "" without it."""
    from ragtrace.telemetry.setup.exporters import scrape_address, wants_scrape

    if not wants_scrape():
        return ""
    host, port = scrape_address()
    return f"served at http://{host}:{port}/metrics, unless the application has a meter provider of its own"


def _address(signal: str, spoken: str) -> tuple[str, str]:
    """Return the address, and the variable to change it with."""
    own = f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"
    if os.environ.get(own, "").strip():
        return os.environ[own].strip(), own
    base = os.environ.get(_ENDPOINT, "").strip() or _DEFAULTS[spoken]
    return (base if spoken == "grpc" else f"{base.rstrip('/')}/v1/{signal.lower()}"), _ENDPOINT


def _absent(signal: str) -> Level:
    """Return the level of an endpoint that does not answer: a warning for the default that nobody configured."""
    from ragtrace.telemetry.setup.collector import is_endpoint_set

    return "fail" if is_endpoint_set(signal) else "warn"


def _parted(url: str) -> tuple[str, str]:
    """Return an address without user and password, and those: the exporter sends them as a header too.

    Raises:
        ValueError: what stands for the port is no number, as where a password holds a ``/``; exporters refuse it.
    """
    parts = urlsplit(url)
    _ = parts.port
    login, _, host = parts.netloc.rpartition("@")
    return urlunsplit((parts.scheme, host, parts.path, parts.query, "")), login


def _of(signal: str, name: str) -> str:
    """Return a variable of one signal, else of all."""
    return os.environ.get(f"OTEL_EXPORTER_OTLP_{signal}_{name}", os.environ.get(f"OTEL_EXPORTER_OTLP_{name}", ""))


def _headers(signal: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in _of(signal, "HEADERS").split(",") if "=" in part)
    return {unquote(key.strip()): unquote(value.strip()) for key, _, value in pairs}


def _over_http(name: str, signal: str, address: str, shown: str, variable: str, limit_s: float) -> Reached:
    def finding(level: Level, said: str, todo: str = "") -> Finding:
        return Finding(check=name, level=level, said=f"{shown} {said}", todo=todo)

    # An empty body is an export request of nothing.
    headers = {"Content-Type": "application/x-protobuf", "User-Agent": "ragtrace-doctor", **_headers(signal)}
    address, login = _parted(address)
    if login:
        headers.setdefault("Authorization", f"Basic {base64.b64encode(unquote(login).encode()).decode()}")
    try:
        request = urllib.request.Request(address, data=b"", headers=headers, method="POST")  # noqa: S310
        reply = _asked(request, limit_s, cafile=_of(signal, "CERTIFICATE") or None)
    except ValueError:
        return Reached(finding("fail", "is no address", f"set {variable} to one like {_DEFAULTS['http/protobuf']}"))
    except http.client.HTTPException:
        todo = f"if that is a gRPC port, set OTEL_EXPORTER_OTLP_PROTOCOL=grpc, else {variable}"
        return Reached(finding("fail", "does not speak HTTP", todo))
    except OSError as error:
        todo = f"start a collector, set {variable}, or OTEL_{signal}_EXPORTER=none"
        return Reached(finding(_absent(signal), f"cannot be reached ({_why(error)})", todo))
    if reply.status < 300:
        return Reached(finding("ok", "takes them"), reply.ahead_s)
    todo = {
        401: "check OTEL_EXPORTER_OTLP_HEADERS",
        403: "check OTEL_EXPORTER_OTLP_HEADERS",
        404: f"it has no such path: check {variable}",
        405: f"it takes no {signal.lower()}: set OTEL_{signal}_EXPORTER=none",
    }.get(reply.status, "look at that server")
    return Reached(finding("fail", f"answers {reply.status}", todo), reply.ahead_s)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _asked(request: urllib.request.Request, limit_s: float, cafile: str | None = None) -> _Reply:
    """Return status and clock of a server's answer; proxies are those of the environment, as for exporters.

    Raises:
        ValueError: no web address.
    """
    if request.type not in {"http", "https"} or not request.host:
        raise ValueError(request.type)
    secure = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=cafile))
    opener = urllib.request.build_opener(_NoRedirect, secure)
    try:
        with opener.open(request, timeout=limit_s) as answer:
            return _Reply(answer.status, _ahead_s(answer.headers))
    except urllib.error.HTTPError as error:
        with error:
            return _Reply(error.code, _ahead_s(error.headers))


def _ahead_s(headers: Message) -> float | None:
    try:
        return time.time() - parsedate_to_datetime(headers.get("Date", "")).timestamp()
    except (TypeError, ValueError):
        return None


def _why(error: OSError) -> str:
    reason = getattr(error, "reason", error)
    return getattr(reason, "strerror", None) or type(reason).__name__


def _over_grpc(name: str, signal: str, address: str, shown: str, variable: str, limit_s: float) -> Finding:
    grpc: Any = importlib.import_module("grpc")  # the exporters bring it; it has no types
    parts = urlsplit(address)
    target = parts.netloc or address
    insecure = _of(signal, "INSECURE").lower()
    is_plain = parts.scheme == "http" or (parts.scheme != "https" and insecure == "true")
    certificate = _of(signal, "CERTIFICATE")
    try:
        root = open(certificate, "rb").read() if certificate else None  # noqa: SIM115, PTH123 - a short-lived command
    except OSError as error:
        return Finding(check=name, level="fail", said=f"{shown}: the certificate cannot be read ({_why(error)})")
    channel = (
        grpc.insecure_channel(target)
        if is_plain
        else grpc.secure_channel(target, grpc.ssl_channel_credentials(root))
    )
    try:
        grpc.channel_ready_future(channel).result(timeout=limit_s)
    except grpc.FutureTimeoutError:
        todo = f"start a collector, set {variable}, or OTEL_{signal}_EXPORTER=none"
        return Finding(check=name, level=_absent(signal), said=f"{shown} cannot be reached over gRPC", todo=todo)
    finally:
        channel.close()
    return Finding(check=name, level="ok", said=f"{shown} speaks gRPC")
