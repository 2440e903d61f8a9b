"""The golden vectors that no command gives; tests/guards scores the others as a user does."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.guards.golden.loading import Vector, folder, vectors
from tests.guards.test_golden_vectors import is_scored

# Each file named running*.py computes the vectors of some metrics.
RUNNERS: dict[str, Any] = {}
for _path in sorted(Path(__file__).parent.glob("running*.py")):
    RUNNERS |= import_module(f"tests.golden.{_path.stem}").RUNNERS

FOLDER = folder()
EVERY = vectors(FOLDER) if FOLDER.is_dir() else []
VECTORS = [vector for vector in EVERY if not is_scored(vector)]


def test_the_folder_holds_vectors() -> None:
    assert VECTORS, f"{FOLDER} holds no golden vectors"


@pytest.mark.parametrize("vector", VECTORS, ids=[vector.name for vector in VECTORS])
async def test_vector(vector: Vector) -> None:
    metric = vector.record["metric"]
    assert metric in RUNNERS, f"{vector.file}.json names {metric!r}, which nothing here computes"
    await RUNNERS[metric](vector.record)


PEERS = [v for v in EVERY if isinstance(v.record.get("source_value"), float) and "deviation" not in v.record]


@pytest.mark.parametrize("vector", PEERS, ids=[vector.name for vector in PEERS])
def test_the_peer_agrees_where_no_deviation_is_given(vector: Vector) -> None:
    expected: Any = vector.record["expected"]
    if expected is not None:
        assert vector.record["source_value"] == pytest.approx(expected, rel=0, abs=1e-6)
