"""This host: its boot, its name, its disk, and clocks that nobody can set."""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

_MACHINE_ID = Path("/etc/machine-id")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
LEAST_FREE_BYTES = 16 * 2**20  # SQLite writes its log beside the file before it writes the file


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


def unwritable(path: Path) -> str | None:
    """Return why a file of ours cannot be written, None when it can; the file itself is neither made nor changed.

    Tries a file of its own in the folder and removes it. Takes about 0.1 ms on a local disk.

    Args:
        path: the file, which need not be there; its folder must.

    Example:
        >>> import tempfile, pathlib
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> unwritable(folder / "spool.sqlite") is None
        True
        >>> unwritable(folder / "gone" / "spool.sqlite")
        "the folder of 'spool.sqlite' is not there"
    """
    folder = path.parent
    if not folder.is_dir():
        return f"the folder of {path.name!r} is not there"
    if path.exists() and not path.is_file():
        return f"{path.name!r} is not a file"
    # The file itself is not opened: closing it would end the locks that this process's SQLite holds on it, and
    # another process would throw away the journal under it.
    if path.exists() and not os.access(path, os.R_OK | os.W_OK):
        return f"{path.name!r} cannot be written: {os.strerror(errno.EACCES)}"
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".ragtrace-", buffering=0) as probe:
            probe.write(b"ragtrace")
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return f"{path.name!r} cannot be written: {error.strerror or error}"
    if free < LEAST_FREE_BYTES:
        return f"the disk of {path.name!r} has {free / 2**20:.0f} MiB left"
    return None
