"""Picture of a calibration report."""

from __future__ import annotations

import math
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from ragtrace.errors import ConfigError, MissingExtra
from ragtrace.report.saving import save, styled
from ragtrace.stats.intervals import clustered_interval

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from ragtrace.scoring.offline.calibration import Calibration
    from ragtrace.stats.intervals import Ends

FORMATS = (".png", ".svg")
HIGH, LOW, INK, PALE = "#1f6f8b", "#d1672b", "#333333", "#bbbbbb"  # told apart by the colour-blind too
BINS = 20
LEGEND_SHARE = 0.4  # of the bars' height, above them
LEAST_IN_A_STEP = 8  # labelled records behind one point of the reliability curve
MOST_STEPS = 8


def check_plot(path: Path) -> None:
    """Check the file name and matplotlib, before any work is done.

    Raises:
        ConfigError: the name does not end with .png or .svg.
        MissingExtra: matplotlib is not installed.
    """
    if path.suffix.lower() not in FORMATS:
        raise ConfigError(f"--plot {path}: the name must end with .png or .svg")
    if find_spec("matplotlib") is None:
        raise MissingExtra("matplotlib", "plots")


def draw(report: Calibration, path: Path) -> None:
    """Draw the report into a file; an empty panel says why.

    Raises:
        OSError: the file cannot be written.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415 -- 0.4 s, for those who draw alone

    with styled(font_size=9.5, title_size=10.5):
        figure = Figure(figsize=(13.0, 4.4), dpi=130, layout="constrained")
        left, middle, right = figure.subplots(1, 3)
        for panel in (left, middle, right):
            panel.spines[["top", "right"]].set_visible(False)
        _scores(left, report)
        _roc(middle, report)
        _reliability(right, report)
        judge = ", ".join(report.makers)
        figure.suptitle(f"{report.title} under {judge}: {len(report.points)} labelled records", fontsize=12)
        save(figure, path)


def _scores(panel: Axes, report: Calibration) -> None:
    """Histogram of the scores of each class, as shares of the class."""
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 -- as above

    panel.set_title("Scores by human label")
    scores, is_high = _classes(report)
    if len(scores) == 0:
        _say(panel, "no labelled record has a score")
        return
    edges = np.linspace(*_range(scores), BINS + 1).tolist()
    panel.set_xlim(*_padded(scores))
    above = 0.0
    for group, colour, name in ((is_high, HIGH, "high label"), (~is_high, LOW, "low label")):
        if group.any():
            weights = np.full(group.sum(), 1.0 / group.sum())
            shares, _, _ = panel.hist(
                scores[group], edges, weights=weights, color=colour, alpha=0.55, label=f"{name} ({group.sum()})"
            )
            above = max(above, float(np.max(shares)))
    panel.set_ylim(0.0, above * (1.0 + LEGEND_SHARE))
    panel.yaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10]))  # no 17.5 % that would be shown as 18
    panel.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    _thresholds(panel, report)
    panel.set_xlabel(report.metric)
    panel.set_ylabel("share of the class")
    panel.legend(loc="upper left", frameon=False, fontsize=8.5)


def _thresholds(panel: Axes, report: Calibration) -> None:
    shown = ((report.threshold, "present", "--"), (report.suggested, "suggested", "-"))
    for threshold, name, style in shown:
        if threshold is not None:
            label = f"{name} threshold {threshold:.3g}"
            panel.axvline(threshold, ymax=1.0 / (1.0 + LEGEND_SHARE), color=INK, lw=1.2, ls=style, label=label)


def _roc(panel: Axes, report: Calibration) -> None:
    """The ROC curve with the present and the suggested threshold on it."""
    panel.set_title("ROC curve")
    ranked = report.figures["auroc"]
    if ranked.value is None:
        _say(panel, f"not given: {ranked.reason}")
        return
    panel.plot([0, 1], [0, 1], color=PALE, lw=1, zorder=1)
    panel.plot(report.roc.false_rate, report.roc.true_rate, color=HIGH, lw=2, zorder=2)  # ties are slopes
    panel.fill_between(report.roc.false_rate, report.roc.true_rate, color=HIGH, alpha=0.08, lw=0)
    for threshold, marker, name in ((report.threshold, "o", "present"), (report.suggested, "s", "suggested")):
        if threshold is not None:
            scores, is_high = _classes(report)
            said = scores >= threshold
            panel.plot(
                said[~is_high].mean(),
                said[is_high].mean(),
                marker,
                color=INK,
                mfc="white" if marker == "o" else INK,
                ms=7,
                ls="none",
                label=f"{name} threshold {threshold:.3g}",
                zorder=3,
            )
    panel.set_xlabel("low labels called high")
    panel.set_ylabel("high labels called high")
    panel.set_xlim(-0.02, 1.02)
    panel.set_ylim(-0.02, 1.02)
    interval = "" if ranked.low is None else f" ({ranked.low:.2f} to {ranked.high:.2f})"
    panel.legend(
        loc="lower right",
        frameon=False,
        fontsize=8.5,
        title=f"AUROC {ranked.value:.2f}{interval}",
        title_fontsize=9.5,
    )


def _reliability(panel: Axes, report: Calibration) -> None:
    """The mean label in equally large steps of the score, with intervals."""
    form = report.form
    correlation = report.figures["spearman"].value
    together = "" if correlation is None else f" (Spearman {correlation:.2f})"
    panel.set_title(f"What people say at each score{together}")
    points = sorted(report.points)
    steps = min(MOST_STEPS, len(points) // LEAST_IN_A_STEP)
    if steps < 2:
        _say(panel, f"not given: {len(points)} labelled records, at least {2 * LEAST_IN_A_STEP} are needed")
        return
    scores = np.array([point[0] for point in points])
    labels = np.array([point[1] for point in points])
    middles, means, lows, highs = [], [], [], []
    for step in _steps(scores, steps):
        mean, low, high = _mean(labels[step], (form.low, form.high))
        middles.append(float(scores[step].mean()))
        means.append(mean)
        lows.append(max(0.0, mean - low))  # at a share of 1 rounding may put the bound above it
        highs.append(max(0.0, high - mean))
    jitter = np.random.default_rng(0).uniform(-0.02, 0.02, len(labels)) * (form.high - form.low)
    panel.plot(scores, labels + jitter, "o", color=PALE, ms=3, alpha=0.5, mew=0, zorder=1)
    panel.errorbar(
        middles, means, yerr=[lows, highs], fmt="o-", color=HIGH, ms=5, lw=1.6, elinewidth=1, capsize=2.5, zorder=3
    )
    panel.set_xlim(*_padded(scores))
    panel.set_xlabel(report.metric)
    panel.set_ylabel("mean label")
    margin = 0.05 * (form.high - form.low)
    panel.set_ylim(form.low - margin, form.high + margin)


def _steps(scores: np.ndarray, number: int) -> list[np.ndarray]:
    """Return index groups of about equal size; equal scores stay together."""
    cuts = np.unique(np.searchsorted(scores, np.quantile(scores, np.arange(1, number) / number), side="left"))
    groups = np.split(np.arange(len(scores)), cuts)
    return [group for group in groups if len(group)]


def _mean(labels: np.ndarray, ends: Ends) -> tuple[float, float, float]:
    mean = float(labels.mean())
    found = clustered_interval(labels.tolist(), ends=ends)
    return mean, mean if found.low is None else found.low, mean if found.high is None else found.high


def _classes(report: Calibration) -> tuple[np.ndarray, np.ndarray]:
    scores = np.array([point[0] for point in report.points])
    labels = np.array([point[1] for point in report.points])
    return scores, labels >= report.form.high_from


def _range(scores: np.ndarray) -> tuple[float, float]:
    """Return the range of the histogram, 0 to 1 for shares."""
    low, high = float(scores.min()), float(scores.max())
    if low >= 0.0 and high <= 1.0:
        return 0.0, 1.0
    return math.floor(low), math.ceil(high) if math.ceil(high) > math.floor(low) else math.floor(low) + 1.0


def _padded(scores: np.ndarray) -> tuple[float, float]:
    low, high = _range(scores)
    return low - 0.03 * (high - low), high + 0.03 * (high - low)


def _say(panel: Axes, text: str) -> None:
    panel.set_xticks([])
    panel.set_yticks([])
    panel.text(0.5, 0.5, text, transform=panel.transAxes, ha="center", va="center", color=INK, wrap=True)
