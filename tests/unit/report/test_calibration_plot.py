"""The picture: every report can be drawn, whatever figures it has."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ragtrace.errors import ConfigError, MissingExtra
from ragtrace.metrics import Output
from ragtrace.model import SeriesKey
from ragtrace.report import check_plot
from ragtrace.report.calibration_plot import draw
from ragtrace.scoring import FORM_OF, Calibration, Rated, calibrate

if TYPE_CHECKING:
    from ragtrace.scoring.offline.human_labels import Form

pytest.importorskip("matplotlib")


def report(
    n: int, form: Form = "0/1", *, low: float = 0.0, high: float = 1.0, is_flat: bool = False
) -> Calibration:
    rng = random.Random(4)
    scale = FORM_OF[form]
    rows = []
    for _ in range(n):
        label = rng.choice([0.0, 1.0]) if form == "0/1" else rng.uniform(scale.low, scale.high)
        share = 0.5 if is_flat else min(1.0, max(0.0, rng.gauss(0.2 + 0.5 * (label >= scale.high_from), 0.2)))
        rows.append(
            Rated(
                ratings=(label,),
                value=low + share * (high - low),
                key=SeriesKey("faithfulness", judge="judge", version="1"),
            )
        )
    output = Output(name="faithfulness", low=low, high=high)
    return calibrate(rows, output=output, form=scale, threshold=low + 0.8 * (high - low))


@pytest.mark.parametrize(
    "made",
    [
        report(120),
        report(120, "1-5"),
        report(120, "0-1", low=1.0, high=5.0),
        report(60, low=-1.0),
        report(60, is_flat=True),
        report(3),
        report(0),
    ],
    ids=["binary", "grades", "one to five", "cosine", "one score", "three records", "none"],
)
def test_every_report_can_be_drawn(made: Calibration, tmp_path: Path) -> None:
    draw(made, tmp_path / "a.png")
    raw = (tmp_path / "a.png").read_bytes()
    width, height = struct.unpack(">II", raw[16:24])
    assert (width, height) == (1690, 572)
    draw(made, tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert "faithfulness" in text
    ranked = made.figures["auroc"]
    assert (f"AUROC {ranked.value:.2f}" if ranked.value is not None else "not given: ") in text


def test_the_same_report_gives_the_same_svg(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        draw(report(80), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_what_cannot_be_drawn_is_said_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="must end with"):
        check_plot(Path("a.jpg"))
    check_plot(Path("A.SVG"))
    monkeypatch.setattr("ragtrace.report.calibration_plot.find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"ragtrace-otel\[plots\]"):
        check_plot(Path("a.png"))
