"""ragtrace beside other instrumentations: the application's results are the bare ones, and so is our capture."""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.environments import python_of

WORKER = Path(__file__).with_name("worker.py")
FRAMEWORKS = ("langchain", "llamaindex")
ORDERS = (
    ("openinference", "ragtrace"),
    ("ragtrace", "openinference"),
    ("otel-genai", "ragtrace"),
    ("ragtrace", "otel-genai"),
    ("openinference", "otel-genai", "ragtrace"),
    ("ragtrace", "openinference", "otel-genai"),
)


def beside_python() -> Path:
    return python_of("beside", "other instrumentations")


@cache
def ran(framework: str, *names: str) -> dict[str, Any]:
    """Return each scenario's result and runs, with these instrumentations installed in this order."""
    # Credentials and endpoints of the machine have no place in the worker.
    environ = {"PATH": os.environ.get("PATH", ""), "OTEL_SDK_DISABLED": "false"}
    done = subprocess.run(
        [str(beside_python()), str(WORKER), framework, *names],
        capture_output=True, text=True, env=environ, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3_000:]
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def result(scenario: dict[str, Any]) -> dict[str, Any]:
    return {key: scenario[key] for key in ("value", "error") if key in scenario}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_ragtrace_alone_changes_no_result(framework: str) -> None:
    bare, alone = ran(framework), ran(framework, "ragtrace")
    assert {name: result(of) for name, of in alone.items()} == {name: result(of) for name, of in bare.items()}
    assert not any(of["runs"] for of in bare.values())
    assert all(of["runs"] for of in alone.values())


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_no_result_differs_beside_another_instrumentation(framework: str, order: tuple[str, ...]) -> None:
    others = tuple(name for name in order if name != "ragtrace")
    without, together = ran(framework, *others), ran(framework, *order)
    assert {name: result(of) for name, of in together.items()} == {name: result(of) for name, of in without.items()}


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_the_same_is_captured_beside_another_instrumentation(framework: str, order: tuple[str, ...]) -> None:
    alone, together = ran(framework, "ragtrace"), ran(framework, *order)
    assert {name: of["runs"] for name, of in together.items()} == {name: of["runs"] for name, of in alone.items()}


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_the_other_instrumentation_loses_no_span(framework: str, order: tuple[str, ...]) -> None:
    others = tuple(name for name in order if name != "ragtrace")
    without, together = ran(framework, *others), ran(framework, *order)
    counts = {name: of["others"] for name, of in together.items()}
    assert counts == {name: of["others"] for name, of in without.items()}
    assert any(counts.values())


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_ragtrace_alone_captures_the_chain(framework: str) -> None:
    for name, of in ran(framework, "ragtrace").items():
        for run in of["runs"]:
            outcome = run["ragtrace.run.outcome"]
            expected = "error" if "raises" in name else "partial" if "left" in name else "answered"
            assert outcome == expected, name
            if "retriever raises" in name or "simple" in name:
                continue
            assert run["ragtrace.pool.ids"] == '["d0","d1","d2","d3","d4","d5"]', name
            assert run["ragtrace.selected.ids"] == '["d4","d1"]', name
            assert run["ragtrace.selected.ranks"] == "[5,2]", name
            assert run["ragtrace.prompt.ids"] == '["d4","d1"]', name
