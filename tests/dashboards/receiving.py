"""Loopback servers that receive alerts: Slack's webhook, PagerDuty's Events API v2 and an SMTP server."""

from __future__ import annotations

import email
import email.policy
import json
import re
import shutil
import threading
import time
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

from ragtrace.demo import free_port, run_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from email.message import EmailMessage
    from pathlib import Path

SLACK, PAGERDUTY = "/services/T0/B0/secret", "/v2/enqueue"
KEY, PASSWORD = "the-routing-key", "the-password"


def alertmanager_program() -> str:
    """Return where Alertmanager is, or skip."""
    found = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
    if found is None:
        pytest.skip("Alertmanager is not installed (Debian: apt-get install prometheus-alertmanager)")
    return found


@dataclass
class Received:
    """Requests by path, and mails."""

    posts: dict[str, list[Any]] = field(default_factory=lambda: {SLACK: [], PAGERDUTY: []})
    mails: list[EmailMessage] = field(default_factory=list)
    passwords: list[bytes] = field(default_factory=list)

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802 - aiosmtpd's name
        self.mails.append(email.message_from_bytes(envelope.content, policy=email.policy.default))  # type: ignore[arg-type]
        return "250 OK"

    def authenticate(self, server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
        self.passwords.append(data.password)
        return AuthResult(success=True)


@contextmanager
def receiving() -> Iterator[tuple[Received, str, int]]:
    """Run the servers, and give what they received, the HTTP address and the SMTP port."""
    received = Received()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.posts[self.path].append(json.loads(body))
            answer = b"ok" if self.path == SLACK else b'{"status": "success", "dedup_key": "x"}'
            self.send_response(200 if self.path == SLACK else 202)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    port = free_port()
    smtp = Controller(
        received, hostname="127.0.0.1", port=port, auth_require_tls=False, authenticator=received.authenticate,
        auth_exclude_mechanism=["LOGIN"],  # aiosmtpd asks in words that Alertmanager does not know
    )  # fmt: skip
    smtp.start()
    try:
        yield received, f"http://127.0.0.1:{http.server_port}", port
    finally:
        smtp.stop()
        http.shutdown()
        http.server_close()


def local_config(text: str, folder: Path, http: str, smtp_port: int) -> str:
    """Return the shipped configuration with our addresses, short waits, and secrets in a folder."""
    secrets = folder / "secrets"
    secrets.mkdir()
    for name, secret in (("slack_url", http + SLACK), ("pagerduty_key", KEY), ("smtp_password", PASSWORD)):
        (secrets / name).write_text(secret)
    text = text.replace("/etc/alertmanager/secrets", str(secrets)).replace(
        "smtp.example.org:587", f"127.0.0.1:{smtp_port}"
    )
    text = re.sub(r"(group_wait|group_interval): \w+", r"\1: 1s", text)
    config = yaml.safe_load(text)
    config["global"] = {"pagerduty_url": http + PAGERDUTY, "smtp_require_tls": False}
    return yaml.safe_dump(config, sort_keys=False)


@contextmanager
def alertmanager(program: str, folder: Path) -> Iterator[str]:
    """Run Alertmanager over ``alertmanager.yml`` of a folder, and give its address."""

    def command(port: int) -> list[str]:
        return [
            program, f"--config.file={folder / 'alertmanager.yml'}", f"--storage.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address=",
        ]  # fmt: skip

    with run_server("Alertmanager", command, folder / "log") as url:
        yield url


def post(url: str, alerts: list[dict[str, Any]]) -> None:
    """Hand alerts to Alertmanager as Prometheus does."""
    request = urllib.request.Request(  # noqa: S310 - http on loopback
        f"{url}/api/v2/alerts", data=json.dumps(alerts).encode(), headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310
        assert reply.status == 200


def inhibited(url: str) -> set[str]:
    """Return the names of the alerts that another one makes superfluous."""
    with urllib.request.urlopen(f"{url}/api/v2/alerts", timeout=30) as reply:  # noqa: S310 - http on loopback
        return {it["labels"]["alertname"] for it in json.load(reply) if it["status"]["inhibitedBy"]}


def until(is_there: Callable[[], Any]) -> None:
    """Wait until something is there, for at most a minute."""
    deadline = time.monotonic() + 60
    while not is_there():
        assert time.monotonic() < deadline, "nothing arrived in a minute"
        time.sleep(0.05)
