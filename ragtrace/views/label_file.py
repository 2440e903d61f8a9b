"""People's ratings of the rows of a scored file, beside it, in a form that ``ragtrace calibrate`` reads."""

from __future__ import annotations

import json
import math
import os
import time
from typing import TYPE_CHECKING, Any

from ragtrace.model.file_lines import bounded_lines, json_of_line
from ragtrace.stores.base import FOREIGN
from ragtrace.views.columns import LabelFacts, LabelKey
from ragtrace.views.scored_answer import Rating

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ragtrace.model.file_lines import FileLine
    from ragtrace.views.columns import Builder
    from ragtrace.views.types import NewRating


class LabelFile:
    """Rated records, one a line, with ``label`` by metric for `ragtrace calibrate`, and ``ratings``.

    ``ragtrace calibrate FILE.labels.jsonl --label label.faithfulness`` compares the judge with these people. A
    label is 0 (bad) to 1 (good). The file is replaced as a whole with each writing. Not thread-safe.

    Args:
        path: the file; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: dict[str, dict[str, Any]] = {}

    def read_into(self, builder: Builder) -> None:
        """Read the file, and give its ratings to the builder."""
        self._lines = dict(self._read())
        builder.labels.clear()
        for run_id, line in self._lines.items():
            row = builder.rows.get(run_id)
            for it in line["ratings"] if row is not None else ():
                key = LabelKey(row or 0, it["metric"], it["rater"])
                is_by_person = not it["rater"].startswith(FOREIGN)
                builder.labels[key] = LabelFacts(float(it["value"]), float(it["at"]), is_by_person)

    def refusal(self) -> str | None:
        """Return why nothing can be written; None where it can."""
        if "://" in str(self.path) or not os.access(self.path.parent, os.W_OK):
            return f"{self.path} cannot be written, where the ratings of this file would stand."
        return None

    def ratings_of(self, run_id: str) -> tuple[Rating, ...]:
        """Return the ratings of one row."""
        found = self._lines.get(run_id, {}).get("ratings", [])
        return tuple(Rating(**{name: it.get(name) for name in Rating.__slots__}) for it in found)

    def write(self, rated: Sequence[tuple[NewRating, Mapping[str, Any]]]) -> int:
        """Take ratings with the rows that they are of, a later one in place of an earlier; return how many."""
        for rating, row in rated:
            line = self._lines.get(rating.run_id) or _line(rating.run_id, row)
            kept = [it for it in line["ratings"] if (it["metric"], it["rater"]) != (rating.metric, rating.rater)]
            named = {name: getattr(rating, name) for name in ("metric", "value", "rater", "comment")}
            line["ratings"] = [*kept, {**named, "at": rating.at or time.time()}]
            line["label"] = _by_metric(line["ratings"])
            self._lines[rating.run_id] = line
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as stream:
            stream.writelines(json.dumps(line) + "\n" for line in self._lines.values())
        beside.replace(self.path)
        return len(rated)

    def _read(self) -> list[tuple[str, dict[str, Any]]]:
        if not self.path.is_file():
            return []
        with self.path.open("rb") as stream:
            found = map(_good, bounded_lines(stream))
            return [(str(line["row"]), line) for line in found if line is not None]


def _line(run_id: str, row: Mapping[str, Any]) -> dict[str, Any]:
    return {**{name: value for name, value in row.items() if name != "scores"}, "row": run_id, "ratings": []}


def _by_metric(ratings: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for it in ratings:
        if not it["rater"].startswith(FOREIGN):
            found.setdefault(it["metric"], []).append(it["value"])
    return found


def _good(raw: FileLine) -> dict[str, Any] | None:
    """Return a line of our own writing; None for any other, such as one that a person changed."""
    try:
        line = json_of_line(raw.bytes(), takes_nan=True)
        for it in line["ratings"]:
            is_number = 0.0 <= float(it["value"]) <= 1.0 and math.isfinite(float(it["at"]))
            if not (is_number and isinstance(it["metric"], str) and isinstance(it.setdefault("rater", ""), str)):
                return None
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return None
    return line if "row" in line else None
