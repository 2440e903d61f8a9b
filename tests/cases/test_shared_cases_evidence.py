"""The scripts of ../shared on evidence and the order of pools exit with 0."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases.numbers.reading import environment

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
APPS = ROOT.parent / "shared" / "cases" / "apps"


@pytest.mark.parametrize("number", ["02", "03", "04", "05", "06", "07", "09", "13"])
def test_the_case_exits_with_0(number):
    scripts = list(APPS.glob(f"{number}-*.py"))
    if not scripts:
        pytest.skip("the cases of ../shared are not on this machine")
    pytest.importorskip("langchain.agents")
    pytest.importorskip("langchain_classic")
    places = [".", "integrations/langchain", "integrations/llamaindex", str(APPS)]
    done = subprocess.run(
        [sys.executable, str(scripts[0])],
        env=environment(PYTHONPATH=":".join(places)), cwd=ROOT, capture_output=True, text=True, timeout=200,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-2_000:]}{done.stderr[-2_000:]}"
