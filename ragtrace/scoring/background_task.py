"""Work that the scorer's loop does now and then, beside its jobs."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


class BackgroundTask:
    """Runs a coroutine in the background when it is due, never two at once.

    All belongs to the scorer's loop. The work guards itself: nobody looks at an error that it raises.

    Args:
        work: makes the coroutine.
        first_after_s: seconds until the first run.
        again_after_s: seconds from one begin to the next; `postpone` overrides it for the next run.
        clock: monotonic seconds.

    Attributes:
        task: the latest run; None before the first.

    Example:
        >>> async def rounds():
        ...     done = []
        ...     async def work():
        ...         done.append(1)
        ...     background = BackgroundTask(work, again_after_s=3_600.0)
        ...     for _ in range(3):
        ...         background.tick()
        ...         await asyncio.sleep(0)
        ...     return done
        >>> asyncio.run(rounds())
        [1]
    """

    def __init__(
        self,
        work: Callable[[], Coroutine[object, object, None]],
        *,
        first_after_s: float = 0.0,
        again_after_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.task: asyncio.Task[None] | None = None
        self._work = work
        self._again_after_s = again_after_s
        self._clock = clock
        self._due_s = clock() + first_after_s

    @property
    def is_under_way(self) -> bool:
        """True while the work runs."""
        return self.task is not None and not self.task.done()

    def tick(self) -> None:
        """Begin the work when it is due and does not run; call it about once a second.

        Raises:
            RuntimeError: there is no running loop.
        """
        if self._clock() >= self._due_s and not self.is_under_way:
            loop = asyncio.get_running_loop()
            self._due_s = self._clock() + self._again_after_s
            self.task = loop.create_task(self._work())

    def postpone(self, seconds: float) -> None:
        """Begin the next run in so many seconds from now, and no earlier."""
        self._due_s = self._clock() + seconds

    async def aclose(self) -> None:
        """Cancel a run under way and wait for its end."""
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)
