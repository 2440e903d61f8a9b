"""Sentences that the live view, the plain lines and the closing summary share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace.demo.progress import Alarm, DetectorLine, MetricLine


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with fixed digits, a dash for none.

    Example:
        >>> number(0.5), number(None)
        ('0.500', '-')
    """
    return "-" if value is None else f"{value:.{digits}f}"


def bounds(line: MetricLine) -> str:
    """Return the interval of a metric, a dash where there is none."""
    return "-" if line.low is None or line.high is None else f"{line.low:.3f} to {line.high:.3f}"


def reasons(counts: Mapping[str, int]) -> str:
    """Return counts with their reasons, most frequent first, 0 for none.

    Example:
        >>> reasons({"abstained": 2, "no_claims": 9}), reasons({})
        ('9 no_claims, 2 abstained', '0')
    """
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count} {reason}" for reason, count in ordered) or "0"


def detector(line: DetectorLine | None) -> str:
    """Return the state of the detector in words."""
    if line is None:
        return "waits for its first score"
    if line.state == "learning":
        return f"learning its baseline: {line.seen} of {line.baseline_n} scores"
    evidence = f"statistic {line.statistic:.1f} of {line.threshold:.1f}"
    return f"{line.state}: {evidence}, baseline {number(line.baseline_mean)}"


def what_fell(alarm: Alarm) -> str:
    """Return what dropped, and where it was noticed."""
    return (
        f"{alarm.metric} fell from {alarm.baseline_mean:.3f} (baseline) to {alarm.recent_mean:.3f}"
        f" (last {alarm.recent_n})"
    )


def when(alarm: Alarm) -> str:
    """Return when the alarm came, against the incident."""
    if alarm.after_incident is None:
        return f"found at question {alarm.question}, although no incident was staged: a false alarm"
    if alarm.after_incident < 1:
        return f"found at question {alarm.question}, before the incident began: a false alarm"
    return (
        f"found at question {alarm.question}, {alarm.after_incident} into the incident;"
        f" change placed at {alarm.changed_at}"
    )


def why(alarm: Alarm) -> str:
    """Return the evidence."""
    return f"evidence of a drop: e-detector {alarm.statistic:.1f} crossed its threshold {alarm.threshold:.1f}"
