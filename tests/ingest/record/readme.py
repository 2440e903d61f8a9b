"""README of the fixtures, from the table of recordings and the files that stand there."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tests.ingest.record.recordings import RECORDINGS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.ingest.record.recordings import Recording

TOP = """\
# Recorded traces

Requests of real instrumentations over one application, the help centre of a web shop (`../record/application`): three
questions, of which the first is answered well, the second with an invented sentence, and the third over an empty
retrieval. Each line is one `ExportTraceServiceRequest` as OTLP JSON, as the SDK's OTLP/HTTP exporter sent it, without
attributes of the host, the process and its folders.

`python -m tests.ingest.record [NAME ...]` records them anew. This page is written by it.

| name | package | recorded | content |
|---|---|---|---|
"""


def write_readme(folder: Path) -> None:
    """Write the table of the fixtures that were recorded."""
    rows = []
    for recording in RECORDINGS:
        path = folder / recording.dialect / f"{recording.name}.jsonl"
        if path.exists():
            rows.append(_row(recording, path))
    (folder / "README.md").write_text(TOP + "".join(rows), encoding="utf-8")


def _row(recording: Recording, path: Path) -> str:
    package = "this repository" if recording.package == "." else f"`{recording.package}`"
    day = datetime.fromtimestamp(_first_ns(path) / 1e9, UTC).date()
    content = f"`{recording.content}`" if recording.environ else recording.content
    return f"| {recording.dialect}/{recording.name} | {package} | {day} | {content} |\n"


def _first_ns(path: Path) -> int:
    request = json.loads(path.read_text(encoding="utf-8").partition("\n")[0])
    return int(request["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["startTimeUnixNano"])
