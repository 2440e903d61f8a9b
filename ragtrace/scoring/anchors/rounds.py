"""Scores the anchors again under the current judge, one after the other at a steady pace."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from ragtrace.capture import record_internal_error
from ragtrace.model import SeriesKey
from ragtrace.scoring.background_task import BackgroundTask
from ragtrace.scoring.scorer import PASSING
from ragtrace.stores.anchors import AnchorScore

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from ragtrace.model import MetricResult
    from ragtrace.scoring.limits import JudgeLimiter
    from ragtrace.scoring.scorer import Scorer
    from ragtrace.stores.anchor_table import AnchorTable
    from ragtrace.stores.anchors import Anchor

HURRIED_ROUND_S = 1_800.0
"""Length of the round that a suspected drop asks for."""
FIRST_AFTER_S = 10.0  # an application that restarts in a circle pays for no score
_MOST_WAIT_S = 30.0
_TICK_S = 1.0


def anchor_scores(results: Sequence[MetricResult], judge: str, watched: Collection[str]) -> list[AnchorScore]:
    """Return the values that a judge gave for watched metrics.

    Example:
        >>> from ragtrace.model import JudgeInfo, MetricResult
        >>> by = JudgeInfo(model="openai:m", prompt_hash="p")
        >>> given = MetricResult(name="faithfulness", state="ok", value=0.5, judge=by, version="v")
        >>> [(it.key.metric, it.value) for it in anchor_scores([given], "openai:m", {"faithfulness"})]
        [('faithfulness', 0.5)]
    """
    return [
        AnchorScore(key=SeriesKey.of(result), value=min(max(result.value, 0.0), 1.0))
        for result in results
        if result.judge is not None
        and result.judge.model == judge
        and result.name in watched
        and result.value is not None
    ]


def passing_error(results: Sequence[MetricResult]) -> str:
    """Return the reason of the first error that may pass, such as an absent judge; "" without one.

    Example:
        >>> from ragtrace.model import MetricResult
        >>> passing_error([MetricResult(name="faithfulness", state="error", reason="judge_timeout")])
        'judge_timeout'
    """
    reasons = (it.reason for it in results if it.state == "error" and it.reason in PASSING)
    return next((reason for reason in reasons if reason), "")


class AnchorRounds:
    """Scores one anchor every `every_s` / n seconds, in their fixed order.

    The store paces all scorers at one file together, so a restart or a second scorer changes nothing. An anchor
    that the judge could not score for a passing reason is the next again. If it fails once more the others go on,
    since some texts are refused at any time, and it waits for the next round. `tick` belongs to the scorer's loop.

    Args:
        table: the anchors.
        scorer: metrics and judge, behind a limiter of their own.
        watched: names of the metrics that are kept.
        every_s: seconds between two scores of one anchor.
        limiter: stands before the judge, and is closed at the end; None where the judge costs nothing.
        clock: monotonic seconds.

    Attributes:
        background: runs `score_due`.
    """

    def __init__(
        self,
        table: AnchorTable,
        scorer: Scorer,
        *,
        watched: Collection[str],
        every_s: float,
        limiter: JudgeLimiter | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._table = table
        self._scorer = scorer
        self._watched = frozenset(watched)
        self._every_s = every_s
        self._limiter = limiter
        self._clock = clock
        self.background = BackgroundTask(self._guarded, first_after_s=min(FIRST_AFTER_S, every_s), clock=clock)
        self._failed: int | None = None  # id of the anchor that failed last

    def tick(self) -> None:
        """Score the anchors that are due; call it about once a second from the scorer's loop.

        Raises:
            RuntimeError: there is no running loop.
        """
        self.background.tick()

    async def score_due(self) -> int:
        """Score the anchors that are due within a second, one after the other; return how many have new scores.

        Raises:
            sqlite3.Error: the file cannot be written.
        """
        n, facts, until_s = 0, self._table.facts(), self._clock() + _TICK_S
        if not facts.n:
            self.background.postpone(min(_MOST_WAIT_S, self._every_s))
            return 0
        gap_s = self._every_s / facts.n
        hurried_s = min(HURRIED_ROUND_S / facts.n, gap_s)
        self.background.postpone(min(hurried_s, _MOST_WAIT_S))
        while self._limiter is None or self._limiter.blocked() is None:
            anchor = self._table.claim(gap_s=gap_s, hurried_gap_s=hurried_s)
            if anchor is not None:
                if not await self._score(anchor):
                    break
                n += 1
            elif self._clock() + hurried_s > until_s:
                break
            else:
                await asyncio.sleep(hurried_s)
        return n

    async def aclose(self) -> None:
        """End a score under way, and release the judge's connections and limiter; on the scorer's loop."""
        await self.background.aclose()
        await self._scorer.aclose()
        if self._limiter is not None:
            self._limiter.close()

    async def _guarded(self) -> None:
        try:
            await self.score_due()
        except Exception as error:
            record_internal_error("ragtrace.scoring.anchors.rounds", error)
            self.background.postpone(_MOST_WAIT_S)

    async def _score(self, anchor: Anchor) -> bool:
        """Score an anchor; False where it has to be tried again."""
        try:
            results = await self._scorer.results(anchor.record)
        except asyncio.CancelledError:
            self._table.give_back(anchor)
            raise
        judge = self._scorer.judge
        scores = anchor_scores(results, judge.name if judge is not None else "", self._watched)
        reason = "" if scores else passing_error(results)
        if reason:
            if reason == "budget_exceeded" or anchor.id != self._failed:
                self._failed = anchor.id
                self._table.give_back(anchor)
            return False
        self._failed = None
        self._table.note(anchor, scores)
        return True
