"""The recorder: the one API that integrations and the manual form write to."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ragtrace.capture.guard import guarded, record_internal_error, safe_redact
from ragtrace.capture.past import PastRuns
from ragtrace.capture.run import Run
from ragtrace.capture.suppression import is_own_work
from ragtrace.capture.types import Limits, RunConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ragtrace.capture.types import RunProcessor


class Recorder:
    """Opens runs, and hands each to its processor when it ends.

    Thread-safe. At most `Limits.open_runs` stay open: the longest idle is ended as ``partial`` for a new one.

    Args:
        processor: takes finished runs; None keeps nothing (recording is then cheap and harmless).
        redact: applied to every text before it is kept; a failure drops the text.
        limits: what may be kept.
        workflow: name of runs that give none.
        environment: deployment name written on every record.
        span_metadata: names of request metadata that a run keeps.

    Attributes:
        config: what the next run begins with.

    Example:
        >>> recorder = Recorder()
        >>> run = recorder.start(query="Where is the lab?")
        >>> run.finish()
        >>> recorder.open_runs
        0
    """

    def __init__(
        self,
        processor: RunProcessor | None = None,
        *,
        redact: Callable[[str], str] | None = None,
        limits: Limits | None = None,
        workflow: str = "rag",
        environment: str | None = None,
        span_metadata: Iterable[str] = (),
    ) -> None:
        self.config = RunConfig(
            processor=processor,
            redact=safe_redact(redact),
            workflow=workflow,
            environment=environment,
            span_metadata=tuple(span_metadata),
        )
        self.limits = limits or Limits()
        self._past = PastRuns()
        self._open: dict[int, Run] = {}  # no lock: each use is one operation of the interpreter

    @property
    def open_runs(self) -> int:
        """Runs begun and not yet ended."""
        return len(self._open)

    def start(
        self,
        *,
        query: str | None = None,
        workflow: str | None = None,
        session: str | None = None,
        user: str | None = None,
        corpus: str | None = None,
        corpus_version: str | None = None,
        prompt: str | None = None,
        tags: Iterable[str] = (),
        k: int | None = None,
        started_ns: int | None = None,
    ) -> Run:
        """Open a run; never raises. One that begins in `own_work` is not kept.

        Args:
            query: the question; `Run.set_query` may give it later.
            workflow: name of the application or chain.
            session: conversation id; never invented.
            user: end user's id.
            corpus: name of the index searched.
            corpus_version: its version.
            prompt: name of the prompt template, with its version behind a colon.
            tags: free labels; a text is one.
            k: cut-off of @K metrics; default the number of contexts delivered.
            started_ns: Unix ns; default now.
        """
        run = Run(self.config, self.limits, started_ns or time.time_ns(), self._open, self._past)
        self._begin(run, workflow)
        if query is not None:
            run.set_query(query)
        if session is not None or user is not None or corpus is not None or corpus_version is not None:
            run.set_attributes(session=session, user=user, corpus=corpus, corpus_version=corpus_version)
        if prompt is not None:
            run.set_attributes(prompt=prompt)
        if type(tags) is not tuple or tags:  # anything may stand here, also what has no truth value
            run.add_tags(tags)
        if k is not None:
            run.set_k(k)
        return run

    @guarded
    def _begin(self, run: Run, workflow: str | None) -> None:
        run.begin(workflow, is_kept=not is_own_work())
        self._open[id(run)] = run
        if len(self._open) > self.limits.open_runs:
            record_internal_error("ragtrace.capture.recorder.open_runs", reason="too many runs are open")
            min(list(self._open.values()), key=_last_activity).finish("partial")

    def has_open(self, run: Run) -> bool:
        """Tell whether this recorder opened the run, and it is still open."""
        return id(run) in self._open

    @guarded
    def end_all(self) -> None:
        """End every open run as ``partial``: at a shutdown, so that no span stays open."""
        self._end(list(self._open.values()))

    @guarded
    def sweep(self, now: float | None = None) -> None:
        """End runs that were idle longer than `Limits.run_idle_s` as ``partial``.

        Args:
            now: seconds of the monotonic clock; default now.
        """
        limit = (time.monotonic() if now is None else now) - self.limits.run_idle_s
        self._end([run for run in list(self._open.values()) if run.last_activity < limit])

    def _end(self, runs: list[Run]) -> None:
        for run in runs:
            run.finish("partial")
            self._open.pop(id(run), None)  # also where its end failed half-way

    def forget_runs(self) -> None:
        """Forget the open runs, in a forked child: they are the parent's."""
        self._open = {}
        past = PastRuns()  # another thread of the parent's may hold the lock of the old one
        past.answering = self._past.answering
        self._past = past


def _last_activity(run: Run) -> float:
    return run.last_activity
