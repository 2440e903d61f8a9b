"""What ragtrace promised to cost, and whether the figures of this run hold it."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.overhead.rounds import PACED, STATE, VECTORS, Results

WALL, CPU, PACED_WALL = 2.1, 2.0, 1.2
CPU_OF_INVOKE = 1.8
WITH_TEXT_KB, WITHOUT_TEXT_KB = 62, 10
CHUNK_US = {"langchain": 3.0, "llamaindex": 1.0}
SLOPE_BYTES = 50
WITH_VECTORS = 1.5  # times the whole run without them


@dataclass(frozen=True)
class Line:
    """One promise: what it says, what was measured, and whether it holds."""

    what: str
    bound: str
    measured: str
    holds: bool


def lines(
    results: Results, looks: Mapping[tuple[str, str], Any], memory: Mapping[tuple[str, str], Any]
) -> Iterator[Line]:
    """Yield a line for every promise that was measured; one that was not measured is not said to hold."""
    for framework, scenario in (
        ("langchain", "invoke"),
        ("langchain", "ainvoke x64"),
        ("llamaindex", "query"),
        ("llamaindex", "aquery x64"),
    ):
        yield from _ratio(results, framework, scenario, "added wall", ("null", "wall_ns"), WALL)
        most = CPU_OF_INVOKE if scenario == "invoke" else CPU
        yield from _ratio(results, framework, scenario, "added CPU with OTLP", ("otlp", "cpu_ns"), most)
        yield from _ratio(results, framework, scenario, "added wall, paced", (PACED, "wall_ns"), PACED_WALL)
    for framework, bound in CHUNK_US.items():
        chunks = results.added_a_chunk(framework, "ours")
        if chunks:
            yield _at_most(f"{framework}: a streamed chunk", statistics.median(chunks) / 1e3, bound, "us")
    runs = [results.turns.get(("langchain", one, "null", "wall_ns"), {}).get("ours") for one in (VECTORS, STATE)]
    if all(runs):
        with_them, without = (statistics.median(walls or ()) for walls in runs)
        said = f"{with_them / without:.2f} x ({with_them / 1e6:.2f} of {without / 1e6:.2f} ms)"
        holds = with_them <= WITH_VECTORS * without
        yield Line(f"langchain: whole run, {VECTORS}", f"{WITH_VECTORS} x without them", said, holds)
    for (candidate, framework), look in looks.items():
        if candidate == "ours":
            yield _at_most(f"{framework}: on the wire with text", look["bytes"] / 1e3, WITH_TEXT_KB, "KB")
            without = look["bytes_without_content"] / 1e3
            yield _at_most(f"{framework}: on the wire without text", without, WITHOUT_TEXT_KB, "KB")
    for (candidate, framework), found in memory.items():
        if candidate == "ours":
            slope = f"{framework}: RSS slope, upper bound of its 95 % interval"
            yield _at_most(slope, found["high"], SLOPE_BYTES, "B a run")
            # What the framework itself keeps is not ours: less the bare application's.
            bare = memory.get(("bare", framework))
            if bare is not None:
                own = round(found["retained_a_run"] - bare["retained_a_run"], 2)
                yield _at_most(f"{framework}: objects kept a run, less the bare application's", own, 0, "")


def _ratio(
    results: Results, framework: str, scenario: str, what: str, unit: tuple[str, str], bound: float
) -> Iterator[Line]:
    key = (framework, scenario, *unit)
    ours, minimal = results.added(key, "ours"), results.added(key, "minimal")
    if ours and minimal:
        middle: Callable[[list[float]], float] = statistics.median
        ratio = middle(ours) / middle(minimal)
        said = f"{ratio:.2f} x ({middle(ours) / 1e6:.2f} of {middle(minimal) / 1e6:.2f} ms)"
        yield Line(f"{framework} {scenario}: {what}", f"{bound} x minimal", said, ratio <= bound)


def _at_most(what: str, measured: float, bound: float, unit: str) -> Line:
    return Line(what, f"{bound:g} {unit}".strip(), f"{measured:.2f} {unit}".strip(), measured <= bound)
