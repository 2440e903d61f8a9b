"""Which spool a process scores, told alike by every process that shares it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from ragtrace.queues.clock import Clock

if TYPE_CHECKING:
    from pathlib import Path


def spool_identity(path: Path) -> str:
    """Return 8 hex digits of a spool file on this host; "absent" while there is none.

    Host, device and inode: a path differs between containers that share a file, and a host's name too. A spool that
    was put aside and begun anew has another one, as its accounts begin anew.

    Example:
        >>> import tempfile, pathlib
        >>> spool_identity(pathlib.Path(tempfile.mkdtemp()) / "spool.sqlite")
        'absent'
    """
    try:
        found = path.stat()
    except OSError:
        return "absent"
    return hashlib.sha256(f"{Clock().epoch()}\0{found.st_dev}\0{found.st_ino}".encode()).hexdigest()[:8]
