"""Worked examples of the pages in docs/how-to: their blocks, and the commands in them as a reader runs them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.command_line import environment

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "how-to"


def blocks(page: str, kind: str, after: str = "") -> list[str]:
    """Return the code blocks of one kind on a page, those behind a heading alone if one is given."""
    text = (FOLDER / f"{page}.md").read_text(encoding="utf-8")
    assert after in text
    return re.findall(rf"```{kind}\n(.*?)```", text.partition(after)[2] if after else text, re.DOTALL)


def run_python(code: str, folder: Path) -> None:
    """Run a Python block."""
    _output([sys.executable, "-c", code], folder)


def run_shell(commands: str, folder: Path) -> str:
    """Run a block as a shell does, with the ragtrace of this interpreter; return what it prints."""
    ragtrace = f'ragtrace() {{ "{sys.executable}" -m ragtrace "$@"; }}\n'
    return _output(["bash", "-ec", ragtrace + commands], folder)


def lines(text: str) -> list[str]:
    """Return the lines that are not blank, without what stands at their ends."""
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def _output(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=250, check=True
    )
    return done.stdout
