"""A loopback server that receives Alertmanager's alerts and serves the pages to which they link."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HOOK = "/alerts"
RUNBOOKS = "/runbooks"
_POLL_S = 0.05  # how soon the inbox sees that it is to stop
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


class Inbox(ThreadingHTTPServer):
    """Server of ``POST /alerts``, ``GET /runbooks/<alert>.md``, and ``GET /d/UID``, the data of a board.

    Attributes:
        url: address of the server.
        prometheus: address to which links to boards lead, since no Grafana runs here; empty until it is known.
        pages: runbook pages by path, as `ragtrace_dashboards` exports them.
        alerts: alerts that fired, the oldest first, each once.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _InboxHandler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.prometheus = ""
        self.pages: Mapping[str, str] = {}
        self.alerts: list[DeliveredAlert] = []


@contextlib.contextmanager
def serve_inbox() -> Iterator[Inbox]:
    """Serve an inbox inside a ``with`` block on a free loopback port."""
    with Inbox() as inbox:
        thread = threading.Thread(
            target=inbox.serve_forever, args=(_POLL_S,), name="ragtrace-demo-inbox", daemon=True
        )
        thread.start()
        try:
            yield inbox
        finally:
            inbox.shutdown()
            thread.join()


class _InboxHandler(BaseHTTPRequestHandler):
    server: Inbox

    def do_POST(self) -> None:
        """Receive a message of Alertmanager."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path != HOOK:
            self._reply(404, "not here")
            return
        try:
            given = json.loads(body)["alerts"]
            firing = [it for it in given if it["status"] == "firing"]
            alerts = [DeliveredAlert(labels=it["labels"], annotations=it["annotations"]) for it in firing]
        except (ValueError, KeyError, TypeError) as error:
            self._reply(400, f"not a message of Alertmanager: {error!r}")
            return
        for alert in alerts:
            if all(alert.labels != kept.labels for kept in self.server.alerts):
                self.server.alerts.append(alert)
        self._reply(200)

    def do_GET(self) -> None:
        """Serve a runbook page, or redirect from a board to Prometheus."""
        url = urlsplit(self.path)
        page = self.server.pages.get(url.path.removeprefix("/"))
        if page is not None:
            self._reply(200, page)
        elif _BOARD.match(url.path) and self.server.prometheus:
            self._reply(302, location=f"{self.server.prometheus}/graph?{graph_query(url.query)}")
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
