"""The scripts of ../shared that ask a service or a framework exit with 0, run as their pages say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases.numbers.reading import environment

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
CASES = {
    "suites": "01-inline-hides-llm-start 02-empty-stream-of-async-iterator 03-langgraph-dev-keeps-no-score",
    "numbers": "01-budget-spent-mean 02-refused-runs-not-in-bounds 08-corrected-mean-few-labels",
    "reports": """
        01-question-of-a-resumed-run 02-question-from-an-inner-step 03-answer-of-an-earlier-turn
        04-answer-given-by-a-tool 05-llamaindex-resumed-run-is-lost 06-llamaindex-waiting-is-no-error
        07-thoughts-are-no-answer 08-judge-reply-that-quotes-a-think-tag 09-cached-replies-cost-no-tokens
        10-one-id-for-many-chunks 11-scalars-in-metadata 12-unicode-forms 13-stopped-at-a-breakpoint
        """,
    "apps": """
        01-engine-then-search 02-own-words-as-evidence 03-findings-as-tool-message 04-extract-loses-its-passage
        05-pool-order-of-hops 06-pool-order-of-parallel-tools 07-database-rows-unread
        08-structured-answer-llamaindex 09-hand-off-is-context 10-picture-reached-the-prompt
        11-broken-stream-loses-its-answer 12-support-check-is-a-run 13-mark-selected-in-a-text-tool
        14-short-sub-answers
        """,
    "investigate": """
        01-size-of-a-fresh-fall 02-judge-version 03-size-since-onset 04-times-of-runs 05-writer-waits 06-quiet-months
        """,
}
# What a script asks that has another name now, and how it is asked.
PORTED = {
    "apps/07-database-rows-unread.py": (
        'run.record.lossy.get("context_unread")',
        'any(sign.name == "evidence_unread" for sign in run.record.signs)',
    ),
    "apps/12-support-check-is-a-run.py": (
        "for r in kept.runs",
        'for r in kept.runs if all(sign.name != "follows_answer" for sign in r.record.signs)',
    ),
}


@pytest.mark.parametrize("case", [f"{kind}/{name}.py" for kind, names in CASES.items() for name in names.split()])
def test_the_case_exits_with_0(case, tmp_path):
    script = ROOT.parent / "shared" / "cases" / case
    if not script.is_file():
        pytest.skip("the cases of ../shared are not on this machine")
    if case.startswith(("suites/02", "apps/04")):
        pytest.importorskip("langchain_classic")
    if case.startswith("suites/03"):
        pytest.importorskip("blockbuster")
    if case in PORTED:
        old, new = PORTED[case]
        text = script.read_text(encoding="utf-8")
        assert old in text
        ported = tmp_path / script.name
        ported.write_text(text.replace(old, new), encoding="utf-8")
    else:
        ported = script
    places = [".", "integrations/langchain", "integrations/llamaindex", str(script.parent)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.cases.at_noon", str(ported)],
        env=environment(PYTHONPATH=":".join(places)), cwd=ROOT, capture_output=True, text=True, timeout=200,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-2_000:]}{done.stderr[-2_000:]}"
