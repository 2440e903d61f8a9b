"""Time as a spool needs it: seconds that no one sets, shared by the processes of a host, and the wall's."""

from __future__ import annotations

import platform
import time
from contextlib import suppress
from pathlib import Path

_MACHINE_ID = Path("/etc/machine-id")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Clock:
    """Two clocks. Leases and waits run on `now`, which nobody can set; `wall` only says when something was.

    Example:
        >>> clock = Clock()
        >>> clock.now() <= clock.now()
        True
    """

    def now(self) -> float:
        """Return seconds since the host started; the same in every process, and never set back or forth."""
        boottime = getattr(time, "CLOCK_BOOTTIME", None)  # counts a host's sleep; Linux alone has it
        return time.monotonic() if boottime is None else time.clock_gettime(boottime)

    def wall(self) -> float:
        """Return Unix seconds."""
        return time.time()

    def epoch(self) -> str:
        """Return what changes when `now` begins anew: the host's boot, "" where it cannot be told."""
        try:
            return _BOOT_ID.read_text(encoding="ascii").strip()
        except OSError:
            return ""

    def host(self) -> str:
        """Return what stays over a host's boots: its machine id and name. Containers of a host differ in it."""
        machine = ""
        with suppress(OSError):
            machine = _MACHINE_ID.read_text(encoding="ascii", errors="replace").strip()
        return f"{machine} {platform.node()}".strip()
