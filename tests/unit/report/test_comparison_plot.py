"""The picture of a comparison: whatever was scored can be drawn, and says what it shows."""

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from ragtrace.report.comparison_plot import draw
from ragtrace.scoring import ComparedFile, compare, scored_row

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("matplotlib")


def arm(name: str, n: int, seed: int = 0, **metrics: float) -> ComparedFile:
    draw_from = random.Random(seed)
    rows = []
    for i in range(n):
        scores: dict[str, Any] = {
            key: {"state": "ok", "value": high * draw_from.random()} for key, high in metrics.items()
        }
        scores["answered"] = {"state": "ok", "value": float(i % 4 > 0)}
        rows.append(scored_row({"id": str(i), "scores": scores}, i + 1))
    return ComparedFile(name, rows)


@pytest.mark.parametrize(
    "arms",
    [
        [arm("one.jsonl", 40, faithfulness=1.0)],
        [arm("a.jsonl", 900, faithfulness=1.0, harm_at_k=1.0), arm("$b_$.jsonl", 3, 1, faithfulness=1.0, own=-7.0)],
        [arm(f"{i}.jsonl", 5, i, **{f"m{j}_with_a_rather_long_name_of_its_own": 1.0 for j in range(9)}) for i in range(7)],
        [arm("one value.jsonl", 1, faithfulness=0.0, own=0.0)],
        [ComparedFile("none.jsonl", [scored_row({"scores": {"mrr": {"state": "na", "reason": "no_labels"}}}, 1)])],
    ],
    ids=["one file", "two files", "many", "one value", "no value"],
)  # fmt: skip
def test_every_comparison_can_be_drawn(arms: list[ComparedFile], tmp_path: Path) -> None:
    draw(compare(arms), tmp_path / "a.png")
    width, height = struct.unpack(">II", (tmp_path / "a.png").read_bytes()[16:24])
    assert width >= 600
    assert height >= 300


def test_the_svg_names_files_metrics_and_the_share_answered_and_repeats_itself(tmp_path: Path) -> None:
    found = compare([arm("a.jsonl", 40, faithfulness=1.0), arm("b.jsonl", 20, 1, faithfulness=1.0)])
    for name in ("1.svg", "2.svg"):
        draw(found, tmp_path / name)
    assert (tmp_path / "1.svg").read_bytes() == (tmp_path / "2.svg").read_bytes()
    texts = " ".join("".join(node.itertext()) for node in ET.parse(tmp_path / "1.svg").iter())  # noqa: S314 - ours
    for said in ("A  a.jsonl", "B  b.jsonl", "faithfulness", "median", "mean, 95 % interval", "75.0 %", "n=40"):
        assert said in texts
