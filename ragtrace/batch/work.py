"""Scores one part and writes its output: the function that every engine runs on its workers."""

from __future__ import annotations

import io
import os
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ragtrace.batch.fields import ERROR, SCORES
from ragtrace.batch.files import OutputFolder
from ragtrace.batch.readers import reader_of
from ragtrace.batch.reading import Broken, read_rows, read_table
from ragtrace.batch.rows import RowScores, json_text, score_rows
from ragtrace.batch.table import arrow, rows_of, with_scores
from ragtrace.errors import InputError, JudgeOverBudget
from ragtrace.scoring.offline.file import left_by_budget
from ragtrace.service.judges import is_limited
from ragtrace.service.limits import build_file_limiter
from ragtrace.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ragtrace.batch.parts import Part
    from ragtrace.batch.readers import PlacedRow
    from ragtrace.scoring.limits.judge_limiter import Spent

_MOST_REASON = 500
_MOST_NAMES = 1_000  # of fields that are not read
_CHUNK_BYTES = 2**23  # as a part of a plain file has
_SCORED_BYTES = 2**11  # that the scores of a row take
_SECRETS = ("OPENAI_API_KEY", "RAGTRACE_JUDGE_API_KEY")  # all that a worker's own environment adds


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchJob:
    """Work that all parts share.

    Attributes:
        out: folder of the outputs.
        settings: of the scorer, without secrets; a worker has those in its environment.
        jobs: rows that a worker scores at once.
        limits: budgets and prices; a run with others goes on with the parts of this one.
    """

    out: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    jobs: int = 8
    limits: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartResult:
    """End of one part.

    Attributes:
        part: the part.
        rows: rows that were scored.
        broken: rows and lines without scores.
        shown: places of the first broken ones.
        unread: rows by the field of them that is not read.
        began: when the worker began, in Unix seconds.
        ended: when it ended.
        failure: why nothing was written; "" where the output exists.
        spent: calls of the judge, and what they took; None where it costs nothing.
    """

    part: Part
    rows: int = 0
    broken: int = 0
    shown: Sequence[str] = ()
    unread: Mapping[str, int] = field(default_factory=dict)
    began: float = 0.0
    ended: float = 0.0
    failure: str = ""
    spent: Spent | None = None


def score_part(job: BatchJob, part: Part) -> PartResult:
    """Score one part and write its output; every failure is in the result."""
    try:
        with closing(Limits(job)) as limits:
            return score_limited(job, part, limits)
    except Exception as error:
        return PartResult(part=part, failure=reason_of(error))


class Limits:
    """Budgets of the parts that one process scores.

    Raises:
        ConfigError: the settings of the job are wrong.
    """

    def __init__(self, job: BatchJob) -> None:
        secrets = {name: os.environ[name] for name in _SECRETS if name in os.environ}
        self.settings = Settings.resolve({**job.settings, **job.limits}, environ=secrets)
        self.limiter = build_file_limiter(self.settings) if is_limited(self.settings) else None

    def close(self) -> None:
        """Close the file of the budgets."""
        if self.limiter is not None:
            self.limiter.close()


def score_limited(job: BatchJob, part: Part, limits: Limits) -> PartResult:
    """Score one part within limits that other parts may share; see `score_part`.

    A part that a budget does not pay for is not written, so that a resumed run begins it again.
    """
    before = replace(limits.limiter.spent) if limits.limiter is not None else None
    result = _written(job, part, limits)
    if limits.limiter is None or before is None:
        return result
    return replace(result, spent=limits.limiter.spent.since(before))


def _written(job: BatchJob, part: Part, limits: Limits) -> PartResult:
    began = time.time()
    if part.failure:
        return PartResult(part=part, failure=part.failure)
    try:
        unread: Counter[str] = Counter()
        data, rows, broken = _scored(job, part, limits, unread)
        found, out = dict(unread.most_common(_MOST_NAMES)), OutputFolder(job.out)
        if broken.count or found:  # before the output, whose name says that the part is done
            out.write(part.note, json_text({"broken": broken.count, "unread": found}).encode())
        out.write(part.name, data)
    except Exception as error:
        return PartResult(part=part, failure=reason_of(error), began=began, ended=time.time())
    return PartResult(
        part=part, rows=rows, broken=broken.count, shown=tuple(broken.shown), unread=found,
        began=began, ended=time.time(),
    )  # fmt: skip


def reason_of(error: BaseException) -> str:
    r"""Return an error as one line.

    Example:
        >>> reason_of(ValueError("bad\npage"))
        'ValueError: bad page'
    """
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:_MOST_REASON].removesuffix(": ")


def _scored(job: BatchJob, part: Part, limits: Limits, unread: Counter[str]) -> tuple[bytes, int, Broken]:
    """Return the output of a part as bytes, its rows with scores, and its broken ones; count what is not read.

    Raises:
        JudgeOverBudget: a budget has left out some of its scores.
    """
    broken = Broken()
    if part.output == "parquet":
        table, first = read_table(part)
        scored = _judged(job, limits, rows_of(table))
        data = _parquet(with_scores(table, scored))
    else:
        lines: list[bytes] = []
        for placed in _chunks(_rows(part, broken, unread)):
            judged = _judged(job, limits, [row for _, row in placed])
            for (place, row), one in zip(placed, judged, strict=True):
                unread.update(one.unread)
                try:
                    lines.append(_line(row, one))
                except InputError as error:
                    broken.add(f"{part.path}, {place}: {error}")
        return b"".join(lines), len(lines), broken
    for number, one in enumerate(scored, start=first):
        unread.update(one.unread)
        if one.error:
            broken.add(f"{part.path}, row {number}: {one.error}")
    return data, sum(not one.error for one in scored), broken


def _chunks(rows: Iterable[PlacedRow]) -> Iterator[list[PlacedRow]]:
    """Yield rows in lists of 8 MiB, as a packed file may unfold to many times its size."""
    held: list[PlacedRow] = []
    size = 0
    for place, row in rows:
        held.append((place, row))
        size += len(json_text(row)) + _SCORED_BYTES
        if size >= _CHUNK_BYTES:
            yield held
            held, size = [], 0
    if held:
        yield held


def _judged(job: BatchJob, limits: Limits, rows: Sequence[Mapping[str, Any] | InputError]) -> list[RowScores]:
    scored = score_rows(rows, limits.settings, jobs=job.jobs, limiter=limits.limiter)
    for row in scored:
        if why := left_by_budget(row.scores):
            raise JudgeOverBudget(why)
    return scored


def _rows(part: Part, broken: Broken, unread: Counter[str]) -> Iterable[PlacedRow]:
    """Return the rows of a part with their places; of a format with several for a record, the records."""
    given, reader = read_rows(part, broken), reader_of(part.format)
    if reader.records is None:
        return given

    def counted() -> Iterator[PlacedRow]:
        for place, row in given:
            unread.update(name for name, value in row.items() if value is not None and not reader.is_read(name))
            yield place, row

    found = reader.records(counted(), lambda why: broken.add(f"{part.path}, {why}"))
    return ((f"record {number}", record) for number, record in enumerate(found, start=1))


def _parquet(table: Any) -> bytes:
    stream = io.BytesIO()
    arrow("pyarrow.parquet").write_table(table, stream, compression="zstd", write_page_checksum=True)
    return stream.getvalue()


def _line(row: Mapping[str, Any], scored: RowScores) -> bytes:
    """Return the output line of a row.

    Raises:
        InputError: the row is not scored, or holds a number that JSON does not have.
    """
    if scored.error:
        raise InputError(scored.error)
    given = {name: value for name, value in row.items() if name not in {"id", SCORES, ERROR}}
    try:
        text = json_text({"id": row.get("id") or scored.id, **given}, allow_nan=False)
    except ValueError:
        raise InputError("cannot be written again as JSON: a number is too large") from None
    return f'{text[:-1]}, "{SCORES}": {json_text(scored.scores)}}}\n'.encode()
