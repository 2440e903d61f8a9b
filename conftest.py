"""For tests and executed docstrings alike: what configures itself here exports nowhere unless a test says so."""

from __future__ import annotations

import os

for _signal in ("TRACES", "METRICS", "LOGS"):
    os.environ.setdefault(f"OTEL_{_signal}_EXPORTER", "none")
