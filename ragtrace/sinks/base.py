"""Sinks: destinations of scored records besides OpenTelemetry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from ragtrace.errors import ConfigError
from ragtrace.plugins import load_plugin

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ragtrace.model import RagRecord, Score


class Sink(Protocol):
    r"""Takes each scored record, in the scorer's thread, one call at a time.

    An exception is counted as a loss of this sink and touches neither the scorer nor other sinks. A sink that
    writes to a network queues in `emit` and writes in a thread of its own: see `ragtrace.sinks.outbox`,
    a sink's queue in memory.

    A sink gets a name in one of two ways: a module ``ragtrace/sinks/<name>.py`` with ``PLUGIN``, or an entry point
    of a package in the group ``ragtrace.sinks``. Both name a class or function that returns a sink. The setting
    ``sinks`` makes it: ``configure(sinks=["name"])`` or ``RAGTRACE_SINKS=name`` call it without an argument,
    and ``name:text`` with the text, for example a path. A class with ``from_environ(text)`` is made by that, and
    reads its keys from the variables of its vendor. `ragtrace.testing.sink.SinkConformance` checks a sink.

    The whole of a sink that appends lines to a file, with ``sinks="lines:/var/log/scores.txt"``:

        class LinesSink:
            def __init__(self, path: str) -> None:
                self._path = path

            def emit(self, record: RagRecord, scores: Sequence[Score]) -> None:
                with open(self._path, "a", encoding="utf-8") as out:
                    out.writelines(f"{score.key.metric} {score.result.value}\n" for score in scores)


        PLUGIN = LinesSink

    - Process: sinks run where scoring runs. With ``scorer=worker`` set ``RAGTRACE_SINKS`` for ``ragtrace worker``.
    - Texts: the record holds its texts, after redaction, whatever ``content`` says. `MetricResult.shown_details`
      leaves texts out of a score's details.
    - Forks: a forked child gets the sinks of its parent, as they are. Open files and start threads in `emit`, not
      in the constructor. Its `ValueError`, `TypeError` or `OSError` becomes one line for the user.
    - Repeats: with a store, scores whose delivery was not noted before a kill come once more, from the next
      process. `score.key` tells them.

    ``take_directions(lower_is_better)``, where it exists, gets the names of metrics whose high values are bad,
    ``take_thresholds(thresholds)`` the thresholds by metric, and ``take_content(content)`` the setting ``content``:
    a sink sends texts with ``full`` only, unless its constructor was told otherwise. ``lost``, where it exists,
    says what was not delivered, as "2 scores (refused)"; the log's line of a shutdown repeats it.

    Two more methods are optional; both are given seconds, are not waited for beyond them, and return False
    when something was lost. ``flush(timeout_s)`` is called by `ragtrace.flush`; ``close(timeout_s)`` by
    `ragtrace.shutdown`, and by `ragtrace.configure` unless the sink is among the new ones, which only flushes it.
    """

    def emit(self, record: RagRecord, scores: Sequence[Score]) -> None:
        """Take one scored record."""
        ...


def sinks_of(given: Iterable[object]) -> tuple[Sink, ...]:
    """Return the sinks of the setting ``sinks``, and make those that are given by name.

    Args:
        given: sinks, and names as ``NAME`` or ``NAME:TEXT``.

    Raises:
        ConfigError: an object has no ``emit`` or is a class, a name is unknown, or its sink cannot be set up.

    Example:
        >>> sinks_of([5])
        Traceback (most recent call last):
        ...
        ragtrace.errors.ConfigError: sinks: an object with emit(record, scores) is wanted, got int
    """
    sinks = tuple(_named(item) if isinstance(item, str) else item for item in given)
    for sink in sinks:
        if isinstance(sink, type):
            raise ConfigError(f"sinks: {sink.__name__} is a class, not a sink: write {sink.__name__}(...)")
        if not callable(getattr(sink, "emit", None)):
            raise ConfigError(f"sinks: an object with emit(record, scores) is wanted, got {type(sink).__name__}")
    return cast("tuple[Sink, ...]", sinks)


def _named(text: str) -> object:
    name, _, argument = text.partition(":")
    try:
        made_by = load_plugin("ragtrace.sinks", name)
    except ConfigError as error:
        raise ConfigError(f"sinks (RAGTRACE_SINKS): {error}") from error
    try:
        if hasattr(made_by, "from_environ"):
            return made_by.from_environ(argument)
        return made_by(argument) if argument else made_by()
    except (TypeError, ValueError, OSError) as error:
        raise ConfigError(f"sinks: {name!r} cannot be set up: {error}") from error
