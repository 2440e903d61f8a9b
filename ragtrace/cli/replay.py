"""Command ``ragtrace replay``, which prints what capture makes of recorded events."""

from __future__ import annotations

from pathlib import Path
from stat import S_ISREG
from typing import IO, TYPE_CHECKING, Annotated

import typer

from ragtrace.cli.io.say import say
from ragtrace.errors import ConfigError, InputError
from ragtrace.model.file_lines import bounded_lines
from ragtrace.model.printable import printable
from ragtrace.model.reading import preview

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ragtrace.capture.past import PastRuns
    from ragtrace.capture.recorded import RecordedRun
    from ragtrace.capture.types import FinishedRun
    from ragtrace.model import Passage

EPILOG = """\
The file is that of the setting `record_events`: RAGTRACE_RECORD_EVENTS=events.jsonl where the application runs.
Nothing is scored and nothing leaves the process.

Exit status: 0 printed, 2 usage or a broken file.
"""
_MOST_CHARS = 400  # of a question or an answer
_STAGES = {"retrieved": "retrieved", "reranked": "selected", "used": "in the prompt"}


def command(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="File that record_events wrote.", show_default=False)
    ],
    *,
    run: Annotated[
        int | None, typer.Option("--run", metavar="N", min=1, help="Print this run only, the first is 1.")
    ] = None,
) -> int:
    """Print what capture makes of the runs of a bug report."""
    from ragtrace.capture.past import PastRuns
    from ragtrace.capture.recorded import read_runs

    past, count = PastRuns(), 0
    name = printable(str(file))
    if not S_ISREG(file.stat().st_mode):  # a pipe may never end, and nobody may write to it
        raise InputError(f"{name}: is no regular file")
    with file.open("rb") as lines:
        try:
            for count, one in enumerate(read_runs(_bounded(lines)), start=1):
                told = _told(count, one, past)
                if run in {None, count}:
                    say("\n".join([*([""] if run is None and count > 1 else []), *told]))
        except InputError as error:
            raise InputError(f"{name}:{error}") from None
    if count == 0:
        raise InputError(f"{name}: no run is in it")
    if run is not None and run > count:
        raise ConfigError(f"--run {run}: {name} has {count} runs")
    return 0


def _bounded(stream: IO[bytes]) -> Iterator[bytes]:
    for line in bounded_lines(stream, has_blank=True):
        if line.broken:
            raise InputError(f"{line.number}: {line.broken}")
        yield line.raw


def _told(number: int, run: RecordedRun, past: PastRuns) -> list[str]:
    """Return the lines on one run; what it says of itself ends no line and commands no terminal."""
    from ragtrace.capture.recorded import replayed

    try:
        return list(map(printable, _lines(number, run, replayed(run, past))))
    except Exception as error:  # each line is well formed, and together they are none of a run
        raise InputError(f"{run.line}: ends a run that capture cannot have written") from error


def _lines(number: int, run: RecordedRun, found: FinishedRun | None) -> Iterator[str]:
    """Yield the lines on one run."""
    end = "" if run.is_whole else ", which the file has no end of"
    yield f"run {number} of {run.workflow}: {len(run.events)} events{end}"
    if found is None:
        yield "  no question: capture discards it"
        return
    record = found.record
    yield f"  outcome    {record.outcome}{f': {found.failure.kind}' if found.failure is not None else ''}"
    for place, line in enumerate(preview(record.reading) if record.reading is not None else ()):
        yield f"  {'' if place else 'read':<9}  {line}"
    yield f"  question   {_shown(record.query or '')}"
    for pool in record.pools:
        source = f", by {record.selection_source}" if pool.stage == "reranked" else ""
        yield f"  {_STAGES[pool.stage]}: {len(pool.passages)}{source}"
        yield from map(_row, pool.passages)
    if record.unranked_contexts:
        yield f"  of tools: {len(record.unranked_contexts)}, without rank"
        yield from map(_text_row, record.unranked_contexts)
    if found.prompt_ids is not None and not found.prompt_ids:
        yield "  in the prompt: none of them"
    if record.history:
        yield f"  history    {len(record.history)} turns"
    yield f"  answer     {_shown(record.answer or '')}{' (refused)' if record.is_refused else ''}"
    cited = [name for part in record.answer_parts for name in part.citations]
    if cited:
        yield f"  cites      {', '.join(cited)}"
    yield f"  steps      {', '.join(type(step).__name__ for step in found.steps) or 'none'}"
    if record.lossy:
        yield f"  lossy      {', '.join(f'{name} {count}' for name, count in sorted(record.lossy.items()))}"


def _row(passage: Passage) -> str:
    score = "" if passage.score is None else f"  score {passage.score:.4g}"
    return f"    {passage.rank:>3}  {passage.id}{score}  {len(passage.text)} characters"


def _text_row(passage: Passage) -> str:
    source = f"  of {passage.source}" if passage.source else ""
    return f"         {passage.id}{source}  {len(passage.text)} characters"


def _shown(text: str) -> str:
    line = " ".join(text.split())
    cut = line if len(line) <= _MOST_CHARS else f"{line[:_MOST_CHARS]}..."
    return f"{cut} ({len(text)} characters)"
