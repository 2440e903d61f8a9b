"""Table and notes of a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.metrics.consistency.runs import LEAST_RUNS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import Console

    from ragtrace.scoring.offline.comparison import Compared, Comparison, Contrast, Side
    from ragtrace.stats.differences import Difference

_INDEX = "consistency_adjusted_index"  # in the JSON alone: deviation and its share of the mean say it plainly


def show(found: Comparison, console: Console) -> None:
    """Print the files, the table of metrics, the repeated runs and the notes."""
    letters = _letters(found)
    for letter, arm, share in zip(letters, found.arms, found.answered, strict=True):
        counts = f"{arm['lines']} lines, {arm['broken']} broken, {arm['repeated']} queries asked again"
        answered = (
            "" if share.mean is None else f"; {share.mean:.1%} answered ({share.low:.1%} to {share.high:.1%})"
        )
        console.print(f"{letter}  {arm['name']}: {counts}{answered}")
    known = [line for line in found.lines if any(side.values for side in line.sides)]
    plain = [line for line in known if not line.is_over_runs]
    runs = [line for line in known if line.is_over_runs and not line.key.metric.startswith(_INDEX)]
    for title, lines in (("metric", plain), ("over runs of one query", runs)):
        if lines:
            console.print()
            _table(lines, letters, console, title)
    notes = list(_notes(found, letters))
    if notes:
        console.print()
    for note in notes:
        console.print(f"- {note}")


def _letters(found: Comparison) -> list[str]:
    return [chr(ord("A") + i) if i < 26 else str(i + 1) for i in range(len(found.arms))]


def _table(lines: list[Compared], letters: list[str], console: Console, title: str) -> None:
    from rich.table import Table

    is_several = len(letters) > 1
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(title, no_wrap=True)
    for head in ("", "n", "na", "errors", "mean", "95 % interval"):
        table.add_column(head, justify="right" if head else "left", no_wrap=True)
    if is_several:
        table.add_column(f"minus {letters[0]}", justify="right", no_wrap=True)
        table.add_column("95 % interval", justify="right", no_wrap=True)
        table.add_column("", no_wrap=False)
    for line in lines:
        label = line.label
        for i, (letter, side) in enumerate(zip(letters, line.sides, strict=True)):
            if not (side.values or side.na or side.errors):
                continue
            cells = _contrast(line, line.contrasts[i - 1]) if i else ["", "", ""]
            table.add_row(label, letter, *_side(side), *(cells if is_several else ()))
            label = ""
    console.print(table)


def _side(side: Side) -> list[str]:
    mean = side.mean
    return [
        str(len(side.values)),
        str(sum(side.na.values()) or ""),
        str(sum(side.errors.values()) or ""),
        "" if mean.mean is None else f"{mean.mean:.3f}",
        "" if mean.low is None else f"{mean.low:.3f} to {mean.high:.3f}",
    ]


def _contrast(line: Compared, contrast: Contrast) -> list[str]:
    found = contrast.difference
    if found is None:
        return ["", "", str(contrast.reason)]
    bounds = "" if found.low is None else f"{found.low:+.3f} to {found.high:+.3f}"
    basis = f"{found.n[0]} pairs" if found.is_paired else "unpaired"
    return [f"{found.value:+.3f}", bounds, f"{basis}: {_verdict(found, line.direction)}"]


def _verdict(found: Difference, direction: str | None) -> str:
    if found.is_significant is None:
        return "too few to tell"
    if not found.is_significant:
        return "no difference shown"
    is_higher = found.value > 0
    if direction is None:
        return "higher" if is_higher else "lower"
    return "better" if is_higher == (direction == "up") else "worse"


def _notes(found: Comparison, letters: list[str]) -> Iterator[str]:
    yield from (f"refused: {line}" for line in found.refused)
    for i, letter in enumerate(letters):
        for kind in ("na", "errors"):
            reasons: dict[str, list[str]] = {}
            for line in found.lines:
                counts: Mapping[str, int] = getattr(line.sides[i], kind)
                if counts and not line.is_over_runs:
                    listed = ", ".join(f"{count} {reason}" for reason, count in counts.items())
                    reasons.setdefault(listed, []).append(line.label)
            yield from (f"{letter} {kind}: {reason}: {', '.join(names)}" for reason, names in reasons.items())
    yield from _left_out(found, letters)
    yield from _alone(found, letters)
    has_runs = any(side.values for line in found.lines if line.is_over_runs for side in line.sides)
    if not has_runs and any(arm["repeated"] for arm in found.arms):
        yield f"no query was asked {LEAST_RUNS} times: not enough for consistency over runs"
    units = {side.units for line in found.lines for side in line.sides if side.units != "rows"}
    if units:
        yield f"counted as one each: {', '.join(sorted(units))}, as their rows go together"
    yield from _by_chance(found)


def _by_chance(found: Comparison) -> Iterator[str]:
    differences = (contrast.difference for line in found.lines for contrast in line.contrasts)
    if any(one is not None and one.is_significant is not None for one in differences):
        yield "of 20 metrics without any difference about one is shown as better or worse by chance"


def _left_out(found: Comparison, letters: list[str]) -> Iterator[str]:
    for i, letter in enumerate(letters[1:]):
        names: dict[int, list[str]] = {}
        for line in found.lines:
            contrast = line.contrasts[i]
            if contrast.difference and contrast.other_labels:
                names.setdefault(contrast.other_labels, []).append(line.label)
        for count, labels in names.items():
            yield f"{letter}: {count} pairs left out, as the labels changed between them: {', '.join(labels)}"


def _alone(found: Comparison, letters: list[str]) -> Iterator[str]:
    """Tell of values that a paired difference leaves out, since their record is in one file only."""
    for i, letter in enumerate(letters[1:]):
        names: dict[int, list[str]] = {}
        for line in found.lines:
            contrast = line.contrasts[i]
            if contrast.difference is not None and contrast.difference.is_paired and not line.is_over_runs:
                pairs = contrast.difference.n[0] + contrast.other_labels
                alone = max(len(line.sides[0].values), len(line.sides[i + 1].values)) - pairs
                names.setdefault(alone, []).append(line.label)
        for count, labels in names.items():
            if count > 0:
                left = f"up to {count} values left out, as the other file has none of their ids"
                yield f"{letter}: {left}: {', '.join(labels)}"
