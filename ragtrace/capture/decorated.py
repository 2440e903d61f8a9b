"""`ragtrace.evidence`: a tool or a function that says in its own code whether what it gives is evidence."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast, overload

from ragtrace.capture.declared import note
from ragtrace.capture.events import Marked
from ragtrace.capture.guard import guarded
from ragtrace.capture.passages import MOST_PASSAGES
from ragtrace.capture.run import entered_run
from ragtrace.errors import ConfigError
from ragtrace.model.passage import is_content_id

if TYPE_CHECKING:
    from ragtrace.capture.run import Run
    from ragtrace.capture.values import Doc

T = TypeVar("T")
_UNNAMED = frozenset({"", "<lambda>"})
_LISTS = (list, tuple)


class OpenPlace(Protocol):
    """A step that is open in a run, where a function reports what it returned."""

    @property
    def run(self) -> Run:
        """The run that the step belongs to."""

    def take(self, items: list[object], source: str, *, is_ranked: bool) -> None:
        """Report passages, or texts without rank, of a function named `source`."""


class StepPlace:
    """A step of an integration's as such a place.

    Args:
        run: the run that the step belongs to.
        read: makes passages of what a function returned.
        mark: reports them in the step.
    """

    def __init__(
        self,
        run: Run,
        read: Callable[[list[object]], list[Doc]],
        mark: Callable[[Marked], None],
    ) -> None:
        self.run = run
        self._read = read
        self._mark = mark

    def take(self, items: list[object], source: str, *, is_ranked: bool) -> None:
        """Report what the function returned; items that are no passages are left out."""
        found = self._read(items)
        if found or not items:
            self._mark(Marked(found, is_choice=False, source=source, is_ranked=is_ranked))


_finders: dict[str, Callable[[], Iterable[OpenPlace]]] = {}


def find_places_with(owner: str, finder: Callable[[], Iterable[OpenPlace]]) -> None:
    """Have an integration say which of its steps the current code runs in; of each recorder the innermost."""
    _finders[owner] = finder


@overload
def evidence(given: bool = True) -> Callable[[T], T]: ...  # noqa: FBT001, FBT002 - a decorator's only argument


@overload
def evidence(given: T) -> T: ...


def evidence(given: Any = True) -> Any:  # noqa: FBT002 - a decorator's only argument
    """Say that what a tool or a function gives is evidence; ``@ragtrace.evidence(False)`` says that it is none.

    A tool of LangChain's or LlamaIndex's comes back as it is, and its name is noted for this process. A function
    comes back as one of its kind that reports what it returns to the run it is called in: documents, mappings with
    a text and lists of them as passages, best first; a text or a list of texts without an order. Results, errors
    and their time stay as they are. Outside a captured run it does nothing. With False only the name is noted.

    Args:
        given: a tool or a function; or whether it is evidence, for the decorator with an argument.

    Raises:
        ConfigError: it is neither, or has no name.

    Example:
        >>> import ragtrace
        >>> @ragtrace.evidence
        ... def fetch_page(address: str) -> str:
        ...     return f"The page at {address}."
        >>> with ragtrace.query("Where?") as run:
        ...     fetch_page("lab/oslo")
        'The page at lab/oslo.'
    """
    if isinstance(given, bool):
        return functools.partial(_decorated, is_evidence=given)
    return _decorated(given, is_evidence=True)


def _decorated(given: Any, *, is_evidence: bool) -> Any:
    if isinstance(given, staticmethod | classmethod):
        return type(given)(_decorated(given.__func__, is_evidence=is_evidence))
    is_function = inspect.isroutine(given)
    name = given.__name__ if is_function else _name_of(given)
    if name not in _UNNAMED:
        note(name, is_evidence=is_evidence)
    elif not (is_function and is_evidence):
        raise ConfigError(
            f"ragtrace.evidence: a {type(given).__name__} without a name; decorate the function in it, or declare"
            " evidence={NAME: True}"
        )
    return _reporting(given, name) if is_function and is_evidence else given


def _name_of(tool: object) -> str:
    if inspect.isclass(tool):
        return ""
    own = getattr(tool, "name", None) or getattr(getattr(tool, "metadata", None), "name", None)
    return own if isinstance(own, str) else ""


def _reporting(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a function of the same kind that reports what it gave."""
    if inspect.isasyncgenfunction(function):

        async def each_later(*args: Any, **kwargs: Any) -> Any:
            places, met = _places(), _Met(name)
            inner = function(*args, **kwargs)
            try:
                value = met.add(await anext(inner))
                while True:
                    try:
                        sent = yield value
                    except GeneratorExit:
                        await inner.aclose()
                        raise
                    except BaseException as error:
                        value = met.add(await inner.athrow(error))
                    else:
                        value = met.add(await inner.asend(sent))
            except StopAsyncIteration:
                pass
            finally:
                met.report(places)

        made: Callable[..., Any] = each_later
    elif inspect.isgeneratorfunction(function):

        def each(*args: Any, **kwargs: Any) -> Any:
            places, met = _places(), _Met(name)
            try:
                return (yield from _Watched(function(*args, **kwargs), met))
            finally:
                met.report(places)

        made = each
    elif inspect.iscoroutinefunction(function):

        async def later(*args: Any, **kwargs: Any) -> Any:
            places = _places()
            result = await function(*args, **kwargs)
            _report(places, result, name)
            return result

        made = later
    else:

        def now(*args: Any, **kwargs: Any) -> Any:
            places = _places()
            result = function(*args, **kwargs)
            _report(places, result, name)
            return result

        made = now
    return functools.wraps(function)(made)


class _Met:
    """Items that a generator gave out, told of when it is left."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._items: list[object] = []

    def add(self, item: T) -> T:
        if len(self._items) <= MOST_PASSAGES:
            self._items.append(item)
        return item

    def report(self, places: list[OpenPlace] | None) -> None:
        _report(places, self._items, self._name)


class _Watched:
    """A generator to ``yield from``, whose items are met on their way."""

    def __init__(self, inner: Any, met: _Met) -> None:
        self._inner = inner
        self._met = met

    def __iter__(self) -> _Watched:
        return self

    def __next__(self) -> Any:
        return self._met.add(next(self._inner))

    def send(self, value: Any) -> Any:
        return self._met.add(self._inner.send(value))

    def throw(self, *error: Any) -> Any:
        return self._met.add(self._inner.throw(*error))

    def close(self) -> None:
        self._inner.close()


class _Block:
    """The block of a run by hand, where no step is open."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def take(self, items: list[object], source: str, *, is_ranked: bool) -> None:
        if not is_ranked:
            for text in items:
                self.run.add_text(cast("str", text), source=source, how="decorator")
            return
        found = self.run.reader.read(items, source)
        is_own = [not is_content_id(one.id) for one in found]
        self.run.mark(found, has_own_id=is_own, source=source, is_choice=False)


@guarded
def _places() -> list[OpenPlace]:
    """Return where the current code reports: one place of each run."""
    found: dict[int, OpenPlace] = {}
    for finder in list(_finders.values()):
        for place in finder():
            found.setdefault(id(place.run), place)
    run = entered_run() if not found else None
    if run is not None:
        found[id(run)] = _Block(run)
    return list(found.values())


@guarded
def _report(places: list[OpenPlace] | None, value: object, name: str) -> None:
    open_places = [place for place in places or () if not place.run.is_finished]
    items = _items_in(value) if open_places else None
    if items is None:
        return
    is_ranked = not items or not all(isinstance(item, str) for item in items)
    if not is_ranked:
        items = [text for text in items if cast("str", text).strip()]
    for place in open_places if items or is_ranked else ():
        place.take(items, name, is_ranked=is_ranked)


def _items_in(value: object) -> list[object] | None:
    """Return the passages or texts that a function returned; None of what is neither, and cannot be read twice."""
    if isinstance(value, _LISTS):
        if len(value) == 2 and isinstance(value, tuple) and isinstance(value[0], str):
            artifact = None if isinstance(value[1], str) else _items_in(value[1])
            if artifact is not None or not isinstance(value[1], str):  # LangChain's content_and_artifact
                return artifact or [value[0]]
        return list(islice(value, MOST_PASSAGES + 1))
    is_unread = (
        value is None or isinstance(value, bool | int | float | bytes | Iterator) or inspect.isawaitable(value)
    )
    return None if is_unread else [value]
