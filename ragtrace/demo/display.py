"""Two ways to follow the demo: a live view on a terminal, plain lines anywhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

from rich.live import Live

from ragtrace.demo import wording
from ragtrace.demo.progress import WATCHED
from ragtrace.demo.view import Room, frame

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from rich.console import Console, RenderableType

    from ragtrace.demo.progress import Alarm, Progress
    from ragtrace.demo.view import Heading

FRAMES_A_SECOND = 2
LINES_A_RUN = 10


class Display(Protocol):
    """Shows progress inside a ``with`` block; `tick` is called after each question and while scores come in."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def tick(self, asked: int, alarm: Alarm | None) -> None:
        """Show what is new: the number of questions asked, and the alarm once there is one."""
        ...


class LiveDisplay:
    """Redraws the view twice a second; the last frame stays on the screen.

    Args:
        console: a terminal.
        progress: returns what to show; called in rich's thread.
        heading: what does not change.
    """

    def __init__(self, console: Console, progress: Callable[[], Progress], heading: Heading) -> None:
        self._console = console
        self._progress = progress
        self._heading = heading
        self._live = Live(
            get_renderable=self._frame,
            console=console,
            refresh_per_second=FRAMES_A_SECOND,
            vertical_overflow="crop",
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def tick(self, asked: int, alarm: Alarm | None) -> None:
        """Nothing to do: the view refreshes itself."""

    def _frame(self) -> RenderableType:
        progress = self._progress()
        size = self._console.size
        return frame(progress, self._heading, Room.on(size.width, size.height, len(progress.metrics)))


class PlainDisplay:
    """Prints a line ten times a run, and the incident and the alarm when they come.

    Args:
        console: no terminal.
        progress: returns what to show.
        heading: what does not change.
    """

    def __init__(self, console: Console, progress: Callable[[], Progress], heading: Heading) -> None:
        self._console = console
        self._progress = progress
        self._heading = heading
        self._steps = 0
        self._has_told_incident = False
        self._has_told_alarm = False

    def __enter__(self) -> Self:
        heading = self._heading
        self._print(f"ragtrace demo: answers {heading.model}, judge {heading.judge}, seed {heading.seed}")
        if heading.endpoint:
            self._print(f"OpenMetrics endpoint: {heading.endpoint}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to do: the closing summary follows."""

    def _print(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def tick(self, asked: int, alarm: Alarm | None) -> None:
        """Print what is due; the means are computed only then."""
        heading = self._heading
        if not self._has_told_incident and heading.incident_at is not None and asked >= heading.incident_at:
            self._has_told_incident = True
            self._print(f"question {heading.incident_at}: the incident begins, the answerer now invents facts")
        if not self._has_told_alarm and alarm is not None:
            self._has_told_alarm = True
            self._print("ALARM")
            for told in (wording.what_fell(alarm), wording.when(alarm), wording.why(alarm)):
                self._print(f"  {told}")
        steps = asked * LINES_A_RUN // heading.total
        if steps > self._steps:
            self._steps = steps
            self._print(_line(self._progress()))


def _line(progress: Progress) -> str:
    watched = next((line for line in progress.metrics if line.name == WATCHED), None)
    quality = (
        f"{WATCHED} {wording.number(watched.mean)} ({wording.bounds(watched)})" if watched else "no scores yet"
    )
    return (
        f"question {progress.asked} of {progress.total}: scored {progress.scored}, waiting {progress.pending},"
        f" dropped {progress.dropped}; {quality}; detector {wording.detector(progress.detector)}"
    )
