"""Run a script with the clock of budgets set to noon, UTC: ``python -m tests.cases.at_noon SCRIPT``.

In a day's last minutes runs over its budget wait for the next one, and what waits is not due yet. A script that
says what a spent budget does must not run then.
"""

from __future__ import annotations

import runpy
import sys
import time

from ragtrace.host import Clock

_DAY_S = 86_400.0

if __name__ == "__main__":
    ahead_s = (1.5 * _DAY_S - time.time() % _DAY_S) % _DAY_S
    Clock.wall = lambda _: time.time() + ahead_s  # type: ignore[method-assign]
    runpy.run_path(sys.argv[1], run_name="__main__")
