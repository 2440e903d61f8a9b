"""Reads the drift detector of the watched metric out of the running service."""

from __future__ import annotations

from ragtrace.demo.progress import WATCHED, DetectorLine
from ragtrace.service import current


def read_detector() -> DetectorLine | None:
    """Return the detector's state as of the last score; None before the first."""
    service = current()
    state = None if service is None else service.drift.state(WATCHED)
    if service is None or state is None:
        return None
    return DetectorLine(
        state=state.state,
        seen=state.seen,
        baseline_n=service.settings.drift_baseline,
        baseline_mean=state.baseline_mean,
        statistic=state.statistic,
        threshold=state.threshold or 0.0,
        changed_at=state.changed_at,
    )
