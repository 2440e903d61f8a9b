"""Writes scored lines one by one, so that a crash loses none."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections import Counter
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypedDict, cast

from ragtrace.errors import ConfigError
from ragtrace.model.file_lines import MOST_LINE, bounded_lines, json_of_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ragtrace.model.codec import ScoreJson


class ScoredLine(TypedDict):
    """A line that ``ragtrace score`` wrote; the fields of the record stand beside these."""

    id: str | float
    scores: Mapping[str, ScoreJson]


_MOST_LINE = 2 * MOST_LINE  # a line is written with scores beside what was read
_BEGINNING = b'{"id": '  # of every line that `ragtrace score` writes


def done_before(path: Path, each: Callable[[ScoredLine], None]) -> Counter[str]:
    """Count the ids in the file of an earlier run, and mend its end.

    A last line that was cut short by a crash is removed; it was never counted as scored. A file that holds
    anything else than scored lines is left as it is.

    Args:
        path: the file; it may be missing.
        each: is given every line, with its scores, for the summary.

    Raises:
        ConfigError: the file holds something else, or cannot be read or mended.
    """
    done: Counter[str] = Counter()
    if not path.exists():
        return done
    try:
        with path.open("rb+") as stream:
            _read(path, stream, done, each)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}; choose another --out") from None
    return done


def _read(path: Path, stream: IO[bytes], done: Counter[str], each: Callable[[ScoredLine], None]) -> None:
    for line in bounded_lines(stream, most=_MOST_LINE, has_blank=True):
        raw = line.raw
        found = None if line.broken else _scored(raw)
        if found is None:
            is_torn = not raw.endswith(b"\n") and not line.broken
            is_ours = line.number > 1 or raw.startswith(_BEGINNING) or _BEGINNING.startswith(raw)
            if is_torn and is_ours and not _is_json(raw):
                stream.truncate(line.start)
                return
            raise ConfigError(
                f"{path}:{line.number}: not a line of `ragtrace score`; choose another --out, or move the file away"
            )
        done[str(found["id"])] += 1
        each(found)
        if not raw.endswith(b"\n"):  # all of the line is there but its end
            stream.seek(line.end)
            stream.write(b"\n")
            return


def _scored(raw: bytes) -> ScoredLine | None:
    try:
        line = json_of_line(raw, is_large=True, takes_nan=True)
        is_good = all(_is_score(score) for score in line["scores"].values())
        return cast("ScoredLine", line) if is_good and "id" in line else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _is_score(score: object) -> bool:
    if not isinstance(score, dict) or "state" not in score:
        return False
    value = score.get("value")
    return score["state"] != "ok" or (isinstance(value, int | float) and not isinstance(value, bool))


def _is_json(raw: bytes) -> bool:
    try:
        json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return True


class ScoredLines:
    """Output of scored lines, to standard output, a new file or a resumed one.

    Each line is handed to the operating system whole before the next, so that whatever ends this process leaves
    the lines before it.

    Raises:
        ConfigError: the file exists, or cannot be written.
    """

    def __init__(self, name: str | None, *, is_resumed: bool) -> None:
        self._name = name or "-"
        self._is_resumed = is_resumed
        self._file: int | None = None
        if self._name == "-":
            return
        try:
            self._file = os.open(self._name, os.O_WRONLY | _mode(Path(self._name), is_resumed=is_resumed), 0o666)
        except FileExistsError:
            raise ConfigError(f"{name} exists; add --resume to go on with it, or choose another --out") from None
        except OSError as error:
            raise ConfigError(f"{name}: {error.strerror or error}; choose another --out") from None

    def write(self, line: str) -> None:
        """Write one line at once.

        Raises:
            BrokenPipeError: the reader has closed the pipe.
            ConfigError: there is no more room.
        """
        try:
            if self._file is None:
                sys.stdout.write(line)
                sys.stdout.flush()
            else:
                rest = memoryview(line.encode())
                while rest:
                    rest = rest[os.write(self._file, rest) :]
        except BrokenPipeError:
            raise
        except OSError as error:
            why = error.strerror or error
            if self._file is None:
                abandon_stdout()
                raise ConfigError(f"standard output: {why}; with --out FILE a run can be resumed") from None
            raise ConfigError(
                f"{self._name}: {why}; the written lines stay: make room, then add --resume"
            ) from None

    def discard_if_empty(self) -> None:
        """Remove a new file without lines, so that the command can be repeated."""
        if self._file is not None and not self._is_resumed:
            found = os.fstat(self._file)
            if stat.S_ISREG(found.st_mode) and not found.st_size:
                Path(self._name).unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file; standard output stays open."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _mode(path: Path, *, is_resumed: bool) -> int:
    if is_resumed:
        return os.O_CREAT | os.O_APPEND
    is_device = path.exists() and not path.is_file() and not path.is_dir()  # or a pipe: nothing there to lose
    return os.O_APPEND if is_device else os.O_CREAT | os.O_EXCL


def abandon_stdout() -> None:
    """Discard buffered output, so that the interpreter's last flush cannot fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
