"""Deeper retrieval of the same query by a function of the user (setting `shadow`)."""

from __future__ import annotations

import asyncio
import inspect
import math
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from ragtrace.capture import PassageReader
from ragtrace.capture.passages import PROCESS_KEY
from ragtrace.capture.suppression import own_work, uninstrumented
from ragtrace.errors import ConfigError, JudgeError, JudgeTimeout, JudgeUnavailable
from ragtrace.sampling import uniform
from ragtrace.text import MAX_RECORD_CHARS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ragtrace.model import Passage, RagRecord

    _Outcome = list[object] | Awaitable[object] | BaseException

LEAST_DEPTH = 100
MAX_CALLS = 8  # under way at once; calls that hang keep their place, so that they cannot pile up


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepPool:
    """Passages retrieved at a depth, best first, and at most that many."""

    depth: int
    passages: tuple[Passage, ...]


class DeepRetriever:
    """Calls a retriever for some of the sampled traces.

    A plain function runs in a thread of its own that ends with the process, a coroutine function on the scorer's
    loop, where it must not block. What it raises, returns wrongly or does not return in time is an error of the
    metric that asked, and of nothing else. Coroutine-safe.

    Args:
        retrieve: ``retrieve(query, top_k)``, which returns passages best first: texts, `Passage` objects, or
            mappings with ``text`` and optionally ``id``. A union of dense and lexical retrieval is best.
        rate: share of the sampled traces, 0 to 1; .01 to .05 is enough for a mean.
        timeout_s: seconds for one call.
        redact: applied to every text before it is judged.

    Attributes:
        id_key: key of the ids that are made of texts; a service sets that of its capture.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> shadow = DeepRetriever(lambda query, top_k: ["Oslo is in Norway."], rate=1.0)
        >>> found = asyncio.run(shadow.fetch(RagRecord(id="1", query="Where?")))
        >>> found.depth, found.passages[0].text
        (100, 'Oslo is in Norway.')
    """

    def __init__(
        self,
        retrieve: Callable[[str, int], object],
        *,
        rate: float = 0.02,
        timeout_s: float = 10.0,
        redact: Callable[[str], str] | None = None,
    ) -> None:
        if not callable(retrieve):
            raise ConfigError(f"shadow must be a function of query and top_k, got {type(retrieve).__name__}")
        if not (math.isfinite(timeout_s) and timeout_s > 0.0 and 0.0 <= rate <= 1.0):
            raise ConfigError(f"shadow: rate is 0 to 1 and timeout_s above 0, got {rate} and {timeout_s}")
        self.rate = rate
        self._retrieve = retrieve
        self._timeout_s = timeout_s
        self._redact = redact
        self.id_key = None if redact is None else PROCESS_KEY
        self._free = threading.BoundedSemaphore(MAX_CALLS)

    def is_drawn(self, record: RagRecord) -> bool:
        """Return whether to retrieve for the record; every process decides alike."""
        return uniform(f"shadow\0{record.trace_id or record.id}") < self.rate

    @staticmethod
    def depth(record: RagRecord) -> int:
        """Return how deep to retrieve: four times the pool, and at least 100.

        Example:
            >>> from ragtrace.model import RagRecord
            >>> DeepRetriever.depth(RagRecord(id="1"))
            100
        """
        return max(4 * len(record.pools[0].passages) if record.pools else 0, LEAST_DEPTH)

    async def fetch(self, record: RagRecord) -> DeepPool:
        """Retrieve for a record.

        Raises:
            JudgeTimeout: it took longer than `timeout_s`.
            JudgeUnavailable: eight earlier calls have not come back.
            JudgeError: the function raised, or returned something else than passages.
        """
        depth = self.depth(record)
        try:
            async with asyncio.timeout(self._timeout_s):
                items = await self._called(record.query, depth)
        except TimeoutError:
            raise JudgeTimeout(f"the shadow retriever took longer than {self._timeout_s:g} s") from None
        read = PassageReader(self._redact, MAX_RECORD_CHARS, self.id_key).read(items, "shadow")
        return DeepPool(depth=depth, passages=tuple(read))

    async def _called(self, query: str, depth: int) -> list[object]:
        found = await self._in_thread(query, depth)
        if inspect.isawaitable(found):
            found = await _awaited(found, depth)
        if isinstance(found, BaseException):
            raise JudgeError(f"the shadow retriever failed with {type(found).__name__}: {found}") from found
        return found

    async def _in_thread(self, query: str, depth: int) -> _Outcome:
        """Call the function in a daemon thread: one that never returns must not hold up the process's end."""
        if not self._free.acquire(blocking=False):
            raise JudgeUnavailable(f"the shadow retriever has {MAX_CALLS} calls that have not come back")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[_Outcome] = loop.create_future()

        def deliver(outcome: _Outcome) -> None:
            if not done.done():
                done.set_result(outcome)

        def run() -> None:
            outcome: _Outcome
            try:
                with own_work(), uninstrumented():
                    found = self._retrieve(query, depth)
                    outcome = found if inspect.isawaitable(found) else _listed(found, depth)
            except BaseException as error:  # whatever it is, it ends here and is told
                outcome = error
            finally:
                self._free.release()
            if not loop.is_closed():
                loop.call_soon_threadsafe(deliver, outcome)

        threading.Thread(target=run, name="ragtrace-shadow", daemon=True).start()
        return await done


async def _awaited(coming: Awaitable[object], depth: int) -> list[object] | BaseException:
    """Await in a task of its own, so that a coroutine that cancels itself does not cancel the scorer's."""
    with own_work(), uninstrumented():
        task = asyncio.ensure_future(coming)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())  # asyncio logs what nobody looked at
    try:
        await asyncio.wait({task})
    finally:
        task.cancel()
    try:
        return _listed(task.result(), depth)
    except (Exception, asyncio.CancelledError) as error:
        return error


def _listed(found: object, depth: int) -> list[object]:
    if isinstance(found, str | bytes) or not isinstance(found, Iterable):
        raise TypeError(f"it returned {type(found).__name__}, not a list of passages")
    return list(islice(found, depth))
