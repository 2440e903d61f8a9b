"""The worked examples of docs/how-to/compare.md: the commands print what the page shows, to some hundredths.

The demo searches the handbook, so that an edit of it moves the figures a little; words, counts and verdicts stay.
"""

from __future__ import annotations

import re

import pytest

from tests.e2e.howto import blocks, run_shell

NUMBER = re.compile(r"[+-]?\d+\.\d{3}")
HUNDREDTHS = 0.04


def form(line):
    return " ".join(NUMBER.sub("#", line).split())


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("which", [0, 1])
def test_the_examples_print_what_the_page_shows(which, tmp_path):
    printed = run_shell(blocks("compare", "sh")[which], tmp_path)
    left = iter(printed.splitlines())
    for shown in filter(None, map(str.strip, blocks("compare", "text")[which].splitlines())):
        found = next((line for line in left if form(line) == form(shown)), None)
        assert found is not None, f"{shown!r} is not printed in its place:\n{printed}"
        for said, true in zip(NUMBER.findall(shown), NUMBER.findall(found), strict=True):
            assert float(true) == pytest.approx(float(said), abs=HUNDREDTHS), f"{shown!r} beside {found!r}"
    assert which == 1 or (tmp_path / "compare.png").stat().st_size > 10_000
