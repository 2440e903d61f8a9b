"""A program beside the demo: ready when the block begins, gone when it is left."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

import pytest

from ragtrace.demo.child import ATTEMPTS, child
from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

SERVER = """
import http.server, os, signal, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/-/ready" else 404)
        self.end_headers()
if "deaf" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("pid", os.getpid(), flush=True)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def server(port: int, *flags: str) -> tuple[str, ...]:
    return (sys.executable, "-c", SERVER, str(port), *flags)


def pid_in(log: Path) -> int:
    found = re.search(r"pid (\d+)", log.read_text(encoding="utf-8"))
    assert found is not None
    return int(found.group(1))


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_it_has_ended_however_the_block_is_left(tmp_path: Path, error: type[BaseException]) -> None:
    log = tmp_path / "log"
    with pytest.raises(error), child("server", server, log) as url:  # noqa: PT012 - the block is what is tested
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", url)
        assert is_running(pid_in(log))
        raise error
    assert not is_running(pid_in(log))


def test_one_that_does_not_listen_to_a_request_is_ended_by_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragtrace.demo.child.STOP_LIMIT_S", 0.2)
    log = tmp_path / "log"
    with child("server", lambda port: server(port, "deaf"), log):
        pass
    assert not is_running(pid_in(log))


def test_one_that_ends_at_once_is_tried_anew_and_told_with_its_last_words(tmp_path: Path) -> None:
    ports: list[int] = []

    def broken(port: int) -> tuple[str, ...]:
        ports.append(port)
        return (sys.executable, "-c", "import sys; print('first', flush=True); sys.exit('address in use')")

    with pytest.raises(ConfigError, match="server did not become ready: address in use"):
        child("server", broken, tmp_path / "log").__enter__()
    assert len(ports) == ATTEMPTS


def test_one_that_never_becomes_ready_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragtrace.demo.child.READY_LIMIT_S", 0.5)
    with pytest.raises(ConfigError, match="it said nothing"):
        child(
            "server",
            lambda _: (sys.executable, "-c", "import threading; threading.Event().wait()"),
            tmp_path / "log",
        ).__enter__()
