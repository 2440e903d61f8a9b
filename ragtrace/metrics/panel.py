"""Metrics under a panel: one result out of those of several judges and repeats."""

from __future__ import annotations

import asyncio
import statistics
from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ragtrace.metrics.base import compute_safely
from ragtrace.model.diagnosis import verdict_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ragtrace.judges.base import JudgePanel
    from ragtrace.metrics.base import Metric
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import MetricResult
    from ragtrace.model.diagnosis import Verdict
    from ragtrace.model.score import State
    from ragtrace.modes import Consensus

    # The results of one run by key (`MetricResult.key`).
    Run = Mapping[str, MetricResult]


_REPEATS_AT_ONCE = 3  # of one judge
# Faulty replies, as which a panel without any grade is judge_error. Other reasons, for example an outage that all
# judges met, keep their name, because the retry of a unit depends on it.
_OF_REPLIES = {"judge_invalid_output", "judge_incomplete"}


async def compute_by_panel(metric: Metric, ctx: EvalContext, panel: JudgePanel) -> Sequence[MetricResult]:
    """Compute a metric under each member and repeat, members at once, and combine the results.

    A metric that asks the judge nothing about this record is computed once.
    """
    spec, seats = metric.spec, ctx.member_contexts()
    members = [member for repeats in seats for member in repeats]
    for member in members:
        member.begin_metric()
    if "judge" not in spec.needs and spec.task is None and not spec.prompts:
        results = await compute_safely(metric, members[0])
        if not members[0].tasks_used:
            ctx.usage = members[0].usage
            return results
    runs = await asyncio.gather(*(_repeated(metric, repeats) for repeats in seats))
    for member in members:
        ctx.usage += member.usage
        ctx.tasks_used += member.tasks_used
    if not ctx.tasks_used:
        return runs[0][0]
    keyed = [[{result.key: result for result in run} for run in repeats] for repeats in runs]
    return combined(keyed, [member.name for member in panel.members], panel.consensus)


async def _repeated(metric: Metric, repeats: Sequence[EvalContext]) -> list[Sequence[MetricResult]]:
    slots = asyncio.Semaphore(_REPEATS_AT_ONCE)

    async def run(ctx: EvalContext) -> Sequence[MetricResult]:
        async with slots:
            return await compute_safely(metric, ctx)

    return await asyncio.gather(*(run(ctx) for ctx in repeats))


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberScore:
    """The results of one judge for one output, over its repeats.

    Attributes:
        judge: its name.
        scores: the numbers of its runs that have one, in order.
        failures: runs of state ``error``, by reason.
        na: runs of state ``na``, by reason; they are no failures.
    """

    judge: str
    scores: tuple[float, ...] = ()
    failures: Mapping[str, int]
    na: Mapping[str, int]

    @property
    def score(self) -> float | None:
        """Mean of its successful runs; None without one."""
        return statistics.fmean(self.scores) if self.scores else None

    @property
    def std(self) -> float | None:
        """Sample standard deviation (ddof 1) of its runs; 0.0 for one, None without one."""
        if len(self.scores) < 2:
            return 0.0 if self.scores else None
        return statistics.stdev(self.scores)

    def to_json(self) -> dict[str, object]:
        """Return what stands in the details of a combined result."""
        return {
            "judge": self.judge,
            "scores": list(self.scores),
            "score": self.score,
            "std": self.std,
            "failures": sum(self.failures.values()),
            "reasons": dict(self.failures) | dict(self.na),
        }


def agreed(scores: Sequence[float], consensus: Consensus = "mean") -> float:
    """Return the mean or median of the judges' scores, of which there is at least one.

    Example:
        >>> agreed([4.0, 2.5, 5.0], "median")
        4.0
    """
    return statistics.fmean(scores) if consensus == "mean" else statistics.median(scores)


def mean_abs_diff(scores: Sequence[float]) -> float | None:
    """Return the mean absolute difference over all pairs of judges; None for fewer than two.

    Example:
        >>> mean_abs_diff([4.5, 3.0])
        1.5
    """
    apart = [abs(one - other) for one, other in combinations(scores, 2)]
    return statistics.fmean(apart) if apart else None


def combined(runs: Sequence[Sequence[Run]], judges: Sequence[str], consensus: Consensus) -> list[MetricResult]:
    """Return one result for each output that any run has, in the order of the runs.

    The value is the consensus over judges with at least one success, each by the mean of its successes. Failures
    never count as numbers. Without a success: ``na`` with the commonest reason where a judge could say so,
    else ``error``, with the reason all have in common or ``judge_error``. Where the runs that did not fail are
    mostly ``na``, so is the result; a judge that can not do the metric has no say. A diagnosis is that of most runs
    that did not fail; a tie goes to a judge that reads sufficiency. ``details["panel"]`` holds all, the other
    details are those of the first run that says the same.

    Args:
        runs: by judge and repeat.
        judges: their names.
        consensus: mean or median.

    Example:
        >>> from ragtrace.model import MetricResult
        >>> fine = MetricResult(name="x_1to5", state="ok", value=4.0)
        >>> gone = MetricResult(name="x_1to5", state="error", reason="judge_timeout")
        >>> result = combined([[{"x_1to5": gone}], [{"x_1to5": fine}]], ["a", "b"], "mean")[0]
        >>> result.value, result.details["panel"]["judges"][0]["failures"]
        (4.0, 1)
    """
    keys = dict.fromkeys(key for seat in runs for run in seat for key in run)
    made = ((key, _combined(key, runs, judges, consensus)) for key in keys)
    return [result for key, result in made if result.key == key]


def _of(seat: Sequence[Run], key: str) -> list[MetricResult]:
    """Return an output's results; a run that failed as a whole has one result a name, not one a K."""
    found = []
    for run in seat:
        whole = run.get(key.partition("@")[0])
        if key in run:
            found.append(run[key])
        elif whole is not None and whole.state != "ok":
            found.append(whole)
    return found


def _combined(key: str, runs: Sequence[Sequence[Run]], judges: Sequence[str], consensus: Consensus) -> MetricResult:
    found = [_of(seat, key) for seat in runs]
    members = [
        MemberScore(
            judge=judge,
            scores=tuple(result.value for result in seat if result.value is not None),
            failures=Counter(str(result.reason) for result in seat if result.state == "error"),
            na=Counter(str(result.reason) for result in seat if result.state == "na"),
        )
        for judge, seat in zip(judges, found, strict=True)
    ]
    state, reason = _state(members)
    same = [result for seat in found for result in seat if result.state == state]
    model = next((result for result in same if result.reason == reason), same[0])
    verdicts = Counter(verdict for seat in found for result in seat if (verdict := verdict_of(result)) is not None)
    if verdicts:
        return _most_given(verdicts, [result for seat in found for result in seat], len(runs[0]))
    scores = [member.score for member in members if member.score is not None]
    panel = {
        "judges": [member.to_json() for member in members],
        "consensus": consensus,
        "repeats": len(runs[0]),
        "mean_abs_diff": mean_abs_diff(scores),
    }
    return replace(
        model,
        value=agreed(scores, consensus) if state == "ok" else None,
        reason=reason,
        details={**model.details, "panel": panel},
    )


def _most_given(verdicts: Counter[Verdict], found: Sequence[MetricResult], repeats: int) -> MetricResult:
    """Return the result with the verdict that most runs give; words have no mean, and failures no say.

    Where verdicts tie, one that decides comes first, then one of a judge that reads sufficiency.
    """
    voting = [result for result in found if result.state != "error"] or found
    given = Counter(verdict_of(result) for result in voting)
    first = max(
        voting,
        key=lambda it: (given[verdict_of(it)], verdict_of(it) != "undetermined", "sufficient" in it.details),
    )
    panel = {"verdicts": dict(verdicts), "repeats": repeats}
    agreement = given[verdict_of(first)] / verdicts.total()
    return replace(first, details={**first.details, "panel": panel, "agreement": agreement})


def _state(members: Sequence[MemberScore]) -> tuple[State, str | None]:
    n_ok = sum(len(member.scores) for member in members)
    failures = sum((Counter(member.failures) for member in members), Counter[str]())
    na = sum((Counter(member.na) for member in members), Counter[str]())
    na.pop("unsupported_by_judge", None)
    if n_ok and n_ok >= na.total():
        return "ok", None
    if na:
        return "na", na.most_common(1)[0][0]
    if failures:
        common = next(iter(failures)) if len(failures) == 1 else "judge_error"
        return "error", "judge_error" if common in _OF_REPLIES else common
    return "na", "unsupported_by_judge"
