"""Golden vectors of panels: runs of several judges, each a reply of its own through the real metric."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace.judges.llm.judge import LLMJudge
from ragtrace.judges.llm.scripted import ScriptedChat
from ragtrace.judges.panel import ConsensusPanel
from ragtrace.metrics.answer.faithfulness_1to5 import METRIC
from ragtrace.metrics.eval_context import EvalContext, MetricOptions
from ragtrace.model import RagRecord
from tests.golden.replies import EXCEPTION, failure
from tests.golden.running import check, computed, same, used

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from ragtrace.model import MetricResult

MADE = RagRecord(id="1", query="Where is the lab?", answer="In Oslo.", pools=used(["The lab is in Oslo."]))


class WrittenPanel(ConsensusPanel):
    """A panel whose every run has its reply written beforehand; a repair gets the same reply."""

    def __init__(self, record: dict[str, Any], runs: Sequence[Sequence[Any]]) -> None:
        super().__init__([LLMJudge(ScriptedChat(name=f"judge {n}")) for n in range(1, len(runs) + 1)])
        self._written = [
            [LLMJudge(ScriptedChat(always=_reply(record, run), name=member.name)) for run in row]
            for member, row in zip(self.members, runs, strict=True)
        ]

    def seats(self) -> Sequence[Sequence[LLMJudge]]:
        return self._written


def _reply(record: dict[str, Any], run: Any) -> Any:
    if run == EXCEPTION:
        return failure(record)
    return {"attempted": True, "reason": "", "grade": run}


async def judge_aggregate(record: dict[str, Any]) -> None:
    runs = record["judge_verdicts"]["runs_per_judge_0_means_failed"]
    expected = record["expected"] or {}
    if not any(runs):  # nobody was asked
        assert expected.get("score_1_5") is None
        return
    results = await _results(record, runs, record["inputs"].get("threshold", 3))
    check(results[METRIC.spec.name], expected.get("score_1_5"), record)
    check(results[f"{METRIC.spec.name}_normalised"], expected.get("score_0_1"), record)
    panel = results[METRIC.spec.name].details["panel"]
    for found, wanted in zip(panel["judges"], expected.get("per_judge", panel["judges"]), strict=True):
        for name, value in wanted.items():
            if name in {"score", "std", "failures"}:
                same(found[name], value, name)
    if "mean_abs_diff" in expected:
        same(panel["mean_abs_diff"], expected["mean_abs_diff"], "mean_abs_diff")
    for threshold in (3, 4):
        if f"passed_{threshold}" in expected:
            again = await _results(record, runs, threshold)
            # Without a score nothing passes; ours says neither.
            assert {bool(result.passed) for result in again.values()} == {bool(expected[f"passed_{threshold}"])}


async def _results(
    record: dict[str, Any], runs: Sequence[Sequence[Any]], threshold: float
) -> dict[str, MetricResult]:
    options = MetricOptions(threshold_1to5=float(threshold))
    return await computed([METRIC], EvalContext(MADE, judge=WrittenPanel(record, runs), options=options))


RUNNERS: dict[str, Callable[[dict[str, Any]], Awaitable[None]]] = {
    "judge_aggregate_1_5": judge_aggregate,
    "judge_aggregate": judge_aggregate,
}
