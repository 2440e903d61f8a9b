"""Rows scored as a user does it: `ragtrace score`, in a process of its own."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.guards.processes import started

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


class Scored(NamedTuple):
    """What a run of the command left.

    Attributes:
        scores: by id of the row, then by name of the number.
        status: its exit status.
        said: what it printed, on both streams.
        peak_mb: the most memory that it held, in megabytes.
    """

    scores: dict[str, dict[str, Any]]
    status: int
    said: str
    peak_mb: float


def score(
    folder: Path, rows: Sequence[Mapping[str, Any]], *options: str, variables: Mapping[str, str] | None = None
) -> Scored:
    """Score rows, with no settings but those that are given."""
    given, out, printed = folder / "rows.jsonl", folder / "scored.jsonl", folder / "printed"
    given.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    out.unlink(missing_ok=True)
    command = ["-m", "ragtrace", "score", given, "--out", out, *options]
    with printed.open("wb") as stream:
        process = started(*command, stdout=stream, stderr=stream, **(variables or {}))
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()] if out.exists() else []
    return Scored(
        {line["id"]: line["scores"] for line in lines},
        process.returncode,
        printed.read_text(encoding="utf-8", errors="replace"),
        used.ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2),
    )
