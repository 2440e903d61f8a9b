"""Scores as CSV in the form of Open RAG Eval, one row a query."""

from __future__ import annotations

import csv
import io
import json
from typing import IO, TYPE_CHECKING

from ragtrace.cli.io.row_writers import cell

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from ragtrace.scoring.offline.comparison import ComparedFile
    from ragtrace.scoring.offline.scored_row import ScoredRow

COLUMNS = (
    "retrieval_score_umbrela_scores",
    "retrieval_score_mean_umbrela_score",
    "generation_score_vital_nuggetizer_score",
    "generation_score_hallucination_score",
    "generation_score_citation_f1_score",
    "generation_score_no_answer_score",
)


def write_queries(arms: Sequence[ComparedFile], stream: IO[bytes]) -> None:
    """Write one row a query, with a prefix ``run_N_`` for repeated queries.

    Runs are numbered over the files in their order: with two files of one run each, ``run_1_`` is the first file
    and ``run_2_`` the second, and ``run_N_file`` says so. A cell is empty where a score is missing, ``na`` or
    failed. Objects are JSON texts: grades by passage, and ``{"query_answered": "yes"}``.
    """
    queries = _by_query(arms)
    widths = [max(len(runs[place]) for runs in queries.values()) for place in range(len(arms))]
    blocks = [(place, nth) for place, width in enumerate(widths) for nth in range(width)]
    has_files = len(arms) > 1
    text = io.TextIOWrapper(stream, encoding="utf-8", errors="replace", newline="", write_through=True)
    rows = csv.writer(text)
    rows.writerow(_head(len(blocks), has_files=has_files))
    for runs in queries.values():
        first = next(row for listed in runs for row in listed)
        cells: list[str | float | None] = [first.id, first.query]
        for place, nth in blocks:
            found = runs[place][nth : nth + 1]
            cells += [arms[place].name if found else ""] if has_files else []
            cells += _scores(found[0]) if found else [""] * len(COLUMNS)
        rows.writerow([cell(value) for value in cells])
    text.detach()


def _by_query(arms: Sequence[ComparedFile]) -> dict[Hashable, list[list[ScoredRow]]]:
    queries: dict[Hashable, list[list[ScoredRow]]] = {}
    for place, arm in enumerate(arms):
        for row in arm.rows:
            queries.setdefault(row.key or ("id", row.id), [[] for _ in arms])[place].append(row)
    return queries


def _head(blocks: int, *, has_files: bool) -> list[str]:
    names = ("file", *COLUMNS) if has_files else COLUMNS
    prefixes = [f"run_{n}_" for n in range(1, blocks + 1)] if blocks > 1 else [""]
    return ["query_id", "query", *(f"{prefix}{name}" for prefix in prefixes for name in names)]


def _scores(row: ScoredRow) -> list[str | float | None]:
    grades = row.umbrela
    answered = _value(row, "answered")
    return [
        None if grades is None else json.dumps(grades, ensure_ascii=False),
        None if grades is None else sum(grades.values()) / len(grades),
        _value(row, "nuggets_vital"),
        _value(row, "hallucination"),
        _value(row, "citation_f1"),
        None if answered is None else json.dumps({"query_answered": "yes" if answered else "no"}),
    ]


def _value(row: ScoredRow, name: str) -> float | None:
    score = row.scores.get(name)
    return None if score is None else score.value
