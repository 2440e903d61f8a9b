"""The calibration report as lines that a person reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.scoring.offline.calibration import strength_of_alpha
from ragtrace.stats.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ragtrace.scoring.offline.calibration import Calibration

    Row = tuple[str, Figure, str]

_UNBIASED = "read a mean of these scores with the corrected mean beside it"
_BIASED = "trust no mean of these scores before runs of all kinds are labelled"


def findings(report: Calibration) -> list[str]:
    """Return the findings from the figures, a sentence each."""
    found = [*_about_mixtures(report), *_about_unscored(report), *about_choice(report.kept_as_bad, report.labelled)]
    if report.suggested is not None:
        found.append(_about_threshold(report, report.suggested))
    alpha = report.figures["alpha"].value
    if alpha is not None and strength_of_alpha(alpha) == "too low":
        found.append(f"alpha is below .667: {_BIASED if report.kept_as_bad else _UNBIASED}")
    if report.has_length_alarm:
        found.append("the score goes with the length of the answer; look at long and short answers apart")
    if report.mean is not None and report.mean.n_unlabelled and not report.kept_as_bad:
        found.append("the corrected mean holds if the labelled records are a random choice of all")
    return found


def about_choice(kept_as_bad: Mapping[str, int], labelled: int) -> Iterator[str]:
    """Yield that labelled runs were chosen for being bad, where some were.

    Example:
        >>> list(about_choice({"low": 9, "flagged": 3}, 40))[0].partition(":")[0]
        '12 of 40 labelled runs were kept for being bad (9 low, 3 flagged)'
        >>> list(about_choice({}, 40))
        []
    """
    if kept_as_bad:
        reasons = ", ".join(f"{n} {reason}" for reason, n in kept_as_bad.items())
        yield (
            f"{sum(kept_as_bad.values())} of {labelled} labelled runs were kept for being bad ({reasons}): their"
            " labels and the corrected mean do not stand for all runs;"
            ' set store_texts="all" and label runs that come after'
        )


def _about_mixtures(report: Calibration) -> Iterator[str]:
    if len(report.makers) > 1:
        yield f"scores of different judges or versions are mixed: {', '.join(report.makers)}"
    if len(report.ks) > 1:
        known = ", ".join(map(str, report.ks))
        yield f"scores at different K are mixed: {known}; name one: --metric {report.metric}@{report.ks[0]}"
    if len(report.label_scales) > 1:
        yield f"scores over different label scales are mixed: {', '.join(report.label_scales)}"


def _about_unscored(report: Calibration) -> Iterator[str]:
    unscored, labelled = report.unscored
    if labelled:
        kept = "it counts in the label means, not in the judge's"
        yield f"{unscored} records have no score, {labelled} of them a label: {kept}"


def _about_threshold(report: Calibration, suggested: float) -> str:
    now = report.figures["balanced_accuracy"].value
    there = report.figures["balanced_accuracy_cross_validated"].value
    if now is not None and there is not None and there <= now:
        return f"the present threshold {report.threshold:g} is as good as any: keep it"
    return f"a threshold of {suggested:.3g} separates the classes best"


def head(report: Calibration, label: str) -> Iterator[str]:
    """Yield whose scores were compared with which labels, and how many there are."""
    raters = "1 rater" if report.raters == 1 else f"{report.raters} raters"
    judge = ", ".join(report.makers) or "no score"
    yield f"{report.title} ({judge}) against {label} ({report.form.name}, {raters})"
    states = ", ".join(f"{number} {state}" for state, number in sorted(report.states.items(), key=lambda s: -s[1]))
    yield f"{report.records} records: {states}; {report.labelled} labelled"
    high, low = report.classes
    bound = f"{report.form.high_from:g}"
    yield f"labelled and scored: {high} of the high class (label >= {bound}), {low} of the low one (below)"


def rows(report: Calibration) -> Iterator[Row]:
    """Yield each figure with its name and a note."""
    figures = report.figures
    alpha = figures["alpha"].value
    now = "the metric has none" if report.threshold is None else f"threshold {report.threshold:g}"
    there = "" if report.suggested is None else f"threshold {report.suggested:.3g}"
    yield "AUROC", figures["auroc"], ".5 is chance"
    yield "balanced accuracy, present", figures["balanced_accuracy"], now
    yield "suggested threshold", figures["suggested_threshold"], "best balanced accuracy"
    yield "balanced accuracy, suggested", figures["balanced_accuracy_suggested"], f"{there}, on the same records"
    yield "  cross-validated", figures["balanced_accuracy_cross_validated"], "on records left out of the choice"
    yield "quadratic kappa", figures["quadratic_kappa"], "grades 1 to 5"
    yield "alpha, judge and people", figures["alpha"], "" if alpha is None else strength_of_alpha(alpha)
    people = figures["alpha_raters"].value
    yield "alpha, people", figures["alpha_raters"], "" if people is None else strength_of_alpha(people)
    yield "Pearson", figures["pearson"], "score and label"
    yield "Spearman", figures["spearman"], "score and label"
    yield "score by answer length", figures["score_by_length"], "Spearman, all scored records"
    yield "label by answer length", figures["label_by_length"], "Spearman, for comparison"
    yield from _means(report)


def _means(report: Calibration) -> Iterator[Row]:
    mean = report.mean
    if mean is None:
        yield "label mean, corrected", Figure(n=0, reason=report.mean_reason), ""
    else:
        corrected = Figure(value=mean.mean, low=mean.low, high=mean.high, n=mean.n + mean.n_unlabelled)
        alone = Figure(value=mean.labelled_mean, low=mean.labelled_low, high=mean.labelled_high, n=mean.n)
        note = f"weight of the judge {mean.weight:.2f}" if mean.n_unlabelled else "no record without a label"
        yield "label mean, corrected", corrected, note
        yield "label mean, labels alone", alone, ""
    yield "judge mean", report.judge_mean, "on the labels' scale, not corrected"
