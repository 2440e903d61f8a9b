"""Reads tokenizers, packages and hashes of model files on this machine."""

from __future__ import annotations

import hashlib
import importlib
from typing import TYPE_CHECKING

from ragtrace.errors import ConfigError, MissingExtra

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from types import ModuleType

    from tokenizers import Tokenizer


def imported(package: str, extra: str) -> ModuleType:
    """Import a package of an extra; raises MissingExtra."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingExtra(package, extra) from error


def read_tokenizer(path: Path, extra: str, part: str) -> tuple[Tokenizer, int | None]:
    """Return a tokenizer that cuts nothing, and its padding id.

    Args:
        path: the file.
        extra: the extra that brings the package tokenizers.
        part: the beginning of an error's text.

    Raises:
        MissingExtra: tokenizers is not installed.
        ConfigError: the file cannot be read.
    """
    tokenizers = imported("tokenizers", extra)
    try:
        tokenizer: Tokenizer = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the package raises bare Exception
        raise ConfigError(f"{part}: {path} cannot be read: {error}") from None
    pad = (tokenizer.padding or {}).get("pad_id")
    # The file may hold a truncation that would drop the end of a text without a word.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer, pad


def files_hash(paths: Iterable[Path], start: str = "") -> str:
    """Return 8 hex digits over the contents of files, in order."""
    digest = hashlib.sha256(start.encode())
    for path in paths:
        with path.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()[:8]
