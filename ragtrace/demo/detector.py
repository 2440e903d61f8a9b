"""Reads the drift detector of the watched metric out of the running service."""

from __future__ import annotations

from ragtrace.demo.progress import WATCHED, DetectorLine
from ragtrace.service import current

# A demo asks 300 questions within a minute: a library's promise of 73,000 scores and an hour is not for it.
TARGET_ARL = 1_000.0
SPAN_S = 0.0
TOLERANCE = 0.01


def quicken_detector() -> None:
    """Let the detectors of the running service alarm as early as a demo needs; call it before the first score."""
    service = current()
    if service is not None:
        service.drift.target_arl, service.drift.span_s = TARGET_ARL, SPAN_S


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
        statistic=state.statistic or 0.0,
        threshold=state.threshold or 0.0,
        changed_at=state.changed_at,
    )
