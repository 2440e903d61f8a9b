"""Command ``ragtrace baseline``, which shows, freezes and accepts baselines of drift detectors."""

from __future__ import annotations

import json
import math
import sys
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ragtrace.cli.io.arguments import StoreOption, Workflow
from ragtrace.cli.io.jsonl_reader import JSON_ESCAPES
from ragtrace.cli.io.say import say
from ragtrace.cli.io.stored import MOMENT, moment, opened_store, store_path
from ragtrace.errors import ConfigError, nearest

if TYPE_CHECKING:
    from ragtrace.service.baselines import Weighed
    from ragtrace.stats.drift import Baseline, Series
    from ragtrace.stores.baselines import FrozenBaseline
    from ragtrace.stores.sqlite import SqliteStore

LEAST = 200  # as the alerts' gate, in effective scores; a normal of 100 gives one run in ten four times the alarms
EPILOG = """\
Without a frozen baseline a detector learns anew after each restart, from whatever comes first then. A running
scorer with the same store takes a new baseline within 15 seconds and begins its detectors anew; the alerts of
`ragtrace dashboards` take it too, instead of their own, if it has 200 effective scores: unequal weights make fewer
of the same scores. Each judge version, K, label scale and labelled universe
has a baseline of its own.

Exit status: 0 done (or kept already), 2 usage, a failure, or too few scores; nothing has changed then.
"""


command = typer.Typer(
    help="Show, freeze or accept what the drift detectors take for normal.",
    epilog=EPILOG,
    rich_markup_mode="markdown",
)
Since = Annotated[str | None, typer.Option(metavar="WHEN", help=f"{MOMENT}; default 14d")]
Until = Annotated[str | None, typer.Option(metavar="WHEN", help="the same; default now")]
Least = Annotated[int, typer.Option(min=1, metavar="N", help="effective scores needed")]
Metric = Annotated[str | None, typer.Option(help="of this metric alone, by its exported name")]
Note = Annotated[str, typer.Option(help="a release or a reason, shown by show")]


@dataclass(frozen=True, slots=True)
class BaselineFilter:
    """The scores that `freeze` and `accept` take."""

    action: Literal["freeze", "accept"]
    since: str | None
    until: str | None
    scores: int | None
    least: int
    metric: str | None
    workflow: str | None
    note: str


@command.command()
def show(
    *,
    store: StoreOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON array")] = False,
) -> int:
    """List the frozen baselines."""
    with opened_store(store_path(store, "baseline")) as opened:
        return _show(opened, is_json=as_json)


@command.command()
def freeze(
    *,
    store: StoreOption = None,
    since: Since = None,
    until: Until = None,
    scores: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="the last N of each series; default all since then")
    ] = None,
    least: Least = LEAST,
    metric: Metric = None,
    workflow: Workflow = None,
    note: Note = "",
) -> int:
    """Freeze the scores of the store as the normal; frozen baselines stay."""
    return _write(store, BaselineFilter("freeze", since, until, scores, least, metric, workflow, note))


@command.command()
def accept(
    *,
    store: StoreOption = None,
    since: Since = None,
    until: Until = None,
    scores: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="the last N of each series; default RAGTRACE_DRIFT_BASELINE (500), all where --since is given",
        ),
    ] = None,
    least: Least = LEAST,
    metric: Metric = None,
    workflow: Workflow = None,
    note: Note = "",
) -> int:
    """Make recent scores the new normal; --since is the time of the change."""
    return _write(store, BaselineFilter("accept", since, until, scores, least, metric, workflow, note))


def _show(store: SqliteStore, *, is_json: bool) -> int:
    baselines = store.baselines()
    if is_json:
        say(json.dumps([_plain(it) for it in baselines], ensure_ascii=False, indent=2).translate(JSON_ESCAPES))
    elif baselines:
        _table(baselines)
    else:
        say(f"{store.path}: no baseline is frozen; `ragtrace baseline freeze` does")
    return 0


def _table(baselines: list[FrozenBaseline]) -> None:
    from rich.table import Table

    from ragtrace.cli.io.console import Shown

    table = Table(box=None, pad_edge=False)
    about = [name for name in ("label_scale", "universe") if any(getattr(it, name) for it in baselines)]
    named = [name.replace("_", " ") for name in about]
    for name in ("metric", "workflow", "version", "K", *named, "mean", "sd", "n", "frozen (UTC)", "note"):
        table.add_column(name, no_wrap=name != "note", justify="right" if name in {"mean", "sd", "n"} else "left")
    for it in baselines:
        n, worth = it.baseline.n, _worth(it.baseline)
        figures = (f"{it.baseline.mean:.3f}", f"{it.baseline.sd:.3f}", str(n) if n == worth else f"{worth} of {n}")
        k = "" if it.k is None else str(it.k)
        more = [getattr(it, name) or "" for name in about]
        table.add_row(it.metric, it.workflow, it.version, k, *more, *figures, _date(it.frozen_at)[:16], it.note)
    Shown().print(table)


def _plain(it: FrozenBaseline) -> dict[str, Any]:
    facts = asdict(it)
    figures = facts.pop("baseline")
    return {**facts, **figures, "frozen_at": _date(it.frozen_at)}


def _write(store: str | None, choice: BaselineFilter) -> int:
    with opened_store(store_path(store, "baseline")) as opened:
        return _freeze(opened, choice, time.time())


def _freeze(store: SqliteStore, choice: BaselineFilter, now: float) -> int:
    from ragtrace.service.baselines import frozen_baseline

    kept = {it.series: it for it in store.baselines()} if choice.action == "freeze" else {}
    found = [
        frozen_baseline(key, scores, at=now, note=choice.note)
        for key, scores in _chosen(store, choice, now).items()
    ]
    enough = [it for it in found if _worth(it.baseline) >= choice.least]
    if not enough:
        raise ConfigError(_too_few(found, choice))
    made = [it for it in enough if it.series not in kept]
    store.freeze(made)
    for it in made:
        say(f"{_done(choice)}: {_named(it.series)}: mean {it.baseline.mean:.3f} over {_counted(it.baseline)}")
        if _worth(it.baseline) < LEAST:
            say(_aside(it.baseline), file=sys.stderr)
    if choice.action == "accept" and not choice.since:
        say("Taken are the last scores, also from before a change: give --since the change to leave those out.")
    for it in enough:
        if it.series in kept:
            say(f"kept: {_named(it.series)}, frozen {_date(kept[it.series].frozen_at)}; accept replaces it")
    for it in (it for it in found if it not in enough):
        say(f"too few: {_named(it.series)}: {_counted(it.baseline)}, {choice.least} are needed", file=sys.stderr)
    return 0


def _aside(baseline: Baseline) -> str:
    return (
        f"{_worth(baseline)} effective scores are too few for alerts: they leave that baseline aside below {LEAST}."
        " Rules of Prometheus take their rolling one, those of Grafana compare with nothing."
    )


def _worth(baseline: Baseline) -> int:
    return math.floor(round(baseline.effective, 6))


def _counted(baseline: Baseline) -> str:
    n, worth = baseline.n, _worth(baseline)
    return f"{n} scores" if n == worth else f"{worth} effective scores (of {n})"


def _done(choice: BaselineFilter) -> str:
    return "frozen" if choice.action == "freeze" else "accepted"


def _chosen(store: SqliteStore, choice: BaselineFilter, now: float) -> dict[Series, list[Weighed]]:
    from ragtrace.service.baselines import gathered, watched_outputs
    from ragtrace.settings import Settings

    names = watched_outputs()
    if choice.metric is not None and choice.metric not in names:
        raise ConfigError(f"--metric {choice.metric}: no drift detector watches it{nearest(choice.metric, names)}")
    until = moment(choice.until, now) if choice.until else None
    since = moment(choice.since or "14d", now)
    if since >= (until or now):
        raise ConfigError("--since: it lies after the end; nothing can be between them")
    found = gathered(store, since=since, until=until, metric=choice.metric, workflow=choice.workflow)
    most = choice.scores
    if most is None and choice.action == "accept" and not choice.since:
        most = max(Settings.resolve({}).drift_baseline, choice.least)
    return {key: scores[-most:] if most else scores for key, scores in found.items()}


def _too_few(found: list[FrozenBaseline], choice: BaselineFilter) -> str:
    if not found:
        return f"baseline {choice.action}: the store has no such scores; look with `ragtrace export`"
    best = max(found, key=lambda it: _worth(it.baseline))
    n, worth = best.baseline.n, _worth(best.baseline)
    needed, has = (
        (f"{choice.least} scores", str(n))
        if n == worth
        else (f"{choice.least} effective scores", f"{worth} (of {n})")
    )
    return (
        f"baseline {choice.action}: no series has {needed}; {_named(best.series)} has {has}: wait, or take --since"
        f" further back or --least lower (alerts leave one below {LEAST} aside)"
    )


def _named(series: Series) -> str:
    k = "" if series.k is None else f" K={series.k}"
    labels = ", ".join(filter(None, (series.label_scale, series.universe)))
    shown = f", labels {labels}" if labels else ""
    return f"{series.metric}{k} of {series.workflow} (version {series.version}{shown})"


def _date(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
