"""Reads the events that a run was given: in the pipeline's thread, in parts or at the run's end."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ragtrace.capture.events import Event, shed
from ragtrace.capture.guard import guarded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace.capture.events import Redactor
    from ragtrace.capture.interpret import Interpreter
    from ragtrace.capture.reported import Reported
    from ragtrace.capture.run import Run
    from ragtrace.capture.types import RunConfig

MAX_CHARS = 4_194_304  # of the texts of the events that are kept unread, each counted once
MAX_WAITING = 1_024  # events of a run that are kept unread; then they are read before its end
MAX_RECORDED = 10_000  # events of one run, for a bug report
_ROOM = MAX_CHARS // 4
_UNWRITTEN = frozenset({"add_metadata", "feedback"})  # reports that are in no file of events
_PERSONS = frozenset({"session", "session_chars", "user", "user_chars"})  # facts that are in none


class RunReader:
    """Reads the events that wait in a run. Its methods are called inside `Run.reading`, except `write_events`.

    Few events stay unread until the run ends. It decides event by event, so that a record is the same however many
    parts there were.

    Attributes:
        taken_chars: characters of the texts of all events that were taken.
        unread_chars: characters of the texts of those that are unread.
        read_chars: characters of prompts and passages that were read.

    Args:
        run: what the events mean is reported to it.
        config: the run's.
        reported: what the reports add up to.
        waiting: what the run's threads add: events, with the characters of the texts that each shows first.
        redactor: redacted the events; None where texts stay as they are.
    """

    def __init__(
        self,
        run: Run,
        config: RunConfig,
        reported: Reported,
        waiting: deque[tuple[Event, int]],
        redactor: Redactor | None,
    ) -> None:
        self._run = run
        self._config = config
        self._reported = reported
        self._waiting = waiting
        self._redactor = redactor
        self._unread: deque[Event] = deque()
        self._reported_chars = 0  # of the unread ones, in reports: `shed` takes no text out of those
        self._most_chars = MAX_CHARS  # behind which texts are taken out
        # By who tells; None once the last event was read.
        self._interpreters: Mapping[str, Interpreter | None] = {}
        self._recorded: list[Event] = []  # that were read, for a bug report
        self.taken_chars = self.unread_chars = self.read_chars = 0

    def take_part(self) -> None:
        """Take the events that wait, and read them where they are many."""
        for _ in range(len(self._waiting)):
            try:
                event, chars = self._waiting.popleft()
            except IndexError:  # the run was lost meanwhile
                break
            self._unread.append(event)
            self.taken_chars += chars
            self.unread_chars += chars
            self._reported_chars += chars if event.kind == "report" else 0
            if len(self._unread) >= MAX_WAITING or self.unread_chars > self._most_chars:
                self._make_room()

    def read_rest(self) -> None:
        """Read the events of a run that has ended."""
        self.take_part()
        self._read_all()
        for teller, interpreter in self._interpreters.items():
            if interpreter is not None:  # the integration added events and no end
                told = self._reported
                self._read_event(Event("end", data=told.finished_as, error=told.failure, teller=teller))

    @guarded
    def write_events(self) -> None:
        """Write the events that were read for a bug report, where the configuration keeps them."""
        events, self._recorded = self._recorded, []
        if not events or self._config.events is None:
            return
        from ragtrace.capture.recorded import RecordedRun  # noqa: PLC0415 - the pipeline's thread imports it

        told = RecordedRun(
            workflow=self._reported.attributes["workflow"],
            started_ns=self._reported.started_ns,
            events=events,
            outcome=self._reported.finished_as,
            ended_ns=self._reported.ended_ns,
        )
        self._config.events.write(told, self._config.redact)

    @guarded
    def _make_room(self) -> None:
        """Take texts out of unread events; read them where they are many, or reports hold much of it."""
        if len(self._unread) >= MAX_WAITING or self._reported_chars > _ROOM:
            self._read_all()
            return
        left = shed(list(self._unread), MAX_CHARS - _ROOM, self._config.id_key)  # and not again at the next
        self.unread_chars = left.chars
        self._most_chars = max(MAX_CHARS, left.chars + _ROOM)  # what is left may be no text of these
        if left.prompts:
            self._reported.lose("prompts", left.prompts)
        if left.passages:
            self._reported.lose("passage_texts", left.passages)

    def _read_all(self) -> None:
        if self._redactor is not None and (length := self._redactor.longest_cut):
            self._reported.cut_prompt(length)  # what stands behind its beginning is in no prompt
        while self._unread:
            self._read_event(self._unread.popleft())
        self.unread_chars = self._reported_chars = 0
        if self._run.is_finished:  # its size was asked for
            return
        found = sum(len(passage.text) for search in self._run.retrievals() for passage in search.passages)
        self.read_chars = sum(map(len, self._reported.prompts)) + found

    @guarded
    def _read_event(self, event: Event) -> None:
        if event.kind == "report":
            self._record(event)
            self._reported.take(event.name, event.data)
            return
        known, teller = self._interpreters, event.teller
        interpreter = known[teller] if teller in known else self._interpreter()
        if interpreter is None:  # another thread ended the run
            return
        self._record(event)
        if teller not in known or event.kind == "end":
            self._interpreters = {**known, teller: None if event.kind == "end" else interpreter}
        self._reported.declarations.take(event)
        interpreter.take(event)

    def _interpreter(self) -> Interpreter:
        from ragtrace.capture.interpret import Interpreter  # noqa: PLC0415 - the pipeline's thread imports it

        return Interpreter(self._run)

    def _record(self, event: Event) -> None:
        """Keep an event for the file of a bug report; it is written once the run has ended."""
        if self._config.events is None:
            return
        if event.kind == "report":
            own = {name: value for name, value in event.data.items() if name not in _PERSONS}
            if event.name in _UNWRITTEN or (event.data and not own):
                return
            event = replace(event, data={name: value for name, value in own.items() if value is not None})
        if len(self._recorded) < MAX_RECORDED:
            self._recorded.append(event)
        else:
            self._reported.lose("recorded_events")
