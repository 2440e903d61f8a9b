"""Investigate each new drift alarm in the background, into the log and a log event."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from opentelemetry._logs import LogRecord, SeverityNumber

from ragtrace import semconv
from ragtrace.capture import record_internal_error
from ragtrace.scoring.background_task import BackgroundTask
from ragtrace.telemetry.spans.limits import log_limits
from ragtrace.telemetry.wire import within

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opentelemetry._logs import Logger
    from opentelemetry.util.types import AttributeValue

    from ragtrace.model import SeriesKey
    from ragtrace.scoring.investigation.alarm import AlarmFinding
    from ragtrace.stores.sqlite import SqliteStore

_log = logging.getLogger("ragtrace")
RETRY_S = 300.0
MOST_TRIES = 12
_MOST_WAITING = 8
_NS = 1e9


@dataclass(frozen=True, slots=True)
class _Due:
    """An alarm to investigate, not before a monotonic time."""

    key: SeriesKey
    changed_at: float | None
    attributes: Mapping[str, AttributeValue]
    at_s: float
    tries: int = 0


class Investigations:
    """Investigates alarms one after the other. `take` and `tick` belong to the scorer's loop.

    The store is read in another thread. An alarm soon after a change has few scores behind it: it is tried again
    every five minutes for an hour. Eight alarms wait at most; the oldest gives way.

    Args:
        store: holds the scores.
        logger: takes the log events; None writes none.
        wall: Unix seconds.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        store: SqliteStore,
        logger: Logger | None,
        *,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._logger = logger
        self._wall = wall
        self._clock = clock
        self._due: deque[_Due] = deque(maxlen=_MOST_WAITING)
        self._background = BackgroundTask(self._investigate)

    def take(self, key: SeriesKey, changed_at: float | None, attributes: Mapping[str, AttributeValue]) -> None:
        """Note a new alarm, for the next `tick`.

        Args:
            key: of the detector's series.
            changed_at: Unix seconds of the estimated change; None while unknown.
            attributes: the point attributes of the series.
        """
        self._due.append(_Due(key, changed_at, attributes, self._clock()))

    def tick(self) -> None:
        """Begin an investigation when an alarm waits and none runs; call it about once a second.

        Raises:
            RuntimeError: there is no running loop.
        """
        if self._next() is not None:
            self._background.tick()

    async def aclose(self) -> None:
        """Forget what waits; a search that runs ends with its thread."""
        self._due.clear()
        await self._background.aclose()

    def _next(self) -> _Due | None:
        return next((it for it in self._due if it.at_s <= self._clock()), None)

    async def _investigate(self) -> None:
        due = self._next()
        if due is None:  # eight later alarms took its place
            return
        self._due.remove(due)
        try:
            found = await asyncio.get_running_loop().run_in_executor(None, self._search, due)
        except Exception as error:
            record_internal_error("ragtrace.scoring.investigation.background", error)
            return
        if found.is_early and due.tries + 1 < MOST_TRIES:
            self._due.append(replace(due, at_s=self._clock() + RETRY_S, tries=due.tries + 1))
        else:
            self._tell(due.key, found)

    def _search(self, due: _Due) -> AlarmFinding:
        from ragtrace.scoring.investigation.alarm import investigate_alarm  # noqa: PLC0415 - imports numpy

        return investigate_alarm(
            self._store,
            due.key.metric,
            due.key.workflow,
            now=self._wall(),
            changed_at=due.changed_at,
            series=due.attributes,
        )

    def _tell(self, key: SeriesKey, found: AlarmFinding) -> None:
        shown = found.text.replace("\n", "\n  ")
        _log.warning("investigation of the drift alarm, %s of %s:\n  %s", key.metric, key.workflow, shown)
        if self._logger is not None and found.attributes is not None:
            self._logger.emit(
                LogRecord(
                    timestamp=int(self._wall() * _NS),
                    severity_number=SeverityNumber.WARN,
                    event_name=semconv.EVENT_INVESTIGATION,
                    attributes=within(found.attributes, log_limits(self._logger)),
                )
            )
