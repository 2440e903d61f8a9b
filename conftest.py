"""For tests and executed docstrings alike: what is started here exports nowhere, and can be interrupted."""

from __future__ import annotations

import gc
import os
import signal
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

for _signal in ("TRACES", "METRICS", "LOGS"):
    os.environ.setdefault(f"OTEL_{_signal}_EXPORTER", "none")

# A job in the background of a shell ignores Ctrl-C, and so would every command that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Executed docstrings import every module; these engines are in an environment of their own.
_ENGINES = {"dask": "distributed", "ray": "ray", "spark": "pyspark"}
collect_ignore = [f"ragtrace/batch/engines/{name}.py" for name, needs in _ENGINES.items() if not find_spec(needs)]


def pytest_collection_finish() -> None:
    """Freeze imported modules and collected tests, which a full garbage collection walks in 0.2 s."""
    gc.collect()  # garbage that is frozen stays for ever
    gc.freeze()


@pytest.fixture(autouse=True)
def _nothing_decorated() -> Iterator[None]:
    """Forget what a test decorated as evidence: a later one may have a function of that name."""
    yield
    declared = sys.modules.get("ragtrace.capture.declared")
    if declared is not None and declared.noted().evidence:
        declared._noted = declared._Noted()  # noqa: SLF001
