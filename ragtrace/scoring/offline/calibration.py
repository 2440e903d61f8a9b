"""Calibration of a judge's scores against labels."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import fmean, median_low
from typing import TYPE_CHECKING

from ragtrace.model.printable import count_text
from ragtrace.scoring.offline.human_labels import Ratings, consensus
from ragtrace.stats.agreement import GRADES, krippendorff_alpha, pearson, quadratic_kappa, spearman
from ragtrace.stats.figure import Figure, mean_figure
from ragtrace.stats.ppi import PoweredMean, powered_mean
from ragtrace.stats.separation import Roc, auroc, balanced_accuracy, best_threshold, cross_validated, roc
from ragtrace.stores.payload_policy import KEPT_AS_BAD

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ragtrace.metrics.base import Output
    from ragtrace.model import SeriesKey
    from ragtrace.scoring.offline.human_labels import LabelForm

LEAST_PAIRS = 10  # labelled records with a score, for any figure
LEAST_CLASS = 5  # of each class, for AUROC and balanced accuracy
LEAST_CLASS_TO_CHOOSE = 10  # of each class, for a threshold
LEAST_FOR_MEAN = 20  # labelled records; the coverage of `powered_mean` was measured from here on
LENGTH_ALARM = 0.3  # the correlation's interval is as far from 0
GOOD_ALPHA, TENTATIVE_ALPHA = 0.8, 0.667


@dataclass(frozen=True, slots=True, kw_only=True)
class Rated:
    """One record with people's ratings and the judge's score.

    Attributes:
        ratings: one a rater, None where one is missing; empty without any label.
        value: the judge's score, None with any state but ``ok``.
        state: of the score.
        reason: why there is no score.
        answer_chars: length of the answer in characters.
        key: of the score; None where there is none.
        kept_for: why a store kept its texts; None where it was none.
    """

    ratings: Ratings
    value: float | None
    key: SeriesKey | None = None
    state: str = "ok"
    reason: str | None = None
    answer_chars: int = 0
    kept_for: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The report; each figure has a value or the reason without one.

    Attributes:
        metric: the exported number that was calibrated.
        makers: judges and versions behind the scores; more than one should not be mixed.
        ks: cut-offs of the scores; more than one should not be mixed either, nor
        label_scales: those of the grades behind them.
        form: the labels' scale.
        records: how many there are.
        labelled: records with a label.
        kept_as_bad: labelled records that a store kept for being bad, by that reason; labels of such records do not
            stand for all.
        unscored: records without a score, and how many of them have a label.
        raters: the most ratings of one record.
        states: how many records there are of each state of the score, with its reason.
        classes: labelled and scored records of the high class and of the low one.
        threshold: the metric's present threshold under this judge.
        suggested: the threshold of the best balanced accuracy; None where the figure says why.
        figures: by name, in the order of the table.
        has_length_alarm: the score goes with the answer's length beyond what chance allows.
        mean: the labels' mean over all records, corrected; None where `mean_reason` says why. Records without a
            score are in it.
        judge_mean: of all scores, on the labels' scale, with its interval.
        points: (score, label) of each labelled and scored record, for the plot.
        roc: the ROC curve.
    """

    metric: str
    makers: tuple[str, ...]
    ks: tuple[int, ...]
    label_scales: tuple[str, ...]
    form: LabelForm
    records: int
    labelled: int
    kept_as_bad: dict[str, int]
    unscored: tuple[int, int]
    raters: int
    states: dict[str, int]
    classes: tuple[int, int]
    threshold: float | None
    suggested: float | None
    figures: dict[str, Figure]
    has_length_alarm: bool
    mean: PoweredMean | None
    mean_reason: str | None
    judge_mean: Figure
    points: list[tuple[float, float]]
    roc: Roc

    @property
    def title(self) -> str:
        """The number that was calibrated, with its K where it has one."""
        return f"{self.metric} at K = {', '.join(map(str, self.ks))}" if self.ks else self.metric

    def to_json(self) -> dict[str, object]:
        """Return everything as JSON-ready values."""
        mean = self.mean
        return {
            "metric": self.metric,
            "judges": list(self.makers),
            "k": list(self.ks),
            "label_scales": list(self.label_scales),
            "labels": {
                "scale": self.form.name,
                "high_from": self.form.high_from,
                "raters": self.raters,
                "labelled": self.labelled,
                "high": self.classes[0],
                "low": self.classes[1],
            },
            "kept_as_bad": self.kept_as_bad,
            "records": self.records,
            "states": self.states,
            "threshold": self.threshold,
            "suggested_threshold": self.suggested,
            "figures": {name: figure.to_json() for name, figure in self.figures.items()},
            "length_alarm": self.has_length_alarm,
            "judge_mean": self.judge_mean.to_json(),
            "label_mean": {"value": None, "reason": self.mean_reason}
            if mean is None
            else {
                "value": mean.mean,
                "low": mean.low,
                "high": mean.high,
                "judge_weight": mean.weight,
                "labels_alone": {"value": mean.labelled_mean, "low": mean.labelled_low, "high": mean.labelled_high},
                "labelled": mean.n,
                "unlabelled": mean.n_unlabelled,
                "unscored": self.unscored[0],
            },
        }


def calibrate(rows: Sequence[Rated], *, output: Output, form: LabelForm, threshold: float | None) -> Calibration:
    """Return the report over records with and without labels. Pure.

    A high label and a high score are taken to mean the same. Records whose score is not ``ok`` are counted in
    `Calibration.states` and enter no figure of the judge; their labels enter the labels' mean.

    Args:
        rows: every record.
        output: the number that was scored: its name, range and direction.
        form: the labels' scale.
        threshold: the one in force.

    Example:
        >>> from ragtrace.metrics.base import Output
        >>> from ragtrace.scoring.offline.human_labels import FORM_OF
        >>> rows = [Rated(ratings=(float(i % 2),), value=0.4 + 0.3 * (i % 2) + i / 200) for i in range(40)]
        >>> report = calibrate(rows, output=Output(name="faithfulness"), form=FORM_OF["0/1"], threshold=0.8)
        >>> report.figures["auroc"].value, round(report.suggested, 2), report.figures["alpha_raters"].reason
        (1.0, 0.65, 'one rater')
    """
    study = _Study(rows, output, form)
    figures = study.separation(threshold) | study.agreement() | study.length()
    mean, why = study.mean()
    scored = [row for row in rows if row.value is not None]
    keys = {row.key for row in scored if row.key is not None}
    return Calibration(
        metric=output.name,
        makers=tuple(sorted({f"{key.judge or 'labels'} {key.version or ''}".strip() for key in keys})),
        ks=tuple(sorted({key.k for key in keys if key.k is not None})),
        label_scales=tuple(sorted({key.label_scale for key in keys if key.label_scale})),
        form=form,
        records=len(rows),
        labelled=sum(bool(row.ratings) for row in rows),
        kept_as_bad=dict(Counter(it.kept_for for it in rows if it.ratings and it.kept_for in KEPT_AS_BAD)),
        unscored=(len(rows) - len(scored), sum(bool(row.ratings) and row.value is None for row in rows)),
        raters=study.raters,
        states=dict(Counter(row.state if row.state == "ok" else f"{row.state} {row.reason}" for row in rows)),
        classes=(sum(study.is_high), len(study.is_high) - sum(study.is_high)),
        threshold=threshold,
        suggested=figures["suggested_threshold"].value,
        figures=figures,
        has_length_alarm=_excludes_zero(figures["score_by_length"], LENGTH_ALARM),
        mean=mean,
        mean_reason=why,
        judge_mean=study.judge_mean(),
        points=list(zip(study.scores, study.labels, strict=True)),
        roc=roc(study.scores, study.is_high),
    )


class _Study:
    def __init__(self, rows: Sequence[Rated], output: Output, form: LabelForm) -> None:
        self._rows = rows
        self._output = output
        self._form = form
        self._rated = [row for row in rows if row.ratings and row.value is not None]
        self.scores = [row.value for row in self._rated if row.value is not None]
        self.labels = [consensus(row.ratings) for row in self._rated]
        self.is_high = [label >= form.high_from for label in self.labels]
        self.raters = max((sum(r is not None for r in row.ratings) for row in rows), default=0)

    def separation(self, threshold: float | None) -> dict[str, Figure]:
        """Return AUROC, and balanced accuracy at the present and best threshold."""
        scores, truth = self.scores, self.is_high
        few = self._few() or self._few_of_class(LEAST_CLASS)
        ranked = auroc(scores, truth) if few is None else few
        if threshold is None:
            now = Figure(n=len(scores), reason="the metric has no threshold")
        else:  # at the threshold itself a score passes: low ones do where lower is better
            is_down = self._output.direction == "down"
            now = few or balanced_accuracy(scores, truth, threshold, is_strict=is_down)
        chosen = self._threshold(ranked)
        found = {"auroc": ranked, "balanced_accuracy": now, "suggested_threshold": chosen}
        if chosen.value is None:
            nothing = Figure(n=len(scores), reason="no threshold is suggested")
            return found | {"balanced_accuracy_suggested": nothing, "balanced_accuracy_cross_validated": nothing}
        return found | {
            "balanced_accuracy_suggested": balanced_accuracy(scores, truth, chosen.value),
            "balanced_accuracy_cross_validated": cross_validated(scores, truth),
        }

    def agreement(self) -> dict[str, Figure]:
        """Return kappa, alpha of judge and people, alpha of people, and correlations."""
        few = self._few()
        grades = self._grades()
        return {
            "quadratic_kappa": few or (grades if isinstance(grades, Figure) else quadratic_kappa(*grades)),
            "alpha": few or krippendorff_alpha([self.labels, self._as_labels(self.scores)]),
            "alpha_raters": self._alpha_of_raters(),
            "pearson": few or pearson(self.scores, self.labels),
            "spearman": few or spearman(self.scores, self.labels),
        }

    def length(self) -> dict[str, Figure]:
        """Return correlations with the answer's length."""
        scored = [(row.value, float(row.answer_chars)) for row in self._rows if row.value is not None]
        values, lengths = [pair[0] for pair in scored], [pair[1] for pair in scored]
        few = _few(len(scored), LEAST_PAIRS, "with a score")
        rated = [float(row.answer_chars) for row in self._rated]
        return {
            "score_by_length": few or spearman(values, lengths),
            "label_by_length": self._few() or spearman(self.labels, rated),
        }

    def mean(self) -> tuple[PoweredMean | None, str | None]:
        """Return the labels' mean over all records, or why there is none.

        A record without a score has the mean of the others in its place: what people said of it counts, as a judge
        that fails on bad answers would hide them, and the interval is valid for any rule that gives scores.
        """
        labelled = [row for row in self._rows if row.ratings]
        few = _few(len(labelled), LEAST_FOR_MEAN, "with a label")
        if few is not None:
            return None, few.reason
        scored = [row.value for row in self._rows if row.value is not None]
        usual = fmean(scored) if scored else self._output.low

        def scores(rows: Iterable[Rated]) -> list[float]:
            return self._as_labels(usual if row.value is None else row.value for row in rows)

        labels = [consensus(row.ratings) for row in labelled]
        rest = scores(row for row in self._rows if not row.ratings)
        return powered_mean(labels, scores(labelled), rest, scale=(self._form.low, self._form.high)), None

    def judge_mean(self) -> Figure:
        """Return the mean of all scores on the labels' scale."""
        scored = self._as_labels(row.value for row in self._rows if row.value is not None)
        return mean_figure(scored, "no record has a score", ends=(self._form.low, self._form.high))

    def _as_labels(self, scores: Iterable[float]) -> list[float]:
        form, output = self._form, self._output
        factor = (form.high - form.low) / (output.high - output.low)
        return [form.low + factor * (score - output.low) for score in scores]

    def _few(self) -> Figure | None:
        return _few(len(self._rated), LEAST_PAIRS, "with label and score")

    def _few_of_class(self, least: int) -> Figure | None:
        high = sum(self.is_high)
        return _few(high, least, "of the high class") or _few(len(self.is_high) - high, least, "of the low class")

    def _threshold(self, ranked: Figure) -> Figure:
        n = len(self.scores)
        if ranked.value is None:
            return Figure(n=n, reason=ranked.reason)
        few = self._few_of_class(LEAST_CLASS_TO_CHOOSE)
        if few is not None:
            return few
        if ranked.low is None or ranked.low <= 0.5:
            return Figure(n=n, reason="the interval of AUROC holds .5: the score does not tell the classes apart")
        best = best_threshold(self.scores, self.is_high)
        return Figure(n=n, reason="all scores are the same") if best is None else Figure(n=n, value=best)

    def _grades(self) -> tuple[list[int], list[int]] | Figure:
        """Return people's and the judge's grades, by the lower median of raters."""
        n = len(self._rated)
        medians = [median_low([r for r in row.ratings if r is not None]) for row in self._rated]
        if self._form.name != "1-5" or not set(medians) <= set(GRADES):
            return Figure(n=n, reason="the labels are not whole grades from 1 to 5")
        judged = [_grade(value, self._output) for value in self.scores]
        if not set(judged) <= set(GRADES):
            return Figure(n=n, reason="the scores are not whole grades from 1 to 5")
        return [int(grade) for grade in medians], [int(grade) for grade in judged if grade is not None]

    def _alpha_of_raters(self) -> Figure:
        labelled = [row.ratings for row in self._rows if row.ratings]
        width = max((len(ratings) for ratings in labelled), default=0)
        if self.raters < 2:
            return Figure(n=len(labelled), reason="one rater")
        table = [[r[place] if place < len(r) else None for r in labelled] for place in range(width)]
        twice = sum(sum(rating is not None for rating in ratings) > 1 for ratings in labelled)
        return _few(twice, LEAST_PAIRS, "with two ratings") or krippendorff_alpha(table)


def strength_of_alpha(value: float) -> str:
    """Return good from .8, tentative from .667, else too low.

    Example:
        >>> strength_of_alpha(0.7)
        'tentative'
    """
    return "good" if value >= GOOD_ALPHA else "tentative" if value >= TENTATIVE_ALPHA else "too low"


def _grade(value: float, output: Output) -> float | None:
    """Return a score as a grade of 1 to 5; a mean of repeats has none."""
    if (output.low, output.high) == (1.0, 5.0):
        grade = value
    elif "1to5" in output.name:
        grade = 1.0 + 4.0 * value
    else:
        return None
    return round(grade, 9) if round(grade, 9) in GRADES else None


def _few(n: int, least: int, what: str) -> Figure | None:
    return (
        None if n >= least else Figure(n=n, reason=f"{count_text(n, 'record')} {what}, at least {least} are needed")
    )


def _excludes_zero(figure: Figure, by: float) -> bool:
    return figure.low is not None and figure.high is not None and (figure.low >= by or figure.high <= -by)
