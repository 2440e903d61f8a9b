"""The run that the application opened itself with ``with ragtrace.query(...)``, as the code inside it sees it."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextvars import Token

    from ragtrace.capture.run import Run

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


def enter_run(run: Run) -> Token[Run | None]:
    """Make a run the current one; `leave_run` takes the token."""
    return _current.set(run)


def leave_run(token: Token[Run | None]) -> None:
    """Restore the run that was current before `enter_run`."""
    try:
        _current.reset(token)
    except ValueError:  # the block ends in another context than it began in, as a generator's may
        _current.set(None)
