"""This host: its boot, its name, and clocks that nobody can set."""

from __future__ import annotations

import hashlib
import platform
import time
from contextlib import suppress
from pathlib import Path

_MACHINE_ID = Path("/etc/machine-id")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """Return the id of this boot of the host, "" where the system does not tell it.

    Example:
        >>> boot_id() == boot_id()
        True
    """
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def uptime_s() -> float:
    """Return seconds since the host started; the same in every process, and never set back or forth."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)  # counts a host's sleep; Linux alone has it
    return time.monotonic() if boottime is None else time.clock_gettime(boottime)


def file_identity(path: Path) -> str:
    """Return 8 hex digits of a file on this host; "absent" where there is none.

    Made of boot, device and inode: containers that share a file may differ in its path and in the host's name.
    A file that was put aside and begun anew has another identity.

    Example:
        >>> file_identity(Path("/no/such/spool.sqlite"))
        'absent'
    """
    try:
        found = path.stat()
    except OSError:
        return "absent"
    return hashlib.sha256(f"{boot_id()}\0{found.st_dev}\0{found.st_ino}".encode()).hexdigest()[:8]


class SteadyWall:
    """Unix seconds as of its making plus real time: a clock that is set later does not move them.

    Example:
        >>> wall = SteadyWall()
        >>> wall() <= wall()
        True
    """

    def __init__(self) -> None:
        self._began = time.time() - uptime_s()

    def __call__(self) -> float:
        """Return now."""
        return self._began + uptime_s()


class Clock:
    """The clocks that processes of a host share. Leases and waits run on `now`; `wall` says when something was.

    Example:
        >>> clock = Clock()
        >>> clock.now() <= clock.now()
        True
    """

    def now(self) -> float:
        """Return `uptime_s`."""
        return uptime_s()

    def wall(self) -> float:
        """Return Unix seconds."""
        return time.time()

    def epoch(self) -> str:
        """Return `boot_id`, with which `now` begins anew."""
        return boot_id()

    def host(self) -> str:
        """Return the host's machine id and name. They outlive a boot, and differ between containers of a host."""
        machine = ""
        with suppress(OSError):
            machine = _MACHINE_ID.read_text(encoding="ascii", errors="replace").strip()
        return f"{machine} {platform.node()}".strip()
