"""Programs of the local stack: found as Debian packages them, run beside the demo, ended with it."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import time
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

READY_LIMIT_S = 60.0
STOP_LIMIT_S = 10.0
_PAUSE_S = 0.1
_ASK_LIMIT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """Paths of the programs."""

    prometheus: str
    alertmanager: str


def find_programs(path: str | None = None) -> Programs:
    """Find Prometheus and Alertmanager, which Debian calls ``prometheus-alertmanager``.

    Raises:
        ConfigError: one is missing; the line says which, and how to get it.

    Example:
        >>> find_programs("")
        Traceback (most recent call last):
        ragtrace.errors.ConfigError: --stack local needs prometheus and alertmanager, which are not on the PATH; \
on Debian and Ubuntu: apt-get install prometheus prometheus-alertmanager
    """
    prometheus = shutil.which("prometheus", path=path)
    debians, authors = (shutil.which(name, path=path) for name in ("prometheus-alertmanager", "alertmanager"))
    alertmanager = debians or authors
    if prometheus and alertmanager:
        return Programs(prometheus=prometheus, alertmanager=alertmanager)
    missing = [name for name, found in (("prometheus", prometheus), ("alertmanager", alertmanager)) if not found]
    packages = [name if name == "prometheus" else f"prometheus-{name}" for name in missing]
    raise ConfigError(
        f"--stack local needs {' and '.join(missing)}, which {'are' if len(missing) > 1 else 'is'} not on the"
        f" PATH; on Debian and Ubuntu: apt-get install {' '.join(packages)}"
    )


@contextlib.contextmanager
def run_server(name: str, command: Callable[[int], Sequence[str]], log: Path) -> Iterator[str]:
    """Run a server on a free loopback port inside a ``with`` block, and give its address.

    The program has ended when the block is left, however it is left. Where the system has ``setpriv`` it also ends
    when this process is killed outright. `command` returns the command line for a port.

    Raises:
        ConfigError: it did not become ready within a minute; the message ends with the last line of its log.
    """
    port = free_port()
    setpriv = shutil.which("setpriv")
    prefix = [setpriv, "--pdeathsig", "KILL"] if setpriv else []
    with log.open("ab") as output:
        process = subprocess.Popen(  # noqa: S603 - a path of shutil.which, and our own arguments
            [*prefix, *command(port)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for the demo, which stops its servers in order
        )
    try:
        url = f"http://127.0.0.1:{port}"
        if not _becomes_ready(process, url):
            raise ConfigError(f"--stack local: {name} did not become ready: {_last_line(log)}")
        yield url
    finally:
        _stop(process)


def _becomes_ready(process: subprocess.Popen[bytes], url: str) -> bool:
    deadline = time.monotonic() + READY_LIMIT_S
    while process.poll() is None and time.monotonic() < deadline:
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(f"{url}/-/ready", timeout=_ASK_LIMIT_S) as reply,  # noqa: S310 - http on loopback
        ):
            return bool(reply.status == 200)
        time.sleep(_PAUSE_S)
    return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a process, by force after a while, also when Ctrl-C comes a second time."""
    process.terminate()
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_LIMIT_S)
    finally:
        process.kill()
        process.wait()


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "its log is empty")


def free_port(wanted: int = 0) -> int:
    """Return the wanted port of loopback where it is free, else any free one."""
    with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", wanted)) as probe:
        return int(probe.getsockname()[1])
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])
