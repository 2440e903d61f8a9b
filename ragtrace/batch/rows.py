"""Scores rows, each by its own content alone."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, NamedTuple

from ragtrace.batch.fields import plain, read_fields
from ragtrace.errors import InputError
from ragtrace.model.codec import ALIASES, record_from_json, score_to_json
from ragtrace.model.passage import content_id
from ragtrace.scoring.offline.file import score_stream
from ragtrace.service.judges import build_scorer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ragtrace.judges.limiter import RateLimiter
    from ragtrace.model import RagRecord
    from ragtrace.model.codec import ScoreJson
    from ragtrace.settings import Settings

    Row = Mapping[str, Any]


class RowScores(NamedTuple):
    """Scores of one row by output name, or why it has none; the record's id, and the fields that are not read."""

    scores: dict[str, ScoreJson]
    error: str | None = None
    id: str = ""
    unread: tuple[str, ...] = ()


def score_rows(
    rows: Sequence[Row | InputError], settings: Settings, *, jobs: int, limiter: RateLimiter | None = None
) -> list[RowScores]:
    """Return the scores of each row, in order.

    Args:
        rows: values by name, or why a row has none.
        settings: who judges what.
        jobs: rows that are scored at once.
        limiter: every call of judge and embedder passes it; None = no limits.
    """
    scored = [RowScores({})] * len(rows)
    records: dict[int, RagRecord] = {}
    for number, row in enumerate(rows):
        try:
            if isinstance(row, InputError):
                raise row
            records[number], unread = read_record(row)
        except InputError as error:
            scored[number] = RowScores({}, str(error))
        else:
            scored[number] = RowScores({}, None, records[number].id, unread)
    found = score_records(list(records.values()), settings, jobs=jobs, limiter=limiter)
    for number, scores in zip(records, found, strict=True):
        scored[number] = scored[number]._replace(scores=scores)
    return scored


def score_records(
    records: Sequence[RagRecord], settings: Settings, *, jobs: int, limiter: RateLimiter | None = None
) -> list[dict[str, ScoreJson]]:
    """Return the scores of each record by output name, in order; no records need no judge."""
    scored: list[dict[str, ScoreJson]] = [{} for _ in records]

    async def run() -> None:
        async with aclosing(
            score_stream(enumerate(records), build_scorer(settings, limiter), jobs=jobs)
        ) as results:
            async for number, found in results:
                scored[number] = {one.key: score_to_json(one) for one in found}

    if records:
        _run(run)
    return scored


def record_of(row: Row) -> RagRecord:
    """Return the record of a row.

    Raises:
        InputError: a field has a wrong form.

    Example:
        >>> record_of({"query": "Where?", "answer": None, "contexts": ["Oslo."]}).query
        'Where?'
    """
    return read_record(row)[0]


def read_record(row: Row) -> tuple[RagRecord, tuple[str, ...]]:
    """Return the record of a row, and the names of what is not read of it.

    Raises:
        InputError: a field has a wrong form.

    Example:
        >>> read_record({"query": "Where?", "note": 1})[1]
        ('note',)
    """
    given, unread = read_fields(row)
    return record_from_json(given, fallback_id=fallback_id(given)), unread


def fallback_id(row: Row) -> str:
    """Return the id of a row that has none: a hash of its query, so that two runs over it can be compared.

    A row without a query has a hash of its content.

    Example:
        >>> one, other = {"query": "Where?", "answer": "Oslo."}, {"question": "Where?", "answer": "Rome."}
        >>> fallback_id(one) == fallback_id(other)
        True
    """
    query = next((row[name] for name in ("query", *ALIASES["query"]) if row.get(name)), None)
    return content_id(query if isinstance(query, str) else json_text(plain(dict(row))))


def json_text(value: object, *, allow_nan: bool = True) -> str:
    r"""Return a value as JSON text that UTF-8 can hold; a value without a JSON form is written as text.

    Example:
        >>> json_text({"city": "Zürich", "half": "\ud800"})
        '{"city": "Z\\u00fcrich", "half": "\\ud800"}'
    """
    text = json.dumps(value, ensure_ascii=False, default=str, allow_nan=allow_nan)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, default=str, allow_nan=allow_nan)
    return text


def _run(work: Callable[[], Any]) -> None:
    """Run a coroutine to its end, also where a notebook or an engine already runs a loop in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work())
        return
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work()).result()
