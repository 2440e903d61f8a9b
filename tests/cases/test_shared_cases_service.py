"""The scripts of ../shared that ask a service or a framework exit with 0, run as their pages say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases.numbers.reading import environment

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
CASES = [
    "suites/01-inline-hides-llm-start.py",
    "suites/02-empty-stream-of-async-iterator.py",
    "numbers/01-budget-spent-mean.py",
    "numbers/02-refused-runs-not-in-bounds.py",
    "numbers/08-corrected-mean-few-labels.py",
    "suites/03-langgraph-dev-keeps-no-score.py",
    "reports/07-thoughts-are-no-answer.py",
    "reports/08-judge-reply-that-quotes-a-think-tag.py",
    "reports/10-one-id-for-many-chunks.py",
    "reports/12-unicode-forms.py",
    "apps/10-picture-reached-the-prompt.py",
    "apps/14-short-sub-answers.py",
    "reports/09-cached-replies-cost-no-tokens.py",
    "reports/11-scalars-in-metadata.py",
    "apps/08-structured-answer-llamaindex.py",
    "apps/11-broken-stream-loses-its-answer.py",
]


@pytest.mark.parametrize("case", CASES)
def test_the_case_exits_with_0(case):
    script = ROOT.parent / "shared" / "cases" / case
    if not script.is_file():
        pytest.skip("the cases of ../shared are not on this machine")
    if case.startswith("suites/02"):
        pytest.importorskip("langchain_classic")
    if case.startswith("suites/03"):
        pytest.importorskip("blockbuster")
    places = [".", "integrations/langchain", "integrations/llamaindex", str(script.parent)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.cases.at_noon", str(script)],
        env=environment(PYTHONPATH=":".join(places)), cwd=ROOT, capture_output=True, text=True, timeout=200,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-2_000:]}{done.stderr[-2_000:]}"
