"""The worked example of docs/how-to/two-judges.md: what it shows is what the command prints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "two-judges.md"


def test_the_example_prints_what_the_page_shows(tmp_path: Path) -> None:
    plan = PAGE.read_text(encoding="utf-8").partition("## Which runs to judge")[2]
    blocks = dict(re.findall(r"```(python|sh|text)\n(.*?)```", plan, re.DOTALL))
    env = {name: value for name, value in os.environ.items() if not name.startswith(("RAGTRACE_", "OPENAI_"))}

    def run(*command: str) -> str:
        args = [sys.executable, *command]
        done = subprocess.run(args, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=True)
        return done.stdout

    run("-c", blocks["python"])
    name, *args = blocks["sh"].split()
    assert name == "ragtrace"
    printed = [line.rstrip() for line in run("-m", "ragtrace", *args).splitlines() if line.strip()]
    assert [line.rstrip() for line in blocks["text"].splitlines() if line.strip()] == printed
