"""The worked examples of docs/how-to/compare.md: the commands print what the page shows, to some hundredths.

The demo searches the handbook, so that an edit of it moves the figures a little; words, counts and verdicts stay.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "compare.md"
NUMBER = re.compile(r"[+-]?\d+\.\d{3}")
HUNDREDTHS = 0.04


def blocks(kind):
    return re.findall(rf"```{kind}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def run(commands, folder):
    """Run a block as a shell does, with the ragtrace of this interpreter."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("RAGTRACE_", "OPENAI_"))}
    ragtrace = f'ragtrace() {{ "{sys.executable}" -m ragtrace "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-ec", ragtrace + commands],  # noqa: S607 - bash, as a reader has it
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=250,
        check=True,
    )
    return done.stdout


def form(line):
    return " ".join(NUMBER.sub("#", line).split())


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("which", [0, 1])
def test_the_examples_print_what_the_page_shows(which, tmp_path):
    printed = run(blocks("sh")[which], tmp_path)
    left = iter(printed.splitlines())
    for shown in filter(None, map(str.strip, blocks("text")[which].splitlines())):
        found = next((line for line in left if form(line) == form(shown)), None)
        assert found is not None, f"{shown!r} is not printed in its place:\n{printed}"
        for said, true in zip(NUMBER.findall(shown), NUMBER.findall(found), strict=True):
            assert float(true) == pytest.approx(float(said), abs=HUNDREDTHS), f"{shown!r} beside {found!r}"
    assert which == 1 or (tmp_path / "compare.png").stat().st_size > 10_000
