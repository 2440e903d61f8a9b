"""Check by a real write whether a file can be written: permissions say nothing about a full disk."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

LEAST_FREE_BYTES = 16 * 2**20  # SQLite writes its log beside the file before it writes the file


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
        return f"{path.name!r} is no file"
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
