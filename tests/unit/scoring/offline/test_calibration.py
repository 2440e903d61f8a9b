"""The report over labels and scores: what is given, what is refused, and why."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest

from ragtrace.errors import InputError
from ragtrace.metrics import Output
from ragtrace.model import SeriesKey
from ragtrace.scoring import FORM_OF, Calibration, Rated, calibrate, form_of
from ragtrace.scoring.offline.calibration import _Study
from ragtrace.scoring.offline.calibration_lines import findings

BINARY, GRADES = FORM_OF["0/1"], FORM_OF["1-5"]
KEY = SeriesKey("faithfulness", judge="judge", version="1")
ONE_TO_FIVE = Output(name="faithfulness_1to5", threshold=0.5)


def rows(n: int, seed: int = 0, unlabelled: int = 0) -> list[Rated]:
    rng = random.Random(seed)
    made = []
    for i in range(n + unlabelled):
        label = float(rng.random() < 0.7)
        value = min(1.0, max(0.0, 0.3 + 0.4 * label + rng.gauss(0, 0.15)))
        ratings = (label,) if i < n else ()
        made.append(Rated(ratings=ratings, value=value, answer_chars=rng.randint(20, 900), key=KEY))
    return made


def report(made: list[Rated], **more: object) -> Calibration:
    given = {"output": Output(name="faithfulness"), "form": BINARY, "threshold": 0.8, **more}
    return calibrate(made, **given)


def graded(n: int, shift: float = 0.0) -> list[Rated]:
    rng = random.Random(3)
    made = []
    for _ in range(n):
        grade = rng.randint(1, 5)
        value = (min(5, max(1, grade + rng.choice([-1, 0, 0, 1]))) - 1) / 4
        made.append(Rated(ratings=(float(grade),), value=value + shift, answer_chars=100))
    return made


def test_grades_beside_grades_have_a_kappa() -> None:
    found = report(graded(80), output=ONE_TO_FIVE, form=GRADES, threshold=0.5).figures["quadratic_kappa"]
    assert 0.7 < found.low < found.value < found.high < 1.0
    native = [replace(row, value=1 + 4 * row.value) for row in graded(80)]
    wide = Output(name="my_form", low=1.0, high=5.0)
    assert report(native, output=wide, form=GRADES).figures["quadratic_kappa"] == found


def test_a_mean_of_repeats_is_no_grade() -> None:
    made = report(graded(80, shift=0.01), output=ONE_TO_FIVE, form=GRADES).figures["quadratic_kappa"]
    assert made.reason == "the scores are not whole grades from 1 to 5"


def test_a_score_that_goes_with_length_raises_the_alarm_and_one_that_does_not_is_quiet() -> None:
    assert not report(rows(200)).has_length_alarm
    long = [replace(row, answer_chars=int(100 + 500 * row.value)) for row in rows(200)]
    assert report(long).has_length_alarm
    short = [replace(row, answer_chars=int(900 - 500 * row.value)) for row in rows(200)]
    assert report(short).has_length_alarm


def test_no_threshold_is_suggested_where_the_score_is_noise() -> None:
    rng = random.Random(1)
    noise = [replace(row, value=rng.random()) for row in rows(80)]
    found = report(noise)
    assert found.suggested is None
    assert "does not tell the classes apart" in found.figures["suggested_threshold"].reason
    assert found.figures["balanced_accuracy"].value is not None


def test_few_of_a_class() -> None:
    made = [replace(row, ratings=(1.0,)) for row in rows(40)]
    lonely = [replace(row, ratings=(0.0,)) if i < 7 else row for i, row in enumerate(made)]
    assert report(made).figures["auroc"].reason == "0 records of the low class, at least 5 are needed"
    found = report(lonely).figures
    assert found["auroc"].value is not None
    assert found["suggested_threshold"].value is None


def test_lower_is_better_counts_a_score_on_the_threshold_as_passed() -> None:
    made = [Rated(ratings=(float(i % 2),), value=0.2 + 0.3 * (i % 2)) for i in range(40)]
    down = Output(name="harm_at_k", direction="down", threshold=0.2)
    assert report(made, output=down, threshold=0.2).figures["balanced_accuracy"].value == 1.0
    assert (
        report(made, output=replace(down, direction="up"), threshold=0.2).figures["balanced_accuracy"].value == 0.5
    )
    assert report(made, threshold=None).figures["balanced_accuracy"].reason == "the metric has no threshold"


def test_the_corrected_mean_reads_the_scores_without_labels() -> None:
    found = report(rows(60, unlabelled=600))
    alone = report(rows(60))
    assert found.mean is not None
    assert alone.mean is not None
    assert alone.mean.mean == alone.mean.labelled_mean == found.mean.labelled_mean
    assert found.mean.high - found.mean.low < alone.mean.high - alone.mean.low
    few = report(rows(19, unlabelled=600))
    assert (few.mean, few.mean_reason) == (None, "19 records with a label, at least 20 are needed")


@pytest.mark.parametrize(("unlabelled", "state"), [(0, "na"), (300, "na"), (300, "error")])
def test_labels_of_records_without_a_score_count_in_the_label_mean(unlabelled: int, state: str) -> None:
    """A judge that gives no score where people say 0, on two records in five."""
    made = []
    for i in range(100 + unlabelled):
        is_bad = i % 5 < 2
        ratings = (float(not is_bad),) if i < 100 else ()
        value = None if is_bad else 0.9 + (i % 7) / 100
        made.append(Rated(ratings=ratings, value=value, state=state if is_bad else "ok"))
    found = report(made)
    assert found.mean is not None
    assert found.mean.labelled_mean == pytest.approx(0.6)
    assert found.mean.low < 0.6 < found.mean.high
    assert (found.mean.n, found.mean.n_unlabelled) == (100, unlabelled)
    assert found.unscored == (40 + unlabelled * 2 // 5, 40)
    assert found.to_json()["label_mean"]["unscored"] == found.unscored[0]
    assert found.figures["pearson"].n == 60
    assert any("40 of them a label" in line for line in findings(found))


def test_labels_alone_have_a_mean_where_the_judge_gave_no_score_at_all() -> None:
    found = report([replace(row, value=None, state="error", reason="judge_timeout") for row in rows(60)])
    assert found.mean is not None
    assert found.mean.weight == 0.0
    assert found.mean.mean == found.mean.labelled_mean


@pytest.mark.slow
def test_the_corrected_mean_holds_where_scores_are_missing_by_the_label() -> None:
    """1,000 draws: scores fail on two bad answers in three and on one good one in ten; the truth is .7."""
    rng = random.Random(5)
    held = 0
    for _ in range(1000):
        made = []
        for i in range(240):
            label = float(rng.random() < 0.7)
            is_there = rng.random() < (0.9 if label else 1 / 3)
            value = min(1.0, max(0.0, 0.3 + 0.4 * label + rng.gauss(0, 0.15))) if is_there else None
            made.append(Rated(ratings=(label,) if i < 40 else (), value=value, state="ok" if is_there else "na"))
        mean = _Study(made, Output(name="faithfulness"), BINARY).mean()[0]
        assert mean is not None
        held += mean.low <= 0.7 <= mean.high
    assert held >= 929, "three standard errors below .95"


def test_scores_at_different_k_or_over_different_scales_are_told() -> None:
    one = [replace(row, key=SeriesKey("faithfulness", k=3, label_scale="direct5")) for row in rows(40)]
    found = report(one)
    assert (found.ks, found.label_scales) == ((3,), ("direct5",))
    assert (found.to_json()["k"], found.title) == ([3], "faithfulness at K = 3")
    assert not [line for line in findings(found) if "mixed" in line]
    key = SeriesKey("faithfulness", k=10, label_scale="umbrela_mapped")
    other = [replace(row, key=key) for row in one[:9]]
    said = " ".join(findings(report(one + other)))
    assert "scores at different K are mixed: 3, 10; name one: --metric faithfulness@3" in said
    assert "label scales are mixed: direct5, umbrela_mapped" in said


def test_every_report_is_json_and_total() -> None:
    failed = [Rated(ratings=(1.0,), value=None, state="error", reason="judge_timeout")] * 3
    for made in ([], failed, rows(1), rows(12), rows(80) + failed, [replace(row, value=0.5) for row in rows(80)]):
        found = report(made)
        assert json.loads(json.dumps(found.to_json(), allow_nan=False))["records"] == len(made)
    assert report(failed).states == {"error judge_timeout": 3}


def test_raters_with_gaps_keep_their_places() -> None:
    made = [
        replace(row, ratings=(row.ratings[0], None, row.ratings[0]) if i % 2 else (None, row.ratings[0]))
        for i, row in enumerate(rows(60))
    ]
    found = report(made)
    assert found.raters == 2
    assert found.figures["alpha_raters"].value == 1.0
    assert found.figures["alpha_raters"].n == 30


# Labels


@pytest.mark.parametrize(
    ("labels", "name"),
    [([0.0, 1.0], "0/1"), ([0.0, 0.5], "0-1"), ([1.0, 5.0], "1-5"), ([1.0], "0/1"), ([], "0/1"), ([2.5], "1-5")],
)
def test_the_scale_is_that_of_all_labels(labels: list[float], name: str) -> None:
    assert form_of({i: (label,) for i, label in enumerate(labels)}).name == name


def test_a_label_below_one_does_not_fit_grades() -> None:
    with pytest.raises(InputError, match=r"^9: the label 0\.5 does not fit the label 4 of line 3"):
        form_of({3: (4.0,), 5: (), 9: (None, 0.5)})


# Findings


def test_labels_of_bad_runs_are_given_no_advice_that_trusts_the_corrected_mean() -> None:
    made = [
        Rated(ratings=(float(i == 0),), value=0.9 if i < 8 else 0.1, answer_chars=40, key=KEY, kept_for="low")
        for i in range(20)
    ]
    found = report(made)
    assert found.figures["auroc"].reason == "1 record of the high class, at least 5 are needed"
    said = [it for it in findings(found) if it.startswith("alpha is below")]
    assert said == ["alpha is below .667: trust no mean of these scores before runs of all kinds are labelled"]
