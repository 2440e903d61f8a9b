"""What the process tests look at: points of a metric, and a condition that will hold."""

from __future__ import annotations

import time


def points(reader, name):
    data = reader.get_metrics_data()
    metrics = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics if m.name == name]
    return {tuple(sorted(p.attributes.items())): p.value for m in metrics for p in m.data.data_points}


def until(condition, seconds=60, running=None):
    """Wait for a condition; a process that was to bring it about and has ended says why."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert running is None or running.poll() is None, (running.returncode, running.communicate())
        assert time.monotonic() < deadline
        time.sleep(0.02)
