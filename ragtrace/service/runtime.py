"""Configure, flush and shut down the process's one recorder and the service behind it."""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Unpack

from msgspec.structs import replace

from ragtrace.capture import Recorder, guarded, record_internal_error
from ragtrace.capture.fork import after_fork_in_child
from ragtrace.capture.guard import renew_lock, safe_redact
from ragtrace.capture.off_loop import off_loop
from ragtrace.capture.types import RunConfig
from ragtrace.errors import ConfigError
from ragtrace.sinks.base import sinks_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from opentelemetry._logs import LoggerProvider
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from ragtrace.capture import Run, RunProcessor, TraceRef
    from ragtrace.service.event_file import EventFile
    from ragtrace.service.service import Service
    from ragtrace.settings import Arguments, Settings

_log = logging.getLogger("ragtrace")
_DEFAULT_S = 30.0
_AT_EXIT_S = 5.0
_REPLACE_S = 5.0
_DISCARD_S = 1.0
_LONGEST_S = 31_536_000.0  # a wait without end is no number that a lock or the SDK takes


class _State:
    """The recorder and the service behind it; the recorder stays, since handlers hold it.

    Attributes:
        inherited: in a forked child, the parent's service until the child has its own.
        diverted_to: takes the runs instead of the service's pipeline, see `captured_by`.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.recorder = Recorder()
        self.service: Service | None = None
        self.inherited: Service | None = None
        self.diverted_to: RunProcessor | None = None
        self.is_configured = False


class _ChildProcessor:
    """Builds the service of a forked child with its first run, and passes that run on."""

    def on_start(self, workflow: str, started_ns: int) -> TraceRef:
        service = current()
        if service is None:
            raise ConfigError("this forked child has no service")
        return service.pipeline.on_start(workflow, started_ns)

    def on_part(self, ref: TraceRef, run: Run) -> bool:
        return _state.service is not None and _state.service.pipeline.on_part(ref, run)

    def on_end(self, ref: TraceRef, run: Run) -> None:
        if _state.service is not None:
            _state.service.pipeline.on_end(ref, run)


_state = _State()


def configure(
    *,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    logger_provider: LoggerProvider | None = None,
    **settings: Unpack[Arguments],
) -> None:
    """Set ragtrace up, or up anew: a second call replaces every setting of the first.

    Without it, the first capture configures from the environment, where a port that is taken is a warning. Runs
    that are open keep what they began with.

    Args:
        tracer_provider: default the global one if the application set one, else our own from ``OTEL_*``.
        meter_provider: likewise.
        logger_provider: likewise.
        **settings: `ragtrace.settings.Settings` by name, such as ``judge="openai:MODEL"``, ``sample_rate=0.1`` and
            ``content="full"``. Those of a group are written flat or as a dict: ``judge_rpm=60``, or
            ``judge={"name": "openai:MODEL", "rpm": 60}``.

    Raises:
        ConfigError: an unknown or wrong setting, or a port that is taken, in one line; what ran before goes on
            unchanged.

    Example:
        >>> import ragtrace
        >>> ragtrace.configure(sample_rate=2.0)
        Traceback (most recent call last):
        ...
        ragtrace.errors.ConfigError: sample_rate=2.0 must lie between 0.0 and 1.0
    """
    resolved = _resolved(settings)
    with _state.lock:
        _install(resolved, tracer_provider, meter_provider, logger_provider)


@off_loop
def _resolved(given: Mapping[str, object]) -> Settings:
    from ragtrace.settings import Settings  # noqa: PLC0415 - brings pydantic in; only when it is wanted

    return Settings.resolve(given)


def configure_worker(settings: Settings) -> None:
    """Set up a process that scores what others captured; errors are those of `configure`."""
    with _state.lock:
        _install(settings, captures=False)


def recorder() -> Recorder:
    """Return the process's recorder, configured from the environment at first use.

    Integrations keep it: `configure` changes what stands behind it, not the recorder. A wrong variable is logged
    and turns capture off; it raises nothing.
    """
    if not _state.is_configured:
        _configure_from_environment()
    return _state.recorder


def query(
    query: str,
    *,
    workflow: str | None = None,
    session: str | None = None,
    user: str | None = None,
    corpus: str | None = None,
    corpus_version: str | None = None,
    prompt: str | None = None,
    tags: Iterable[str] = (),
    k: int | None = None,
) -> Run:
    """Capture one RAG run by hand; use it with ``with`` or ``async with``.

    No value raises; only an argument that does not exist is a ``TypeError``.

    Args:
        query: the question.
        workflow: name of the application or chain; default the setting.
        session: conversation id.
        user: end user's id.
        corpus: name of the index.
        corpus_version: its version.
        prompt: name of the prompt template, with its version behind a colon: ``support:3``.
        tags: free labels.
        k: cut-off of @K metrics; default the number of contexts delivered.

    Example:
        >>> import ragtrace
        >>> with ragtrace.query("How do I cancel?", workflow="support") as run:
        ...     run.retrieved([{"id": "faq-7", "text": "Cancel in settings.", "score": 0.9}], source="faq")
        ...     run.answered("In settings.", model="my-model")
    """
    return recorder().start(
        query=query,
        workflow=workflow,
        session=session,
        user=user,
        corpus=corpus,
        corpus_version=corpus_version,
        prompt=prompt,
        tags=tags,
        k=k,
    )


@contextmanager
def captured_by(processor: RunProcessor) -> Iterator[None]:
    """Hand every run that begins in the block to another processor, for tests.

    Process-wide. The environment configures nothing in the block. A call of `configure` there keeps the processor,
    and its service gets the runs that begin afterwards.

    Raises:
        ConfigError: inside another such block.
    """
    with _state.lock:
        if _state.diverted_to is not None:
            raise ConfigError("runs are captured already; leave the other capture block first")
        before, is_configured, service = _state.recorder.config.processor, _state.is_configured, _state.service
        _state.diverted_to, _state.is_configured = processor, True
        _state.recorder.config = replace(_state.recorder.config, processor=processor)
    try:
        yield
    finally:
        with _state.lock:
            _state.diverted_to = None
            if _state.service is not service:
                before, is_configured = _state.service.pipeline if _state.service else None, True
            _state.is_configured = is_configured
            _state.recorder.config = replace(_state.recorder.config, processor=before)


def flush(timeout_s: float = _DEFAULT_S) -> bool:
    """Wait until everything offered so far is scored and exported; return whether it is.

    Blocks the calling thread for at most about `timeout_s`; in a coroutine, await
    ``asyncio.to_thread(ragtrace.flush)``. True when nothing was ever configured. An internal error is counted, and
    gives False.

    With a spool, what other processes left there is scored too, also where this one captured nothing; the scorer
    starts for it. Units that wait for a retry are waited for, and give False at the deadline. With
    ``scorer="worker"`` True means that everything captured here stands in the spool: a process that captured
    nothing logs how many units wait for ``ragtrace worker``.
    """
    return bool(_flushed(timeout_s))


@guarded
@off_loop
def _flushed(timeout_s: float) -> bool:
    timeout_s = _bounded(timeout_s, "ragtrace.flush")
    if os.environ.get("RAGTRACE_SPOOL") or os.environ.get("RAGTRACE_QUEUE"):
        recorder()  # a script may have been started for what the queue holds
    service = _state.service
    return True if service is None else service.flush(timeout_s)


def shutdown(timeout_s: float = _DEFAULT_S) -> bool:
    """Score and export what is there, then stop, within `timeout_s`; return whether nothing was lost.

    Runs that are open end as ``partial``. With a spool only the units under way are scored: the others stay in the
    spool for the next scorer. Call `flush` before to have them scored here.

    Afterwards capture costs next to nothing and keeps nothing, until `configure` is called again. An internal error
    is counted, and gives False.
    """
    return bool(_shut_down(timeout_s))


@guarded
@off_loop
def _shut_down(timeout_s: float) -> bool:
    timeout_s = _bounded(timeout_s, "ragtrace.shutdown")
    with _state.lock:
        # First, so that no run begins behind the end of all.
        _state.recorder.config = replace(_state.recorder.config, processor=None)
        _state.recorder.end_all()
        service, _state.service = _state.service, None
        _discard_inherited()
        if service is not None and service.storing is not None:
            service.storing.retire()  # while this one ends, another may begin
    return True if service is None else service.shutdown(timeout_s)


def _bounded(timeout_s: object, call: str) -> float:
    """Return a wait in seconds; the default where none was given, which is said."""
    if isinstance(timeout_s, int | float):
        return min(timeout_s, _LONGEST_S) if timeout_s > 0.0 else 0.0  # NaN is no wait
    said = f"ragtrace: {call}({type(timeout_s).__name__}) takes seconds, and waits its {_DEFAULT_S:.0f} s instead"
    record_internal_error(f"{call}.timeout_s", line=said)
    return _DEFAULT_S


def current() -> Service | None:
    """Return the service behind the recorder, None before the first use and after `shutdown`.

    A forked child builds its own here, from the settings, given providers, sinks and store of its parent.
    """
    if _state.inherited is not None:
        _rebuild()
    return _state.service


@off_loop
def _rebuild() -> None:
    from ragtrace.service.build import rebuild  # noqa: PLC0415 - imports the SDK

    with _state.lock:
        if _state.inherited is None:
            return
        config = _state.recorder.config
        try:
            _state.service = rebuild(_state.inherited)
            processor: RunProcessor | None = _state.service.pipeline
        except Exception:
            _log.exception("ragtrace is off in this forked process: it could not be set up")
            processor = None
        _state.recorder.config = replace(config, processor=processor)
        _state.inherited = None


def _discard_inherited() -> None:
    """End the parent's own providers in a forked child that never used them."""
    inherited, _state.inherited = _state.inherited, None
    if inherited is not None:
        inherited.providers.discard(_DISCARD_S)


def _install(
    settings: Settings,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    logger_provider: LoggerProvider | None = None,
    *,
    needs_ports: bool = True,
    captures: bool = True,
) -> None:
    off_loop(import_module)("ragtrace.service.build")
    from ragtrace.service.build import build  # noqa: PLC0415 - brings the SDK in; only when it is wanted

    service, sinks = None, sinks_of(settings.sinks)
    events = _event_file(settings) if settings.enabled and captures else None
    if settings.enabled:
        service = build(
            settings,
            tracer_provider=tracer_provider,
            meter_provider=meter_provider,
            logger_provider=logger_provider,
            sinks=sinks,
            recorder=_state.recorder,
            replaced=_state.service,
            needs_ports=needs_ports,
            captures=captures,
        )
    atexit.unregister(_at_exit)
    atexit.register(_at_exit)  # anew each time: what was registered last runs first, so before the providers' own
    old, _state.service = _state.service, service
    _discard_inherited()
    _state.recorder.config = RunConfig(
        processor=_state.diverted_to or (None if service is None else service.pipeline),
        redact=safe_redact(settings.redact),
        id_key=None if service is None else service.id_key,
        workflow=settings.workflow,
        environment=settings.environment,
        corpus=settings.corpus,
        span_metadata=settings.span_metadata,
        events=events,
        declared=settings.reading.declared,
    )
    _state.is_configured = True  # last, as others then take the recorder as it is
    if old is not None:
        off_loop(old.shutdown)(_REPLACE_S, kept=sinks if service is None else (*service.sinks, service.storing))


@off_loop
def _event_file(settings: Settings) -> EventFile | None:
    """Open the file of `record_events`; None where that is not set."""
    path = settings.record_events.path
    if path is None:
        return None
    from ragtrace.service.event_file import EventFile  # noqa: PLC0415 - only when it is wanted

    return EventFile(path, is_masked=settings.record_events.masked)


@off_loop
def _configure_from_environment() -> None:
    with _state.lock:
        if _state.is_configured:
            return
        try:
            _install(_resolved({}), needs_ports=False)  # the host's other processes have the same variables
        except ConfigError as error:
            _log.error("ragtrace is off: %s", error)
        except Exception:
            _log.exception("ragtrace is off: it could not be set up")
        finally:
            _state.is_configured = True


def _at_exit() -> None:
    shutdown(_AT_EXIT_S)


@guarded
def _at_child_exit() -> None:
    _state.recorder.end_all()
    service = _state.service
    if service is None:
        return
    service.pipeline.drain(_AT_EXIT_S)
    if service.ledger.offered:  # a child that captured nothing is not held up
        shutdown(_AT_EXIT_S)


def _end_with_multiprocessing() -> None:
    """Have `multiprocessing` call us at the end of its children: those it forks end without ``atexit``.

    A child forgets the finalizers that stand when it begins, and has those that `register_after_fork` makes.
    """
    util = sys.modules.get("multiprocessing.util")
    if util is not None:

        def finalized(_: object = None) -> None:
            util.Finalize(None, _at_child_exit, exitpriority=0)

        util.register_after_fork(_state, finalized)
        finalized()


def _after_fork() -> None:
    renew_lock()
    _end_with_multiprocessing()
    _state.lock = threading.RLock()
    _state.recorder.forget_runs()
    if _state.service is not None:
        _state.inherited, _state.service = _state.service, None
        _state.inherited.leave_to_parent()
        _state.recorder.config = replace(_state.recorder.config, processor=_ChildProcessor())


_end_with_multiprocessing()
after_fork_in_child(_after_fork)
