"""The corrected mean of few labels has no error in one direction, whatever labels, judge and file are.

Each row of the tables is one world: a form of label, the true mean as a share of the scale, a judge, how many units
have a label and how many a score alone. The draws are seeded. Over 1,500 draws of 20 labels of two values with the mean
0.5, the average has a standard error of 0.003 of the scale.
"""

from __future__ import annotations

import json
import os
import random
import re
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

from ragtrace.cli import main
from ragtrace.metrics import Output
from ragtrace.scoring import FORM_OF, Rated, calibrate
from ragtrace.stats import powered_mean

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from ragtrace.scoring import LabelForm

    Array = NDArray[np.float64]

DRAWS = 1500
MOST_ERROR = 0.01  # of the scale
LEAST_COVERAGE = 0.93


class World(NamedTuple):
    """What is drawn: `share` is the true mean, from 0 to 1 of the scale."""

    form: str
    share: float
    judge: str
    n: int
    rest: int
    order: str = "as drawn"

    def __str__(self) -> str:
        name = f"{self.form}-{self.share:g}-{self.judge}-{self.n}-{self.rest}"
        return name if self.order == "as drawn" else f"{name}-{self.order}"

    @property
    def scale(self) -> tuple[float, float]:
        """The ends of the labels' scale."""
        return (1.0, 5.0) if self.form in {"grades", "1 or 5"} else (0.0, 1.0)

    def labels(self, rng: np.random.Generator, size: int) -> Array:
        """Return labels from 0 to 1 of the scale."""
        if self.form in {"0/1", "1 or 5"}:
            return (rng.random(size) < self.share).astype(np.float64)
        if self.form == "grades":
            return rng.binomial(4, self.share, size) / 4.0
        apart = np.where(rng.random(size) < 2 * min(self.share, 1 - self.share), rng.random(size), 1.0)  # shares
        return apart if self.share >= 0.5 else 1.0 - apart

    def scores(self, rng: np.random.Generator, y: Array) -> Array:
        """Return a judge's scores of these labels."""
        noise = rng.standard_normal(len(y))
        flipped = rng.random(len(y)) < 0.1
        any_score, kindness, harshness = rng.random((3, len(y)))  # all judges draw the same, whichever is asked
        made: dict[str, Callable[[], Array]] = {
            "useful": lambda: np.clip(0.2 + 0.6 * y + 0.15 * noise, 0, 1),
            "sharp": lambda: np.clip(y + 0.05 * noise, 0, 1),
            "equal": lambda: y,
            "weak": lambda: np.clip(0.5 + 0.2 * y + 0.25 * noise, 0, 1),
            "useless": lambda: any_score,
            "against": lambda: np.clip(0.8 - 0.6 * y + 0.15 * noise, 0, 1),
            "binary": lambda: np.where(flipped, y < 0.75, y >= 0.75).astype(np.float64),
            "always yes": lambda: np.where(flipped, 0.0, 1.0),
            "too kind": lambda: 0.85 + 0.1 * y * kindness,
            "harsh on the bad": lambda: y * harshness**0.3,
            "grades": lambda: np.clip(np.round(4 * y + 0.8 * noise), 0, 4) / 4,
        }
        return made[self.judge]()


class Measured(NamedTuple):
    """Over all draws; errors and widths are shares of the scale."""

    error: float
    error_alone: float
    squared: float
    squared_alone: float
    held: float
    width: float
    width_alone: float
    is_ordered: bool


@cache
def measured(world: World) -> Measured:
    rng = np.random.default_rng(11)
    low, high = world.scale
    rows = []
    for _ in range(DRAWS):
        y = world.labels(rng, world.n + world.rest)
        f = world.scores(rng, y)
        labels, scores, others = y[: world.n], f[: world.n], f[world.n :]
        if world.order != "as drawn":
            ranked = np.argsort(labels if world.order == "by label" else scores, kind="stable")
            labels, scores, others = labels[ranked], scores[ranked], np.sort(others)
        values = (low + (high - low) * labels).tolist()
        found = powered_mean(values, scores.tolist(), others.tolist(), scale=world.scale)
        assert found is not None
        ends = (found.mean, found.labelled_mean, found.low, found.high, found.labelled_low, found.labelled_high)
        rows.append([(it - low) / (high - low) for it in ends])
    mean, alone, least, most, least_alone, most_alone = np.array(rows).T
    slack = 1e-9
    return Measured(
        error=float(mean.mean() - world.share),
        error_alone=float(alone.mean() - world.share),
        squared=float(((mean - world.share) ** 2).mean()),
        squared_alone=float(((alone - world.share) ** 2).mean()),
        held=float(((least <= world.share) & (world.share <= most)).mean()),
        width=float((most - least).mean()),
        width_alone=float((most_alone - least_alone).mean()),
        is_ordered=bool(((-slack <= least) & (least <= mean) & (mean <= most) & (most <= 1 + slack)).all()),
    )


WORLDS = [
    *(World("0/1", share, "useful", 20, 300) for share in (0.5, 0.8, 0.9, 0.95, 0.985, 0.2, 0.05)),
    *(World("0/1", share, "sharp", 20, 300) for share in (0.5, 0.8, 0.95, 0.1)),
    *(World("0/1", 0.8, judge, 20, 300) for judge in ("against", "binary", "harsh on the bad", "equal", "weak")),
    *(World("0/1", 0.8, judge, 20, 300) for judge in ("too kind", "useless", "always yes", "grades")),
    *(World("0/1", 0.95, judge, 20, 2000) for judge in ("against", "binary", "harsh on the bad", "equal", "useless")),
    *(World("0/1", 0.85, "useful", 20, rest) for rest in (60, 150, 2000)),
    *(World("0/1", 0.9, judge, n, 300) for n in (25, 35, 50, 100, 150) for judge in ("sharp", "useful")),
    World("0/1", 0.95, "sharp", 50, 2000),
    World("0/1", 0.5, "useful", 150, 60),
    World("0/1", 0.9, "equal", 50, 300),
    *(World("1 or 5", share, judge, 20, 300) for share, judge in ((0.8, "useful"), (0.95, "against"), (0.1, "sharp"))),
    *(World("grades", share, "sharp", 20, 300) for share in (0.5, 0.8, 0.95)),
    *(World("grades", 0.8, judge, 20, 60) for judge in ("useful", "against", "useless", "binary", "grades")),
    World("grades", 0.95, "grades", 60, 2000),
    *(World("shares", share, "sharp", 20, 300) for share in (0.5, 0.8, 0.95, 0.2)),
    *(World("shares", 0.8, judge, 20, 60) for judge in ("useful", "against", "useless", "binary")),
    World("shares", 0.95, "against", 75, 2000),
    *(
        World("0/1", 0.9, "useful", n, 300, order)
        for order in ("by label", "by score")
        for n in (20, 50)
    ),
    World("grades", 0.8, "sharp", 20, 300, "by label"),
]  # fmt: skip


@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_the_corrected_mean_is_off_in_no_direction(world: World) -> None:
    found = measured(world)
    assert abs(found.error_alone) < MOST_ERROR, "the draws themselves are steady"
    assert abs(found.error) <= MOST_ERROR


@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_its_interval_holds_the_truth_and_the_judge_costs_next_to_nothing(world: World) -> None:
    found = measured(world)
    assert found.is_ordered, "scale's low <= low <= mean <= high <= scale's high"
    assert found.held >= LEAST_COVERAGE
    assert found.squared <= (1.1 if world.n < 50 else 1.05) * found.squared_alone
    assert found.width <= 1.04 * found.width_alone


GOOD = [
    *(World("0/1", share, "useful", n, 300) for share in (0.5, 0.8, 0.95) for n in (50, 100)),
    *(World("0/1", 0.8, judge, 50, 300) for judge in ("sharp", "against", "binary", "harsh on the bad")),
    *(World("0/1", 0.5, judge, 50, 2000) for judge in ("sharp", "against", "binary")),
    World("0/1", 0.9, "sharp", 60, 2000),
    World("0/1", 0.2, "useful", 150, 2000),
    World("1 or 5", 0.8, "useful", 50, 300),
    World("grades", 0.8, "sharp", 50, 300),
    World("grades", 0.5, "useful", 60, 2000),
    World("shares", 0.8, "useful", 50, 300),
    World("shares", 0.5, "against", 60, 2000),
]


@pytest.mark.parametrize("world", GOOD, ids=str)
def test_a_good_judge_still_shortens_the_interval_of_50_labels(world: World) -> None:
    found = measured(world)
    assert found.width < found.width_alone
    assert found.squared < 0.95 * found.squared_alone


@pytest.mark.parametrize("n", [4, 5, 7, 20, 33])
@pytest.mark.parametrize("judge", ["useful", "binary", "useless", "equal"])
def test_the_same_units_give_the_same_figures_however_they_are_written(n: int, judge: str) -> None:
    rng = np.random.default_rng(n)
    world = World("0/1", 0.7, judge, n, 200)
    y = world.labels(rng, n + world.rest)
    f = world.scores(rng, y)

    def figures(labels: Array, scores: Array) -> tuple[float, ...]:
        found = powered_mean(labels[:n].tolist(), scores[:n].tolist(), scores[n:].tolist(), scale=(0, 1))
        assert found is not None
        return found.mean, found.low, found.high

    first = figures(y, f)
    assert figures(y, f) == first, "asked twice"
    assert figures(y, 7 - 3 * f) == pytest.approx(first), "the judge's scale does not matter"
    mean, low, high = figures(1 - y, f)
    assert (1 - mean, 1 - high, 1 - low) == pytest.approx(first), "turned labels"


# Through the report and the command


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("RAGTRACE_", "OPENAI_")):
            monkeypatch.delenv(name)


@pytest.mark.parametrize("form", FORM_OF.values(), ids=lambda form: form.name)
@pytest.mark.parametrize("n", [20, 50])
def test_the_report_gives_the_corrected_mean_of_its_rows(form: LabelForm, n: int) -> None:
    rng = np.random.default_rng(n)
    world = World({"0/1": "0/1", "0-1": "shares", "1-5": "grades"}[form.name], 0.85, "useful", n, 150)
    y = world.labels(rng, n + world.rest)
    labels = form.low + (form.high - form.low) * y
    f = world.scores(rng, y)
    rows = [
        Rated(ratings=(float(labels[i]),) if i < n else (), value=float(f[i]), answer_chars=100 + i)
        for i in range(len(y))
    ]
    got = calibrate(rows, output=Output(name="faithfulness"), form=form, threshold=0.8).mean
    on_scale = (form.low + (form.high - form.low) * f).tolist()
    wanted = powered_mean(labels[:n].tolist(), on_scale[:n], on_scale[n:], scale=(form.low, form.high))
    assert got is not None
    assert wanted is not None
    assert (got.mean, got.low, got.high) == pytest.approx((wanted.mean, wanted.low, wanted.high))
    assert (got.n, got.n_unlabelled) == (n, 150)


WORDS = ["refund", "ticket", "parcel", "invoice", "carrier", "warehouse", "customer", "discount", "contract"]


def _row(i: int, *, is_good: bool, **label: Any) -> dict[str, Any]:
    rng = random.Random(i)
    said = rng.sample(WORDS, 6)
    kept = said[: rng.choice([4, 5, 6] if is_good else [1, 2, 3])]
    return {
        "id": f"r{i}",
        "query": "What is handled?",
        "answer": f"The {' and the '.join(said)} are handled in Oslo.",
        "contexts": [f"The {' and the '.join(kept)} are handled in Oslo."],
        **label,
    }


def _label(kind: str, i: int, *, is_good: bool) -> float:
    if kind == "grades":
        return (5, 4)[i % 2] if is_good else (1, 2, 3)[i % 3]
    if kind == "shares":
        return (1.0, 0.75)[i % 2] if is_good else 0.25
    return int(is_good if i % 11 else not is_good)


SCALES: dict[str, tuple[float, float]] = {"0/1": (0, 1), "shares": (0, 1), "grades": (1, 5)}


@pytest.mark.parametrize("labelled", [20, 21, 60])
@pytest.mark.parametrize("kind", SCALES)
def test_the_command_prints_the_corrected_mean_of_its_scores(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, labelled: int
) -> None:
    goods = [i % 5 != 0 for i in range(140)]
    labels = [_label(kind, i, is_good=goods[i]) for i in range(labelled)]
    path, out, report = tmp_path / "in.jsonl", tmp_path / "out.jsonl", tmp_path / "report.json"
    rows = [_row(i, is_good=good, **({"human": labels[i]} if i < labelled else {})) for i, good in enumerate(goods)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    arguments = ["calibrate", str(path), "--label", "human", "--out", str(out), "--json", str(report)]
    assert main(arguments) == 0
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    by_id = {line["id"]: line["scores"]["faithfulness"]["value"] for line in lines}
    low, high = SCALES[kind]
    scores = [low + (high - low) * by_id[f"r{i}"] for i in range(140)]
    wanted = powered_mean(labels, scores[:labelled], scores[labelled:], scale=SCALES[kind])
    assert wanted is not None
    said = json.loads(report.read_text(encoding="utf-8"))["label_mean"]
    assert (said["labelled"], said["unlabelled"]) == (labelled, 140 - labelled)
    assert (said["value"], said["low"], said["high"]) == pytest.approx((wanted.mean, wanted.low, wanted.high))
    shown = re.search(
        r"^label mean, corrected +([\d.]+) +([\d.]+) to ([\d.]+)", capsys.readouterr().out, re.MULTILINE
    )
    assert shown is not None
    assert [float(it) for it in shown.groups()] == pytest.approx([wanted.mean, wanted.low, wanted.high], abs=6e-4)


def test_19_labels_have_no_corrected_mean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "in.jsonl"
    rows = [_row(i, is_good=i % 5 != 0, **({"human": int(i % 5 != 0)} if i < 19 else {})) for i in range(60)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    report = tmp_path / "report.json"
    assert main(["calibrate", str(path), "--label", "human", "--json", str(report)]) == 0
    assert json.loads(report.read_text(encoding="utf-8"))["label_mean"]["value"] is None
    (line,) = [it for it in capsys.readouterr().out.splitlines() if it.startswith("label mean, corrected")]
    assert "19 records with a label, at least 20 are needed" in line
