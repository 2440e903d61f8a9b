"""Results of Open RAG Eval: a CSV with a row for each passage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace.batch.readers import Reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ragtrace.batch.readers import PlacedRow

_COLUMNS = {"query", "passage_id", "passage", "generated_answer"}
_READ = {*_COLUMNS, "query_id", "query_run"}
_NO_ANSWER = {"NO_ANSWER", "API_ERROR"}  # as Open RAG Eval writes them
_FAILED = "API_ERROR"


def _records(rows: Iterable[PlacedRow], broken: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """Yield a record for each query and run; its answer is the first that its rows have."""
    runs: dict[tuple[str, str], dict[str, Any]] = {}
    for place, row in rows:
        if not row.get("query"):
            broken(f"{place}: no query")
            continue
        name, run = str(row.get("query_id") or row["query"]), str(row.get("query_run") or "1")
        record = runs.setdefault((name, run), {"id": f"{name}/{run}", "query": row["query"], "contexts": []})
        if row.get("passage"):
            record["contexts"].append({"id": str(row.get("passage_id") or ""), "text": row["passage"]})
        if row.get("generated_answer"):
            record.setdefault("answer", row["generated_answer"])
    for record in runs.values():
        yield _answered(record)


def _answered(record: dict[str, Any]) -> dict[str, Any]:
    if record.get("answer") not in _NO_ANSWER:
        return record
    outcome = {"outcome": "error"} if record.pop("answer") == _FAILED else {}
    return record | outcome


READER = Reader(
    about="Results of Open RAG Eval: a CSV with query_id, query, query_run, passage_id, passage, generated_answer.",
    reads=_COLUMNS.issubset,
    records=_records,
    is_read=_READ.__contains__,
)
