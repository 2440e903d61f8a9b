"""A loopback server that receives Alertmanager's alerts and serves the pages to which they link."""

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
class DeliveredAlert:
    """One alert as Alertmanager delivered it."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]

    @property
    def name(self) -> str:
        """Name of the alert."""
        return self.labels.get("alertname", "")


class Inbox:
    """Alerts that have come. The server's threads fill it, the main thread reads it.

    Attributes:
        prometheus: address to which links to boards lead, since no Grafana runs here; empty until it is known.
        pages: runbook pages by path, as `ragtrace_dashboards` exports them.
        alerts: alerts that fired, the oldest first, each once.
    """

    def __init__(self) -> None:
        self.prometheus = ""
        self.pages: Mapping[str, str] = {}
        self.alerts: tuple[DeliveredAlert, ...] = ()
        self._changed = threading.Condition()

    def receive(self, message: Mapping[str, Any]) -> None:
        """Take one message of Alertmanager's webhook; each alert is kept once."""
        with self._changed:
            for alert in message["alerts"]:
                given = DeliveredAlert(labels=alert["labels"], annotations=alert["annotations"])
                if alert["status"] == "firing" and all(given.labels != kept.labels for kept in self.alerts):
                    self.alerts += (given,)
            self._changed.notify_all()

    def wait_for(self, names: AbstractSet[str], timeout_s: float) -> bool:
        """Wait until an alert of each name has come, and tell whether they have."""
        with self._changed:
            return self._changed.wait_for(lambda: names <= {it.name for it in self.alerts}, timeout_s)


@contextlib.contextmanager
def serve_inbox(inbox: Inbox) -> Iterator[str]:
    """Serve inside a ``with`` block on a free loopback port, and give the address."""
    handler = type("_BoundHandler", (_InboxHandler,), {"inbox": inbox})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, name="ragtrace-demo-inbox", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _InboxHandler(BaseHTTPRequestHandler):
    """``POST /alerts``, ``GET /runbooks/<alert>.md``, and ``GET /d/UID``, the data of a board."""

    inbox: Inbox

    def do_POST(self) -> None:
        """Receive a message of Alertmanager."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path != HOOK:
            self._reply(404, "not here")
            return
        try:
            self.inbox.receive(json.loads(body))
        except (ValueError, KeyError, TypeError) as error:
            self._reply(400, f"not a message of Alertmanager: {error!r}")
            return
        self._reply(200)

    def do_GET(self) -> None:
        """Serve a runbook page, or redirect from a board to Prometheus."""
        url = urlsplit(self.path)
        page = self.inbox.pages.get(url.path.removeprefix("/"))
        if page is not None:
            self._reply(200, page)
        elif _BOARD.match(url.path) and self.inbox.prometheus:
            self._reply(302, location=f"{self.inbox.prometheus}/graph?{graph_query(url.query)}")
        else:
            self._reply(404, "no such page")

    def _reply(self, status: int, text: str = "", *, location: str | None = None) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        if location:
            self.send_header("Location", location)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Say nothing: the live view has the terminal."""


def graph_query(query: str) -> str:
    """Return the query of Prometheus's graph page that shows the mean of the metric a board's link has chosen.

    Example:
        >>> graph_query("viewPanel=21&var-metric=faithfulness")
        'g0.expr=ragtrace%3Ascore_mean%3Aday%7Bgen_ai_evaluation_name%3D~%22faithfulness%22%7D&g0.tab=0&g0.range_input=2m'
    """
    metric = parse_qs(query).get("var-metric", [".+"])[0]
    expr = quote(f'ragtrace:score_mean:day{{gen_ai_evaluation_name=~"{metric}"}}', safe="~")
    return f"g0.expr={expr}&g0.tab=0&g0.range_input=2m"
