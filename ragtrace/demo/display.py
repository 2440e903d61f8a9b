"""Plain lines of a demo without a terminal, and the closing summary."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from ragtrace.demo.incident import HURT_CHANNEL
from ragtrace.demo.tally import END_S, WATCHED
from ragtrace.demo.view import QUIET, fall_text, interval_text, mean_text, metrics_table, worst_lines
from ragtrace.model.standing import standing_of
from ragtrace.scoring.investigation.comparison import NoMetric, TooFewScores
from ragtrace.scoring.investigation.lines import example_texts, report
from ragtrace.scoring.investigation.runs import ScoredSource
from ragtrace.scoring.investigation.search import investigated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console

    from ragtrace.demo.outfile import ScoredFile
    from ragtrace.demo.tally import Progress
    from ragtrace.demo.view import DemoHeading

LINES_A_RUN = 10


class PlainLines:
    """Prints a line ten times a run, and the incident and the fall when they come."""

    def __init__(self, console: Console, progress: Callable[[], Progress], heading: DemoHeading) -> None:
        self._console = console
        self._progress = progress
        self._steps = 0
        self._told: set[str] = set()
        self._print(f"ragtrace demo: answers {heading.model}, judge {heading.judge}, seed {heading.seed}")
        if heading.endpoint:
            self._print(f"OpenMetrics endpoint: {heading.endpoint}")

    def update(self) -> None:
        """Print the news since the last call."""
        progress = self._progress()
        if progress.has_incident and "incident" not in self._told:
            self._told.add("incident")
            self._print(f"question {progress.incident_at}: the incident begins, the answerer now invents facts")
        if progress.fall is not None and "fall" not in self._told:
            self._told.add("fall")
            self._print("\n  ".join(("FOUND", *fall_text(progress.fall, progress.incident_at))))
        steps = progress.asked * LINES_A_RUN // progress.total
        if steps > self._steps:
            self._steps = steps
            self._print(_progress_line(progress))

    def _print(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)


def _progress_line(progress: Progress) -> str:
    watched = next((it for it in progress.metrics if it.name == WATCHED), None)
    quality = f"{WATCHED} {mean_text(watched)} ({interval_text(watched)})" if watched else "no scores yet"
    counts = ", ".join(f"{name} {progress.counts[name]}" for name in ("scored", "waiting", "dropped"))
    return f"question {progress.asked} of {progress.total}: {counts}; {quality}; search: {progress.search}"


def print_closing(
    console: Console, progress: Progress, *, out: str, lines: int, has_view: bool, diagnosis: Sequence[str] = ()
) -> None:
    """Print the closing summary; tables and the fall are left out where the last frame of the view shows them."""
    if not has_view:
        console.print()
        console.print(metrics_table(progress.metrics), soft_wrap=True)
        if progress.worst:
            console.print("\nworst answers")
        for worst in progress.worst[:3]:
            for line in worst_lines(worst):
                console.print(line, soft_wrap=True)
    console.print()
    verdict = () if has_view and progress.fall is not None else _verdict(progress)
    for line in (*verdict, *_diagnosis(diagnosis, progress), *_next_steps(progress, out, lines, console.width)):
        console.print(line, soft_wrap=not has_view)


def diagnose(file: ScoredFile, show: str) -> list[str]:
    """Return the lines of ``ragtrace investigate`` for the demo's file.

    Args:
        file: the demo's records.
        show: the command that shows a trace, without its id.
    """
    source = ScoredSource(file.read())
    times = source.times()
    try:
        found = investigated(source, metric=WATCHED, before=0.0, until=max(times, default=0.0) + END_S)
    except (TooFewScores, NoMetric) as error:
        return [f"No diagnosis of so few answers. {error}"]
    return list(report(found, lambda trace_id: _texts(file, trace_id), show))


def _texts(file: ScoredFile, trace_id: str) -> list[str]:
    record, scores = next(it for it in file.read() if it[0].trace_id == trace_id)
    return example_texts(record, standing_of(scores).claims)


def _verdict(progress: Progress) -> Iterator[Text]:
    if progress.fall is not None:
        for line in fall_text(progress.fall, progress.incident_at):
            yield Text(f"{line[:1].upper()}{line[1:]}.")
    elif progress.has_incident:
        yield Text("No fall found: the questions after the incident were too few to tell it from noise.")
    else:
        yield Text("No fall found, as it should be without an incident.")


def _diagnosis(lines: Sequence[str], progress: Progress) -> Iterator[Text]:
    """Yield the diagnosis, and what really happened."""
    if not lines:
        return
    yield Text("Diagnosis, from the scores alone", style="bold")
    yield from (Text(line) for line in lines)
    if progress.has_incident:
        yield Text(
            f"{'Truth':<10}from question {progress.incident_at} on the answerer invented facts in the answers"
            f" through the {HURT_CHANNEL}",
            style=QUIET,
        )
        yield Text(
            f"{'':<10}(where the prompt held what the question needs; the offline judge misses some)",
            style=QUIET,
        )
    yield Text()


def _next_steps(progress: Progress, out: str, lines: int, columns: int) -> Iterator[Text]:
    if progress.asked < progress.total:
        yield Text(f"Stopped after {progress.asked} of {progress.total} questions.")
    yield Text(f"{lines} scored records stand in {out}, one JSON object a line.")
    yield Text()
    yield Text("Next", style=QUIET)
    own = own_command()
    steps = (
        (f"{own} investigate {out} --metric {WATCHED}", "the diagnosis again, from the file"),
        (f"{own} worst {out}", "the worst answers, and what is wrong with them"),
        (f"{own} demo --no-incident", "the same without the incident: no fall is found"),
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
            yield Text.assemble(f"  {command:<{width}}   ", (effect, QUIET))
        else:
            yield Text.assemble(f"  {command}\n      ", (effect, QUIET))


def own_command() -> str:
    """Return the name that starts this very ragtrace: its path where another or none is on the PATH."""
    own = Path(sys.executable).with_name("ragtrace")
    found = shutil.which("ragtrace")
    if not own.is_file() or (found is not None and own.samefile(found)):
        return "ragtrace"
    is_below = own.is_relative_to(Path.cwd())
    return str(own.relative_to(Path.cwd()) if is_below else own)
