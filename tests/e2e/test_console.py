"""What a person reads on the terminal of an application with `console=True`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.guards.judge_server import Answer, JudgeServer, completion

if TYPE_CHECKING:
    from pathlib import Path

APPLICATION = """
import json, sys, ragtrace
runs, settings = json.loads(sys.argv[1])
ragtrace.configure(sample_rate=1.0, console=True, **settings)
for question, contexts, answer in runs:
    with ragtrace.query(question) as run:
        run.retrieved(contexts)
        run.answered(answer)
    ragtrace.flush()
"""
ENGLISH = (
    "How do I cancel?",
    ["You can cancel in Settings, under Billing."],
    "Cancel in Settings, under Billing. A fee of 40 euros applies.",
)
GERMAN = (
    "Wann ist die Bibliothek geöffnet?",
    ["Die Bibliothek in der Hauptstraße ist von Montag bis Freitag geöffnet und am Wochenende geschlossen."],
    "Die Bibliothek ist von Montag bis Freitag geöffnet und am Wochenende leider geschlossen.",
)
CHINESE = (
    "图书馆几点开门?",
    ["图书馆周一至周五上午九点至下午六点开放,周末闭馆。"],
    "图书馆周一至周五上午九点开放。",
)
NOTHING_FOUND = ("How do I cancel?", [], "Cancel in Settings, under Billing.")
LANGUAGE = (
    "na (unsupported_language) in every run so far, since the offline judge and invented_specifics read English"
)


def terminal(tmp_path: Path, runs: list[Any], **settings: Any) -> list[str]:
    """Return the lines of standard error of an application that answered some questions."""
    keep = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "RAGTRACE_"))}
    off = dict.fromkeys(("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_LOGS_EXPORTER"), "none")
    done = subprocess.run(
        [sys.executable, "-c", APPLICATION, json.dumps([runs, settings])],
        cwd=tmp_path, env={**keep, **off}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    return done.stderr.splitlines()


def of_runs(lines: list[str]) -> list[str]:
    return [line.partition(" | ")[0] for line in lines if " | trace " in line]


@pytest.mark.parametrize("run", [GERMAN, CHINESE], ids=["german", "chinese"])
def test_a_language_that_the_judge_cannot_read_is_told_once(tmp_path: Path, run: Any) -> None:
    lines = terminal(tmp_path, [run] * 5)
    told = [line for line in lines if "unsupported_language" in line]
    assert len(told) == 1
    first = next(n for n, line in enumerate(lines) if " | trace " in line)
    assert told == [lines[first + 1]], "behind the first run"
    assert told[0].startswith(
        f"ragtrace: faithfulness, invented_specifics: {LANGUAGE} alone; choose a language model"
    )
    shown = of_runs(lines)
    assert len(shown) == 5
    assert all("answered 1.00" in line for line in shown)
    # The verdict that follows from it is a run's own, and said of every run once three runs have had it.
    assert ["diagnosis undetermined (claims_unknown)" in line for line in shown] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert sum("diagnosis: na (undetermined: claims_unknown) in every run so far" in line for line in lines) == 1


def test_a_reason_of_some_runs_is_shown_at_these_runs(tmp_path: Path) -> None:
    lines = terminal(tmp_path, [ENGLISH, GERMAN, ENGLISH, GERMAN, GERMAN, GERMAN], metrics="faithfulness")
    low, absent = (
        "ragtrace: faithfulness 0.50 LOW (bad below 0.57)",
        "ragtrace: faithfulness na (unsupported_language)",
    )
    assert of_runs(lines) == [low, absent, low, absent, absent, absent]
    assert not [line for line in lines if "in every run" in line]


def test_a_reason_that_held_for_every_run_is_shown_again_once_it_does_not(tmp_path: Path) -> None:
    lines = terminal(tmp_path, [GERMAN, GERMAN, ENGLISH, GERMAN], metrics="faithfulness")
    assert of_runs(lines) == [
        "ragtrace: no score",
        "ragtrace: no score",
        "ragtrace: faithfulness 0.50 LOW (bad below 0.57)",
        "ragtrace: faithfulness na (unsupported_language)",
    ]
    first = next(n for n, line in enumerate(lines) if " | trace " in line)
    assert [n for n, line in enumerate(lines) if LANGUAGE in line] == [first + 1]


def test_a_reason_that_a_run_may_decide_is_one_of_every_run_from_the_third_on(tmp_path: Path) -> None:
    lines = terminal(tmp_path, [NOTHING_FOUND] * 5, metrics="faithfulness,mrr")
    absent = "ragtrace: faithfulness na (no_contexts)"
    assert of_runs(lines) == [absent, absent, *["ragtrace: no score"] * 3]
    told = [line for line in lines if "in every run" in line]
    assert told[0].startswith("ragtrace: mrr: na (")
    assert told[1] == (
        "ragtrace: faithfulness: na (no_contexts) in every run so far, since nothing was retrieved, or no passage "
        "reached the prompt; look whether the search is captured, and what it finds"
    )
    assert len(told) == 2


def test_a_metric_that_the_judge_cannot_compute_is_told_once(tmp_path: Path) -> None:
    lines = terminal(tmp_path, [ENGLISH] * 3, metrics="faithfulness,context_sufficiency,nuggets")
    told = [line for line in lines if "unsupported_by_judge" in line]
    assert len(told) == 1
    assert "context_sufficiency" in told[0]
    assert "nuggets_all" in told[0]
    assert "leave the metric out" in told[0]


def test_of_two_judges_each_mark_names_the_threshold_of_its_own(tmp_path: Path, judge_server: JudgeServer) -> None:
    verdicts = [{"id": 1, "sources": [1], "reason": "", "verdict": "supported"}]
    verdicts += [{"id": n, "sources": [], "reason": "", "verdict": "not_supported"} for n in (2, 3)]
    audit = {
        "attempted": True,
        "noncommittal": False,
        "claims": ["a", "b", "c"],
        "verdicts": verdicts,
        "citations": [],
    }
    judge_server.always = lambda _: Answer(200, completion(audit))
    lines = terminal(
        tmp_path, [ENGLISH], judge="openai:m", judge_base_url=judge_server.url, first_judge="overlap",
        judge_rates={"0": 1.0}, metrics="faithfulness",
    )  # fmt: skip
    assert of_runs(lines) == [
        "ragtrace: faithfulness 0.50 LOW (bad below 0.57), faithfulness 0.33 LOW (bad below 0.8)"
    ]
