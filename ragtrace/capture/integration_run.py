"""The run as integrations see it: what they report beside a person's reports, and what they ask."""

from __future__ import annotations

import threading
import time
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast, get_args

from msgspec.structs import replace

from ragtrace.capture.attribution import found_in
from ragtrace.capture.declared import NOTHING
from ragtrace.capture.decorated import noted
from ragtrace.capture.events import Event, Redactor, shed
from ragtrace.capture.guard import guarded, record_wrong_call
from ragtrace.capture.passages import PROCESS_KEY
from ragtrace.capture.reported import Reported
from ragtrace.capture.run import Run, chars_of, entered_run
from ragtrace.capture.types import Failure, Generation, Retrieval
from ragtrace.capture.values import named, told
from ragtrace.model import LabelScale, LabelScope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence

    from ragtrace.capture.attribution import TextKind
    from ragtrace.capture.declared import Declarations, Declared
    from ragtrace.capture.interpret import Interpreter
    from ragtrace.capture.passages import PassageReader, ReadPassages
    from ragtrace.capture.past import PastRuns
    from ragtrace.capture.types import Findings, Limits, RunConfig, RunProcessor, Step
    from ragtrace.model import Outcome, Passage, Usage
    from ragtrace.model.reading import How

MAX_CHARS = 4_194_304  # of the texts of the events that are kept unread, each counted once
MAX_RECORDED = 10_000  # events of one run, for a bug report
# Reports of facts by their names.
_OF_FACTS = frozenset({"set_query", "set_attributes", "set_k", "reference", "labels"})
_UNWRITTEN = frozenset({"add_metadata", "feedback"})  # reports that are in no file of events
_PERSONS = frozenset({"session", "session_chars", "user", "user_chars"})  # facts that are in none
_ROOM = MAX_CHARS // 4
MAX_WAITING = 1_024  # events of a run that are kept unread; then they are read before its end
_PART_EVENTS = 256  # events of a part: one hand-over takes 3 us, and 25 turns of an agent are 250 events
_PART_CHARS = MAX_CHARS // 16
_EVENT_CHARS = 256  # that an event behind the first 1,024 counts: shorter texts are not counted
_GRADES_EXPECTED = "grades are a mapping of passage ids to whole numbers, with a known universe and scale"


class IntegrationRun(Run):
    """A `Run` with the methods that integrations need.

    They add events, which are read in the pipeline's thread. What reads the events reports inferred selections and
    texts in place of passages, and asks the state of the run. `Recorder.start` and `current_run` return it.

    A long run is handed over in parts: the pipeline's thread takes what waits with each 256 events or 256 Ki
    characters. It decides event by event, so that a record is the same however many parts there were.

    Attributes:
        last_activity: monotonic seconds; an integration sets it while a stream flows.
        said: facts by their names in a `RagRecord` that the application and its integrations reported so far.

    Example:
        >>> from ragtrace.capture import Recorder
        >>> from ragtrace.capture.events import Began, Event, Gave
        >>> run = Recorder().start(query="Where is the lab?")
        >>> run.add(Event("chain", "1", data=Began()))
        >>> run.add(Event("chain", "1", ended_ns=1, data=Gave("In Oslo.")))
        >>> run.said["query"]
        'Where is the lab?'
    """

    def __init__(
        self,
        config: RunConfig,
        limits: Limits,
        started_ns: int,
        open_runs: MutableMapping[int, Any],
        past: PastRuns | None = None,
    ) -> None:
        super().__init__(config, limits, started_ns, open_runs, past)
        self._processor: RunProcessor | None = None
        self._on_part: Callable[[Any, IntegrationRun], bool] | None = None
        # What the application's threads add: events, with the characters of the texts that each shows first.
        self._waiting: deque[tuple[Event, int]] = deque()
        self._added_chars = 0
        self._lost_values = 0
        self._part_events = self._part_chars = 0  # since the last part
        # What the thread that reads has: of several, as after a shutdown, one at a time.
        self._lock = threading.RLock()
        self._unread: deque[Event] = deque()
        self._unread_chars = 0
        self._reported_chars = 0  # of them, in reports: `shed` takes no text out of those
        self._most_chars = MAX_CHARS  # behind which texts are taken out
        self._taken_chars = 0  # of those added
        self._read_chars = 0  # of prompts and passages
        # By who tells; None once the last event was read.
        self._interpreters: Mapping[str, Interpreter | None] = {}
        self._redactor: Redactor | None = None
        self._recorded: list[Event] = []  # that were read, for a bug report
        self._reading: int | None = None  # the thread that reads an event
        self._reported = Reported(self._config, limits, self._past, started_ns)
        self.said: dict[str, Any] = {}
        self._declared: set[tuple[Declared, How]] = set()
        self._noted = NOTHING  # of the process's decorators, as this run was told of them

    @property
    def declarations(self) -> Declarations:
        """Declarations of where things stand in this run, nearest first."""
        return self._reported.declarations

    @property
    def attributes(self) -> dict[str, Any]:
        """Facts of the run by their names in a `RagRecord`."""
        return self._reported.attributes

    @property
    def steps(self) -> Sequence[Step]:
        """Steps in the order in which they ended."""
        return self._reported.steps

    @property
    def prompts(self) -> Sequence[str]:
        """Rendered prompts, the oldest first."""
        return self._reported.prompts

    @property
    def n_prompts(self) -> int:
        """Number of prompts that were rendered so far, also of those that the run has no room for."""
        return self._reported.lost_prompts + len(self._reported.prompts)

    @property
    def selection(self) -> tuple[Passage, ...] | None:
        """The selection so far; None where none is known."""
        return self._reported.selection

    @property
    def selection_source(self) -> str | None:
        """How the selection became known."""
        return self._reported.selection_source

    @property
    def used_passages(self) -> tuple[Passage, ...] | None:
        """The passages that were reported with `used`."""
        return self._reported.used_passages

    @property
    def failure(self) -> Failure | None:
        """The error that made the run fail."""
        return self._reported.failure

    @property
    def findings(self) -> Findings:
        """Places of what is reported; what reads events writes them."""
        return self._reported.findings

    @property
    def reader(self) -> PassageReader:
        """Reads passages under this run's limits and redaction."""
        return self._reader

    @property
    def started_ns(self) -> int:
        """Unix ns."""
        return self._started_ns

    @guarded
    def selected(self, passages: Iterable[object], *, selection_source: str, is_final: bool = False) -> None:
        """Set the selection without a reranker step (a chain that filtered, a helper that marked).

        Args:
            passages: the selection, in its order.
            selection_source: explicit, framework, retriever or chain: how it became known.
            is_final: the application said so itself; choices that are inferred later leave it as it is.
        """
        read = self._reader.read(passages)
        self._tell(
            "selected", passages=read, selection_source=selection_source, is_final=is_final, chars=chars_of(read)
        )

    @guarded
    def add_selected(self, passages: Iterable[object]) -> None:
        """Add passages to the selection that the application itself names; several calls add up.

        What is inferred, before or later, gives way to it.
        """
        read = self._reader.read(passages)
        self._tell("add_selected", passages=read, chars=chars_of(read))

    @guarded
    def add_text(
        self,
        text: str,
        *,
        source: str | None = None,
        kind: TextKind = "tool_output",
        call_id: str | None = None,
        is_declared: bool = False,
    ) -> None:
        """Report a text that stands in place of passages; it counts where it stands in the prompt.

        Where the run has no passages, such texts are its pool, one passage each. Else a tool's texts stand behind
        the passages among what the model was shown, and are no part of the pool.

        Args:
            text: the text, as the model is shown it.
            source: the tool's name, or that of the function.
            kind: ``tool_output``, or ``context_text`` for contexts that the application joined.
            call_id: of the call that it answers; it counts where a prompt has the message of that call.
            is_declared: the application says that it is evidence; it counts also where no prompt shows it.
        """
        one = replace(self._reader.make(text, 1, None, None, source), metadata={"kind": kind})
        if one.text.strip():
            self._tell("add_text", passage=one, call_id=call_id, is_declared=is_declared, chars=len(one.text))

    @guarded
    def set_candidates(self, passages: Iterable[object]) -> None:
        """Set a pool that no retriever of this run returned: from a resumed state, or given by the caller."""
        read = self._reader.read(passages)
        self._tell("set_candidates", passages=read, chars=chars_of(read))

    @guarded
    def rename(self, ids: Mapping[tuple[str, str], str]) -> None:
        """Give passages another id, in all stages and steps: the id that became known after they were met.

        What reads events calls it; it is no report.

        Args:
            ids: the new id by the old id and the text.
        """
        if ids:
            self._reported.rename(ids)

    @guarded
    def prompt_contains(self, passages: Iterable[Passage], *, since: int = 0, least_chars: int = 0) -> bool:
        """Tell whether a prompt shows one of these passages.

        Args:
            passages: some passages.
            since: number of the first prompt that is looked at.
            least_chars: of a passage of which a prompt shows the beginning.
        """
        some, first = tuple(passages), max(since - self._reported.lost_prompts, 0)
        return any(
            len(found.text) >= least_chars
            for prompt in self._reported.prompts[first:]
            for found in found_in(prompt, some)
        )

    @guarded
    def expects_no_answer(self, *, is_of_application: bool = False) -> None:
        """Mark a run in which no model speaks: a retrieval alone. Metrics over an answer are then ``na``.

        Args:
            is_of_application: the application opened the run, and may report an answer that nobody else sees. Where
                its workflow has had answers, one is expected, and missing.
        """
        self._tell("expects_no_answer", is_of_application=is_of_application)

    @guarded
    def set_labels(self, given: object) -> None:
        """Set relevance grades as a request hands them over; what is none is ignored and counted.

        Args:
            given: ``{passage id: grade}``, or that under ``grades`` beside universe, scale and version.
        """
        if not isinstance(given, dict):
            record_wrong_call("with labels", _GRADES_EXPECTED, site="ragtrace.capture.run.set_labels")
            return
        nested = given.get("grades")
        options, grades = (given, nested) if isinstance(nested, dict) else ({}, given)
        version = options.get("version")
        self.labels(
            {str(name): grade for name, grade in grades.items()},
            label_scope=cast("LabelScope", _one_of(options.get("universe"), get_args(LabelScope), "gold")),
            scale=cast("LabelScale", _one_of(options.get("scale"), get_args(LabelScale), "direct5")),
            version=None if version is None or version == "" else str(version),
        )

    @guarded
    def answered_by_branches(self, answers: Sequence[str], *, model: str | None, usage: Usage | None) -> None:
        """Report the answers of branches that ran side by side: metrics over an answer are ``na several_answers``.

        The record holds them all, one paragraph each, in the order of their texts and not of their branches.
        """
        self.answered("\n\n".join(sorted(answers)), model=model, usage=usage)
        self._tell("answered_by_branches", number=len(answers))

    def ends_as(self, outcome: Outcome | None) -> None:
        """Set the outcome for a `finish` that is given none; None stands for ``answered``."""
        self._tell("ends_as", outcome=outcome)

    @guarded
    def agent_called(
        self,
        name: str,
        *,
        description: str | None = None,
        started_ns: int | None = None,
        ended_ns: int | None = None,
        error: BaseException | Failure | None = None,
        key: str | None = None,
        parent_key: str | None = None,
    ) -> None:
        """Report one run of an agent; the steps inside it name its key as their `parent_key`.

        Args:
            name: the agent's name; "" where it has none.
            description: what the agent says of itself.
            started_ns: Unix ns of its start; default now.
            ended_ns: Unix ns of its end; default now.
            error: what made it fail.
            key: any name of this step.
            parent_key: key of the agent or tool that called it.
        """
        now = time.time_ns()
        self._tell(
            "agent_called",
            started_ns=started_ns or now,
            ended_ns=ended_ns or now,
            name=named(name),
            description=None if description is None else self._text(description),
            key=key,
            parent_key=parent_key,
            error=self._failure_of(error),
        )

    @guarded
    def prompted(self, name: str, version: str | None) -> None:
        """Set the prompt template that a framework tells: the last one, unless the application named another."""
        self._tell("prompted", **self._facts({"prompt_name": name, "prompt_version": version}))

    @guarded
    def interrupted(self, payload: object) -> None:
        """Keep what the run waits for: the payload of an interrupt, shown as text; outcome is set by `finish`."""
        self._tell("interrupted", **self._kept("interrupt", payload, self._limits.text_chars))

    @guarded
    def mark(
        self, passages: ReadPassages, *, has_own_id: Sequence[bool], source: str | None, is_choice: bool
    ) -> None:
        """Report documents that the application names outside of all steps: as found, or as chosen.

        One without an id of its own gets that of the same text in the pool; that is looked up when it is read.

        Args:
            passages: the documents as passages.
            has_own_id: for each of them whether its id is its own, and not one of the metadata or of its text.
            source: name of the index or data source.
            is_choice: they are a selection, and several calls add up.
        """
        now = time.time_ns()
        self._tell(
            "mark",
            passages=passages,
            has_own_id=tuple(has_own_id),
            source=self._reader.source(source),
            is_choice=is_choice,
            started_ns=now,
            ended_ns=now,
            chars=chars_of(passages),
        )

    def before_finish(self, report: Callable[[], None] | None, owner: str = "") -> None:
        """Have `report` called once, just before the run ends, however it ends.

        A second call of the same owner replaces the first, and None takes it back. Two integrations may report into
        one run.

        An integration reports there what is still open: the pieces of a stream that nobody read to its end,
        when the recorder's sweep ends the run. It runs in the thread that ends the run; errors are counted.
        """
        if report is None:
            self._before_finish.pop(owner, None)
        else:
            self._before_finish[owner] = report

    def add(self, event: Event, *, chars: int = 0, cut: int = 0) -> None:
        """Add what happened next; it is read in the pipeline's thread, see `Interpreter`.

        Args:
            event: what happened; the application must not be able to change it. Its texts are redacted here.
            chars: characters of the texts that it shows first.
            cut: lists, mappings and objects in it that are not whole.
        """
        if cut:
            self._lost_values += cut
        if noted() is not self._noted and not self._config.is_replayed:
            self._noted = noted()
            self.declare(self._noted, "decorator")
        if self._config.redact is not None:
            event = self._redacted(event, self._config.redact)
        self._append(event, chars)

    @property
    def has_declared(self) -> bool:
        """Whether anything was declared of the run so far."""
        return bool(self._declared)

    @guarded
    def declare(self, declared: Declared, how: How) -> None:
        """Take what a layer of the application says of where things stand; the same again changes nothing.

        Args:
            declared: what it says.
            how: who says it: call, decorator, handler or settings.
        """
        if declared is NOTHING or (declared, how) in self._declared:
            return
        self._declared.add((declared, how))
        self._tell("declare", how=how, declared=declared)

    @guarded
    def declare_question(self, question: str) -> None:
        """Take the question that a request gives as a text."""
        text = self._text(question)
        self._tell("declare", how="metadata", question=text, chars=len(text))

    def _tell(self, report: str, /, *, chars: int = 0, **given: object) -> None:
        if self._reading == threading.get_ident():  # what an event says of the run
            self._reported.take(report, given)
            return
        if report in _OF_FACTS:
            self.said.update({"labels": given} if report == "labels" else given)
        self._append(Event("report", name=report, data=given), chars)

    def _append(self, event: Event, chars: int) -> None:
        self.last_activity = time.monotonic()
        if self._processor is None:
            return
        is_open = bool(self._ends)
        self._waiting.append((event, chars if is_open else 0))  # what is told at a run's end takes no text from it
        self._added_chars += chars
        self._part_events += 1
        self._part_chars += chars
        if (self._part_events >= _PART_EVENTS or self._part_chars > _PART_CHARS) and is_open:
            self._hand_part()

    def _hand_part(self) -> None:
        """Have the pipeline's thread take what waits. Nothing is read here, and no lock is taken."""
        self._part_events = self._part_chars = 0
        if self._on_part is not None and not self._on_part(self._root_span, self):
            self._processor = None  # lost, and counted by the pipeline; of a parent in a forked child
            self._waiting.clear()

    def _redacted(self, event: Event, redact: Callable[[str], str]) -> Event:
        if self._redactor is None:
            self._redactor = Redactor(redact, self._config.id_key or PROCESS_KEY)
        return self._redactor.event(event)

    def take_part(self) -> None:
        """Take the events that wait, and read them where they are many; the pipeline's thread calls it."""
        with self.reading():
            for _ in range(len(self._waiting)):
                try:
                    event, chars = self._waiting.popleft()
                except IndexError:  # the run was lost meanwhile
                    break
                self._unread.append(event)
                self._taken_chars += chars
                self._unread_chars += chars
                self._reported_chars += chars if event.kind == "report" else 0
                if len(self._unread) >= MAX_WAITING or self._unread_chars > self._most_chars:
                    self._make_room()

    @guarded
    def _make_room(self) -> None:
        """Take texts out of unread events; read them where they are many, or reports hold much of it."""
        if len(self._unread) >= MAX_WAITING or self._reported_chars > _ROOM:
            self._read_all()
            return
        left = shed(list(self._unread), MAX_CHARS - _ROOM, self._config.id_key)  # and not again at the next
        self._unread_chars = left.chars
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
        self._unread_chars = self._reported_chars = 0
        if self.is_finished:  # its size was asked for
            return
        found = sum(len(passage.text) for search in self.retrievals() for passage in search.passages)
        self._read_chars = sum(map(len, self._reported.prompts)) + found

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Take the reports of this thread at once: it reads what happened, and reports what that means."""
        with self._lock, self._reporting():
            before, self._reading = self._reading, threading.get_ident()
            try:
                yield
            finally:
                self._reading = before

    @guarded
    def _read_event(self, event: Event) -> None:
        if event.kind == "report":
            self._record(event)
            self._reported.take(event.name, event.data)
            return
        known, teller = self._interpreters, event.teller
        interpreter = known[teller] if teller in known else self._interpreter_of(event)
        if interpreter is None:  # another thread ended the run
            return
        self._record(event)
        if teller not in known or event.kind == "end":
            self._interpreters = {**known, teller: None if event.kind == "end" else interpreter}
        self.declarations.take(event)
        interpreter.take(event)

    def _interpreter_of(self, first: Event) -> Interpreter:
        # The pipeline's thread imports them.
        if first.kind == "told":
            from ragtrace.capture.told import ToldInterpreter  # noqa: PLC0415

            return ToldInterpreter(self)
        from ragtrace.capture.interpret import Interpreter  # noqa: PLC0415

        return Interpreter(self)

    def _read_rest(self) -> None:
        self.take_part()
        with self.reading():
            self._read_all()
            for teller, interpreter in self._interpreters.items():
                if interpreter is not None:  # the integration added events and no end
                    self._read_event(
                        Event("end", data=self._ended_with, error=self._reported.failure, teller=teller)
                    )
        if self._recorded:
            self._write_events()

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

    @guarded
    def _write_events(self) -> None:
        from ragtrace.capture.recorded import RecordedRun  # noqa: PLC0415 - the pipeline's thread imports it

        events, self._recorded = self._recorded, []
        if self._config.events is not None:
            told = RecordedRun(
                workflow=self._reported.attributes["workflow"],
                started_ns=self._started_ns,
                events=events,
                outcome=self._ended_with,
                ended_ns=self.ended_ns,
            )
            self._config.events.write(told, self._config.redact)

    def _had_answer(self) -> None:
        workflow = self.said.get("workflow") or self._reported.attributes.get("workflow")
        self._past.answering.add(workflow)

    @property
    def size_chars(self) -> int:
        """Characters of its largest texts: of the events that wait, prompts and passages.

        Events behind the first 1,024 that wait count 256 each.
        """
        waiting = max(self._added_chars - self._taken_chars, 0)
        behind = max(len(self._waiting) - MAX_WAITING, 0)
        return waiting + self._unread_chars + self._read_chars + behind * _EVENT_CHARS

    def ended(self) -> Reported | None:
        """Read the events that wait, and return all that was reported; None for a run that was no question.

        The processor calls it once, in its own thread. What is reported later changes nothing in it.
        """
        with self._reporting():
            self._read_rest()
        self._conclude_declarations()
        if self._is_discarded:
            return None
        told = self._reported
        if self._reader.left_out:
            told.truncated["passages"] = self._reader.left_out
        if self._reader.unread:
            told.truncated["passages_unread"] = self._reader.unread
        if self._lost_values:
            told.truncated["values"] = self._lost_values
        if "answer" in told.attributes:
            self._had_answer()
        told.trace_id, told.span_id = self.trace_id, self.span_id
        told.ended_ns, told.finished_as = self.ended_ns, self._ended_with
        return told

    @guarded
    def _conclude_declarations(self) -> None:
        self.declarations.conclude(is_kept=not self._is_discarded)

    def _hand_over(self) -> None:
        super()._hand_over()
        if not self._is_discarded and self._processor is not None and self._root_span is not None:
            self._processor.on_end(self._root_span, self)

    def discard(self) -> None:
        """Drop the run: it was no question. Its root span is never ended, so nothing of it is exported.

        A report of `before_finish` may call it too. A run that has ended is dropped as long as nobody has read it.
        """
        self._is_discarded = True
        if self._takes_end():
            self._before_finish = {}
            self._hand_over()

    def retrievals(self) -> list[Retrieval]:
        """Return the retriever calls reported so far."""
        return [step for step in self._reported.steps if isinstance(step, Retrieval)]

    def has_generations(self) -> bool:
        """Tell whether a model call was reported."""
        return any(isinstance(step, Generation) for step in self._reported.steps)

    def is_mostly_passages(self, text: str) -> bool:
        """Tell whether a text is a context, not an answer: one passage, or several that are at least half of it.

        An answer may quote one passage and say more.
        """
        passages = (*self.candidates(), *(self._reported.selection or ()))
        found = found_in(text, tuple({passage.id: passage for passage in passages}.values()))
        if len(found) == 1:
            return found[0].text.strip() == text.strip()
        return bool(found) and 2 * sum(len(passage.text) for passage in found) >= len(text)

    def candidates(self) -> tuple[Passage, ...]:
        """Return the candidate pool: the fused order where one was given, else the leaves' results in turn.

        A passage that several leaves returned stands once, at its first place.
        """
        return self._reported.candidates()

    def failure_of(self, error: BaseException | Failure | None) -> Failure | None:
        """Return the type and message of an error as they are now; None for None."""
        return self._failure_of(error)

    def failure_named(self, kind: str, message: str) -> Failure:
        """Return an error of which another process tells type and message."""
        return self._failure_named(kind, message)

    def begin(self, workflow: str | None, *, is_kept: bool) -> None:
        """Name the workflow, and start the root span of a run that is kept.

        Args:
            workflow: default that of the configuration.
            is_kept: whether the processor takes the run.
        """
        name = named(told(workflow) or self._config.workflow)
        self._reported.attributes["workflow"] = name
        self._reported.attributes["environment"] = self._config.environment
        if self._config.corpus is not None:
            given = self._facts({"corpus": self._config.corpus})
            self.said.update(given)
            self._reported.set_attributes(**given)
        if is_kept and self._config.processor is not None:
            self._processor = self._config.processor
            self._on_part = getattr(self._processor, "on_part", None)  # others take a run as a whole
            self._root_span = self._processor.on_start(name, self._started_ns)
            self.declare(self._config.declared, "settings")


def current_run() -> IntegrationRun | None:
    """Return the open run of the enclosing ``with ragtrace.query(...)`` block, None outside one.

    Integrations report into it in place of opening a run of their own. It holds for the tasks that are made inside
    the block, and for threads that are given a copy of the context.

    Example:
        >>> from ragtrace.capture import Recorder
        >>> with Recorder().start(query="Where?") as run:
        ...     current_run() is run
        True
        >>> current_run() is None
        True
    """
    run = entered_run()
    return run if isinstance(run, IntegrationRun) and not run.is_finished else None


def _one_of(value: object, known: tuple[str, ...], default: str) -> str:
    if value in known:
        return str(value)
    if value is not None:
        record_wrong_call("with labels", _GRADES_EXPECTED, site="ragtrace.capture.run.set_labels")
    return default
