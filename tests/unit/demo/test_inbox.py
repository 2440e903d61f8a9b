"""The inbox takes what Alertmanager posts, and serves the pages that alerts link to."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any

import pytest

from ragtrace.demo import Inbox, serve_inbox
from ragtrace.demo.inbox import HOOK
from ragtrace_dashboards import ANCHOR, Config, alerts, runbook_files

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    with serve_inbox() as served:
        served.pages = runbook_files(Config.demo())
        yield served


def ask(inbox: Inbox, method: str, path: str, body: Any = None) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", inbox.server_port, timeout=30)
    connection.request(method, path, json.dumps(body) if body is not None else None)
    return connection.getresponse()


def message(name: str, status: str = "firing", **labels: str) -> dict[str, Any]:
    alert = {"status": status, "labels": {"alertname": name, **labels}, "annotations": {"summary": "s"}}
    return {"version": "4", "alerts": [alert]}


def test_a_firing_alert_is_kept_once_however_often_it_is_sent(inbox: Inbox) -> None:
    first = message("A", metric="m")
    for sent in (first, first, message("A", metric="n"), message("B", "resolved")):
        assert ask(inbox, "POST", HOOK, sent).status == 200
    assert [dict(it.labels) for it in inbox.alerts] == [
        {"alertname": "A", "metric": "m"},
        {"alertname": "A", "metric": "n"},
    ]
    assert inbox.alerts[0].annotations == {"summary": "s"}


@pytest.mark.parametrize("body", [[], {}, {"alerts": [{}]}, "text"])
def test_another_message_is_refused(inbox: Inbox, body: Any) -> None:
    assert ask(inbox, "POST", HOOK, body).status == 400
    assert not inbox.alerts


def test_every_runbook_is_served_and_has_the_heading_that_alerts_point_to(inbox: Inbox) -> None:
    for alert in alerts(Config.demo()):
        reply = ask(inbox, "GET", f"/runbooks/{alert.name}.md")
        assert reply.status == 200, alert.name
        page = reply.read().decode()
        assert "{{" not in page, "a template, not a page"
        headings = [
            line.lstrip("# ").lower().replace(" ", "-") for line in page.splitlines() if line.startswith("#")
        ]
        assert ANCHOR in headings, alert.name


@pytest.mark.parametrize(
    "path", ["/", "/runbooks/", "/runbooks/No.md", "/runbooks/../config.py", "/runbooks/%2e%2e/x.md", "/d/board"]
)
def test_nothing_else_is_served(inbox: Inbox, path: str) -> None:
    assert ask(inbox, "GET", path).status == 404


def test_a_board_leads_to_the_series_in_prometheus(inbox: Inbox) -> None:
    inbox.prometheus = "http://127.0.0.1:1"
    reply = ask(inbox, "GET", "/d/ragtrace-investigate?viewPanel=21&var-metric=faithfulness")
    assert reply.status == 302
    assert str(reply.getheader("Location")).startswith("http://127.0.0.1:1/graph?g0.expr=ragtrace%3Ascore_mean")
