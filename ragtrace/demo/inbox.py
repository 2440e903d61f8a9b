"""A loopback server that takes what Alertmanager sends, and serves the pages that alerts link to."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet

HOOK = "/alerts"
RUNBOOKS = "/runbooks"
_BOARD = re.compile(r"/d/[a-z-]+\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """One alert as Alertmanager delivered it."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]

    @property
    def name(self) -> str:
        """Name of the alert."""
        return self.labels.get("alertname", "")


class Inbox:
    """What has come, the oldest first. Filled in the server's threads, read in the main one.

    Attributes:
        prometheus: address that links to boards lead to, since no Grafana runs here; empty until it is known.
        pages: runbook pages by their paths, as `ragtrace_dashboards` exports them.
    """

    def __init__(self) -> None:
        self.prometheus = ""
        self.pages: Mapping[str, str] = {}
        self._changed = threading.Condition()
        self._alerts: list[Delivered] = []

    def take(self, message: Mapping[str, Any]) -> None:
        """Take one message of Alertmanager's webhook; an alert that came before is not kept twice."""
        with self._changed:
            for alert in message["alerts"]:
                given = Delivered(labels=alert["labels"], annotations=alert["annotations"])
                if alert["status"] == "firing" and all(given.labels != kept.labels for kept in self._alerts):
                    self._alerts.append(given)
            self._changed.notify_all()

    @property
    def alerts(self) -> tuple[Delivered, ...]:
        """Alerts that fired, the oldest first, each once."""
        with self._changed:
            return tuple(self._alerts)

    def wait_for(self, names: AbstractSet[str], timeout_s: float) -> bool:
        """Wait until an alert of each name has come, and tell whether they have."""
        with self._changed:
            return self._changed.wait_for(lambda: names <= {it.name for it in self._alerts}, timeout_s)


@contextlib.contextmanager
def serving(inbox: Inbox) -> Iterator[str]:
    """Serve inside a ``with`` block on a free loopback port, and give the address."""
    handler = type("_BoundHandler", (_Handler,), {"inbox": inbox})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, name="ragtrace-demo-inbox", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    """``POST /alerts``, ``GET /runbooks/NAME.md``, and ``GET /d/UID``: the series behind a board in Prometheus."""

    inbox: Inbox

    def do_POST(self) -> None:
        """Take a message of Alertmanager."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path != HOOK:
            self._say(404, "not here")
            return
        try:
            self.inbox.take(json.loads(body))
        except (ValueError, KeyError, TypeError) as error:
            self._say(400, f"not a message of Alertmanager: {error!r}")
            return
        self._say(200, "")

    def do_GET(self) -> None:
        """Serve a runbook page, or lead from a board to Prometheus."""
        asked = urlsplit(self.path)
        page = self.inbox.pages.get(asked.path.removeprefix("/"))
        if page is not None:
            self._say(200, page)
        elif _BOARD.match(asked.path) and self.inbox.prometheus:
            self._lead(f"{self.inbox.prometheus}/graph?{graph_of(asked.query)}")
        else:
            self._say(404, "no such page")

    def _say(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _lead(self, address: str) -> None:
        self.send_response(302)
        self.send_header("Location", address)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Say nothing: the live view has the terminal."""


def graph_of(query: str) -> str:
    """Return the query of Prometheus's graph page that shows the mean of the metric a board's link has chosen.

    Example:
        >>> graph_of("viewPanel=21&var-metric=faithfulness")
        'g0.expr=ragtrace%3Ascore_mean%3Aday%7Bgen_ai_evaluation_name%3D~%22faithfulness%22%7D&g0.tab=0&g0.range_input=2m'
    """
    metric = parse_qs(query).get("var-metric", [".+"])[0]
    expr = quote(f'ragtrace:score_mean:day{{gen_ai_evaluation_name=~"{metric}"}}', safe="~")
    return f"g0.expr={expr}&g0.tab=0&g0.range_input=2m"
