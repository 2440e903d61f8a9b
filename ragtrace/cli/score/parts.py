"""Scores many files, Parquet or an address, part by part on an engine."""

from __future__ import annotations

import math
import sys
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragtrace.cli.io.jsonl_reader import open_lines
from ragtrace.cli.io.say import say
from ragtrace.errors import ConfigError
from ragtrace.model.file_lines import bounded_lines
from ragtrace.model.printable import count_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ragtrace.batch.parts import Part
    from ragtrace.batch.work import BatchJob, PartResult
    from ragtrace.cli.io.summary import Limit, Summary
    from ragtrace.model import RagRecord
    from ragtrace.scoring.limits.judge_limiter import Spent

_OTHER_FILES = (
    ".parquet", ".pq", ".csv", ".tsv", ".csv.gz", ".tsv.gz", ".bz2", ".xz", ".zst", ".zip",
)  # fmt: skip
_SECONDS = 5.0  # between two lines of progress
_FIRST_LINES = 20
_OF_MANY = "input"  # DeepEval and Langfuse have it
_FILES = (".jsonl", ".ndjson", ".json", ".parquet", ".pq", ".csv", ".tsv")
_HEAD_BYTES = 4_096
_OTLP = (b'"resourceSpans"', b'"resource_spans"')
_MOST_ROWS = 1_000  # of a Parquet file of one row group, before a warning
_MOST_NAMED = 3


def is_for_parts(path: str) -> bool:
    """Say whether a path is an address, a folder, a pattern, or a file of another kind than lines of records.

    Raises:
        ConfigError: it is a file of JSON lines, and its first lines have no field of any known format.
    """
    if path in {"", "-"}:
        return False
    local = Path(path)
    if "://" in path or path.lower().endswith(_OTHER_FILES) or local.is_dir():
        return True
    if not local.is_file():
        return any(sign in path for sign in "*?[")
    with local.open("rb") as stream:
        head = stream.read(_HEAD_BYTES)
    return any(name in head for name in _OTLP) or _is_export(path)


def _is_export(path: str) -> bool:
    """Say whether the first lines of a file are an export with several lines a record."""
    from ragtrace.batch.parts import columns_of
    from ragtrace.batch.readers import reader_of, recognised
    from ragtrace.model.codec import ALIASES

    with open_lines(path) as stream:
        try:
            columns = columns_of((line.raw for line in islice(bounded_lines(stream), _FIRST_LINES)), path)
        except (OSError, ValueError, EOFError):  # the reader of lines says where it is broken
            return False
    records = {*ALIASES, *(name for names in ALIASES.values() for name in names)} - {_OF_MANY}
    if not columns or not records.isdisjoint(columns):
        return False
    return reader_of(recognised(columns, path)).records is not None


def score_parts(
    path: str,
    out: str | None,
    given: Mapping[str, Any],
    summary: Summary,
    limits: Sequence[Limit],
    *,
    engine: str,
    workers: int | None,
    form: str | None,
    jobs: int,
    is_resumed: bool,
) -> int:
    """Score the parts of a path, print the summary, and return the exit status."""
    from ragtrace.batch.engines import load_engine
    from ragtrace.batch.files import OutputFolder
    from ragtrace.batch.parts import plan
    from ragtrace.batch.resume import begin
    from ragtrace.batch.table import arguments, limit_settings, scorer_settings
    from ragtrace.batch.work import BatchJob
    from ragtrace.scoring.limits.judge_limiter import Spent
    from ragtrace.service.judges import is_limited
    from ragtrace.settings import Settings

    if out in {None, "-"} or out is None:
        raise ConfigError(f"--out: {path} is scored in parts; give a folder for their outputs")
    if out.endswith(_FILES) and not Path(out).is_dir():
        raise ConfigError(
            f"--out {out}: {path} is scored in parts, so a folder is written; give the name of a folder"
        )
    scored, folder = load_engine(engine), OutputFolder(out).path
    settings, spent = Settings.resolve(arguments(**given)), Spent()
    job = BatchJob(out=folder, settings=scorer_settings(settings), jobs=jobs, limits=limit_settings(settings))
    parts = plan(path, form=form, without=folder)
    resumed = begin(parts, job, is_resumed=is_resumed)
    for line in large_parts(parts):
        say(f"warning: {line}", file=sys.stderr)
    contexts = ContextsOfLangfuse()
    for part in resumed.done:
        _add(summary, contexts, job, part)
    summary.broken = resumed.broken
    summary.unknown.update(resumed.unread)
    if is_resumed:
        summary.before = summary.lines
    without = {part.path for part in resumed.left}.difference(part.path for part in resumed.done)
    progress, failed, foreign = PartsProgress(len(parts), len(resumed.done)), 0, 0
    try:
        for result in scored(job, resumed.left, workers):
            foreign += bool(result.part.failure)
            failed += bool(result.failure) and not result.part.failure
            if result.rows or result.broken or result.failure:
                without.discard(result.part.path)
            _take(summary, contexts, job, result)
            if result.spent is not None:
                spent.add(result.spent)
            progress.add(result)
    except KeyboardInterrupt:
        say(f"ragtrace: stopped; the same command with --resume goes on in {out}", file=sys.stderr)
        return 130
    progress.show()
    summary.without_records = sorted(without)
    return _report(
        summary, limits, out, failed, foreign, contexts.warnings(), spent if is_limited(settings) else None
    )


def large_parts(parts: Sequence[Part]) -> Iterator[str]:
    """Yield a warning of Parquet files with many rows in one row group, which a resumed run begins again."""
    large = [part.path for part in parts if part.rows > _MOST_ROWS]
    if large:
        more = f" and {count_text(len(large) - _MOST_NAMED, 'more file')}" if len(large) > _MOST_NAMED else ""
        yield (
            f"{', '.join(large[:_MOST_NAMED])}{more}: one row group of more than {_MOST_ROWS:,} rows, so one part "
            "that --resume begins again; pq.write_table(table, FILE, row_group_size=500) makes more"
        )


class ContextsOfLangfuse:
    """Finds files of Langfuse whose answers have no contexts: their observations are in another file."""

    def __init__(self) -> None:
        self._has: dict[str, bool] = {}

    def add(self, part: Part, record: RagRecord) -> None:
        """Take a record of a part."""
        if part.format == "langfuse":
            self._has[part.path] = self._has.get(part.path, False) or bool(record.pools or record.unranked_contexts)

    def warnings(self) -> Iterator[str]:
        """Yield a line on the files without any."""
        without = [path for path, has_contexts in self._has.items() if not has_contexts]
        if without:
            yield (
                f"no answer in {', '.join(without[:_MOST_NAMED])} has contexts; one file must hold traces and "
                "observations of Langfuse: cat TRACES OBSERVATIONS > both.jsonl"
            )


class PartsProgress:
    """Prints a line of progress every few seconds on standard error; the engine's start is not in its rate."""

    def __init__(self, parts: int, done: int) -> None:
        self._parts, self._done, self._rows, self._failed = parts, done, 0, 0
        self._began, self._ended, self._shown = math.inf, 0.0, time.monotonic()

    def add(self, result: PartResult) -> None:
        """Count the end of a part."""
        self._done += 1
        self._rows += result.rows
        self._failed += bool(result.failure)
        if result.began:
            self._began, self._ended = min(self._began, result.began), max(self._ended, result.ended)
        if time.monotonic() - self._shown >= _SECONDS:
            self.show()

    def show(self) -> None:
        """Print the line."""
        self._shown = time.monotonic()
        rate = self._rows / max(self._ended - self._began, 1e-9)
        failed = f", {self._failed} failed" if self._failed else ""
        done = f"{self._done} of {count_text(self._parts, 'part')}, {count_text(self._rows, 'row')}"
        say(f"{done}, {rate:.0f} rows/s{failed}", file=sys.stderr)


def _take(summary: Summary, contexts: ContextsOfLangfuse, job: BatchJob, result: PartResult) -> None:
    for line in result.shown:
        say(line, file=sys.stderr)
    if result.broken > len(result.shown):
        more = count_text(result.broken - len(result.shown), "more broken row")
        say(f"{result.part.where}: and {more}", file=sys.stderr)
    summary.broken += result.broken
    summary.unknown.update(result.unread)
    if result.failure:
        word = "left out" if result.part.failure else "failed"
        say(f"{word}: {result.part.where}: {result.failure}", file=sys.stderr)
    else:
        _add(summary, contexts, job, result.part)


def _add(summary: Summary, contexts: ContextsOfLangfuse, job: BatchJob, part: Part) -> None:
    from ragtrace.batch.resume import read_scored
    from ragtrace.batch.rows import record_of

    for row, scores in read_scored(job, part):
        record = record_of(row)
        summary.add(scores, record)
        contexts.add(part, record)


def _report(
    summary: Summary,
    limits: Sequence[Limit],
    out: str,
    failed: int,
    foreign: int,
    warnings: Iterable[str],
    spent: Spent | None,
) -> int:
    from ragtrace.cli.io.console import Shown

    console = Shown(stderr=False)
    summary.show(console)
    if spent is not None:
        console.print(str(spent))
    for warning in (*summary.warnings(), *warnings):
        console.print(f"warning: {warning}")
    before = "" if summary.before is None else f", {summary.before} there already"
    when = "" if summary.before is None else " now"
    parts = f", {count_text(failed, 'part')} failed: --resume tries again" if failed else ""
    if foreign:
        parts += f", {count_text(foreign, 'file')} left out as said above: convert or move such files"
    now = summary.lines - (summary.before or 0)
    console.print(f"{now} scored{when} in {out}{before}, {summary.broken} broken{parts}")
    missed = [*summary.missed(limits), *filter(None, [summary.unjudged()])]
    for line in missed:
        say(f"ragtrace: {line}", file=sys.stderr)
    return 3 if missed else 1 if summary.broken or failed or foreign else 0
