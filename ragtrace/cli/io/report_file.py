"""Reports that a command writes beside what it prints."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def written(flag: str, path: Path) -> Iterator[None]:
    """Name the flag and the file where a report cannot be written; a full disk says neither.

    Raises:
        ConfigError: on an OSError inside.
    """
    try:
        yield
    except OSError as error:
        raise ConfigError(f"{flag} {path}: {error.strerror or error}; choose another file") from None
