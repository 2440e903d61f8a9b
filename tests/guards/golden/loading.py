"""Reads golden vectors: from RAGTRACE_GOLDEN_DIR, else from the copy beside this file; and edges in their form."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
COPY = HERE / "vectors"
EDGES = HERE / "edges.json"


class Vector(NamedTuple):
    """One record with the file it is in."""

    file: str
    name: str
    record: dict[str, Any]


def folder() -> Path:
    given = os.environ.get("RAGTRACE_GOLDEN_DIR", "").strip()
    return Path(given).expanduser() if given else COPY


def vectors(where: Path) -> list[Vector]:
    """Return every record of every file, in order; ids may be missing or repeat."""
    found = []
    for path in sorted(where.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        records = content if isinstance(content, list) else content["records"]
        for place, record in enumerate(records):
            name = f"{path.stem}-{place}-{record.get('id', '')}"
            found.append(Vector(path.stem, name, {"metric": path.stem, **record}))
    return found


def edges() -> list[Vector]:
    """Return what the vectors do not hold, in their form."""
    records = json.loads(EDGES.read_text(encoding="utf-8"))
    return [Vector(record["metric"], record["id"], record) for record in records]


def na_reason(record: dict[str, Any]) -> str | None:
    """Return the reason a record expects, from either place it may be in."""
    expected = record.get("expected")
    inside = expected.get("na") if isinstance(expected, dict) else None
    return record.get("na_reason") or inside
