"""Fixtures of all tests."""

from __future__ import annotations

import http.server
import os
import sys
import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from tests.guards.judge_server import JudgeServer

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent

# A busy machine halts a thread for longer than Hypothesis' 200 ms, and draws more slowly than it expects.
settings.register_profile("ragtrace", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ragtrace")


class ByFixture(LoadScopeScheduling):
    """Gives a worker one test after the other, but all of a file whose tests share a fixture of their module.

    Each worker would make the fixture anew: a Prometheus with six weeks in it takes a minute and a half.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return file if _shares(file) else nodeid


@cache
def _shares(file: str) -> bool:
    here = ROOT / file
    texts = (one.read_text(encoding="utf-8") for one in (here, here.parent / "conftest.py") if one.is_file())
    return any('scope="module"' in text for text in texts)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """Distribute by fixture under ``--dist loadscope``."""
    return ByFixture(config, log) if config.getvalue("dist") == "loadscope" else None


@pytest.fixture(autouse=True)
def _service_name() -> Iterator[None]:
    """Take back the name that a command gives the process of its scorer."""
    before = os.environ.get("OTEL_SERVICE_NAME")
    yield
    if before is None:
        os.environ.pop("OTEL_SERVICE_NAME", None)
    else:
        os.environ["OTEL_SERVICE_NAME"] = before


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder of labelled data beside the checkout; a user's machine has none."""
    folder = ROOT.parent / "shared"
    if not (folder / "data").is_dir():
        pytest.skip("the labelled data folder ../shared is not on this machine")
    return folder


@pytest.fixture(autouse=True)
def _ladders_are_forgotten() -> Iterator[None]:
    """Forget what judges' servers understood: it is kept by their address, and the next one may get the same port."""
    yield
    negotiate = sys.modules.get("ragtrace.judges.openai.negotiate")
    if negotiate is not None:
        negotiate._LADDERS.clear()


@pytest.fixture
def judge_server() -> Iterator[JudgeServer]:
    """A real server on loopback; what it answers is set on it."""
    with JudgeServer() as server:
        yield server


class _Hung(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.server.let_go.wait()  # type: ignore[attr-defined]

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def hung() -> Iterator[str]:
    """The address of a judge that takes a request and never answers."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Hung)
    server.daemon_threads, server.let_go = True, threading.Event()  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.let_go.set()  # type: ignore[attr-defined]
    server.shutdown()


@pytest.fixture
def switching() -> Iterator[None]:
    """Switch threads after nearly every bytecode: what takes weeks in production comes within a second."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)
