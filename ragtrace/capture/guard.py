"""Count internal errors and keep them from the application."""

from __future__ import annotations

import errno
import functools
import inspect
import logging
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")

_log = logging.getLogger("ragtrace")
_lock = threading.RLock()  # reentrant: a finaliser may fail while this thread counts
_losses: Counter[str] = Counter()


def record_internal_error(
    site: str, error: BaseException | None = None, *, reason: str = "", line: str = ""
) -> None:
    """Count one loss at `site`, and log the first of each site.

    The log line gives the reason, a constant text. Without one it names the error's type, and the code of an error
    of a file: its message may hold the application's contents. A `line` is logged in place of all that.
    """
    with _lock:
        _losses[site] += 1
        is_first = _losses[site] == 1
    if is_first:
        kind = reason or (_kind_of(error) if error is not None else "loss")
        _log.warning("%s", line or f"ragtrace lost data at {site} ({kind}); the application is not affected")
        _log.debug("details of the first loss at %s", site, exc_info=error)


def _kind_of(error: BaseException) -> str:
    cause = error.__cause__ or error  # a file's, which a QueueError or StoreError is raised from
    code = getattr(cause, "sqlite_errorname", None)
    if code is None and isinstance(cause, OSError) and type(cause.errno) is int:
        code = errno.errorcode.get(cause.errno)
    return f"{type(error).__name__}, {code}" if isinstance(code, str) else type(error).__name__


def internal_errors() -> dict[str, int]:
    """Return the number of losses by site since the process began."""
    with _lock:
        return dict(_losses)


def guarded(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function swallow and count its own errors; it then returns None.

    Only `Exception` is caught: KeyboardInterrupt, SystemExit and cancellation pass. The wrapped function is
    looked up at each call (``__wrapped__``), so that a test can break the inside and leave the guard whole.

    Example:
        >>> @guarded
        ... def broken() -> int:
        ...     raise RuntimeError("inside")
        >>> broken() is None
        True
    """
    site = f"{function.__module__}.{function.__qualname__}"

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Any:
        try:
            return wrapper.__wrapped__(*args, **kwargs)
        except Exception as error:
            record_internal_error(site, error)
            return None

    return cast("Callable[P, R]", wrapper)


def guarded_constructor(function: Callable[P, R]) -> Callable[P, R]:
    """Do what `guarded` does, but let Python say of an argument that there is none of that name.

    Such a mistake is a person's, made once while writing; a handler that swallowed it would capture nothing.

    Example:
        >>> @guarded_constructor
        ... def named(workflow: str = "") -> str:
        ...     raise RuntimeError("inside")
        >>> named(workflow="support") is None
        True
        >>> named(wrkflow="support")
        Traceback (most recent call last):
        ...
        TypeError: got an unexpected keyword argument 'wrkflow'
    """
    signature = inspect.signature(function)
    site = f"{function.__module__}.{function.__qualname__}"

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Any:
        try:
            return cast("Any", wrapper).__wrapped__(*args, **kwargs)
        except TypeError as error:
            signature.bind(*args, **kwargs)
            record_internal_error(site, error)
        except Exception as error:
            record_internal_error(site, error)
        return None

    return cast("Callable[P, R]", wrapper)


def renew_lock() -> None:
    """Take a new lock in a forked child, where a thread of the parent may have held the old one for ever."""
    global _lock  # noqa: PLW0603 - one lock for the process
    _lock = threading.RLock()
