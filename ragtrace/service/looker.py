"""Look for falls every quarter of an hour, in a process of its own, for gauges and an event."""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from opentelemetry._logs import LogRecord, SeverityNumber

from ragtrace import semconv
from ragtrace.capture import record_internal_error
from ragtrace.scoring.background_task import BackgroundTask
from ragtrace.scoring.investigation.finding import Finding
from ragtrace.telemetry.spans.limits import log_limits
from ragtrace.telemetry.wire import clean_attributes, within

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opentelemetry._logs import Logger
    from opentelemetry.util.types import AttributeValue

    Points = Sequence[tuple[float, Mapping[str, AttributeValue]]]

_log = logging.getLogger("ragtrace")
FIRST_S = 60.0
EVERY_S = 900.0
MOST_EVERY_S = 86_400.0
LONGEST_S = 600.0
"""Wall seconds of one look: on a busy machine its 60 s of CPU take longer."""
CALM_LOOKS = 2
"""Looks without a finding after which a fall counts as over."""
_NS = 1e9
_MOST_CHARS = 64  # of a label
_MOST_BYTES = 1_000_000
_MODULE = "ragtrace.scoring.investigation.look"


class Looker:
    """Looks at a store for falls. `tick` and `aclose` belong to the scorer's loop, `points` to any thread.

    Of several scorers at one store one looks: the first that locks the file beside it. Each look is a process of
    its own, which reads the store over a connection of its own, so that neither the application nor the scorer
    waits. A look that needs too much CPU, memory or time ends, and the log says so; the next one comes after twice
    the pause.

    Args:
        store: path of the store.
        logger: takes an event for each new fall.
        wall: Unix seconds.
        first_after_s: seconds until the first look.
        again_after_s: seconds from one look to the next.
    """

    def __init__(
        self,
        store: Path,
        logger: Logger,
        *,
        wall: Callable[[], float] = time.time,
        first_after_s: float = FIRST_S,
        again_after_s: float = EVERY_S,
    ) -> None:
        self._store = store.absolute()  # the application may go to another folder
        self._paths = [os.path.abspath(it) for it in filter(None, sys.path)]  # noqa: PTH100 - a zip file is none
        self._logger = logger
        self._wall = wall
        self._again_after_s = self._pause_s = again_after_s
        self._background = BackgroundTask(self._look, first_after_s=first_after_s, again_after_s=again_after_s)
        self._lock: int | None = None
        self._process: subprocess.Popen[str] | None = None
        self._found: dict[tuple[str, str], Finding] = {}
        self._calm: dict[tuple[str, str], int] = {}
        self._told: dict[tuple[str, str], float] = {}
        self._looked: float | None = None
        self._is_closed = False

    def tick(self) -> None:
        """Begin a look when it is due; call it about once a second.

        Raises:
            RuntimeError: there is no running loop.
        """
        self._background.tick()

    async def aclose(self) -> None:
        """End a look under way, and let another scorer look."""
        self._is_closed = True
        if self._process is not None:
            self._process.kill()
        await self._background.aclose()
        self.leave_to_parent()

    def leave_to_parent(self) -> None:
        """Give up the lock, which a forked child shares with its parent; the parent keeps it."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def points(self, field: str) -> Points:
        """Return the points of one gauge: a field of the findings, ``looked``, ``parts`` or ``verdict``."""
        looked, found = self._looked, list(self._found.values())
        return [] if looked is None else [point for it in found for point in _points(it, field, looked)]

    async def _look(self) -> None:
        try:
            python = _python()
            if python is None or not self._is_first():
                return
            status, lines, problem = await asyncio.get_running_loop().run_in_executor(None, self._run, python)
            if status:
                self._give_way(status, problem)
            else:
                self._pause_s = self._again_after_s
                self._take([Finding.from_line(line) for line in lines.split("\n") if line])
        except Exception as error:
            record_internal_error("ragtrace.service.looker", error)

    def _run(self, python: str) -> tuple[int, str, str]:
        """Return the exit status of one look, what it found, and what it complained of."""
        # Without `site`, so that nobody's sitecustomize instruments the process; its paths are ours.
        process = self._process = subprocess.Popen(  # noqa: S603 - our own module
            [python, "-S", "-P", "-m", _MODULE, str(self._store)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a key that ends the application is not the look's
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(self._paths)},
        )
        try:
            lines, problem = process.communicate(timeout=LONGEST_S)
        except subprocess.TimeoutExpired:
            process.kill()
            lines, problem = process.communicate()
        self._process = None
        return process.returncode, lines, problem

    def _give_way(self, status: int, problem: str) -> None:
        """Say that a look did not end well, and look less often."""
        if self._is_closed:
            return
        self._pause_s = min(2.0 * self._pause_s, MOST_EVERY_S)
        self._background.postpone(self._pause_s)
        last = problem.strip().rpartition("\n")[2]
        why = f": {last}" if last else ", since it needed more than its CPU, memory or time"
        _log.warning(
            "the look for falls in %s ended with status %d%s; the next one comes in %.0f minutes, and"
            " `ragtrace investigate` has no such limit",
            self._store,
            status,
            why,
            self._pause_s / 60.0,
        )

    def _is_first(self) -> bool:
        """Return whether this scorer looks; it keeps the lock as long as it lives."""
        if self._lock is None:
            handle = os.open(f"{self._store}.look", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                return False
            self._lock = handle
            with suppress(ValueError, TypeError):  # an empty file, or one that somebody wrote to
                kept = json.loads(os.read(handle, _MOST_BYTES) or b"[]")
                self._told = {(str(metric), str(workflow)): float(at) for metric, workflow, at in kept}
        return True

    def _keep(self) -> None:
        """Keep what was told in the locked file, so that a scorer that begins anew tells no fall twice."""
        if self._lock is not None:
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, json.dumps([[*pair, at] for pair, at in self._told.items()]).encode(), 0)

    def _take(self, findings: Sequence[Finding]) -> None:
        """Replace what was found before; a fall that is not found counts as over after two looks."""
        found: dict[tuple[str, str], Finding] = {}
        for it in findings:
            pair = it.metric, it.workflow
            before = self._found.get(pair)
            self._calm[pair] = 0 if it.is_found else self._calm.get(pair, 0) + 1
            is_over = before is None or not before.is_found or self._calm[pair] >= CALM_LOOKS
            found[pair] = it if it.is_found or before is None or is_over else before
            if is_over and not it.is_found:
                self._told.pop(pair, None)
            if it.is_found and it.since > self._told.get(pair, 0.0):  # its onset is later than what was told
                self._told[pair] = self._wall()
                self._tell(it)
        self._found, self._looked = found, self._wall()
        self._keep()

    def _tell(self, it: Finding) -> None:
        """Write the event of a new fall."""
        _log.warning(
            "%s of %s is worse by %.3f: see `ragtrace investigate --metric %s --workflow %s`",
            it.metric,
            it.workflow,
            it.size,
            it.metric,
            it.workflow,
        )
        attributes = clean_attributes(
            {
                **_about(it),
                semconv.INVESTIGATION_SIZE: it.size,
                semconv.INVESTIGATION_LOW: it.low,
                semconv.INVESTIGATION_HIGH: it.high,
                semconv.INVESTIGATION_N: it.n,
                semconv.INVESTIGATION_SINCE: it.since,
                semconv.INVESTIGATION_PARTS: json.dumps([asdict(part) for part in it.parts], ensure_ascii=False),
                semconv.DIAGNOSIS_VERDICT: it.verdict or None,
            }
        )
        self._logger.emit(
            LogRecord(
                timestamp=int(self._wall() * _NS),
                severity_number=SeverityNumber.WARN,
                event_name=semconv.EVENT_INVESTIGATION,
                attributes=within(attributes, log_limits(self._logger)),
            )
        )


GAUGES = {
    semconv.INVESTIGATION_FOUND: "is_found",
    semconv.INVESTIGATION_SIZE: "size",
    semconv.INVESTIGATION_LOW: "low",
    semconv.INVESTIGATION_HIGH: "high",
    semconv.INVESTIGATION_N: "n",
    semconv.INVESTIGATION_SINCE: "since",
    semconv.INVESTIGATION_LOOKED: "looked",
    semconv.INVESTIGATION_PART: "parts",
    semconv.INVESTIGATION_VERDICT: "verdict",
}
"""Gauges of the looks, each with what `Looker.points` is asked for."""


def _about(it: Finding) -> dict[str, AttributeValue | None]:
    return {semconv.GEN_AI_EVALUATION_NAME: it.metric, semconv.GEN_AI_WORKFLOW_NAME: it.workflow or None}


def _points(it: Finding, field: str, looked: float) -> Points:
    """Return the points of one gauge; what describes a fall stands where one was found."""
    about = clean_attributes(_about(it))
    if field == "is_found":
        return [(float(it.is_found), about)]
    if field == "looked":
        return [(looked, about)]
    if not it.is_found:
        return []
    if field == "verdict":
        return [(it.growth, {**about, semconv.DIAGNOSIS_VERDICT: it.verdict})] if it.verdict else []
    if field == "parts":
        return [
            (
                part.share,
                {
                    **about,
                    semconv.INVESTIGATION_DIMENSION: part.dimension,
                    semconv.INVESTIGATION_VALUE: part.value[:_MOST_CHARS],
                    semconv.INVESTIGATION_RANK: part.rank,
                    semconv.INVESTIGATION_HOW: part.how,
                },
            )
            for part in it.parts
        ]
    return [(float(getattr(it, field)), about)]


def _python() -> str | None:
    """Return the interpreter; None where another program holds it, such as uWSGI, and none stands beside it."""
    own = Path(sys.executable or "")
    beside = Path(sys.prefix) / "bin" / "python3"
    return next((str(it) for it in (own, beside) if it.name.startswith("python") and it.is_file()), None)
