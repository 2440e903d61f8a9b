"""The file of scored records that the demo leaves behind."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ragtrace.demo.tally import question_number
from ragtrace.errors import ConfigError
from ragtrace.model.codec import record_from_json, record_to_json, score_to_json
from ragtrace.model.file_lines import bounded_lines, json_of_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from ragtrace.model import RagRecord, Score
    from ragtrace.model.codec import ScoreJson

ID_PREFIX = "demo-"


class ScoredFile(AbstractContextManager["ScoredFile"]):
    """A sink that writes one JSON line a record: the record, and ``scores`` as ``ragtrace score`` has them.

    A file of that name is replaced only when an earlier demo wrote it.

    Args:
        path: the file.

    Raises:
        ConfigError: the file is not of an earlier demo, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not _is_of_a_demo(path):
            raise ConfigError(f"{path} exists and is not of an earlier demo: move it, or choose another with --out")
        try:
            # An earlier demo's lines go with the first new line, not with a run that never begins.
            self._file = path.open("a", encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{path} cannot be written: {error.strerror}; choose another with --out") from error
        self.lines = 0

    def emit(self, record: RagRecord, scores: Sequence[Score]) -> None:
        """Write one record with its scores."""
        named = replace(record, id=f"{ID_PREFIX}{question_number(record):04d}")
        line = {**record_to_json(named), "scores": {s.result.key: score_to_json(s.result) for s in scores}}
        if not self.lines:
            self._file.truncate(0)
        self._file.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")
        self._file.flush()
        self.lines += 1

    def read(self) -> Iterator[tuple[RagRecord, dict[str, ScoreJson]]]:
        """Yield the records that were written, each with its scores."""
        if not self.lines:
            return
        with self.path.open(encoding="utf-8") as file:
            for text in file:
                line = json.loads(text)
                yield record_from_json(line, fallback_id=""), line["scores"]

    def __exit__(self, *_: object) -> None:
        self._file.close()
        if self.path.exists() and not self.path.stat().st_size:
            self.path.unlink()


def _is_of_a_demo(path: Path) -> bool:
    """Tell whether a path is free, empty, or a file that an earlier demo wrote."""
    try:
        with path.open("rb") as file:
            first = next(bounded_lines(file, has_blank=True), None)
        name = json_of_line(first.bytes())["id"] if first and first.raw.strip() else ID_PREFIX
    except FileNotFoundError:
        return True
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return isinstance(name, str) and name.startswith(ID_PREFIX)
