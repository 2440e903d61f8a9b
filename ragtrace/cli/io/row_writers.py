"""Writes rows of scores as JSON lines and CSV."""

from __future__ import annotations

import csv
import io
import json
from contextlib import AbstractContextManager, contextmanager
from typing import IO, TYPE_CHECKING, Any
from unicodedata import category, normalize

from ragtrace.cli.io.jsonl_reader import one_line
from ragtrace.model.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Row = Mapping[str, Any]
    Cell = str | float | None
    Write = Callable[[Row], None]

# In the order in which a person reads.
COLUMNS: dict[str, type] = {
    "trace_id": str, "span_id": str, "workflow": str, "metric": str, "source": str, "value": float, "state": str,
    "reason": str, "passed": bool, "k": int, "universe": str, "judge": str, "version": str, "prompt_hash": str,
    "label_scale": str, "stratum": str, "weight": float, "session": str, "user": str, "environment": str,
    "corpus": str, "model": str, "llm_calls": int, "embed_calls": int, "prompt_tokens": int,
    "completion_tokens": int, "revision": int, "scored_at": float, "details": str,
    "kept_for": str, "query": str, "answer": str, "contexts": str,
}  # fmt: skip
_FORMULA = frozenset("=+-@\u2212")
_UNSEEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Mn", "Zl", "Zp", "Zs"})


def writer_of(form: str, stream: IO[bytes]) -> AbstractContextManager[Write]:
    """Return a context manager whose value writes one row."""
    return {"jsonl": _jsonl, "csv": _csv}[form](stream)


@contextmanager
def _jsonl(stream: IO[bytes]) -> Iterator[Write]:
    def write(row: Row) -> None:
        shown: dict[str, object] = {**_typed(row)}
        shown["details"] = json.loads(row["details"]) if row["details"] else {}
        shown["contexts"] = json.loads(row["contexts"]) if row.get("contexts") else None
        stream.write(f"{one_line(shown)}\n".encode())

    yield write
    stream.flush()


@contextmanager
def _csv(stream: IO[bytes]) -> Iterator[Write]:
    text = io.TextIOWrapper(stream, encoding="utf-8", errors="replace", newline="", write_through=True)
    rows = csv.writer(text)
    rows.writerow(COLUMNS)
    try:
        is_terminal = stream.isatty()
        yield lambda row: rows.writerow([_shown(cell(v), is_terminal=is_terminal) for v in _typed(row).values()])
    finally:
        text.detach()


def cell(value: Cell) -> Cell:
    r"""Return a cell that no spreadsheet takes for a formula.

    Example:
        >>> cell("=1+1"), cell(-0.5), cell(None), cell("  @cmd"), cell("\uff1d1")
        ("'=1+1", -0.5, '', "'  @cmd", "'\uff1d1")
    """
    if value is None:
        return ""
    if isinstance(value, str) and value and (category(value[0]) == "Cc" or _begins_formula(value)):
        return f"'{value}"
    return value


def _begins_formula(text: str) -> bool:
    first = next((char for char in text if category(char) not in _UNSEEN), "")
    return normalize("NFKC", first)[:1] in _FORMULA


def _shown(value: Cell, *, is_terminal: bool) -> Cell:
    return printable(value) if is_terminal and isinstance(value, str) else value


def _typed(row: Row) -> dict[str, Cell]:
    return {name: None if row.get(name) is None else kind(row[name]) for name, kind in COLUMNS.items()}
