"""Runs an example as a user does, in a process and a folder of its own."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from tests.command_line import environment
from tests.environments import ROOT

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLES = ROOT / "examples"


def run(folder: Path, *command: object, python: object = sys.executable, status: int = 0, **env: str) -> str:
    """Run ``python COMMAND`` in a folder; return what it prints on both streams, with single blanks."""
    done = subprocess.run(
        [str(python), *map(str, command)],
        cwd=folder, env=environment(**env), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == status, f"{done.stdout}\n{done.stderr}"[-4_000:]
    return " ".join(f"{done.stdout}\n{done.stderr}".split())


def ragtrace(folder: Path, *command: object, **more: Any) -> str:
    """Run a command of ragtrace there."""
    return run(folder, "-m", "ragtrace", *command, **more)


def with_model(url: str) -> list[str]:
    return ["--model", "loopback", "--base-url", url]


def rows(store: Path, sql: str) -> list[Any]:
    """Read a store; one column gives its values."""
    connection = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
    try:
        found = connection.execute(sql).fetchall()
    finally:
        connection.close()
    return [row[0] if len(row) == 1 else row for row in found]


def written_output(example: str) -> list[str]:
    """Return the lines that a README shows as output, without trace ids and times."""
    text = (EXAMPLES / example / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    assert blocks, example
    return [" ".join(line.split()) for block in blocks for line in block.splitlines() if line.strip()]
