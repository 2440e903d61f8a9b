"""Two judges at the documented rates on human-labelled sets, people being the second, against a uniform choice at equal cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.two_judges import compare, labelled_set

if TYPE_CHECKING:
    from pathlib import Path

DAYS, RUNS = 60, 1_000
TARGET = 0.75  # of the uniform choice's width, at equal cost
SURE = 0.005 + 3 * 0.003  # the bar, and three standard errors of 60 days


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mtrag", "begin"])
def test_the_interval_is_a_quarter_narrower_where_the_offline_judge_knows_something(
    shared_dir: Path, name: str
) -> None:
    found = compare(labelled_set(name, shared_dir / "data"), days=DAYS, runs=RUNS)
    assert found.ratio <= TARGET
    assert 0.15 * RUNS < found.calls < 0.4 * RUNS
    assert abs(found.bias) < SURE


@pytest.mark.slow
@pytest.mark.parametrize(("name", "most"), [("wice", 0.92), ("summedits", 1.02)])
def test_a_weak_offline_judge_costs_nothing(shared_dir: Path, name: str, most: float) -> None:
    found = compare(labelled_set(name, shared_dir / "data"), days=DAYS, runs=RUNS)
    assert TARGET < found.ratio <= most  # 25 % are out of reach there: the answers differ at equal support
    assert abs(found.bias) < SURE
