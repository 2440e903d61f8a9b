"""One open RAG run: what integrations and people report, collected until it ends."""

from __future__ import annotations

import threading
import time
from collections import deque
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, cast, get_args

from ragtrace.capture.assembly import candidate_pool
from ragtrace.capture.attribution import found_in
from ragtrace.capture.guard import guarded, record_internal_error
from ragtrace.capture.model_calls import clean_usage, read_usage
from ragtrace.capture.passages import MAX_ID_CHARS, PassageReader, ranked, renamed
from ragtrace.capture.sanitize import (
    MAX_METADATA_ITEMS,
    clean_count,
    clean_metadata,
    clean_score,
    clean_text,
    shown,
    tags_of,
)
from ragtrace.capture.types import EndedRun, Failure, Generation, Rerank, Retrieval, ToolCall, WaitingRun
from ragtrace.model import AnswerPart, Feedback, Labels, LabelScale, LabelScope, Message, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextvars import Token
    from types import TracebackType

    from ragtrace.capture.attribution import TextKind
    from ragtrace.capture.types import Limits, Operation, RunConfig, RunProcessor, Step, TraceRef
    from ragtrace.model import Outcome, Passage

MAX_STEPS = 256  # of an agent that loops; what comes behind is counted in `truncated`
MAX_NAME_CHARS = 256
MAX_TURNS = 32
MAX_ITEMS = 10_000  # of any other list; an application's iterator may have no end
MAX_LATER = 1_024  # calls that wait for the pipeline's thread; then the application's thread makes them
MAX_REASONS = 64  # why a call ended, one for each of its outputs


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
        close: Callable[[Run, EndedRun | WaitingRun | None], None],
    ) -> None:
        self.config = config  # the one it began with: settings may change while it is open
        self._close = close
        self._lock = threading.RLock()
        self.attributes: dict[str, Any] = {}
        self.started_ns = started_ns
        self.last_activity = time.monotonic()
        self.steps: list[Step] = []
        self.prompts: list[str] = []
        self.passage_labels: dict[str, str] = {}
        self.selection: tuple[Passage, ...] | None = None
        self.selection_source: str | None = None
        self._is_selection_final = False
        self.texts: dict[str, Passage] = {}
        self.used_passages: tuple[Passage, ...] | None = None
        self.used_text: str | None = None
        self.pool_order: tuple[Passage, ...] | None = None
        self.fused_keys: set[str] = set()
        self.given_feedback: list[Feedback] = []
        self.truncated: dict[str, int] = {}
        self.failure: Failure | None = None
        self.processor: RunProcessor | None = None
        self.root_span: TraceRef | None = None
        self.is_finished = False
        self._entered: list[Token[Run | None]] = []
        self._is_discarded = False
        self._default_outcome: Outcome | None = None
        self._before_finish: dict[str, Callable[[], None]] = {}
        self._later: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._later_chars = 0
        self.limits = limits
        self.reader = PassageReader(config.redact, limits.passage_chars)

    @property
    def trace_id(self) -> str:
        """32 lower-case hex digits; "" when tracing is off."""
        return self.root_span.trace_id if self.root_span else ""

    @property
    def span_id(self) -> str:
        """16 lower-case hex digits of the root span; "" when tracing is off."""
        return self.root_span.span_id if self.root_span else ""

    @guarded
    def set_query(self, query: str) -> None:
        """Set the question, when it was not known at the start."""
        self._put("query", query, self.limits.text_chars)

    @guarded
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
    ) -> None:
        """Set what is known of the run's surroundings; None leaves a fact as it is."""
        facts = {
            "session": session,
            "user": user,
            "corpus": corpus,
            "corpus_version": corpus_version,
            "environment": environment,
            "workflow": workflow,
            "model": model,
        }
        for name, value in facts.items():
            if value is not None:
                self._put(name, value, MAX_NAME_CHARS)

    @guarded
    def add_tags(self, tags: Iterable[str]) -> None:
        """Add tags; a text is one tag."""
        new = (clean_text(self._redacted(tag), MAX_NAME_CHARS)[0] for tag in tags_of(tags))
        self.attributes["tags"] = tuple(dict.fromkeys((*self.attributes.get("tags", ()), *filter(None, new))))[:64]

    @guarded
    def add_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Keep the request metadata that the setting `span_metadata` names.

        Scalars and lists of scalars are kept, redacted and cut to 512 characters. A later value replaces an
        earlier one of the same name.
        """
        names = self.config.span_metadata
        if not names:
            return
        allowed = {name: metadata[name] for name in names if name in metadata}
        if allowed:
            kept = {name: self._metadata_value(value) for name, value in allowed.items()}
            self.attributes["metadata"] = {**self.attributes.get("metadata", {}), **clean_metadata(kept)}

    @guarded
    def set_history(self, history: Iterable[Message]) -> None:
        """Set the turns before this question, oldest first."""
        turns = tuple(islice(history, MAX_ITEMS))
        self.attributes["history"] = tuple(self._message(turn.role, turn.content) for turn in turns[-MAX_TURNS:])
        if len(turns) > MAX_TURNS:
            self.truncated["history"] = len(turns) - MAX_TURNS

    @guarded
    def retrieved(
        self,
        passages: Iterable[Any] | None,
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
            passages: `Passage`s, texts or mappings with text, id, score, metadata; None or empty is an empty pool.
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
        read = self.reader.read(passages, source)
        if is_fused and key is None:
            self.pool_order = read
        elif is_fused and key is not None:
            self.fused_keys.add(key)
        self._add(
            Retrieval(
                started_ns=started_ns or now,
                ended_ns=ended_ns or now,
                query=self._text(query) if query is not None else self.attributes.get("query", ""),
                passages=read,
                source=self.reader.source(source),
                top_k=clean_count(top_k),
                key=key,
                parent_key=parent_key,
                failure=self.failure_of(error),
            )
        )

    @guarded
    def reranked(
        self,
        passages: Iterable[Any] | None,
        *,
        candidates: Iterable[Any] | None = None,
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
        chosen = self.reader.read(passages)
        came_in = self.candidates() if candidates is None else self.reader.read(candidates)
        self._add(
            Rerank(
                started_ns=started_ns or now,
                ended_ns=ended_ns or now,
                candidates=came_in,
                passages=chosen,
                model=_name(model),
                top_n=clean_count(top_n),
                key=key,
                parent_key=parent_key,
                failure=self.failure_of(error),
            )
        )
        if error is None and not self._is_selection_final:
            self.selection, self.selection_source = chosen, selection_source

    @guarded
    def selected(self, passages: Iterable[Any], *, selection_source: str, is_final: bool = False) -> None:
        """Set the selection without a reranker step (a chain that filtered, a helper that marked).

        Args:
            passages: the selection, in its order.
            selection_source: explicit, framework, retriever or chain: how it became known.
            is_final: the application said so itself; choices that are inferred later leave it as it is.
        """
        if is_final or not self._is_selection_final:
            self.selection, self.selection_source = self.reader.read(passages), selection_source
            self._is_selection_final = is_final

    @guarded
    def add_selected(self, passages: Iterable[Any]) -> None:
        """Add passages to the selection that the application itself names; several calls add up.

        What is inferred, before or later, gives way to it.
        """
        added = self.reader.read(passages)
        with self._lock:
            before = (self.selection or ()) if self._is_selection_final else ()
            known = {(passage.id, passage.text) for passage in before}
            new = (passage for passage in added if (passage.id, passage.text) not in known)
            self.selected(ranked((*before, *new)), selection_source="explicit", is_final=True)

    @guarded
    def add_text(self, text: str, *, source: str | None = None, kind: TextKind = "tool_output") -> None:
        """Report a text that stands in place of passages; it counts where it stands in the prompt.

        Where the run has no passages, such texts are its pool, one passage each. Else a tool's texts stand behind
        the passages among what the model was shown, and are no part of the pool.

        Args:
            text: the text, as the model is shown it.
            source: the tool's name, or that of the function.
            kind: ``tool_output``, or ``context_text`` for contexts that the application joined.
        """
        one = self.reader.make(text, 1, None, None, source, {"kind": kind})
        if one.text.strip() and len(self.texts) < MAX_STEPS:
            self.texts.setdefault(one.id, one)

    @guarded
    def set_candidates(self, passages: Iterable[Any]) -> None:
        """Set a pool that no retriever of this run returned: from a resumed state, or given by the caller."""
        self.pool_order = self.reader.read(passages)

    @guarded
    def rename(self, ids: Mapping[tuple[str, str], str]) -> None:
        """Give passages another id, in all stages and steps: the id that became known after they were met.

        Args:
            ids: the new id by the old id and the text.
        """
        if not ids:
            return
        self.selection, self.used_passages, self.pool_order = (
            None if passages is None else renamed(passages, ids)
            for passages in (self.selection, self.used_passages, self.pool_order)
        )
        self.steps = [_renamed_step(step, ids) for step in self.steps]

    @guarded
    def used(self, passages: Iterable[Any]) -> None:
        """Report the passages that really went into the prompt, in its order.

        A text is all that went into it: the passages that stand there are found when the run ends, and where none
        does, the text itself is what was used.
        """
        self.used_text = self._prompt(passages) if isinstance(passages, str) else None
        self.used_passages = self.reader.read(passages)

    @guarded
    def label_passages(self, labels: Mapping[str, str]) -> None:
        """Say which passage each label means that the answer may cite: ids of passages by label, such as ``3``."""
        self.passage_labels.update(
            (shown(label)[:MAX_ID_CHARS], clean_text(name, MAX_ID_CHARS)[0])
            for label, name in islice(labels.items(), MAX_ITEMS)
        )

    @guarded
    def add_prompt(self, prompt: str) -> None:
        """Report a rendered prompt; the passages that stand in it are found when the run ends."""
        if len(self.prompts) < MAX_STEPS:
            self.prompts.append(self._prompt(prompt))

    @guarded
    def prompt_contains(self, passages: Iterable[Passage], *, since: int = 0) -> bool:
        """Tell whether a prompt shows one of these passages; those before the prompt `since` are not looked at."""
        some = tuple(passages)
        return any(found_in(prompt, some) for prompt in self.prompts[since:])

    @guarded
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
        is_in_process: bool = False,
        started_ns: int | None = None,
        ended_ns: int | None = None,
        error: BaseException | Failure | None = None,
        key: str | None = None,
        parent_key: str | None = None,
    ) -> None:
        """Report one call of the application's own model; see `ragtrace.capture.types.Generation`."""
        now = time.time_ns()
        self._add(
            Generation(
                started_ns=started_ns or now,
                ended_ns=ended_ns or now,
                operation=operation,
                model=_name(model),
                provider=_name(provider),
                response_model=_name(response_model),
                response_id=_name(response_id),
                inputs=tuple(self._message(m.role, m.content) for m in islice(inputs, MAX_ITEMS)),
                outputs=tuple(self._message(m.role, m.content) for m in islice(outputs, MAX_ITEMS)),
                usage=clean_usage(usage),
                finish_reasons=tuple(_name(reason) or "" for reason in islice(finish_reasons, MAX_REASONS)),
                first_chunk_s=clean_score(first_chunk_s),
                is_in_process=is_in_process,
                key=key,
                parent_key=parent_key,
                failure=self.failure_of(error),
            )
        )
        self.attributes.setdefault("model", _name(model))

    @guarded
    def answered(
        self,
        text: str,
        *,
        model: str | None = None,
        usage: Usage | Mapping[str, Any] | None = None,
        parts: Iterable[Any] | None = None,
    ) -> None:
        """Set the answer.

        Args:
            text: the whole answer.
            model: the model that wrote it.
            usage: its tokens, as `Usage`, or a mapping with the names of a provider: see `read_usage`.
            parts: sentences with citations: `AnswerPart`s, or mappings with text and citations (passage ids).
        """
        self._put("answer", text, self.limits.text_chars)
        self.attributes.pop("is_answer_expected", None)  # another integration in the same run found none
        if model is not None:
            self._put("model", model, MAX_NAME_CHARS)
        if usage is not None:
            self.attributes["usage"] = clean_usage(usage) if isinstance(usage, Usage) else read_usage(usage)
        if parts is not None:
            self.attributes["answer_parts"] = tuple(self._part(part) for part in islice(parts, MAX_ITEMS))

    @guarded
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
        self._add(
            ToolCall(
                started_ns=started_ns or now,
                ended_ns=ended_ns or now,
                name=clean_text(name, MAX_NAME_CHARS)[0],
                arguments="" if arguments is None else self._text(arguments),
                result="" if result is None else self._text(result),
                call_id=None if call_id is None else clean_text(call_id, MAX_ID_CHARS)[0],
                description=None if description is None else self._text(description),
                key=key,
                parent_key=parent_key,
                failure=self.failure_of(error),
            )
        )

    @guarded
    def expects_no_answer(self) -> None:
        """Mark a run in which no model speaks: a retrieval alone. Metrics over an answer are then ``na``."""
        self.attributes["is_answer_expected"] = False

    @guarded
    def reference(self, text: str) -> None:
        """Set the reference answer, for metrics that need one."""
        self._put("reference", text, self.limits.text_chars)

    @guarded
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
                record_internal_error("ragtrace.capture.run.labels")
                return
            cleaned[clean_text(name, MAX_ID_CHARS)[0]] = grade
        self.attributes["labels"] = Labels(grades=cleaned, label_scope=label_scope, scale=scale, version=version)

    @guarded
    def set_labels(self, given: Any) -> None:
        """Set relevance grades as a request hands them over; what is none is counted as a loss.

        Args:
            given: ``{passage id: grade}``, or that under ``grades`` beside universe, scale and version.
        """
        nested = given.get("grades") if isinstance(given, dict) else None
        options = given if isinstance(nested, dict) else {}
        grades = nested if isinstance(nested, dict) else given
        if not isinstance(grades, dict):
            record_internal_error("ragtrace.capture.run.set_labels")
            return
        version = options.get("version")
        self.labels(
            {str(name): grade for name, grade in grades.items()},
            label_scope=cast("LabelScope", _one_of(options.get("universe"), get_args(LabelScope), "gold")),
            scale=cast("LabelScale", _one_of(options.get("scale"), get_args(LabelScale), "direct5")),
            version=None if version is None or version == "" else str(version),
        )

    @guarded
    def set_k(self, k: int) -> None:
        """Set the K of this run's @K metrics; the default is the number of contexts delivered.

        What is no whole number of 0 or more is counted as a loss.
        """
        number = clean_count(k)
        if number is None:
            record_internal_error("ragtrace.capture.run.set_k")
            return
        self.attributes["k"] = number

    @guarded
    def feedback(self, value: float, comment: str | None = None, source: str = "human") -> None:
        """Add what a person said of the answer: a value in [0, 1], 1 = good."""
        number = clean_score(value)
        if number is None or not 0.0 <= number <= 1.0:
            record_internal_error("ragtrace.capture.run.feedback")
            return
        text = None if comment is None else self._text(comment)
        self.given_feedback.append(Feedback(value=number, comment=text, source=self._text(source)))

    @guarded
    def failed(self, error: BaseException | Failure) -> None:
        """Note what made the run fail; `finish` then defaults to the outcome ``error``."""
        self.failure = self.failure_of(error)

    def ends_as(self, outcome: Outcome | None) -> None:
        """Set the outcome for a `finish` that is given none; None stands for ``answered``."""
        self._default_outcome = outcome

    @guarded
    def interrupted(self, payload: object) -> None:
        """Keep what the run waits for: the payload of an interrupt, shown as text; outcome is set by `finish`."""
        self._put("interrupt", payload, self.limits.text_chars)

    def before_finish(self, report: Callable[[], None], owner: str = "") -> None:
        """Have `report` called once, just before the run ends, however it ends.

        A second call of the same owner replaces the first. Two integrations may report into one run.

        An integration reports there what is still open: the pieces of a stream that nobody read to its end,
        when the recorder's sweep ends the run. It runs in the thread that ends the run; errors are counted.
        """
        self._before_finish[owner] = report

    def later(self, function: Callable[..., None], *args: Any, chars: int = 0) -> None:
        """Call a function that reports to this run, in the pipeline's thread once the run has ended.

        The calls are made in the order of `later`. Where texts are redacted a call is made at once, so that no
        original text is kept.

        Args:
            function: reports to this run; its errors are counted.
            args: what it is called with; the application must not be able to change it.
            chars: characters of the texts in `args`.
        """
        self.last_activity = time.monotonic()
        if self.processor is None:
            return
        self._later.append((function, args))
        self._later_chars += chars
        if self.config.redact is not None or len(self._later) >= MAX_LATER:
            self._make_calls()

    def _make_calls(self) -> None:
        with self._lock:
            while self._later:
                function, args = self._later.popleft()
                self._report(partial(function, *args))
            self._later_chars = 0

    @guarded
    def finish(self, outcome: Outcome | None = None, *, ended_ns: int | None = None) -> None:
        """End the run; a second call does nothing.

        Args:
            outcome: default ``error`` after `failed`, else that of `ends_as`, else ``answered``.
            ended_ns: Unix ns; default now.
        """
        with self._lock:
            if self.is_finished:
                return
            self.is_finished = True
            reports, self._before_finish = self._before_finish, {}
        for report in reports.values():
            self._report(report)
        if self._is_discarded:
            self._close(self, None)
            return
        # The wall clock may have been set back meanwhile: a run takes no negative time.
        until_ns = max(ended_ns or time.time_ns(), self.started_ns)
        if self._later:
            complete = partial(self._complete, outcome, until_ns)
            self._close(self, WaitingRun(ended_ns=until_ns, size_chars=self._later_chars, complete=complete))
        else:
            self._close(self, self.ended(self._decided(outcome), until_ns))

    def _decided(self, outcome: Outcome | None) -> Outcome:
        return outcome or ("error" if self.failure else self._default_outcome or "answered")

    def _complete(self, outcome: Outcome | None, ended_ns: int) -> EndedRun | None:
        self._make_calls()
        return None if self._is_discarded else self.ended(self._decided(outcome), ended_ns)

    def ended(self, outcome: Outcome, ended_ns: int) -> EndedRun:
        """Copy everything that was reported; later reports change nothing in it."""
        truncated = self.truncated.copy()
        if self.reader.left_out:
            truncated["passages"] = self.reader.left_out
        return EndedRun(
            trace_id=self.trace_id,
            span_id=self.span_id,
            outcome=outcome,
            started_ns=self.started_ns,
            ended_ns=ended_ns,
            attributes=self.attributes.copy(),
            steps=tuple(self.steps),
            prompts=tuple(self.prompts),
            passage_labels=self.passage_labels.copy(),
            selection=self.selection,
            selection_source=self.selection_source,
            texts=tuple(self.texts.values()),
            used_passages=self.used_passages,
            used_text=self.used_text,
            pool_order=self.pool_order,
            fused_keys=frozenset(self.fused_keys),
            feedback=tuple(self.given_feedback),
            truncated=truncated,
            failure=self.failure,
            limits=self.limits,
        )

    def discard(self) -> None:
        """Drop the run: it was no question. Its root span is never ended, so nothing of it is exported.

        A report of `before_finish` may call it too; a run that has ended stays as it is.
        """
        with self._lock:
            self._is_discarded = True
            if self.is_finished:
                return
            self.is_finished = True
            self._before_finish = {}
        self._close(self, None)

    def retrievals(self) -> list[Retrieval]:
        """Return the retriever calls reported so far."""
        return [step for step in self.steps if isinstance(step, Retrieval)]

    def has_generations(self) -> bool:
        """Tell whether a model call was reported."""
        return any(isinstance(step, Generation) for step in self.steps)

    def is_mostly_passages(self, text: str) -> bool:
        """Tell whether a text consists of the run's passages for at least a half: a context, not an answer."""
        passages = (*self.candidates(), *(self.selection or ()))
        found = found_in(text, tuple({passage.id: passage for passage in passages}.values()))
        return bool(found) and 2 * sum(len(passage.text) for passage in found) >= len(text)

    @guarded
    def _report(self, report: Callable[[], None]) -> None:
        report()

    def candidates(self) -> tuple[Passage, ...]:
        """Return the candidate pool: the fused order where one was given, else the leaves' results in turn.

        A passage that several leaves returned stands once, at its first place.
        """
        return candidate_pool(self.steps, self.pool_order, self.fused_keys)

    def __enter__(self) -> Run:
        self._entered.append(_current.set(self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave(error)

    async def __aenter__(self) -> Run:
        self._entered.append(_current.set(self))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave(error)

    @guarded
    def _leave(self, error: BaseException | None) -> None:
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

    def _add(self, step: Step) -> None:
        self.last_activity = time.monotonic()
        if len(self.steps) < MAX_STEPS:
            self.steps.append(step)
        else:
            self.truncated["steps"] = self.truncated.get("steps", 0) + 1

    def _put(self, name: str, value: object, limit: int) -> None:
        self.last_activity = time.monotonic()
        text, original = clean_text(self._redacted(value), limit)
        self.attributes[name] = text
        if original:
            self.truncated[f"{name}_chars"] = original

    def _redacted(self, value: object) -> str:
        text = value if type(value) is str else clean_text(value, self.limits.record_chars)[0]
        redact = self.config.redact
        return text if redact is None else redact(text)

    def _prompt(self, value: object) -> str:
        return clean_text(self._redacted(value), self.limits.record_chars)[0]

    def _text(self, value: object) -> str:
        return clean_text(self._redacted(value), self.limits.text_chars)[0]

    def _metadata_value(self, value: object) -> object:
        if isinstance(value, str):
            return self._redacted(value)
        if isinstance(value, list | tuple):
            items = value[:MAX_METADATA_ITEMS]
            return [self._redacted(item) if isinstance(item, str) else item for item in items]
        return value

    def _message(self, role: str, content: object) -> Message:
        return Message(role=clean_text(role, 32)[0], content=self._text(content))

    def _part(self, part: Any) -> AnswerPart:
        text, cites = (part.text, part.citations) if isinstance(part, AnswerPart) else _mapped(part)
        cited = tuple(clean_text(name, MAX_ID_CHARS)[0] for name in islice(cites, MAX_ITEMS))
        return AnswerPart(text=self._text(text), citations=cited)

    def failure_of(self, error: BaseException | Failure | None) -> Failure | None:
        """Return the type and message of an error as they are now; None for None."""
        if error is None or isinstance(error, Failure):
            return error
        return Failure(
            kind=clean_text(type(error).__name__, MAX_NAME_CHARS)[0],
            message=clean_text(self._redacted(error), 1024)[0],
        )


_current: ContextVar[Run | None] = ContextVar("ragtrace_current_run", default=None)


# The same without looking whether the run is still open: one call in C, for what asks at every step.
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
    run = _current.get()
    return None if run is None or run.is_finished else run


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
    return None if value is None else clean_text(value, MAX_NAME_CHARS)[0]


def _renamed_step(step: Step, ids: Mapping[tuple[str, str], str]) -> Step:
    if isinstance(step, Retrieval):
        return replace(step, passages=renamed(step.passages, ids))
    if isinstance(step, Rerank):
        return replace(step, passages=renamed(step.passages, ids), candidates=renamed(step.candidates, ids))
    return step


def _one_of(value: Any, known: tuple[str, ...], default: str) -> str:
    if value is not None and value not in known:
        record_internal_error("ragtrace.capture.run.set_labels")
    return value if value in known else default


def _mapped(part: Any) -> tuple[object, Iterable[object]]:
    mapping = cast("Mapping[str, Any]", part)
    return mapping.get("text", ""), mapping.get("citations", ())
