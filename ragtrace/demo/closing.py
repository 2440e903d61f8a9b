"""What the demo says at its end."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from rich.text import Text

from ragtrace.demo import wording
from ragtrace.demo.view import metrics_table, worst_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console, RenderableType

    from ragtrace.demo.progress import Progress

_QUIET = "dim"


def close(console: Console, progress: Progress, *, out: str, lines: int, has_view: bool) -> None:
    """Print the closing summary.

    Args:
        console: where to.
        progress: the last state.
        out: name of the file with the records.
        lines: lines in it.
        has_view: the last frame of the live view stands above, so tables are not repeated.
    """
    if not has_view:
        for part in _tables(progress):
            console.print(part, soft_wrap=True)
    console.print()
    # The view shows the alarm already.
    verdict = () if has_view and progress.alarm is not None else _verdict(progress)
    for line in (*verdict, *_contrast(progress), *_next_steps(progress, out, lines, console.width)):
        console.print(line, soft_wrap=not has_view)


def _tables(progress: Progress) -> Iterator[RenderableType]:
    yield Text()
    yield metrics_table(progress.metrics)
    if progress.worst:
        yield Text("\nworst answers")
        for worst in progress.worst[:3]:
            yield from worst_lines(worst)


def _verdict(progress: Progress) -> Iterator[Text]:
    if progress.alarm is not None:
        yield Text(f"{_capital(wording.what_fell(progress.alarm))}.", style="bold")
        yield Text(f"{_capital(wording.when(progress.alarm))}.")
        yield Text(f"Why: {wording.why(progress.alarm)}.")
    elif progress.has_incident:
        yield Text("No alarm: the questions after the incident were too few to tell the drop from noise.")
    else:
        yield Text("No alarm: the detector stayed quiet, as it should without an incident.")


def _contrast(progress: Progress) -> Iterator[Text]:
    before, after = _sides(progress)
    if before and after:
        yield Text(
            f"Faithfulness was {fmean(before):.3f} before the incident and {fmean(after):.3f} since it began;"
            " only the answerer changed."
        )


def _sides(progress: Progress) -> tuple[list[float], list[float]]:
    begin = progress.incident_at if progress.incident_at is not None else progress.total + 1
    return (
        [point.value for point in progress.points if point.question < begin],
        [point.value for point in progress.points if point.question >= begin],
    )


def _next_steps(progress: Progress, out: str, lines: int, columns: int) -> Iterator[Text]:
    if progress.asked < progress.total:
        yield Text(f"Stopped after {progress.asked} of {progress.total} questions.")
    yield Text(f"{lines} scored records stand in {out}, one JSON object a line.")
    yield Text()
    yield Text("Next", style=_QUIET)
    own = own_command()
    steps = (
        (f"{own} worst {out}", "the worst answers, and what is wrong with them"),
        (f"{own} demo --no-incident", "the same without the incident: the detector stays quiet"),
        (f"{own} demo --stack local", "a real Prometheus and Alertmanager, and the alert as it is delivered"),
        (f"{own} demo --model NAME", "a real model answers; needs OPENAI_API_KEY or --base-url URL"),
        (f"{own} score {out} --out again.jsonl", "scores these records again, from the file"),
        ('config={"callbacks": [RagtraceHandler()]}', "captures a chain of your own; see README.md"),
    )
    yield from _step_lines(steps, columns)


def _step_lines(steps: Sequence[tuple[str, str]], columns: int) -> Iterator[Text]:
    """Yield each command beside its effect, or above it where the two columns do not fit."""
    width = max(len(command) for command, _ in steps)
    is_beside = all(2 + width + 3 + len(effect) <= columns for _, effect in steps)
    for command, effect in steps:
        if is_beside:
            yield Text.assemble(f"  {command:<{width}}   ", (effect, _QUIET))
        else:
            yield Text(f"  {command}")
            yield Text(f"      {effect}", style=_QUIET)


def own_command() -> str:
    """Return the name that starts this very ragtrace here: its path where another or none is on the PATH."""
    own = Path(sys.executable).with_name("ragtrace")
    found = shutil.which("ragtrace")
    if not own.is_file() or (found is not None and own.samefile(found)):
        return "ragtrace"
    is_below = own.is_relative_to(Path.cwd())
    return str(own.relative_to(Path.cwd()) if is_below else own)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
