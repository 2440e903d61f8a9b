"""The inbox takes what Alertmanager posts, and serves the pages that alerts link to."""

from __future__ import annotations

import http.client
import json
import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from ragtrace.demo.inbox import HOOK, Inbox, serve_inbox
from ragtrace_dashboards.alerts import ANCHOR, alerts
from ragtrace_dashboards.config import Config
from ragtrace_dashboards.runbook_files import runbook_files

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@pytest.fixture
def address(inbox: Inbox) -> Iterator[str]:
    inbox.pages = runbook_files(Config.demo())
    with serve_inbox(inbox) as url:
        yield url


def ask(address: str, method: str, path: str, body: Any = None) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)
    connection.request(method, path, json.dumps(body) if body is not None else None)
    return connection.getresponse()


def message(name: str, status: str = "firing", **labels: str) -> dict[str, Any]:
    alert = {"status": status, "labels": {"alertname": name, **labels}, "annotations": {"summary": "s"}}
    return {"version": "4", "alerts": [alert]}


def test_an_alert_is_kept_once_however_often_it_is_sent(inbox: Inbox, address: str) -> None:
    for sent in (
        message("A", metric="m"),
        message("A", metric="m"),
        message("A", metric="n"),
        message("B", "resolved"),
    ):
        assert ask(address, "POST", HOOK, sent).status == 200
    assert [dict(it.labels) for it in inbox.alerts] == [
        {"alertname": "A", "metric": "m"},
        {"alertname": "A", "metric": "n"},
    ]
    assert inbox.alerts[0].annotations == {"summary": "s"}


def test_waiting_ends_when_every_name_has_come(inbox: Inbox, address: str) -> None:
    assert not inbox.wait_for({"A"}, 0.0)
    later = threading.Thread(target=lambda: [ask(address, "POST", HOOK, message(name)) for name in ("A", "B")])
    later.start()
    assert inbox.wait_for({"A", "B"}, 30.0)
    later.join()


@pytest.mark.parametrize("body", [[], {}, {"alerts": [{}]}, "text"])
def test_what_is_no_message_is_refused(inbox: Inbox, address: str, body: Any) -> None:
    assert ask(address, "POST", HOOK, body).status == 400
    assert not inbox.alerts


def test_every_runbook_is_served_and_has_the_heading_that_alerts_point_to(address: str) -> None:
    for alert in alerts(Config.demo()):
        reply = ask(address, "GET", f"/runbooks/{alert.name}.md")
        assert reply.status == 200, alert.name
        page = reply.read().decode()
        assert "{{" not in page, "a template, not a page"
        headings = [line.lstrip("# ").lower() for line in page.splitlines() if line.startswith("#")]
        assert ANCHOR in headings, alert.name


@pytest.mark.parametrize(
    "path", ["/", "/runbooks/", "/runbooks/No.md", "/runbooks/../config.py", "/runbooks/%2e%2e/x.md", "/d/board"]
)
def test_nothing_else_is_served(address: str, path: str) -> None:
    assert ask(address, "GET", path).status == 404


def test_a_board_leads_to_the_series_in_prometheus(inbox: Inbox, address: str) -> None:
    inbox.prometheus = "http://127.0.0.1:1"
    reply = ask(address, "GET", "/d/ragtrace-investigate?viewPanel=21&var-metric=faithfulness")
    assert reply.status == 302
    assert str(reply.getheader("Location")).startswith("http://127.0.0.1:1/graph?g0.expr=ragtrace%3Ascore_mean")
