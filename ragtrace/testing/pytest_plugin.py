"""The fixture `ragtrace_eval`, which pytest finds by the entry point ``pytest11`` of this distribution.

A test run that never asks for it imports this module and no scorer; ``-p no:ragtrace`` leaves it out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ragtrace.testing.evaluating import Evaluator

_PROPERTY = "ragtrace"
_FIGURES = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def ragtrace_eval(pytestconfig: pytest.Config) -> Evaluator:
    """Score answers and hold their means against thresholds; see `ragtrace.testing.evaluating.Evaluator`."""
    from ragtrace.testing.evaluating import Evaluator  # noqa: PLC0415 -- numpy, for those who score alone

    return Evaluator(pytestconfig.stash.setdefault(_FIGURES, []).append)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> None:
    """Attach the figures of a test to its report, which JUnit files and xdist carry on."""
    figures = item.config.stash.get(_FIGURES, [])
    item.user_properties.extend((_PROPERTY, figure) for figure in figures)
    figures.clear()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures of every test that passed or failed."""
    reports = [report for outcome in ("passed", "failed") for report in terminalreporter.getreports(outcome)]
    lines = [
        f"{report.nodeid}: {figure}"
        for report in reports
        if report.when == "call"
        for name, figure in report.user_properties
        if name == _PROPERTY
    ]
    if lines:
        terminalreporter.section("ragtrace scores")
        for line in lines:
            terminalreporter.write_line(line)
