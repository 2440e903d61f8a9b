"""Table of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.stats.two_judges.judging_plan import BINS

if TYPE_CHECKING:
    from ragtrace.cli.plan.past_runs import PastRuns
    from ragtrace.stats.two_judges.judging_plan import Bin, JudgingPlan

_LITTLE = 0.95  # of a uniform choice's width: two judges are not worth the trouble


def show(plan: JudgingPlan, past: PastRuns, metric: str, usd_a_run: float | None) -> None:
    """Print the rates by first score, the widths with their costs, and the settings."""
    from rich.table import Table

    from ragtrace.cli.io.console import Shown

    console = Shown()
    console.print(f"{metric}: first {past.first_judge}, then {past.second_judge}")
    console.print(f"{len(past.runs):,} runs with a first score, {plan.pairs:,} judged by both\n")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("first score", "runs", "judged by both", "expected score", "spread", "share to judge"):
        table.add_column(head, justify="left" if head == "first score" else "right", no_wrap=True)
    for one in plan.bins:
        if one.share > 0.0:
            table.add_row(
                _range(one),
                f"{one.share:.1%}",
                str(one.pairs),
                f"{one.mean:.2f}",
                f"{one.sd:.2f}",
                f"{one.rate:.1%}",
            )
    console.print(table)
    console.print()
    console.print(_widths(plan, usd_a_run))
    console.print()
    for line in _notes(plan):
        console.print(f"- {line}")
    console.print("\nWith RAGTRACE_JUDGE set to the second judge:")
    console.print("RAGTRACE_FIRST_JUDGE=" + past.first_judge.partition(" ")[0])
    console.print("RAGTRACE_JUDGE_RATES=" + ",".join(f"{name}={rate:g}" for name, rate in plan.setting().items()))


def _widths(plan: JudgingPlan, usd_a_run: float | None) -> object:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("", no_wrap=True)
    for head in ("runs judged a day", "USD a day", "width of the interval"):
        table.add_column(head, justify="right", no_wrap=True)
    rows = (
        (f"this plan, of {plan.runs:,.0f} runs a day", plan.calls, plan.width),
        ("uniform choice, as many runs", plan.calls, plan.uniform_width),
        ("uniform choice, as narrow", plan.uniform_calls, plan.width),
    )
    for name, calls, width in rows:
        usd = "-" if usd_a_run is None else f"{calls * usd_a_run:.2f}"
        table.add_row(name, f"{calls:,.0f}", usd, f"{width:.3f}")
    return table


def _notes(plan: JudgingPlan) -> list[str]:
    low, high = plan.width_range
    notes = [f"by the {plan.pairs} runs that both judged, the width lies between {low:.3f} and {high:.3f} (90 %)"]
    if plan.calls >= plan.runs:
        notes.append("this pays for a score of every run by the second judge: no first judge is needed")
    elif plan.width > _LITTLE * plan.uniform_width:
        notes.append("the first judge says little about the second's scores here: two judges gain next to nothing")
    return notes


def _range(one: Bin) -> str:
    if one.low is None:
        return "none"
    return f"{one.low:.1f} to {one.low + 1 / BINS:.1f}"
