"""Count internal errors and keep them from the application."""

from __future__ import annotations

import errno
import functools
import inspect
import logging
import threading
from collections import Counter
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from ragtrace.capture.values import Redacted
from ragtrace.errors import ConfigError
from ragtrace.text import MAX_GROWTH, MAX_MARK_CHARS

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")

_log = logging.getLogger("ragtrace")
_LIBRARY = logging.__file__.replace("\\", "/").rpartition("/logging/")[0] + "/"  # of Python itself
_lock = threading.RLock()  # reentrant: a finaliser may fail while this thread counts
_losses: Counter[str] = Counter()


def record_internal_error(
    site: str, error: BaseException | None = None, *, reason: str = "", line: str = ""
) -> None:
    """Count one loss at `site`, and log the first of each site.

    The log line gives the reason, a constant text. Without one it has `kind_of` the error. A `line` is logged in
    place of all that.
    """
    with _lock:
        _losses[site] += 1
        is_first = _losses[site] == 1
    if is_first:
        kind = reason or (kind_of(error) if error is not None else "loss")
        _log.warning("%s", line or f"ragtrace lost data at {site} ({kind}); the application is not affected")
        _log.debug("details of the first loss at %s", site, exc_info=error)


def record_wrong_call(call: str, why: str, *, site: str) -> None:
    """Count a call of the application's that could not be used, and log the first at each `site`.

    Args:
        call: as it stands in the application: ``run.set_k(str)``.
        why: what it should be, a constant text.
        site: under which it is counted.
    """
    record_internal_error(site, line=f"ragtrace: wrong call {call}: {why}; the application is not affected")


def kind_of(error: BaseException) -> str:
    """Return an error's type with its cause: the code of a file's error, else the line that raised it.

    Its message is left out, since that may hold the application's contents.

    Example:
        >>> kind_of(OSError(28, "No space left on device"))
        'OSError, ENOSPC'
    """
    cause = error.__cause__ or error  # a file's, which a QueueError or StoreError is raised from
    code = getattr(cause, "sqlite_errorname", None)
    if code is None and isinstance(cause, OSError) and type(cause.errno) is int:
        code = errno.errorcode.get(cause.errno)
    if isinstance(code, str):
        return f"{type(error).__name__}, {code}"
    place = _place_of(error)
    return f"{type(error).__name__} at {place}" if place else type(error).__name__


def log_failure(what: str, error: BaseException) -> None:
    """Log a failure and the kind of its error; message and traceback, which may quote texts, at level DEBUG."""
    _log.error("%s: %s; its message is in the log at level DEBUG", what, kind_of(error))
    _log.debug("details of a failure: %s", what, exc_info=error)


def _place_of(error: BaseException) -> str:
    """Return file and line where an error was raised; "" of one that was not.

    The line of an application that called into a package is more to the point than that inside the package.
    """
    places = [(frame.f_code.co_filename.replace("\\", "/"), line) for frame, line in walk_tb(error.__traceback__)]
    own = [place for place in places if not (place[0].startswith(("<", _LIBRARY)) or "-packages/" in place[0])]
    if not places:
        return ""
    file, line = (own or places)[-1]
    return f"{'/'.join(file.split('/')[-2:])}:{line}"


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


def guarded_call(call: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Do what `guarded` does, for a function that the application calls: an error there is of its arguments.

    The log names the call with the types of its arguments, and does not speak of lost data.

    Args:
        call: the function as an application writes it: ``run.answered``.

    Example:
        >>> @guarded_call("run.halved")
        ... def halved(number: float) -> float:
        ...     return number / 2
        >>> halved("one") is None
        True
    """

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        site = f"{function.__module__}.{function.__qualname__}"
        is_method = "." in function.__qualname__.rpartition("<locals>.")[2]

        @functools.wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> Any:
            try:
                return wrapper.__wrapped__(*args, **kwargs)
            except Exception as error:
                given = [type(value).__name__ for value in args[is_method:]]
                given += [f"{name}={type(value).__name__}" for name, value in kwargs.items()]
                why = f"its arguments cannot be used ({kind_of(error)})"
                record_wrong_call(f"{call}({', '.join(given)})", why, site=site)
                return None

        return cast("Callable[P, R]", wrapper)

    return decorated


def guarded_constructor(function: Callable[P, R]) -> Callable[P, R]:
    """Do what `guarded` does, but let Python say of an argument that there is none of that name.

    Such a mistake is a person's, made once while writing; a handler that swallowed it would capture nothing. So is
    a wrong declaration, a `ConfigError`.

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
        except ConfigError:
            raise
        except Exception as error:
            record_internal_error(site, error)
        return None

    return cast("Callable[P, R]", wrapper)


def is_equal(one: object, other: object) -> bool:
    """Tell whether two values of an application are equal; what cannot be compared is not.

    Metadata may hold arrays, and a copied array has no truth value when it is compared.

    Example:
        >>> is_equal({"page": 1}, {"page": 1})
        True
    """
    try:
        return bool(one == other)
    except Exception:  # an application's object may raise anything here
        return False


def safe_redact(redact: Callable[[str], str] | None) -> Callable[[str], str] | None:
    """Return `redact` so that a failure drops the text and is counted; None stays None.

    It fails where it raises, returns anything but text, or ten times as much: the original never gets through.

    Example:
        >>> safe_redact(lambda text: text.replace("Ada", "[name]"))("Ada asked")
        '[name] asked'
        >>> safe_redact(lambda text: 1 / 0)("Ada asked")
        ''
    """
    if redact is None:
        return None

    def redacted(text: str) -> str:
        if not text:
            return text
        failed: Exception | None = None
        try:
            made = redact(text)
        except Exception as error:
            failed, why = error, f"raised {kind_of(error)}"
        else:
            if type(made) is not str:
                why = f"returned a {type(made).__name__}, not a text"
            elif len(made) > max(MAX_GROWTH * len(text), MAX_MARK_CHARS):
                why = f"returned more than {MAX_GROWTH} times its text"
            else:
                return made
        said = f"ragtrace: the setting redact {why}, so the text is left out; the application is not affected"
        record_internal_error("ragtrace.capture.redact", failed, line=said)
        return ""

    return redacted


class Redaction:
    """The `redact` of one run. A text that it made is not redacted again: an event's text is read later.

    The same object is meant, and no equal text: that may be an original.

    Example:
        >>> redact = Redaction(lambda text: f"[{text}]")
        >>> redact(redact("Ada")), redact("[Ada]")
        ('[Ada]', '[[Ada]]')
    """

    __slots__ = ("_made", "_redact")

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._made: dict[int, str] = {}

    def __call__(self, text: str) -> str:
        if type(text) is Redacted or self._made.get(id(text)) is text:
            return text
        made = self._redact(text)
        self._made[id(made)] = made
        return made


def renew_lock() -> None:
    """Take a new lock in a forked child, where a thread of the parent may have held the old one for ever."""
    global _lock  # noqa: PLW0603 - one lock for the process
    _lock = threading.RLock()
