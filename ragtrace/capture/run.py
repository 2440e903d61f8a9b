"""A RAG run while it is open: what the application's threads and the integrations add to it.

A report is an event of the run. The pipeline's thread reads the events (`RunReader`), and reports what they mean to
the run too.
"""

from __future__ import annotations

import functools
import threading
import time
from collections import deque
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, cast, get_args

from msgspec.structs import replace

from ragtrace.capture.attribution import found_in
from ragtrace.capture.declared import NOTHING, noted
from ragtrace.capture.events import Event, Redactor
from ragtrace.capture.guard import Redaction, guarded, guarded_call, record_internal_error, record_wrong_call
from ragtrace.capture.model_calls import clean_usage, read_usage, said_in
from ragtrace.capture.model_requests import clean_request, server_of
from ragtrace.capture.passages import PROCESS_KEY, PassageReader, ReadPassages
from ragtrace.capture.past import PastRuns
from ragtrace.capture.reported import MAX_STEPS, Reported
from ragtrace.capture.run_context import tags_of
from ragtrace.capture.run_reader import MAX_CHARS, MAX_WAITING, RunReader
from ragtrace.capture.types import Failure, Retrieval
from ragtrace.capture.values import named, told
from ragtrace.model import AnswerPart, Call, LabelScale, LabelScope, Message, Usage
from ragtrace.text import (
    MAX_MESSAGE_CHARS,
    MAX_NAME_CHARS,
    MAX_ROLE_CHARS,
    clean_count,
    clean_metadata,
    clean_score,
    cut,
    kept,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
    from contextvars import Token
    from types import TracebackType
    from typing import Self

    from ragtrace.capture.attribution import TextKind
    from ragtrace.capture.declared import Declarations, Declared
    from ragtrace.capture.types import Findings, Limits, Operation, RunConfig, RunProcessor, Step, TraceRef
    from ragtrace.model import Outcome, Passage
    from ragtrace.model.reading import How

P = ParamSpec("P")

MAX_TURNS = 256
MAX_ITEMS = 10_000  # of any other list; an application's iterator may have no end
MAX_REASONS = 64  # why a call ended, one for each of its outputs
# Reports of facts by their names.
_OF_FACTS = frozenset({"set_query", "set_attributes", "set_k", "reference", "labels"})
_PART_EVENTS = 256  # events of a part: one hand-over takes 3 us, and 25 turns of an agent are 250 events
_PART_CHARS = MAX_CHARS // 16
_EVENT_CHARS = 256  # that an event behind the first 1,024 counts: shorter texts are not counted
_GRADES_EXPECTED = "grades are a mapping of passage ids to whole numbers, with a known universe and scale"


def _report(call: str) -> Callable[[Callable[Concatenate[Run, P], None]], Callable[Concatenate[Run, P], None]]:
    """Guard a report as `guarded_call` does, and leave out one that comes when its run has ended."""

    def decorated(function: Callable[Concatenate[Run, P], None]) -> Callable[Concatenate[Run, P], None]:
        @functools.wraps(function)
        def in_time(run: Run, /, *args: P.args, **kwargs: P.kwargs) -> None:
            if not run._is_too_late():  # noqa: SLF001 - a method of the run
                function(run, *args, **kwargs)

        return guarded_call(call)(in_time)

    return decorated


class Run:
    """An open run. Every method is safe to call from any thread and in any order, and never raises.

    Use it as a context manager (``with`` or ``async with``): the run ends with the block; an exception makes
    its outcome ``error`` (``cancelled`` for a cancellation) and passes on unchanged.

    Integrations add events and report inferred selections and texts in place of passages. A long run is handed over
    in parts: the pipeline's thread takes what waits with each 256 events or 256 Ki characters.

    Attributes:
        last_activity: monotonic seconds; an integration sets it while a stream flows.
        said: facts by their names in a `RagRecord` that the application and its integrations reported so far.

    Example:
        >>> from ragtrace.capture import Recorder
        >>> with Recorder().start(query="How do I cancel?") as run:
        ...     run.retrieved([{"id": "faq-7", "text": "Cancel in settings.", "score": 0.9}])
        ...     run.answered("In settings.")
        >>> run.is_finished
        True

        Of an integration:

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
        if config.redact is not None:
            config = replace(config, redact=Redaction(config.redact), id_key=config.id_key or PROCESS_KEY)
        self._config = config  # the one it began with: settings may change while it is open
        self._limits = limits
        self._open_runs = open_runs
        self._reader = PassageReader(config.redact, limits.passage_chars, config.id_key)
        self._reported = Reported(config, limits, PastRuns() if past is None else past, started_ns)
        self.last_activity = time.monotonic()
        self.said: dict[str, Any] = {}
        self._declared: set[tuple[Declared, How]] = set()
        self._noted = NOTHING  # of the process's decorators, as this run was told of them
        # Its end.
        self._has_failed = False
        self._before_finish: dict[str, Callable[[], None]] = {}
        self._entered: list[Token[Run | None]] = []
        self._is_discarded = False
        self._ends = [None]  # one end, which one thread takes
        self._is_whole = False  # it has ended, and was neither cut short nor failed
        self._reporters: set[int] = set()  # threads that report what happened before the end
        # Its events, with the characters of the texts that each shows first.
        self._processor: RunProcessor | None = None
        self._root_span: TraceRef | None = None
        self._on_part: Callable[[Any, Run], bool] | None = None
        self._redactor = None if config.redact is None else Redactor(config.redact, config.id_key or PROCESS_KEY)
        self._waiting: deque[tuple[Event, int]] = deque()
        self._added_chars = 0
        self._lost_values = 0
        self._part_events = self._part_chars = 0  # since the last part
        # Who reads them: of several threads, as after a shutdown, one at a time.
        self._lock = threading.RLock()
        self._run_reader: RunReader | None = None  # while there is something to read: it holds the run
        self._reading: int | None = None  # the thread that reads an event

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
            self._root_span = self._processor.on_start(name, self.started_ns)
            self.declare(self._config.declared, "settings")

    @property
    def is_finished(self) -> bool:
        """True once its end has begun."""
        return not self._ends

    @property
    def trace_id(self) -> str:
        """32 lower-case hex digits; "" when tracing is off."""
        return self._root_span.trace_id if self._root_span else ""

    @property
    def span_id(self) -> str:
        """16 lower-case hex digits of the root span; "" when tracing is off."""
        return self._root_span.span_id if self._root_span else ""

    @property
    def started_ns(self) -> int:
        """Unix ns."""
        return self._reported.started_ns

    @property
    def ended_ns(self) -> int:
        """Unix ns; 0 while the run is open."""
        return self._reported.ended_ns

    # -- what people report --

    @_report("run.set_query")
    def set_query(self, query: str) -> None:
        """Set the question, when it was not known at the start."""
        self._tell("set_query", **self._kept("query", query, self._limits.text_chars))

    @_report("run.set_attributes")
    def set_attributes(
        self,
        *,
        session: str | None = None,
        user: str | None = None,
        corpus: str | None = None,
        corpus_version: str | None = None,
        environment: str | None = None,
        workflow: str | None = None,
        model: str | None = None,
        prompt: str | None = None,
        prompt_version: str | None = None,
    ) -> None:
        """Set what is known of the run's surroundings; None leaves a fact as it is.

        A prompt without a version may have it behind a colon: ``support:3``.
        """
        if prompt is not None and prompt_version is None:
            prompt, prompt_version = named_prompt(prompt)
        given = {
            "session": session,
            "user": user,
            "corpus": corpus,
            "corpus_version": corpus_version,
            "environment": environment,
            "workflow": workflow,
            "model": model,
            "prompt_name": prompt,
            "prompt_version": prompt_version,
        }
        if facts := self._facts(given):
            self._tell("set_attributes", **facts)

    @_report("run.add_tags")
    def add_tags(self, tags: Iterable[str]) -> None:
        """Add tags; a text is one tag."""
        self._tell("add_tags", tags=tuple(self._text(tag, MAX_NAME_CHARS) for tag in tags_of(tags)))

    @_report("run.add_metadata")
    def add_metadata(self, metadata: Mapping[str, object]) -> None:
        """Keep the request metadata that the setting `span_metadata` names.

        Scalars and lists of scalars are kept, redacted and cut to 512 characters. A later value replaces an
        earlier one of the same name.
        """
        names = self._config.span_metadata
        if not names:
            return
        allowed = {name: metadata[name] for name in names if name in metadata}
        if allowed:
            self._tell("add_metadata", metadata=clean_metadata(allowed, self._config.redact, are_names_known=True))

    @_report("run.set_history")
    def set_history(self, history: Iterable[Message]) -> None:
        """Set the turns before this question, oldest first."""
        turns = tuple(islice(history, MAX_ITEMS))
        history = tuple(self._message(turn) for turn in turns[-MAX_TURNS:])
        self._tell("set_history", history=history, n_lost=len(turns) - len(history), chars=_chars_said(history))

    @_report("run.retrieved")
    def retrieved(
        self,
        passages: object,
        *,
        source: str | None = None,
        query: str | None = None,
        top_k: int | None = None,
        started_ns: int | None = None,
        ended_ns: int | None = None,
        error: BaseException | Failure | None = None,
        key: str | None = None,
        parent_key: str | None = None,
        is_fused: bool = False,
    ) -> None:
        """Report one retriever call and the candidates it returned, best first.

        Args:
            passages: `Passage`s, texts, mappings or objects with text, id, score, metadata, such as documents of
                LangChain and nodes of LlamaIndex, or a result that holds them; None or empty is an empty pool. What
                holds no passage is refused with one warning, and is no empty pool.
            source: name of the index or data source.
            query: what was searched for, where it is not the question.
            top_k: how many were asked for.
            started_ns: Unix ns of the call; default now.
            ended_ns: Unix ns of the return; default now.
            error: what made it fail.
            key: any name of this step that `parent_key` of another step may refer to.
            parent_key: the composite retriever's `key`, which may be reported later.
            is_fused: the output of a composite retriever whose order is the order of the pool.
        """
        now = time.time_ns()
        read = self._read(passages, source)
        if read is None:
            return
        self._tell(
            "retrieved",
            passages=read,
            source=self._reader.source(source),
            query=None if query is None else self._text(query),
            top_k=clean_count(top_k),
            started_ns=started_ns or now,
            ended_ns=ended_ns or now,
            error=self.failure_of(error),
            key=key,
            parent_key=parent_key,
            is_fused=is_fused,
            chars=chars_of(read),
        )

    @_report("run.reranked")
    def reranked(
        self,
        passages: object,
        *,
        candidates: object = None,
        model: str | None = None,
        top_n: int | None = None,
        started_ns: int | None = None,
        ended_ns: int | None = None,
        error: BaseException | Failure | None = None,
        key: str | None = None,
        parent_key: str | None = None,
        selection_source: str = "explicit",
    ) -> None:
        """Report what a reranker chose, best first, with its own scores.

        Args:
            passages: the selection, in its new order.
            candidates: what went in; default the pool so far.
            model: the reranker's name.
            top_n: how many were asked for.
            started_ns: Unix ns of the call; default now.
            ended_ns: Unix ns of the return; default now.
            error: what made it fail; the selection is then left as it was.
            key: any name of this step.
            parent_key: key of the composite it ran in.
            selection_source: explicit, framework, retriever or chain: how it became known.
        """
        now = time.time_ns()
        chosen = self._read(passages)
        if chosen is None:
            return
        pool = None if candidates is None else self._reader.read(candidates)
        self._tell(
            "reranked",
            passages=chosen,
            candidates=pool,
            model=_name(model),
            top_n=clean_count(top_n),
            started_ns=started_ns or now,
            ended_ns=ended_ns or now,
            error=self.failure_of(error),
            key=key,
            parent_key=parent_key,
            selection_source=selection_source,
            is_by_hand=type(passages) is not ReadPassages,
            chars=chars_of(chosen) + chars_of(pool or ()),
        )

    @_report("run.used")
    def used(self, passages: object) -> None:
        """Report the passages that really went into the prompt, in its order.

        A text is all that went into it: the passages that stand there are found when the run ends, and where none
        does, the text itself is what was used.
        """
        text = self._kept("prompt", passages, self._limits.record_chars) if isinstance(passages, str) else {}
        read = self._read(passages)
        is_by_hand = type(passages) is not ReadPassages
        chars = chars_of(read or ()) + len(text.get("prompt", ""))
        self._tell("used", passages=read, is_by_hand=is_by_hand, chars=chars, **text)

    @_report("run.label_passages")
    def label_passages(self, labels: Mapping[str, str]) -> None:
        """Say which passage each label means that the answer may cite: ids of passages by label, such as ``3``."""
        given = {named(label): named(name) for label, name in islice(labels.items(), MAX_ITEMS)}
        self._tell("label_passages", labels=given)

    @_report("run.add_prompt")
    def add_prompt(self, prompt: str) -> None:
        """Report a rendered prompt; the passages that stand in it are found when the run ends."""
        told = self._kept("prompt", prompt, self._limits.record_chars)
        self._tell("add_prompt", **told, chars=len(told["prompt"]))

    @_report("run.generated")
    def generated(
        self,
        *,
        operation: Operation = "chat",
        model: str | None = None,
        provider: str | None = None,
        response_model: str | None = None,
        response_id: str | None = None,
        inputs: Iterable[Message] = (),
        outputs: Iterable[Message] = (),
        usage: Usage | None = None,
        finish_reasons: Iterable[str] = (),
        first_chunk_s: float | None = None,
        chunks: int | None = None,
        request: Mapping[str, object] | None = None,
        server_address: str | None = None,
        server_port: int | None = None,
        is_in_process: bool = False,
        started_ns: int | None = None,
        ended_ns: int | None = None,
        error: BaseException | Failure | None = None,
        key: str | None = None,
        parent_key: str | None = None,
    ) -> None:
        """Report one call of the application's own model; see `ragtrace.capture.types.Generation`."""
        now = time.time_ns()
        asked = tuple(self._message(message) for message in islice(inputs, MAX_ITEMS))
        said = tuple(self._message(message) for message in islice(outputs, MAX_ITEMS))
        self._tell(
            "generated",
            started_ns=started_ns or now,
            ended_ns=ended_ns or now,
            operation=operation,
            model=_name(model),
            provider=_name(provider),
            response_model=_name(response_model),
            response_id=_name(response_id),
            inputs=asked,
            outputs=said,
            usage=clean_usage(usage),
            finish_reasons=tuple(_name(reason) or "" for reason in islice(finish_reasons, MAX_REASONS)),
            first_chunk_s=clean_score(first_chunk_s),
            chunks=clean_count(chunks),
            request=clean_request(request, self._config.redact) if request else {},
            server_address=None if server_address is None else server_of(server_address).address,
            server_port=clean_count(server_port),
            is_in_process=is_in_process,
            key=key,
            parent_key=parent_key,
            error=self.failure_of(error),
            chars=_chars_said(asked) + _chars_said(said),
        )

    @guarded_call("run.answered")
    def answered(
        self,
        text: object,
        *,
        model: str | None = None,
        usage: Usage | Mapping[str, object] | None = None,
        parts: Iterable[object] | None = None,
        is_refused: bool = False,
    ) -> None:
        """Set the answer; once the run has ended it is too late.

        A value that holds no text is refused with one warning. The run then has a lost answer, as one has whose
        workflow has had answers and that got none: metrics over an answer are ``na answer_missing``.

        Args:
            text: the whole answer, as a text or as LangChain, LlamaIndex, OpenAI, Anthropic, Gemini or Bedrock
                return it: a message, a result, a response, or its dict. A stream is not read. Of messages what
                stands behind the last user message is read, of structured output the field `answer` or its like.
                Thoughts between tags such as ``<think>`` are left out.
            model: the model that wrote it.
            usage: its tokens, as `Usage`, or a mapping with the names of a provider: see `read_usage`.
            parts: sentences with citations: `AnswerPart`s, or mappings with text and citations (passage ids).
            is_refused: the provider declined, or its filter stopped the answer; a reply that says so itself needs
                no such word.
        """
        if self._is_too_late():
            if self._is_whole:
                self._had_answer()
                record_internal_error("ragtrace.capture.run.answered_late", line=_TOO_LATE)
            return
        said = said_in(text)
        if said is None:
            self._had_answer()
            self._tell("answered")
            record_internal_error("ragtrace.capture.run.answered", line=_NO_TEXT.format(type(text).__name__))
            return
        told = self._kept("answer", said.text, self._limits.text_chars)
        named = {} if model is None else self._kept("model", model, MAX_NAME_CHARS)
        is_refused = said.is_refused or is_refused
        self._tell("answered", **told, **named, is_refused=is_refused, chars=len(told["answer"]))
        # What cannot be read of these costs no answer.
        if usage is not None:
            read = clean_usage(usage) if isinstance(usage, Usage) else read_usage(usage)
            self._tell("answer_facts", usage=read)
        if parts is not None:
            self._tell("answer_facts", parts=tuple(self._part(part) for part in islice(parts, MAX_ITEMS)))

    @_report("run.tool_called")
    def tool_called(
        self,
        name: str,
        *,
        arguments: object = None,
        result: object = None,
        call_id: str | None = None,
        description: str | None = None,
        started_ns: int | None = None,
        ended_ns: int | None = None,
        error: BaseException | Failure | None = None,
        key: str | None = None,
        parent_key: str | None = None,
    ) -> None:
        """Report one call of a tool; its passages, where it found some, are reported with `retrieved`.

        Args:
            name: the tool's name.
            arguments: what it was called with; kept as text.
            result: what it returned; kept as text.
            call_id: the id that the model gave the call.
            description: what the tool says of itself.
            started_ns: Unix ns of the call; default now.
            ended_ns: Unix ns of the return; default now.
            error: what made it fail.
            key: any name of this step.
            parent_key: key of the step it ran in.
        """
        now = time.time_ns()
        given = "" if arguments is None else self._text(arguments)
        returned = "" if result is None else self._text(result)
        self._tell(
            "tool_called",
            started_ns=started_ns or now,
            ended_ns=ended_ns or now,
            name=named(name),
            arguments=given,
            result=returned,
            call_id=_name(call_id),
            description=None if description is None else self._text(description),
            key=key,
            parent_key=parent_key,
            error=self.failure_of(error),
            chars=len(given) + len(returned),
        )

    @_report("run.reference")
    def reference(self, text: str) -> None:
        """Set the reference answer, for metrics that need one."""
        self._tell("reference", **self._kept("reference", text, self._limits.text_chars))

    @_report("run.labels")
    def labels(
        self,
        grades: Mapping[str, int],
        *,
        label_scope: LabelScope = "gold",
        scale: LabelScale = "direct5",
        version: str | None = None,
    ) -> None:
        """Set relevance grades 1 to 5 by passage id.

        If one is no whole number all are counted as a loss: half of the labels would give other scores, and a
        record with it could not be written to a spool.
        """
        cleaned: dict[str, int] = {}
        for name, given in grades.items():
            grade = clean_count(given)
            if grade is None:
                why = "a grade is a whole number of 0 or more, and one is none"
                record_wrong_call("run.labels()", why, site="ragtrace.capture.run.labels")
                return
            cleaned[named(name)] = grade
        self._tell("labels", grades=cleaned, label_scope=label_scope, scale=scale, version=version)

    @_report("run.set_k")
    def set_k(self, k: int) -> None:
        """Set the K of this run's @K metrics; the default is the number of contexts delivered.

        What is no whole number of 0 or more is counted as a loss.
        """
        number = clean_count(k)
        if number is None:
            why = "K is a whole number of 0 or more"
            record_wrong_call(f"run.set_k({type(k).__name__})", why, site="ragtrace.capture.run.set_k")
            return
        self._tell("set_k", k=number)

    @_report("run.feedback")
    def feedback(self, value: float, comment: str | None = None, source: str = "human") -> None:
        """Add what a person said of the answer: a value in [0, 1], 1 = good.

        The rating counts once the run ends. With the setting ``store`` it is kept there, also of a run that is not
        sampled; `source` names the rater. Rate a run that has ended with `ragtrace.feedback`.
        """
        number = clean_score(value)
        if number is None or not 0.0 <= number <= 1.0:
            why = "a rating must lie between 0 and 1"
            record_wrong_call("run.feedback()", why, site="ragtrace.capture.run.feedback")
            return
        text = None if comment is None else self._text(comment)
        self._tell("feedback", value=number, comment=text, source=self._text(source))

    @_report("run.failed")
    def failed(self, error: BaseException | Failure) -> None:
        """Note what made the run fail; `finish` then defaults to the outcome ``error``."""
        self._has_failed = True
        self._tell("failed", error=self.failure_of(error))

    # -- what integrations report --

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
        how: How | None = None,
    ) -> None:
        """Report a text that stands in place of passages; it counts where it stands in the prompt.

        Such texts stand behind the passages among what the model was shown, and are part of no pool: nobody
        ordered them. In a run that searched a joined context does not count, since it is made of its passages.

        Args:
            text: the text, as the model is shown it.
            source: the tool's name, or that of the function.
            kind: ``tool_output``, or ``context_text`` for contexts that the application joined.
            call_id: of the call that it answers; it counts where a prompt has the message of that call.
            is_declared: the application says that it is evidence; it counts also where no prompt shows it.
            how: who says that its source gives evidence; None where nobody does.
        """
        one = replace(self._reader.make(text, 1, None, None, source), metadata={"kind": kind})
        if one.text.strip():
            self._tell(
                "add_text", passage=one, call_id=call_id, is_declared=is_declared, how=how, chars=len(one.text)
            )

    @guarded
    def set_candidates(self, passages: Iterable[object]) -> None:
        """Set a pool that no retriever of this run returned: from a resumed state, or given by the caller."""
        read = self._reader.read(passages)
        self._tell("set_candidates", passages=read, chars=chars_of(read))

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
            error=self.failure_of(error),
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

    # -- what integrations and readers ask --

    @property
    def has_declared(self) -> bool:
        """Whether anything was declared of the run so far."""
        return bool(self._declared)

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

    def retrievals(self) -> list[Retrieval]:
        """Return the retriever calls reported so far."""
        return [step for step in self._reported.steps if isinstance(step, Retrieval)]

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
    def rename(self, ids: Mapping[tuple[str, str], str]) -> None:
        """Give passages another id, in all stages and steps: the id that became known after they were met.

        What reads events calls it; it is no report.

        Args:
            ids: the new id by the old id and the text.
        """
        if ids:
            self._reported.rename(ids)

    def failure_of(self, error: BaseException | Failure | None) -> Failure | None:
        """Return the type and message of an error as they are now; None for None."""
        if error is None or isinstance(error, Failure):
            return error
        return self.failure_named(type(error).__name__, error)

    def failure_named(self, kind: str, message: object) -> Failure:
        """Return an error of which another process tells type and message."""
        return Failure(kind=named(kind), message=self._text(message, MAX_MESSAGE_CHARS))

    # -- the end --

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

    @guarded
    def finish(self, outcome: Outcome | None = None, *, ended_ns: int | None = None) -> None:
        """End the run; a second call does nothing.

        It takes no lock and does not wait: the garbage collector may call it in any thread, inside any lock.

        Args:
            outcome: default ``error`` after `failed`, else that of `ends_as`, else ``answered``.
            ended_ns: Unix ns; default now.
        """
        if not self._takes_end():
            return
        self._is_whole = not self._has_failed and outcome in {None, "answered"}
        reports, self._before_finish = self._before_finish, {}
        with self._reporting():
            for tell in list(reports.values()):  # another thread may take its own back
                _told(tell)
        # The wall clock may have been set back meanwhile: a run takes no negative time.
        self._reported.ended_ns = max(ended_ns or time.time_ns(), self.started_ns)
        self._reported.finished_as = outcome
        self._hand_over()

    def discard(self) -> None:
        """Drop the run: it was no question. Its root span is never ended, so nothing of it is exported.

        A report of `before_finish` may call it too. A run that has ended is dropped as long as nobody has read it.
        """
        self._is_discarded = True
        if self._takes_end():
            self._before_finish = {}
            self._run_reader = None
            self._hand_over()

    def _takes_end(self) -> bool:
        """Tell whether this call ends the run: the first one does, whichever threads they are in."""
        try:
            self._ends.pop()  # one operation of the interpreter
        except IndexError:
            return False
        return True

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """Take reports of this thread also when the run has ended: they tell what happened before."""
        thread = threading.get_ident()
        is_outermost = thread not in self._reporters
        self._reporters.add(thread)
        try:
            yield
        finally:
            if is_outermost:
                self._reporters.discard(thread)

    def _is_too_late(self) -> bool:
        return self.is_finished and threading.get_ident() not in self._reporters

    def _hand_over(self) -> None:
        self._open_runs.pop(id(self), None)
        if not self._is_discarded and self._processor is not None and self._root_span is not None:
            self._processor.on_end(self._root_span, self)

    def __enter__(self) -> Self:
        self._entered.append(_current.set(self))
        return self

    @guarded
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._entered:
            try:
                _current.reset(self._entered.pop())
            except ValueError:  # the block ends in another context than it began in, as a generator's may
                _current.set(None)
        if error is None:
            self.finish()
            return
        self.failed(error)
        self.finish(outcome_of(error))

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    # -- the events --

    def add(self, event: Event, *, chars: int = 0, cut: int = 0) -> None:
        """Add what happened next; it is read in the pipeline's thread, see `RunReader`.

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
        if self._redactor is not None:
            event = self._redactor.event(event)
        self._append(event, chars)

    def _tell(self, report: str, /, *, chars: int = 0, **given: object) -> None:
        """Add a report to the events of the run.

        Args:
            report: name of the method.
            chars: of its longer texts.
            given: what it was told, redacted, clean and copied.
        """
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
            self._run_reader = None

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Take the reports of this thread at once: it reads what happened, and reports what that means."""
        with self._lock, self._reporting():
            before, self._reading = self._reading, threading.get_ident()
            try:
                yield
            finally:
                self._reading = before

    def take_part(self) -> None:
        """Take the events that wait, and read them where they are many; the pipeline's thread calls it."""
        with self.reading():
            self._event_reader().take_part()

    def ended(self) -> Reported | None:
        """Read the events that wait, and return all that was reported; None for a run that was no question.

        The processor calls it once, in its own thread. The run keeps nothing that is reported later.
        """
        with self.reading():
            reader, self._run_reader = self._event_reader(), None
            reader.read_rest()
            self._processor = None
            self._waiting.clear()
            self._added_chars = 0
        reader.write_events()
        self._conclude_declarations()
        if self._is_discarded:
            return None
        lost = {
            "passages": self._reader.left_out,
            "passages_unread": self._reader.unread,
            "values": self._lost_values,
        }
        found = self._reported
        found.truncated.update((kind, count) for kind, count in lost.items() if count)
        found.trace_id, found.span_id = self.trace_id, self.span_id
        if "answer" in found.attributes:
            self._had_answer()
        return found

    def _event_reader(self) -> RunReader:
        if self._run_reader is None:
            self._run_reader = RunReader(self, self._config, self._reported, self._waiting, self._redactor)
        return self._run_reader

    @guarded
    def _conclude_declarations(self) -> None:
        self.declarations.conclude(is_kept=not self._is_discarded)

    def _had_answer(self) -> None:
        """Note that the application answers in this workflow."""
        self._reported.past.answering.add(self.said.get("workflow") or self.attributes.get("workflow"))

    @property
    def size_chars(self) -> int:
        """Characters of its largest texts: of the events that wait, prompts and passages.

        Events behind the first 1,024 that wait count 256 each.
        """
        behind = max(len(self._waiting) - MAX_WAITING, 0)
        reader = self._run_reader
        taken, held = (0, 0) if reader is None else (reader.taken_chars, reader.unread_chars + reader.read_chars)
        return max(self._added_chars - taken, 0) + held + behind * _EVENT_CHARS

    # -- texts as they are kept --

    def _kept(self, name: str, value: object, limit: int) -> dict[str, Any]:
        """Return a text as it is kept, under its name, and with its length as it was where it was cut."""
        text, original = kept(told(value), limit, self._config.redact)
        return {name: text, f"{name}_chars": original} if original else {name: text}

    def _facts(self, given: Mapping[str, object]) -> dict[str, Any]:
        """Return facts as they are kept, without those that are None."""
        facts: dict[str, Any] = {}
        for name, value in given.items():
            if value is not None:
                facts |= self._kept(name, value, MAX_NAME_CHARS)
        return facts

    def _read(self, passages: object, source: str | None = None) -> ReadPassages | None:
        """Return passages; None for a value that holds none, which says nothing of what was found."""
        unread = self._reader.unread
        found = self._reader.read(passages, source)
        return None if not found and self._reader.unread > unread else found

    def _text(self, value: object, limit: int | None = None) -> str:
        return kept(told(value), self._limits.text_chars if limit is None else limit, self._config.redact)[0]

    def _message(self, said: Message) -> Message:
        """Return a message as it is kept; an application's own object needs no more than a role and a content."""
        return Message(
            role=cut(told(said.role), MAX_ROLE_CHARS)[0],
            content=self._text(said.content),
            calls=tuple(map(self._call, islice(getattr(said, "calls", ()), MAX_STEPS))),
            call_id=_name(getattr(said, "call_id", None)),
        )

    def _call(self, call: Call) -> Call:
        return Call(name=_name(call.name) or "", arguments=self._text(call.arguments), id=_name(call.id))

    def _part(self, part: object) -> AnswerPart:
        text, cites = (part.text, part.citations) if isinstance(part, AnswerPart) else _mapped(part)
        cited = tuple(map(named, islice(cites, MAX_ITEMS)))
        return AnswerPart(text=self._text(text), citations=cited)


_TOO_LATE = (
    "ragtrace: an answer came after its run had ended, and is missing there: call run.answered(text) inside the "
    "block"
)
_NO_TEXT = (
    "ragtrace: run.answered() cannot read a {0}, and the answer is missing: hand over its text. Read a stream first"
)

_current: ContextVar[Run | None] = ContextVar("ragtrace_current_run", default=None)


# The run of the enclosing block, open or not: one call in C, for callers that ask at every step.
entered_run = _current.get


def current_run() -> Run | None:
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
    return None if run is None or run.is_finished else run


def named_prompt(prompt: object) -> tuple[str, str | None]:
    """Return name and version of a prompt, which stands behind the last colon.

    Example:
        >>> named_prompt("team/support:3"), named_prompt("support")
        (('team/support', '3'), ('support', None))
    """
    whole = told(prompt)
    name, colon, version = whole.rpartition(":")
    return (name, version) if colon and name and version else (whole, None)


def _told(tell: Callable[[], None]) -> None:
    """Make a call that an integration left; the next is made also when it raises."""
    try:
        tell()
    except Exception as error:
        record_internal_error("ragtrace.capture.run.report", error)


def outcome_of(error: BaseException) -> Outcome:
    """Return the outcome that an exception leaving the run stands for.

    Example:
        >>> outcome_of(ValueError()), outcome_of(GeneratorExit())
        ('error', 'partial')
    """
    if isinstance(error, GeneratorExit):
        return "partial"
    # By name, since asyncio, concurrent.futures and anyio backends each have their own class.
    if type(error).__name__ in {"CancelledError", "Cancelled"} or isinstance(error, KeyboardInterrupt):
        return "cancelled"
    return "error"


def _name(value: object) -> str | None:
    return None if value is None else named(value)


def _one_of(value: object, known: tuple[str, ...], default: str) -> str:
    if value in known:
        return str(value)
    if value is not None:
        record_wrong_call("with labels", _GRADES_EXPECTED, site="ragtrace.capture.run.set_labels")
    return default


def _mapped(part: object) -> tuple[object, Iterable[object]]:
    mapping = cast("Mapping[str, Any]", part)
    return mapping.get("text", ""), mapping.get("citations", ())


def chars_of(passages: Iterable[Passage]) -> int:
    """Return the characters of passages' texts."""
    return sum(len(passage.text) for passage in passages)


def _chars_said(messages: Iterable[Message]) -> int:
    return sum(len(message.content) for message in messages)
