"""The queue narrows the corrected mean more than a random choice, and the mean stays right."""

from __future__ import annotations

import numpy as np
import pytest

from ragtrace.model import SeriesKey
from ragtrace.stats import Stratum, stratified_mean
from ragtrace.views.columns import NAMED, NUMBERS, Builder, LabelFacts, LabelKey, RunFacts, ScoreFacts
from ragtrace.views.labels import calibration_of, corrected, judged, queue

RUNS, LABELS = 1_000, 60


def world(seed):
    """Return a builder with scores of which only the low ones are uncertain, and the truth of each run."""
    rng = np.random.default_rng(seed)
    builder, truth = Builder(), []
    for n in range(RUNS):
        is_sure = rng.random() < 0.75
        value = 0.95 if is_sure else float(rng.uniform(0.2, 0.8))
        facts = RunFacts(
            f"{seed}-{n}", float(n), n, "runs", n, "q", "q", None, (None,) * len(NAMED), (-1,) * len(NUMBERS)
        )
        builder.score(builder.put(facts), [ScoreFacts(SeriesKey("faithfulness"), "ok", value, None, value > 0.8)])
        truth.append(float(rng.random() < (0.98 if is_sure else value)))
    return builder, truth


def labelled(builder, rows, truth):
    for row in rows:
        builder.labels[LabelKey(row, "faithfulness", "ada")] = LabelFacts(truth[row], 0.0, is_by_person=True)
    return corrected(judged(builder.snapshot("v"), "faithfulness"))


def test_labels_of_the_queue_give_a_narrower_and_valid_interval():
    widths, held = {"queue": [], "random": []}, []
    for seed in range(40):
        builder, truth = world(seed)
        items = queue(builder.snapshot("v"), "faithfulness", most=LABELS).items
        found = labelled(builder, [builder.rows[it.id] for it in items], truth)
        widths["queue"].append(found.high - found.low)
        held.append(found.low <= np.mean(truth) <= found.high)
        builder, truth = world(seed)
        rows = np.random.default_rng(seed).choice(RUNS, LABELS, replace=False).tolist()
        found = labelled(builder, rows, truth)
        widths["random"].append(found.high - found.low)
    assert np.mean(widths["queue"]) < 0.95 * np.mean(widths["random"])
    assert np.mean(held) >= 0.9


def test_the_queue_leaves_labelled_runs_out_and_says_why():
    builder, truth = world(1)
    first = queue(builder.snapshot("v"), "faithfulness", most=5)
    assert (first.labelled, first.total, first.corrected, first.agreement) == (0, RUNS, None, None)
    assert first.items[0].gain == 1.0
    assert all(it.why.startswith("no label yet among scores of ") for it in first.items)
    labelled(builder, [builder.rows[it.id] for it in first.items], truth)
    second = queue(builder.snapshot("v"), "faithfulness", most=5)
    assert second.labelled == 5
    assert not {it.id for it in first.items} & {it.id for it in second.items}
    assert second.agreement is not None


def test_other_judges_labels_do_not_count():
    builder, _ = world(2)
    builder.labels[LabelKey(0, "faithfulness", "foreign:x")] = LabelFacts(1.0, 0.0, is_by_person=False)
    assert queue(builder.snapshot("v"), "faithfulness", most=1).labelled == 0


def test_calibration_is_that_of_the_labels_and_none_without():
    builder, truth = world(3)
    assert calibration_of(builder.snapshot("v"), "faithfulness") is None
    labelled(builder, range(50), truth)
    found = calibration_of(builder.snapshot("v"), "faithfulness")
    assert (found.records, found.labelled, found.form.name) == (RUNS, 50, "0/1")
    assert found.mean is not None


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_the_stratified_interval_holds_the_mean(share):
    rng, held = np.random.default_rng(7), 0
    for _ in range(300):
        low = tuple((rng.random(12) < 0.3).astype(float).tolist())
        high = tuple((rng.random(30) < 0.9).astype(float).tolist())
        found = stratified_mean([Stratum(share, low), Stratum(1.0 - share, high)])
        held += found.low <= share * 0.3 + (1.0 - share) * 0.9 <= found.high
    assert held / 300 >= 0.94


def test_too_few_labels_give_no_mean():
    assert stratified_mean([Stratum(0.5, (1.0,)), Stratum(0.5, (0.0, 1.0))]) is None
    assert stratified_mean([]) is None
