"""A real `ragtrace ui` in a process of its own, and a page of Chromium that is watched."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe

from tests.command_line import environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import ConsoleMessage, Page, Request

WIDE = (1280, 800)
NARROW = (360, 740)
SERIOUS = {"serious", "critical"}
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@contextmanager
def serving(source: Path, *args: str) -> Iterator[str]:
    """Serve a store or a file on a free port; yield the address without the last slash."""
    command = [sys.executable, "-m", "ragtrace", "ui", str(source), "--port", "0", *args]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(PYTHONUNBUFFERED="1", RAGTRACE_CONTENT="full"),
    ) as process:
        assert process.stdout is not None
        seen: list[str] = []
        try:
            for line in process.stdout:
                seen.append(line)
                found = [word for word in line.split() if word.startswith("http://")]
                if found:
                    yield found[0].rstrip("/")
                    break
            else:
                raise AssertionError(f"ragtrace ui did not start: {''.join(seen)}")
        finally:
            died = process.poll()
            process.terminate()
            if died is not None and seen:
                raise AssertionError(f"ragtrace ui ended with {died}: {''.join(seen)}{process.stdout.read()}")


@dataclass
class Watched:
    """A page of Chromium, with everything on it that must not happen.

    Attributes:
        page: playwright's page.
        base: address of the server.
        faults: errors of scripts and of the Content-Security-Policy, and requests to other hosts.
    """

    page: Page
    base: str
    faults: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.faults.append(f"script: {error}"))
        self.page.on("request", self._asked)

    def open(self, path: str = "/") -> Page:
        """Open a page of the server, and return it once it is loaded."""
        response = self.page.goto(self.base + path)
        assert response is not None
        assert response.status < 400, f"{path}: {response.status} {self.page.inner_text('body')[:300]}"
        return self.page

    def refuse_serious(self, where: str) -> None:
        """Fail where axe finds something serious or critical in the present state of the page."""
        result = Axe().run(self.page, options={"runOnly": {"type": "tag", "values": RULES}}).response
        found = [
            f"{violation['id']}: {node['target']} {node['html'][:160]} {node.get('failureSummary', '')[:300]}"
            for violation in result["violations"]
            if violation["impact"] in SERIOUS
            for node in violation["nodes"]
        ]
        assert not found, f"{where}:\n" + "\n".join(found)

    def refuse_overflow(self, where: str) -> None:
        """Fail where the page is wider than the screen."""
        wider = self.page.evaluate(
            """() => {
              const width = document.documentElement.clientWidth;
              if (document.documentElement.scrollWidth <= width) return [];
              return [...document.querySelectorAll("body *")]
                .filter((it) => it.getBoundingClientRect().right > width + 1)
                .slice(0, 5).map((it) => it.outerHTML.slice(0, 160));
            }"""
        )
        assert not wider, f"{where} is wider than the screen:\n" + "\n".join(wider)

    def _said(self, message: ConsoleMessage) -> None:
        is_over = "ERR_CONNECTION_REFUSED" in message.text  # the test ended, and with it the server
        if message.type in {"error", "warning"} and not is_over:
            self.faults.append(f"console: {message.text} {message.location.get('url', '')}")

    def _asked(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in {"data", "blob"} and parts.hostname != "127.0.0.1":
            self.faults.append(f"request: {request.url}")
