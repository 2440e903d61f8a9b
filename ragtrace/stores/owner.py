"""Identity of the process that owns rows of an outbox."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from ragtrace.capture.off_loop import off_loop
from ragtrace.host import boot_id

_PROC = Path("/proc")
_STATE, _STARTED = 0, 19  # fields of /proc/PID/stat behind the command's name
_ENDED = frozenset("ZXx")  # a zombie runs no more, whoever has yet to wait for it


def _any_id() -> int:
    return secrets.randbits(62) + 1


@off_loop
def this_process() -> str:
    """Return boot, namespace, id and start of this process; "" without ``/proc``.

    Example:
        >>> is_over(this_process()) in {False, None}
        True
    """
    pid = os.getpid()
    try:
        if str((_PROC / "self").readlink()) != str(pid):  # the ``/proc`` of another namespace
            return ""
        return f"{boot_id()} {_namespace()} {pid} {_started(pid)}"
    except OSError:
        return ""


def is_over(process: str) -> bool | None:
    """Return whether a process has ended; None where this process cannot tell.

    Example:
        >>> is_over("another-boot pid:[1] 7 7"), is_over("")
        (True, None)
    """
    try:
        boot, namespace, pid, started = process.split()
        if boot != boot_id():
            return True if boot_id() else None
        return None if namespace != _namespace() else started != _started(int(pid))
    except (FileNotFoundError, ProcessLookupError):
        return True if boot_id() else None
    except (OSError, ValueError):
        return None


def _namespace() -> str:
    return str((_PROC / "self/ns/pid").readlink())


def _started(pid: int) -> str:
    stat = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    if stat[_STATE] in _ENDED:
        raise ProcessLookupError(pid)
    return stat[_STARTED]


@dataclass(frozen=True, slots=True)
class Owner:
    """One service of one process; an ended one loses its rows.

    Attributes:
        id: tells the services of all processes apart.
        process: boot, process namespace, id and start of the process; "" where the system does not tell.
    """

    id: int = field(default_factory=_any_id)
    process: str = field(default_factory=this_process)
