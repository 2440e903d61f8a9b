"""One program that runs beside the demo and ends with it."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import time
import urllib.request
from typing import TYPE_CHECKING

from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

READY_LIMIT_S = 60.0
STOP_LIMIT_S = 10.0
ATTEMPTS = 3
_PAUSE_S = 0.1
_ASK_LIMIT_S = 5.0


@contextlib.contextmanager
def child(name: str, command: Callable[[int], Sequence[str]], log: Path) -> Iterator[str]:
    """Run a server on a free loopback port inside a ``with`` block, and give its address.

    The program has ended when the block is left, however it is left. Where the system has ``setpriv`` it also ends
    when this process is killed outright.

    Args:
        name: for messages.
        command: returns the command line for a port.
        log: takes what the program says.

    Raises:
        ConfigError: it did not become ready within a minute; the line carries the last words of its log.
    """
    for attempt in range(1, ATTEMPTS + 1):
        port = _free_port()
        with log.open("ab") as said:
            process = subprocess.Popen(  # noqa: S603 - a path of shutil.which, and our own arguments
                [*_bound(), *command(port)],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the demo, which stops its children in order
            )
        try:
            url = f"http://127.0.0.1:{port}"
            if _becomes_ready(process, url):
                yield url
                return
            # Between our look and the program's start somebody else may have taken the port.
            if attempt == ATTEMPTS or process.poll() is None:
                raise ConfigError(f"--stack local: {name} did not become ready: {_last_words(log)}")
        finally:
            _stop(process)


def _bound() -> list[str]:
    found = shutil.which("setpriv")
    return [found, "--pdeathsig", "KILL"] if found else []


def _becomes_ready(process: subprocess.Popen[bytes], url: str) -> bool:
    deadline = time.monotonic() + READY_LIMIT_S
    while process.poll() is None and time.monotonic() < deadline:
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(f"{url}/-/ready", timeout=_ASK_LIMIT_S) as reply,  # noqa: S310 - http on loopback
        ):
            # Another server could answer here; ours is ready only while it lives.
            return reply.status == 200 and process.poll() is None
        time.sleep(_PAUSE_S)
    return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a process: asked first, then by force, also when Ctrl-C comes a second time."""
    process.terminate()
    try:
        process.wait(STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        pass
    finally:
        process.kill()
        process.wait()


def _last_words(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    return port
