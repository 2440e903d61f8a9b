"""Scores rows, each by its own content alone."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from ragtrace.errors import InputError
from ragtrace.model.codec import ALIASES, record_from_json, score_to_json
from ragtrace.model.file_lines import bounded_json
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

_LISTS = ("contexts", *ALIASES["contexts"], "pool", "selection")
_ONE_TEXT = "context"  # in many data sets a single text


class RowScores(NamedTuple):
    """Scores of one row by output name, or why it has none."""

    scores: dict[str, ScoreJson]
    error: str | None = None


def score_rows(
    rows: Sequence[Row],
    settings: Settings,
    *,
    jobs: int,
    read: Callable[[Row], Row] = dict,
    limiter: RateLimiter | None = None,
) -> list[RowScores]:
    """Return the scores of each row, in order.

    Args:
        rows: in the form that `read` takes.
        settings: who judges what.
        jobs: rows that are scored at once.
        read: turns a row into the JSON form of a record; its InputError is the row's error.
        limiter: every call of judge and embedder passes it; None = no limits.
    """
    scored = [RowScores({})] * len(rows)
    records: dict[int, RagRecord] = {}
    for number, row in enumerate(rows):
        try:
            records[number] = record_of(read(row))
        except InputError as error:
            scored[number] = RowScores({}, str(error))
    found = score_records(list(records.values()), settings, jobs=jobs, limiter=limiter)
    for number, scores in zip(records, found, strict=True):
        scored[number] = RowScores(scores)
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
    given = with_lists(without_nulls(row))
    for name in _LISTS:
        if name != _ONE_TEXT and isinstance(text := given.get(name), str) and text.lstrip().startswith("["):
            raise InputError(
                f'field {name!r} is a text that is not a JSON list; write ["..."] with double quotes '
                "(of Dask, set dataframe.convert-string to False)"
            )
    return record_from_json(given, fallback_id=fallback_id(given))


def fallback_id(row: Row) -> str:
    """Return the id of a row that has none: a hash of its query, so that two runs over it can be compared.

    A row without a query has a hash of its content.

    Example:
        >>> one, other = {"query": "Where?", "answer": "Oslo."}, {"question": "Where?", "answer": "Rome."}
        >>> fallback_id(one) == fallback_id(other)
        True
    """
    query = next((row[name] for name in ("query", *ALIASES["query"]) if row.get(name)), None)
    return content_id(query if isinstance(query, str) else json_text(without_nulls(dict(row))))


def with_lists(row: Row) -> dict[str, Any]:
    """Return a row with lists of passages instead of texts that hold JSON lists.

    Example:
        >>> with_lists({"query": "[1]", "contexts": '["Oslo."]', "pool": "['Oslo.']"})
        {'query': '[1]', 'contexts': ['Oslo.'], 'pool': "['Oslo.']"}
    """
    found = dict(row)
    for name in _LISTS:
        if isinstance(text := found.get(name), str) and text.lstrip().startswith("["):
            with suppress(ValueError):
                found[name] = bounded_json(text.encode(), takes_nan=True)
    return found


def without_nulls(value: Any) -> Any:
    """Return a value without the empty fields that a table's structs have.

    Example:
        >>> without_nulls({"labels": {"d1": 5, "d2": None}, "answer": None})
        {'labels': {'d1': 5}}
    """
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


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
