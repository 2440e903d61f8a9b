"""Plugin of a framework's pytest: writes what became of each test into the file FRAMEWORKS_OUTCOMES."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

_outcomes: dict[str, str] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep the outcome of the call; a set-up or tear-down that fails or skips comes before it."""
    if report.when == "call" or report.outcome != "passed":
        _outcomes[report.nodeid] = (
            "failed" if "failed" in {report.outcome, _outcomes.get(report.nodeid)} else report.outcome
        )


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):  # xdist's workers report to the process that started them
        Path(os.environ["FRAMEWORKS_OUTCOMES"]).write_text(json.dumps(_outcomes))
