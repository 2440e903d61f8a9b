"""The tables that docs/performance.md quotes."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.overhead import bounds
from benchmarks.overhead.candidates import BEFORE, CANDIDATES, FLOOR, FRAMEWORKS, TITLES
from benchmarks.overhead.rounds import OF_STATES, PACED, STATE, VECTORS, Results, quartiles, scenarios_of

Looks = Mapping[tuple[str, str], Any]


def report(
    results: Results,
    looks: Looks,
    memory: Looks,
    versions: Mapping[str, str],
    notes: list[str],
    other_load: float,
) -> str:
    """Return everything that was measured; `other_load` is the load average before anything began."""
    parts = [_machine(versions, results.rounds, other_load)]
    if any(BEFORE in by for by in results.turns.values()):
        head = ["added CPU a run with OTLP, ms", "before", "now", "now / before"]
        parts += ["", *_table(head, _against(results))]
    else:
        for framework in FRAMEWORKS:
            parts += _framework(results, looks, framework)
    if memory:
        parts += _table(["memory", "bytes a run, slope", "95 % interval", "objects kept a run"], _memory(memory))
    parts += ["", *_table(["promise", "bound", "measured", "holds?"], _promises(results, looks, memory))]
    return "\n".join([*parts, *(["", *notes] if notes else [])])


def _machine(versions: Mapping[str, str], rounds: int, other_load: float) -> str:
    found = ", ".join(f"{name} {version}" for name, version in versions.items())
    return (
        f"{os.cpu_count()} cores, load {other_load:.1f} before the start, Python {platform.python_version()}, "
        f"{found}; medians of {rounds} paired rounds, in brackets the quartiles"
    )


def _framework(results: Results, looks: Looks, framework: str) -> Iterator[str]:
    keys = [key for key in results.turns if key[0] == framework]
    if not keys and not any(one == framework for _, one in [*results.skipped, *looks]):
        return
    shown = scenarios_of(framework)
    for title, measure, unit in (
        ("added wall a run, ms (spans go nowhere)", "null", "wall_ns"),
        ("added CPU a run with OTLP to another process, ms (all threads)", "otlp", "cpu_ns"),
    ):
        yield f"\n{framework}: {title}\n"
        more = ["a chunk, us", f"CPU of {shown[0]}"] if measure == "null" else []
        head = [framework, *shown, *more, "x minimal", "x floor"]
        yield from _table(head, _costs(results, framework, shown, measure, unit))
    yield f"\n{framework}: added wall a run, ms, with 5 ms between calls (spans go nowhere)\n"
    yield from _table(
        [framework, shown[0], "x minimal", "x floor"], _costs(results, framework, shown[:1], PACED, "wall_ns")
    )
    if states := [row for key in OF_STATES if (row := _state(results, framework, key))]:
        yield f"\n{framework}: wall of a whole run whose steps hand a state on, ms (spans go nowhere)\n"
        yield from _table([framework, STATE, VECTORS, "with / without"], iter(states))
    yield f"\n{framework}: what a run leaves\n"
    yield from _table(
        [framework, "spans", "KB on the wire", "texts", "ids", "copies of a text"], _left(looks, framework)
    )


def _costs(results: Results, framework: str, shown: list[str], measure: str, unit: str) -> Iterator[list[str]]:
    for candidate in (one.key for one in CANDIDATES):
        reason = results.skipped.get((candidate, framework))
        if reason is not None:
            yield [TITLES[candidate], f"skipped: {reason}"]
            continue
        keys = [(framework, scenario, measure, unit) for scenario in shown]
        if not results.turns.get(keys[0], {}).get(candidate):
            continue
        if candidate == "bare":
            yield ["bare application (whole run)", *(_whole(results, key) for key in keys)]
            continue
        cells = [_spread(results.added(key, candidate), 1e6) for key in keys]
        if measure == "null":
            cells.append(_spread(results.added_a_chunk(framework, candidate), 1e3, digits=1))
            cells.append(_spread(results.added((framework, shown[0], measure, "cpu_ns"), candidate), 1e6))
        yield [TITLES[candidate], *cells, *(_ratio(results, keys[0], candidate, to) for to in ("minimal", FLOOR))]


def _ratio(results: Results, key: tuple[str, str, str, str], candidate: str, to: str) -> str:
    """Return how many times what another candidate adds, of the same rounds, with quartiles."""
    pairs = zip(results.added(key, candidate), results.added(key, to), strict=False)
    return _spread([one / other for one, other in pairs if other > 0], 1.0)


def _state(results: Results, framework: str, candidate: str) -> list[str]:
    """Return the walls of a run without vectors and with them; nothing where they were not measured."""
    walls = [results.turns.get((framework, one, "null", "wall_ns"), {}).get(candidate) for one in (STATE, VECTORS)]
    if not walls[0] or not walls[1]:
        return []
    without, with_them = (statistics.median(one) for one in (walls[0], walls[1]))
    return [TITLES[candidate], f"{without / 1e6:.2f}", f"{with_them / 1e6:.2f}", f"{with_them / without:.2f}"]


def _whole(results: Results, key: tuple[str, str, str, str]) -> str:
    values = results.turns.get(key, {}).get("bare")
    return f"{statistics.median(values) / 1e6:.2f}" if values else ""


def _spread(values: list[float], scale: float, digits: int = 2) -> str:
    if not values:
        return ""
    low, middle, high = (value / scale for value in quartiles(values))
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def _against(results: Results) -> Iterator[list[str]]:
    """Yield what both commits add in each scenario, and the ratio within rounds."""
    for framework in FRAMEWORKS:
        for scenario in scenarios_of(framework):
            key = (framework, scenario, "otlp", "cpu_ns")
            before, now = results.added(key, BEFORE), results.added(key, "ours")
            if before and now:
                ratio = [ours / theirs for ours, theirs in zip(now, before, strict=False)]
                cells = [_spread(before, 1e6), _spread(now, 1e6), _spread(ratio, 1.0)]
                yield [f"{framework}: {scenario}", *cells]


def _left(looks: Looks, framework: str) -> Iterator[list[str]]:
    for candidate in (one.key for one in CANDIDATES):
        look = looks.get((candidate, framework))
        if look is None or candidate in {"bare", "empty"}:
            continue
        size = f"{look['bytes'] / 1e3:.0f}"
        if "bytes_without_content" in look:
            size += f" (without text {look['bytes_without_content'] / 1e3:.1f})"
        yield [
            TITLES[candidate],
            f"{look['spans']:g}",
            size,
            f"{look['texts']}/50",
            f"{look['ids']}/50",
            f"{look['copies']:.1f}",
        ]


def _memory(memory: Looks) -> Iterator[list[str]]:
    for (candidate, framework), found in memory.items():
        yield [
            f"{framework}: {TITLES[candidate]}",
            f"{found['slope']:.1f}",
            f"{found['low']:.1f} to {found['high']:.1f}",
            f"{found['retained_a_run']:.4f}",
        ]


def _promises(results: Results, looks: Looks, memory: Looks) -> Iterator[list[str]]:
    for line in bounds.lines(results, looks, memory):
        yield [line.what, line.bound, line.measured, "yes" if line.holds else "NO"]


def _table(head: list[str], rows: Iterator[list[str]]) -> list[str]:
    """A Markdown table whose columns stand under each other in a terminal too."""
    cells = [head, *(row + [""] * (len(head) - len(row)) for row in rows)]
    # A reason is longer than any figure: it does not set a column's width.
    widths = [max(len(row[i]) for row in cells if not row[i].startswith("skipped")) for i in range(len(head))]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |"
        for row in cells
    ]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]
