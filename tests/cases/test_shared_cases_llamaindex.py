"""The scripts of ../shared on questions, answers and evidence of LlamaIndex runs exit with 0."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases.numbers.reading import environment

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
CASES = [
    "reports/05-llamaindex-resumed-run-is-lost.py",
    "reports/06-llamaindex-waiting-is-no-error.py",
    "apps/01-engine-then-search.py",
]


@pytest.mark.parametrize("case", CASES)
def test_the_case_exits_with_0(case):
    script = ROOT.parent / "shared" / "cases" / case
    if not script.is_file():
        pytest.skip("the cases of ../shared are not on this machine")
    places = [".", "integrations/langchain", "integrations/llamaindex", str(script.parent)]
    done = subprocess.run(
        [sys.executable, str(script)],
        env=environment(PYTHONPATH=":".join(places)), cwd=ROOT, capture_output=True, text=True, timeout=200,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-2_000:]}{done.stderr[-2_000:]}"
