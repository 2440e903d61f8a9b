"""Budgets of one run of ``ragtrace score``, and the lines that they leave without a score."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.errors import JudgeOverBudget
from ragtrace.scoring.offline.file import left_by_budget

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ragtrace.cli.io.jsonl_reader import Line
    from ragtrace.model.codec import ScoreJson
    from ragtrace.settings import Settings


class Spending:
    """Budgets of one run over a file. Lines that a budget leaves without a score are counted, and not written.

    Args:
        settings: budgets, prices and judge.
        most_calls: of judge and embedder; None = no end.

    Attributes:
        limiter: stands before judge and embedder; None where both cost nothing.
        left: lines that were read, or would have been, and have no scores.
        why: the reason for it, with the budget's words.
    """

    def __init__(self, settings: Settings, *, most_calls: int | None) -> None:
        from ragtrace.service.judges import is_limited
        from ragtrace.service.limits import build_file_limiter

        self.limiter = build_file_limiter(settings, most_calls=most_calls) if is_limited(settings) else None
        self.left = 0
        self.why = ""
        self._most_calls = most_calls
        self._done = 0

    def counted(self, lines: Iterator[Line]) -> Iterator[Line]:
        """Yield lines, each of which is left until `covers` takes it."""
        for line in lines:
            self.left += 1
            yield line

    def fits(self, under_way: int) -> bool:
        """Tell whether the calls that are left pay for so many lines at once, by what the lines so far took."""
        if self.why:
            return False
        if self._most_calls is None or self.limiter is None:
            return True
        if not self._done:
            return under_way == 1
        usual = self.limiter.spent.calls / self._done
        return under_way == 1 or self.limiter.spent.calls + usual * under_way <= self._most_calls

    def covers(self, scores: Mapping[str, ScoreJson]) -> bool:
        """Take the scores of a line; False where a budget has left some of them out."""
        if why := left_by_budget(scores):
            self.why = self.why or f"{JudgeOverBudget.reason}: {why}"
            return False
        self.left -= 1
        self._done += 1
        return True

    def close(self) -> None:
        """Close the file of the budgets."""
        if self.limiter is not None:
            self.limiter.close()
