"""Command ``ragtrace plan``, which says which runs the second of two judges should score."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from ragtrace.cli.io.answers import is_store, source_of
from ragtrace.cli.io.arguments import AsJson, Jobs
from ragtrace.cli.io.say import say
from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from ragtrace.cli.plan.past_runs import PastRuns
    from ragtrace.metrics.base import Output
    from ragtrace.settings import Settings
    from ragtrace.stats.two_judges.judging_plan import JudgingPlan, PastScores

EPILOG = """\
From a store the plan is made from runs that both judges scored (first_judge), or that
people labelled under the metric's name. From a file of records, as `ragtrace score`
reads them, --label names the field of the human label, which stands for the second
judge; labelled lines should be a random choice of all.

Width is the width of the 95 % interval of a day's mean. Dollars come from the tokens
of past scores and the prices in the settings, or from --usd-per-run.

Exit status: 0 fine, 2 usage, bad input, or too little data.
"""


def command(
    source: Annotated[
        str | None,
        typer.Argument(metavar="STORE|FILE", help="A store, or records with labels. Default: RAGTRACE_STORE."),
    ] = None,
    *,
    width: Annotated[
        float | None, typer.Option(metavar="W", help="Width of the day's interval that is wanted, such as .04.")
    ] = None,
    usd_per_day: Annotated[
        float | None, typer.Option(metavar="USD", help="Dollars a day for the second judge.")
    ] = None,
    metric: Annotated[str, typer.Option(metavar="NAME", help="The metric that the plan is for.")] = "faithfulness",
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD", help="Of a file: field of the human label. May be given more than once."),
    ] = None,
    inverted: Annotated[bool, typer.Option("--inverted", help="A high label stands for a low score.")] = False,
    runs_per_day: Annotated[
        float | None, typer.Option(metavar="N", help="Runs a day with a first score. Default: those of the store.")
    ] = None,
    usd_per_run: Annotated[
        float | None, typer.Option(metavar="USD", help="What the second judge costs for one run.")
    ] = None,
    as_json: AsJson = False,
    jobs: Jobs = 8,
) -> int:
    """Say which runs a second judge should score, for a wanted interval or budget."""
    from ragtrace.cli.plan.table import show
    from ragtrace.settings import Settings
    from ragtrace.stats.two_judges.judging_plan import LEAST_PAIRS

    if (width is None) == (usd_per_day is None):
        raise ConfigError("plan: give either --width W (such as 0.04) or --usd-per-day USD")
    _check(
        {
            "--width": width,
            "--usd-per-day": usd_per_day,
            "--runs-per-day": runs_per_day,
            "--usd-per-run": usd_per_run,
        }
    )
    source = source_of(source)
    settings = Settings.resolve({})
    output = _output(metric)
    past = _past_runs(source, output, settings, label, is_inverted=inverted, jobs=jobs)
    scores = past.past_scores(source, LEAST_PAIRS)
    runs = runs_per_day or past.runs_a_day
    if runs is None:
        raise ConfigError(f"{source}: it does not tell how many runs a day there are; give --runs-per-day N")
    usd = usd_per_run if usd_per_run is not None else past.usd_a_run
    plan = scores.plan(runs=runs, calls=_calls(scores, runs, width, usd_per_day, usd))
    if as_json:
        report = {"metric": metric, "first_judge": past.first_judge, "second_judge": past.second_judge}
        rates = {"judge_rates": plan.setting(), "usd_per_day": None if usd is None else usd * plan.calls}
        say(json.dumps({**report, **asdict(plan), **rates}, indent=2))
    else:
        show(plan, past, metric, usd)
    return 0


def _check(given: dict[str, float | None]) -> None:
    for flag, value in given.items():
        if value is not None and not 0.0 < value < float("inf"):
            raise ConfigError(f"{flag} {value:g}: write a number above 0")


def _output(metric: str) -> Output:
    from ragtrace.metrics.registry import output

    found = output(metric)
    if not found.is_unit:
        raise ConfigError(f"--metric {metric}: its values do not lie between 0 and 1; choose another")
    return found


def _past_runs(
    source: str, output: Output, settings: Settings, label: list[str] | None, *, is_inverted: bool, jobs: int
) -> PastRuns:
    from ragtrace.cli.plan.past_runs import from_file, from_store
    from ragtrace.service.judges import build_scorer

    first = settings.first_judge or "overlap"
    if is_store(source):
        if label:
            raise ConfigError("--label is for a file of records; labels in a store count by the metric's name")
        return from_store(source, output, settings, first)
    if source == "-":
        raise ConfigError("-: a plan reads its file twice; write the records to a file and name that")
    if not label:
        raise ConfigError(f"{source}: give --label FIELD, the human label that stands for the second judge")
    scorer = build_scorer(settings.with_changes(judge=first, metrics=(output.name,), judge_repeats=1))
    return from_file(source, label, scorer, output, is_inverted=is_inverted, jobs=jobs)


def _calls(
    past: PastScores, runs: float, width: float | None, usd_per_day: float | None, usd_a_run: float | None
) -> float:
    if width is not None:
        calls = past.calls_for(width, runs=runs)
        if calls is None:
            best: JudgingPlan = past.plan(runs=runs, calls=runs)
            raise ConfigError(
                f"--width {width:g}: judging all of {runs:.0f} runs a day gives {best.width:.3f};"
                " score more runs (sample_rate), or want less"
            )
        return calls
    if usd_a_run is None or usd_per_day is None:
        raise ConfigError(
            "--usd-per-day: no price of the second judge is known; give --usd-per-run USD, or set"
            " price_input_usd_per_million and price_output_usd_per_million"
        )
    calls = usd_per_day / usd_a_run
    if calls < 2.0:
        raise ConfigError(f"--usd-per-day {usd_per_day:g} is less than two runs at {usd_a_run:.4g} USD each")
    return calls
