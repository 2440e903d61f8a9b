"""The file of a bug report: what happened in each run, as JSON lines."""

from __future__ import annotations

import logging
import os
import stat
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

from ragtrace.capture.guard import kind_of, record_internal_error
from ragtrace.capture.masks import Masker
from ragtrace.capture.recorded import head, lines_of
from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ragtrace.capture.recorded import RecordedRun

_log = logging.getLogger("ragtrace")
MOST_BYTES = 67_108_864
_MODE = 0o600
# No link is followed, and no pipe is waited for; a system without these flags has no such files.
_FLAGS = os.O_WRONLY | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}
_SITE = "ragtrace.service.event_file"


class EventFile:
    """Writes the events of runs behind what a file has; each run in one write, whole.

    A failure is counted once, and ends the file: the application and its capture go on. Processes may share a
    file; each masks with a key of its own. The file is its owner's only (mode 0600); one that others may read is
    set back to that.

    Args:
        path: the file; its folder must exist.
        is_masked: whether words are masked.

    Raises:
        ConfigError: the file cannot be opened, is no regular file, or stays open to others.
    """

    def __init__(self, path: str, *, is_masked: bool) -> None:
        self._file: int | None = None
        self._file = _opened(path)
        self._masker = Masker() if is_masked else None
        self._numbers = count(1)
        self._is_begun = False

    def write(self, run: RecordedRun, redact: Callable[[str], str] | None = None) -> None:
        """Append a run, with `redact` applied before masks; one that the file has no room for is its end."""
        if self._file is None:
            return
        try:
            lines = [] if self._is_begun else [head(is_masked=self._masker is not None)]
            lines += lines_of(run, next(self._numbers), self._masker, redact)
            told = b"".join(lines)
            if os.fstat(self._file).st_size + len(told) > MOST_BYTES:
                self._stop(f"it has {MOST_BYTES:,} bytes")
                return
            written = os.write(self._file, told)
            self._is_begun = True
            if written < len(told):
                self._stop("the disk is full")
        except Exception as error:  # a value of the application's, or the disk
            self._stop(kind_of(error))

    def _stop(self, why: str) -> None:
        line = f"ragtrace: record_events writes no more: {why}; the application and its capture go on"
        record_internal_error(_SITE, line=line)
        self.close()

    def close(self) -> None:
        """Close the file; nothing is written any more."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def __del__(self) -> None:
        self.close()


def _opened(path: str) -> int:
    """Open a regular file of this user's and nobody else's, made where it is missing."""
    try:
        with suppress(FileNotFoundError):
            _refuse_kind(path, os.lstat(path).st_mode)  # first: to open a device may do something
        try:
            file = os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, _MODE)
        except FileExistsError:
            file = os.open(path, _FLAGS)
        try:
            _make_private(path, file)
        except BaseException:
            os.close(file)
            raise
    except OSError as error:
        raise ConfigError(
            f"record_events={path!r}: {error.strerror}; name a file in a folder that exists"
        ) from None
    return file


def _make_private(path: str, file: int) -> None:
    found = os.fstat(file)
    _refuse_kind(path, found.st_mode)  # again: it may have been replaced meanwhile
    if os.name == "nt":
        return
    if found.st_uid != os.geteuid():
        raise ConfigError(f"record_events={path!r} belongs to another user; name a file of your own")
    mode = stat.S_IMODE(found.st_mode)
    if mode == _MODE:
        return
    os.fchmod(file, _MODE)
    if stat.S_IMODE(os.fstat(file).st_mode) != _MODE:
        raise ConfigError(
            f"record_events={path!r} has mode {mode:o} and takes no other; name a file on another disk"
        )
    if mode & 0o077:
        _log.warning("record_events=%r: others could read the file (mode %o); it has mode 600 now", path, mode)


def _refuse_kind(path: str, mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "no regular file")
        raise ConfigError(f"record_events={path!r} is {kind}; name a regular file, or one that is not there yet")
