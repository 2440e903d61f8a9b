"""The file of a bug report: what happened in each run, as JSON lines."""

from __future__ import annotations

import os
from itertools import count
from typing import TYPE_CHECKING

from ragtrace.capture.guard import kind_of, record_internal_error
from ragtrace.capture.masks import Masker
from ragtrace.capture.recorded import head, lines_of
from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ragtrace.capture.recorded import RecordedRun

MOST_BYTES = 67_108_864
_SITE = "ragtrace.service.event_file"


class EventFile:
    """Writes the events of runs behind what a file has; each run in one write, whole.

    A failure is counted once, and ends the file: the application and its capture go on. Processes may share a
    file; each masks with a key of its own.

    Args:
        path: the file; its folder must exist.
        is_masked: whether words are masked.

    Raises:
        ConfigError: the file cannot be opened.
    """

    def __init__(self, path: str, *, is_masked: bool) -> None:
        self._file: int | None = None
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError as error:
            raise ConfigError(
                f"record_events={path!r}: {error.strerror}; name a file in a folder that exists"
            ) from None
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
