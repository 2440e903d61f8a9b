"""The application's process stays light: what capture, spans and metrics bring in."""

from __future__ import annotations

import subprocess
import sys


def test_telemetry_brings_in_neither_numpy_nor_exporters():
    code = (
        "import sys, ragtrace.semconv, ragtrace.telemetry.spans.writer, ragtrace.telemetry.metrics.instruments,"
        " ragtrace.telemetry.spans.evaluation;"
        "heavy = {'numpy', 'pydantic', 'openai', 'grpc', 'requests', 'sqlite3', 'opentelemetry.sdk'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
