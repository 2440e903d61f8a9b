"""A sweep that meets another thread inside a run: a redaction stops one of the two where the other has to come by."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from ragtrace.capture import Generation, Recorder, Run

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from ragtrace.capture import RunProcessor
    from ragtrace.capture.events import Event

WAIT_S = 30.0


class HeldSweep:
    """A sweep that stops at the first text of what it ends, until it is let go."""

    def __init__(self, sink: RunProcessor) -> None:
        self._stands, self._go_on = threading.Event(), threading.Event()
        self.recorder = Recorder(sink, redact=self._redact)
        self._thread = threading.Thread(target=self.recorder.end_all, name="sweep")

    def _redact(self, text: str) -> str:
        if threading.current_thread() is self._thread:
            self._stands.set()
            self._go_on.wait(WAIT_S)
        return text

    def begin(self) -> None:
        """Sweep in a thread, and wait until that stands inside a run's end."""
        self._thread.start()
        assert self._stands.wait(WAIT_S)

    def end(self) -> None:
        """Let the sweep go on, to its end."""
        self._go_on.set()
        self._thread.join()

    def lets(self, work: Callable[[], object]) -> bool:
        """Whether a thread that does `work` comes to its end while the sweep stands; then the sweep ends."""
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(WAIT_S / 3)
        is_free = not thread.is_alive()
        self.end()
        return is_free


class SweepBesideTheEnd:
    """A sweep that comes when a run has told its model call and is about to tell `answer`."""

    def __init__(self, sink: RunProcessor, answer: str) -> None:
        self._answer = answer
        self._ending, self._swept = threading.Event(), threading.Event()
        self.recorder = Recorder(sink, redact=self._redact)
        self._thread = threading.Thread(target=self._sweep)

    def _redact(self, text: str) -> str:
        steps = next(iter(self.recorder._open.values())).steps if self.recorder.open_runs else ()
        is_told = any(isinstance(step, Generation) for step in steps)  # then the answer follows
        if text == self._answer and is_told and threading.current_thread() is not self._thread:
            self._meet()
        return text[:1] + text[1:]  # another object: a text that was redacted is not redacted again

    def _meet(self) -> None:
        self._ending.set()
        self._swept.wait(0.5)  # until the sweep has passed by, where it does not wait

    def _sweep(self) -> None:
        assert self._ending.wait(WAIT_S)
        self.recorder.end_all()
        self._swept.set()

    def meets(self, work: Callable[[], object]) -> None:
        """Do `work` beside the sweep."""
        self._thread.start()
        work()
        self._thread.join(WAIT_S)


class SweepBesideTheLastEvent(SweepBesideTheEnd):
    """A sweep that comes when the event of a root's end was added, and before the run is concluded."""

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the sweep come at the next root's end."""
        real = Run.add

        def add(run: Run, event: Event, **options: Any) -> None:
            real(run, event, **options)
            is_last = event.kind == "chain" and not event.parent and event.ended_ns is not None
            if is_last and threading.current_thread() is not self._thread:
                self._meet()

        monkeypatch.setattr(Run, "add", add)


def add_slowly(calls: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let other calls end while an integration's `calls` adds one's tokens to those of its run."""
    met, added = threading.Event(), calls.added_usage

    def slow(*usages: Any) -> Any:
        met.wait(0.1)
        return added(*usages)

    monkeypatch.setattr(calls, "added_usage", slow)
