"""Scored answers from a scored file or a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragtrace.cli.io.jsonl_reader import BrokenLines
from ragtrace.cli.io.scored_files import is_in_parts, read_scored
from ragtrace.errors import ConfigError, InputError
from ragtrace.model.codec import record_from_json
from ragtrace.views.scored_answer import ScoredAnswer, stored_answer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ragtrace.stores.sqlite import SqliteStore

_LEAST_PREFIX = 6


def is_store(source: str) -> bool:
    """Return whether a source is a SQLite file; a missing file is not."""
    from ragtrace.sqlite_file import is_sqlite

    path = Path(source)
    return source != "-" and path.is_file() and path.stat().st_size > 0 and is_sqlite(path)


def source_of(given: str | None) -> str:
    """Return the file, folder or store to read, by default the setting.

    Raises:
        ConfigError: there is none, or nothing there.
    """
    from ragtrace.settings import Settings

    source = given or Settings.resolve({}).store.path
    if not source:
        raise ConfigError("give a file that `ragtrace score` wrote, or a store, or set RAGTRACE_STORE")
    if source != "-" and not Path(source).is_file() and not is_in_parts(source):
        raise ConfigError(f"{source}: there is no such file; check the path")
    return source


def file_answers(name: str, *, needs_scores: bool = True, is_quiet: bool = False) -> Iterator[ScoredAnswer]:
    """Yield the answers of a file or of a folder of parts; print broken lines to standard error.

    Args:
        name: the file, the folder, or ``-``.
        needs_scores: whether a line without scores is an error.
        is_quiet: print no broken lines, of a file that was read before.

    Raises:
        ConfigError: the file cannot be opened, or a line has no scores.
        InputError: no line of it is good.
    """
    broken = BrokenLines(name, is_held=is_quiet)
    shown = "<stdin>" if name == "-" else name
    count = 0
    for answer in read_scored(name, broken, lambda given, n: _of_line(given, n, shown, needs_scores)):
        count += 1
        yield answer
    if not is_quiet:
        broken.close()
    if not count:
        raise InputError(f"{shown}: there is no good line in it")


def _of_line(given: Any, number: int, shown: str, needs_scores: bool) -> ScoredAnswer:  # noqa: FBT001
    record = record_from_json(given, fallback_id=str(number))
    scores = given.get("scores")
    is_scored = isinstance(scores, dict) and all(isinstance(score, dict) for score in scores.values())
    if needs_scores and not is_scored:
        raise ConfigError(
            f"{shown}:{number}: no scores here; score the file first: ragtrace score FILE --out SCORED"
        )
    return ScoredAnswer(
        place=f"{shown}:{number}", name=str(number), record=record, scores=scores if is_scored else {}
    )


def find_stored(store: SqliteStore, which: str) -> ScoredAnswer:
    """Return the trace of an id, or of its first digits.

    Raises:
        ConfigError: there is no such trace, or several.
    """
    from ragtrace.model import as_trace_id

    ids = store.trace_ids(as_trace_id(which))
    if which in ids:
        ids = [which]
    if len(which) < _LEAST_PREFIX and ids != [which]:
        raise ConfigError(f"{which}: give a trace id, or at least {_LEAST_PREFIX} of its first digits")
    if not ids:
        raise ConfigError(f"{which}: no such trace in the store; `ragtrace worst STORE` lists some")
    if len(ids) > 1:
        raise ConfigError(f"{which}: several traces begin like this: {', '.join(ids[:3])}; give more digits")
    return stored_answer(store, ids[0])


def find_line(name: str, which: str, *, is_id: bool, is_quiet: bool = False) -> ScoredAnswer:
    """Return the answer of a line number, a record id or a trace id.

    Raises:
        ConfigError: there is none.
    """
    by_line = which.isdecimal() and not is_id
    last = 0
    for answer in file_answers(name, needs_scores=False, is_quiet=is_quiet):
        last = int(answer.name)
        names = (answer.name,) if by_line else (answer.record.id, answer.record.trace_id)
        if which in names:
            return answer
    if not by_line:
        raise ConfigError(f"{name}: there is no record {which}")
    end = f", the last is {last}" if int(which) > last else ""
    raise ConfigError(f"{name}: there is no good line {which}{end}; for a record of that id: --id {which}")
