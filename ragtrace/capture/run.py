"""An open RAG run: what people report by hand, collected until it ends."""

from __future__ import annotations

import functools
import threading
import time
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, cast

from msgspec.structs import replace

from ragtrace.capture.guard import Redaction, guarded, guarded_call, record_internal_error, record_wrong_call
from ragtrace.capture.model_calls import clean_usage, read_usage, said_in
from ragtrace.capture.model_requests import clean_request, server_of
from ragtrace.capture.passages import PROCESS_KEY, PassageReader, ReadPassages
from ragtrace.capture.past import PastRuns
from ragtrace.capture.reported import MAX_STEPS
from ragtrace.capture.run_context import tags_of
from ragtrace.capture.types import Failure
from ragtrace.capture.values import named, told
from ragtrace.model import AnswerPart, Call, Message, Usage
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
    from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
    from contextvars import Token
    from types import TracebackType
    from typing import Self

    from ragtrace.capture.types import Limits, Operation, RunConfig, TraceRef
    from ragtrace.model import LabelScale, LabelScope, Outcome, Passage

P = ParamSpec("P")

MAX_TURNS = 256
MAX_ITEMS = 10_000  # of any other list; an application's iterator may have no end
MAX_REASONS = 64  # why a call ended, one for each of its outputs


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

    Example:
        >>> from ragtrace.capture import Recorder
        >>> with Recorder().start(query="How do I cancel?") as run:
        ...     run.retrieved([{"id": "faq-7", "text": "Cancel in settings.", "score": 0.9}])
        ...     run.answered("In settings.")
        >>> run.is_finished
        True
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
        self._started_ns = started_ns
        self._open_runs = open_runs
        self._past = PastRuns() if past is None else past
        self.last_activity = time.monotonic()
        self._reader = PassageReader(config.redact, limits.passage_chars, config.id_key)
        self._root_span: TraceRef | None = None
        self._has_failed = False
        self._before_finish: dict[str, Callable[[], None]] = {}
        self._entered: list[Token[Run | None]] = []
        self._is_discarded = False
        self._ends = [None]  # one end, which one thread takes
        self._ended_with: Outcome | None = None  # as `finish` was told
        self._is_whole = False  # it has ended, and was neither cut short nor failed
        self._reporters: set[int] = set()  # threads that report what happened before the end
        self.ended_ns = 0

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
            error=self._failure_of(error),
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
            error=self._failure_of(error),
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
            error=self._failure_of(error),
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
            error=self._failure_of(error),
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
        self._tell("failed", error=self._failure_of(error))

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
        self.ended_ns = max(ended_ns or time.time_ns(), self._started_ns)
        self._ended_with = outcome
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

    def _tell(self, report: str, /, *, chars: int = 0, **given: object) -> None:
        """Add a report to the events of the run.

        Args:
            report: name of the method.
            chars: of its longer texts.
            given: what it was told, redacted, clean and copied.
        """
        raise NotImplementedError

    def _had_answer(self) -> None:
        """Note that the application answers in this workflow."""
        raise NotImplementedError

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

    def _failure_of(self, error: BaseException | Failure | None) -> Failure | None:
        if error is None or isinstance(error, Failure):
            return error
        return self._failure_named(type(error).__name__, error)

    def _failure_named(self, kind: str, message: object) -> Failure:
        return Failure(kind=named(kind), message=self._text(message, MAX_MESSAGE_CHARS))


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


def _mapped(part: object) -> tuple[object, Iterable[object]]:
    mapping = cast("Mapping[str, Any]", part)
    return mapping.get("text", ""), mapping.get("citations", ())


def chars_of(passages: Iterable[Passage]) -> int:
    """Return the characters of passages' texts."""
    return sum(len(passage.text) for passage in passages)


def _chars_said(messages: Iterable[Message]) -> int:
    return sum(len(message.content) for message in messages)
