"""Scores anchors at once, to make their reference."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ragtrace.scoring.anchors.rounds import anchor_scores, passing_error

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from ragtrace.scoring.limits import JudgeLimiter
    from ragtrace.scoring.scorer import Scorer
    from ragtrace.stores.anchors import Anchor, AnchorScore


_MOST_FAILURES = 10  # in a row; the breaker opens then, too


class Reference:
    """Scores each anchor some times, several at once, and writes each score at once.

    An anchor that the judge cannot score is tried once more after the others, and then left out. A judge that is
    away or a spent budget ends it.

    Args:
        note: writes the scores of an anchor.
        scorer: metrics and judge.
        watched: names of the metrics that are kept.
        jobs: anchors under way at once.
        limiter: stands before the judge; None where it costs nothing.

    Attributes:
        n: scored anchors, each counted as often as it was scored.
        stopped_by: reason for which it ended early; "" where it did not.
        failed_by: reason of the latest anchor that the judge could not score; "" without one.
    """

    def __init__(
        self,
        note: Callable[[Anchor, Sequence[AnchorScore]], None],
        scorer: Scorer,
        *,
        watched: Collection[str],
        jobs: int,
        limiter: JudgeLimiter | None = None,
    ) -> None:
        self.n = 0
        self.stopped_by = self.failed_by = ""
        self._failed_in_row = 0
        self._note = note
        self._scorer = scorer
        self._watched = watched
        self._jobs = asyncio.Semaphore(jobs)
        self._limiter = limiter

    async def run(
        self,
        anchors: Sequence[Anchor],
        repeats: int,
        *,
        done: Mapping[int, int] | None = None,
        step: Callable[[], None] = lambda: None,
    ) -> None:
        """Score every anchor once, then once more, until each has its repeats.

        Args:
            anchors: the anchors.
            repeats: scores of each.
            done: scores that anchors have already, by their ids; they count in `n`.
            step: called after each score.

        Raises:
            sqlite3.Error: a score cannot be written.
        """
        for number in range(repeats):
            left = [anchor for anchor in anchors if (done or {}).get(anchor.id, 0) <= number]
            self.n += len(anchors) - len(left)
            failed = await self._all(left, step)
            await self._all(failed, step)

    async def aclose(self) -> None:
        """Release the connections of the judge."""
        await self._scorer.aclose()

    async def _all(self, anchors: Sequence[Anchor], step: Callable[[], None]) -> list[Anchor]:
        """Score some anchors; return those that the judge could not score."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._one(anchor, step)) for anchor in anchors]
        return [anchor for anchor, task in zip(anchors, tasks, strict=True) if not task.result()]

    async def _one(self, anchor: Anchor, step: Callable[[], None]) -> bool:
        async with self._jobs:
            if self._is_stopped():
                return False
            results = await self._scorer.results(anchor.record)
            judge = self._scorer.judge
            scores = anchor_scores(results, judge.name if judge is not None else "", self._watched)
            if not scores and (reason := passing_error(results)):
                self._note_failure(reason)
                return False
            self._failed_in_row = 0
            self._note(anchor, scores)
            self.n += 1
            step()
            return True

    def _is_stopped(self) -> bool:
        blocked = self._limiter.blocked() if self._limiter is not None else None
        if blocked is not None and not blocked.is_waited_for:
            self.stopped_by = self.stopped_by or blocked.reason
        return bool(self.stopped_by)

    def _note_failure(self, reason: str) -> None:
        self.failed_by = reason
        self._failed_in_row += 1
        if reason == "budget_exceeded" or self._failed_in_row >= _MOST_FAILURES:
            self.stopped_by = self.stopped_by or reason
