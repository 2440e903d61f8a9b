"""A file of ours whose pages are broken, as no process has had it open."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from ragtrace.sqlite_file import APPLICATION_ID

if TYPE_CHECKING:
    from pathlib import Path

JUNK = b"this is no page"


def break_file(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("CREATE TABLE IF NOT EXISTS ledger (n)")
    header = path.read_bytes()[:100]
    path.write_bytes(header + JUNK * 600)
