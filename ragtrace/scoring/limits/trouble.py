"""The reason for which a judge gives no scores, said once in the log."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger("ragtrace")
SILENT = "silent"
"""The cause of a judge that does not answer, also once an attempt has timed out."""
DOUBT_S = 1.0  # a failure that no answer follows for so long is no blip
SILENT_S = 3.0  # a judge of which nothing was heard for so long is said to be silent
BUSY_S = 5.0  # a judge that limits our rate for so long, and answers nothing in between
_GAP_S, _GAP_MOST_S = 5.0, 3_600.0
DOCTOR = "`ragtrace doctor` asks the judge one question"
WAITING = "sampled runs wait without a score and are tried again"


class Trouble:
    """Says why a judge gives no scores: each cause once, and again if an answer came in between.

    A cause that comes back is said after 5 s at the earliest, then 10 s, 20 s, up to an hour, so that a judge that
    comes and goes fills no log. Thread-safe.

    Args:
        is_logged: False keeps `why` alone, beside another that tells the same.
        then: what becomes of the runs, where nothing waits for the judge; "" leaves that to `tell`.
        over_budget: the same where a budget is spent, which ends the work; "" makes no difference.
        clock: monotonic seconds.

    Attributes:
        why: the cause that holds now, in one clause; "" without one.
        answers: so far.

    Example:
        >>> trouble = Trouble()
        >>> trouble.tell("401", "judge:80 refuses the API key (401)", "scoring waits")
        >>> trouble.why
        'judge:80 refuses the API key (401)'
        >>> trouble.is_over()
        >>> trouble.why
        ''
    """

    def __init__(
        self,
        *,
        is_logged: bool = True,
        then: str = "",
        over_budget: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.why = ""
        self._is_logged, self._then, self._over_budget = is_logged, then, over_budget
        self._clock = clock
        self.answers = 0
        self._latest = ""  # cause told last
        self._pending: set[str] = set()  # causes that are said soon, unless an answer comes
        self._current: set[str] = set()  # causes said since the last answer
        self._said: dict[str, tuple[int, float]] = {}  # how often, and when last
        self._lock = threading.Lock()

    def is_over(self) -> None:
        """Note an answer: what was said before no longer holds."""
        with self._lock:
            self.answers += 1
            self.why = ""
            self._pending.clear()
            self._current.clear()

    def tell(self, cause: str, why: str, then: str = WAITING, *, after_s: float = 0.0) -> None:
        """Log a cause in one line, unless an answer comes within `after_s`, or another that is said.

        Never raises, never waits.

        Args:
            cause: its kind.
            why: what failed, in a clause that quotes no text of the application and of the server.
            then: what becomes of the runs.
            after_s: seconds that the judge is given; without a running loop it has none.
        """
        with self._lock:
            self.why, self._latest, answers = why, cause, self.answers
            if cause in self._current or cause in self._pending:
                return
            loop = _running() if after_s else None
            if loop is not None:
                self._pending.add(cause)
        if loop is None:
            self._say(cause, why, then, answers)
        else:
            loop.call_later(after_s, self._say, cause, why, then, answers)

    def _say(self, cause: str, why: str, then: str, answers: int) -> None:
        with self._lock:
            if answers != self.answers or not self._is_logged:
                return
            self._pending.discard(cause)
            if cause != self._latest and self._latest in self._current:
                return  # another took its place and was said, such as a refusal behind a broken connection
            times, at_s = self._said.get(cause, (0, -math.inf))
            if self._clock() - at_s < min(_GAP_S * 2 ** min(times - 1, 30), _GAP_MOST_S):
                return
            self._said[cause] = (times + 1, self._clock())
            self._current.add(cause)
        own = (self._over_budget if cause == "budget_exceeded" else "") or self._then
        _log.warning("ragtrace: %s; %s; %s", why, own or then, DOCTOR)


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
