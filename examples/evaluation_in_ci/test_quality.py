"""Fails a pull request whose answers fall below a threshold: ``pytest test_quality.py``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))  # in a project of yours the application is installed

import app

if TYPE_CHECKING:
    from ragtrace.testing.evaluating import Evaluator


def test_answers_stay_with_their_passages(ragtrace_eval: Evaluator) -> None:
    """Hold the means of the whole dataset against thresholds."""
    ragtrace_eval(app.answer, app.dataset()).check(faithfulness=0.85, answered=0.9)


def test_prices_are_never_invented(ragtrace_eval: Evaluator) -> None:
    """Hold each answer by itself against a threshold, where one bad answer is one too many."""
    ragtrace_eval(app.answer, ["What does a day in the pool cost?"]).check(invented_specifics=0, each=True)
