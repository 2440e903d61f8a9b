"""The file of scored records that the demo leaves behind."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from ragtrace.demo.tally import number_of
from ragtrace.errors import ConfigError
from ragtrace.model.codec import record_to_json, score_to_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType

    from ragtrace.model import RagRecord, Score

ID_PREFIX = "demo-"


class ScoredFile:
    """A sink that writes one JSON line a record: the record, and ``scores`` as ``ragtrace score`` has them.

    A file of that name is replaced only when an earlier demo wrote it.

    Args:
        path: the file.

    Raises:
        ConfigError: the file is somebody else's, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not is_ours(path):
            raise ConfigError(f"{path} exists and is not of an earlier demo: move it, or choose another with --out")
        try:
            # What an earlier demo left goes with the first new line, not with a run that never begins.
            self._file = path.open("a", encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{path} cannot be written: {error.strerror}; choose another with --out") from error
        self.lines = 0

    def emit(self, record: RagRecord, scores: Sequence[Score]) -> None:
        """Write one record with its scores."""
        named = replace(record, id=f"{ID_PREFIX}{number_of(record):04d}")
        line = {**record_to_json(named), "scores": {s.result.key: score_to_json(s.result) for s in scores}}
        if not self.lines:
            self._file.truncate(0)
        self._file.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")
        self._file.flush()
        self.lines += 1

    def __enter__(self) -> ScoredFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        if self.path.exists() and not self.path.stat().st_size:
            self.path.unlink()


def is_ours(path: Path) -> bool:
    """Tell whether a path is free, empty, or a file that an earlier demo wrote."""
    try:
        with path.open(encoding="utf-8") as file:
            first = file.readline()
    except FileNotFoundError:
        return True
    except (OSError, UnicodeDecodeError):
        return False
    try:
        name = json.loads(first)["id"] if first.strip() else ID_PREFIX
    except (ValueError, KeyError, TypeError):
        return False
    return isinstance(name, str) and name.startswith(ID_PREFIX)
