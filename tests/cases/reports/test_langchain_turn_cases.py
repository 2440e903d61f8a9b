"""The case scripts beside the checkout on questions, answers and outcomes of LangChain runs exit with 0."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CASES = ROOT.parent / "shared" / "cases"
SCRIPTS = (
    "reports/01-question-of-a-resumed-run.py",
    "reports/02-question-from-an-inner-step.py",
    "reports/03-answer-of-an-earlier-turn.py",
    "reports/04-answer-given-by-a-tool.py",
    "reports/13-stopped-at-a-breakpoint.py",
    "apps/12-support-check-is-a-run.py",
)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_case_script_exits_with_0(script: str) -> None:
    case = CASES / script
    if not case.is_file():
        pytest.skip(f"the case script ../shared/cases/{script} is not on this machine")
    parts = (ROOT, ROOT / "integrations/langchain", ROOT / "integrations/llamaindex", case.parent)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, parts)), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, str(case)], cwd=ROOT, env=environ, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
