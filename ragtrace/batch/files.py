"""Files of any file system that fsspec knows; credentials are those of its environment."""

from __future__ import annotations

import importlib
import io
import os
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast
from uuid import uuid4

from ragtrace.errors import ConfigError, MissingExtra

if TYPE_CHECKING:
    from collections.abc import Iterable

# Their put of an object is atomic, and their rename is a copy.
_OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "az", "adl", "oci", "oss", "r2", "memory"})
_MAGIC = frozenset("*?[")


class FoundFile(NamedTuple):
    """A file with its protocol, and its size in bytes."""

    path: str
    size: int


def file_system(path: str) -> tuple[Any, str]:
    """Return the file system of a path, and the path on it.

    Raises:
        ConfigError: an unknown protocol, or a file system whose package is not installed.
        MissingExtra: fsspec is not installed.
    """
    try:
        core = importlib.import_module("fsspec.core")
    except ImportError as error:
        raise MissingExtra("fsspec", "lake") from error
    try:
        found: tuple[Any, str] = core.url_to_fs(path)
    except (ImportError, ValueError) as error:  # fsspec names the package: Install s3fs to access S3
        raise ConfigError(f"{path}: {error}") from None
    return found


def absolute(path: str) -> str:
    """Return a path with its protocol, the same for every way to write it.

    Example:
        >>> absolute("/data/../data/answers.jsonl")
        '/data/answers.jsonl'
    """
    system, inner = file_system(path)
    return _full(system, inner)


def found_files(path: str) -> list[FoundFile]:
    """Return the files of a file, a folder or a pattern, by name; hidden ones and those with ``_`` are left out.

    Raises:
        ConfigError: the file system refuses.
    """
    system, inner = file_system(path)
    try:
        is_pattern = not _MAGIC.isdisjoint(inner) and not system.exists(inner)
        found: dict[str, Any] = system.glob(inner, detail=True) if is_pattern else system.find(inner, detail=True)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be listed ({_said(error)}); check path and credentials") from None
    return [
        FoundFile(_full(system, name), int(info.get("size") or 0))
        for name, info in sorted(found.items())
        if info.get("type") == "file" and not name.rpartition("/")[2].startswith(("_", "."))
    ]


def open_file(path: str) -> IO[bytes]:
    """Open a file to read; a packed one is unpacked as its name says."""
    system, inner = file_system(path)
    raw = system.open(inner, "rb", compression="infer")
    return io.BufferedReader(raw)  # a bucket's file reads lines of any length alone


class OutputFolder:
    """A folder of files that appear whole or not at all.

    Args:
        path: local or with a protocol of fsspec.
    """

    def __init__(self, path: str) -> None:
        self.path = absolute(path)
        self._system, self._inner = file_system(path)
        protocols = self._system.protocol
        self._is_store = not _OBJECT_STORES.isdisjoint([protocols] if isinstance(protocols, str) else protocols)

    def names(self) -> set[str]:
        """Return the names of its files.

        Raises:
            ConfigError: the folder cannot be listed.
        """
        try:
            self._system.invalidate_cache()
            found: Iterable[str] = self._system.find(self._inner, maxdepth=1)
        except OSError as error:
            raise ConfigError(f"{self.path}: cannot be listed ({_said(error)}); check --out") from None
        return {name.rpartition("/")[2] for name in found}

    def write(self, name: str, data: bytes) -> None:
        """Write a file by one put, or under another name that is then renamed.

        Raises:
            OSError: it cannot be written.
        """
        target = f"{self._inner}/{name}"
        if self._is_store:
            self._system.pipe_file(target, data)
            return
        self._system.makedirs(self._inner, exist_ok=True)
        temporary = f"{self._inner}/.{name}.{os.getpid()}-{uuid4().hex[:8]}"
        self._system.pipe_file(temporary, data)
        self._system.mv(temporary, target)

    def open(self, name: str) -> IO[bytes]:
        """Open a file to read."""
        return cast("IO[bytes]", self._system.open(f"{self._inner}/{name}", "rb"))


def _full(system: Any, inner: str) -> str:
    """Return a path with its protocol; a local one has none, and no ``..``."""
    protocols = system.protocol
    is_local = "file" in ([protocols] if isinstance(protocols, str) else protocols)
    return os.path.normpath(inner) if is_local else str(system.unstrip_protocol(inner))


def _said(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
