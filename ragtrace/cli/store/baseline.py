"""Command ``ragtrace baseline``, which shows, freezes and accepts what the drift rules take for normal."""

from __future__ import annotations

import json
import math
import sys
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ragtrace.cli.io.arguments import AsJson, Since, Store, Until, Workflow
from ragtrace.cli.io.jsonl_reader import JSON_ESCAPES
from ragtrace.cli.io.say import say
from ragtrace.cli.io.stored import moment, opened_store, store_path
from ragtrace.errors import ConfigError, nearest

if TYPE_CHECKING:
    from ragtrace.model import SeriesKey
    from ragtrace.service.baselines import Weighed
    from ragtrace.stats.baselines import Baseline
    from ragtrace.stores.baselines import FrozenBaseline
    from ragtrace.stores.sqlite import SqliteStore

LEAST = 200  # as the alerts' gate, in effective scores; a normal of 100 gives one run in ten four times the alarms
EPILOG = """\
A running scorer with the same store takes a new baseline within 15 seconds and exports it. The alerts of `ragtrace
dashboards` take it instead of their own, if it has 200 effective scores: unequal weights make fewer of the same
scores. Each judge version, K, label scale and label scope has a baseline of its own. Without --since
both commands look back 14 days.

Exit status: 0 done (or kept already), 2 usage, a failure, or too few scores; nothing has changed then.
"""


command = typer.Typer(
    help="Show, freeze or accept what the drift rules take for normal.",
    epilog=EPILOG,
    rich_markup_mode="markdown",
)
Scores = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Take the last N scores of each series. Default: all since --since; accept without --since takes 500.",
    ),
]
Least = Annotated[int, typer.Option(min=1, metavar="N", help="Effective scores that a series needs.")]
Metric = Annotated[str | None, typer.Option(metavar="NAME", help="Take this metric alone, by its exported name.")]
Note = Annotated[
    str, typer.Option(metavar="TEXT", help="Release or reason, which `ragtrace baseline show` prints.")
]


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
def show(*, store: Store = None, as_json: AsJson = False) -> int:
    """List the frozen baselines."""
    with opened_store(store_path(store, "baseline")) as opened:
        baselines = opened.baselines()
        if as_json:
            text = json.dumps([_plain(it) for it in baselines], ensure_ascii=False, indent=2)
            say(text.translate(JSON_ESCAPES))
        elif baselines:
            _table(baselines)
        else:
            say(f"{opened.path}: no baseline is frozen; `ragtrace baseline freeze` does")
    return 0


@command.command()
def freeze(
    *,
    store: Store = None,
    since: Since = None,
    until: Until = None,
    scores: Scores = None,
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
    store: Store = None,
    since: Since = None,
    until: Until = None,
    scores: Scores = None,
    least: Least = LEAST,
    metric: Metric = None,
    workflow: Workflow = None,
    note: Note = "",
) -> int:
    """Make recent scores the new normal; --since is the time of the change."""
    return _write(store, BaselineFilter("accept", since, until, scores, least, metric, workflow, note))


def _table(baselines: list[FrozenBaseline]) -> None:
    from rich.table import Table

    from ragtrace.cli.io.console import Shown

    table = Table(box=None, pad_edge=False)
    labels = [name for name in ("label_scale", "universe") if any(getattr(it.key, name) for it in baselines)]
    for name in ("metric", "workflow", "version", "K", *labels, "mean", "sd", "n", "frozen (UTC)", "note"):
        justify: Literal["left", "right"] = "right" if name in {"mean", "sd", "n"} else "left"
        table.add_column(name.replace("_", " "), no_wrap=name != "note", justify=justify)
    for it in baselines:
        n, effective = it.baseline.n, _effective(it.baseline)
        table.add_row(
            it.key.metric,
            it.key.workflow,
            it.key.version,
            "" if it.key.k is None else str(it.key.k),
            *(getattr(it.key, name) or "" for name in labels),
            f"{it.baseline.mean:.3f}",
            f"{it.baseline.sd:.3f}",
            str(n) if n == effective else f"{effective} of {n}",
            _date(it.frozen_at)[:16],
            it.note,
        )
    Shown().print(table)


def _plain(it: FrozenBaseline) -> dict[str, object]:
    key = it.key
    return {
        "metric": key.metric,
        "workflow": key.workflow,
        "version": key.version or "",
        "k": key.k,
        "frozen_at": _date(it.frozen_at),
        "note": it.note,
        "label_scale": key.label_scale,
        "universe": key.universe,
        **asdict(it.baseline),
    }


def _write(path: str | None, choice: BaselineFilter) -> int:
    from ragtrace.service.baselines import frozen_baseline

    now = time.time()
    with opened_store(store_path(path, "baseline")) as store:
        kept = {it.key: it for it in store.baselines()} if choice.action == "freeze" else {}
        found = [
            frozen_baseline(key, scores, at=now, note=choice.note)
            for key, scores in _chosen(store, choice, now).items()
        ]
        enough = [it for it in found if _effective(it.baseline) >= choice.least]
        if not enough:
            raise ConfigError(_too_few(found, choice))
        store.freeze([it for it in enough if it.key not in kept])
        if choice.action == "accept":  # what is normal now has a mix of questions of its own
            store.forget_question_mixes(choice.workflow)
    _report(choice, found, kept)
    return 0


def _report(choice: BaselineFilter, found: list[FrozenBaseline], kept: dict[SeriesKey, FrozenBaseline]) -> None:
    done = "frozen" if choice.action == "freeze" else "accepted"
    too_few = [it for it in found if _effective(it.baseline) < choice.least]
    enough = [it for it in found if it not in too_few]
    for it in enough:
        if it.key not in kept:
            say(f"{done}: {_named(it.key)}: mean {it.baseline.mean:.3f} over {_counted(it.baseline)}")
            if _effective(it.baseline) < LEAST:
                say(_too_few_for_alerts(it.baseline), file=sys.stderr)
    if choice.action == "accept" and not choice.since:
        say("Taken are the last scores, also from before a change: give --since the change to leave those out.")
    for it in enough:
        if it.key in kept:
            say(f"kept: {_named(it.key)}, frozen {_date(kept[it.key].frozen_at)}; accept replaces it")
    for it in too_few:
        counted = _counted(it.baseline)
        say(f"too few: {_named(it.key)}: {counted}, {choice.least} are needed", file=sys.stderr)


def _too_few_for_alerts(baseline: Baseline) -> str:
    return (
        f"{_effective(baseline)} effective scores are too few for alerts: below {LEAST} they leave that baseline"
        " aside, and take their rolling one."
    )


def _effective(baseline: Baseline) -> int:
    return math.floor(round(baseline.effective, 6))


def _counted(baseline: Baseline) -> str:
    n, effective = baseline.n, _effective(baseline)
    return f"{n} scores" if n == effective else f"{effective} effective scores (of {n})"


def _chosen(store: SqliteStore, choice: BaselineFilter, now: float) -> dict[SeriesKey, list[Weighed]]:
    from ragtrace.service.baselines import gathered, watched_outputs
    from ragtrace.stats.baselines import LEARNT_SCORES

    names = watched_outputs()
    if choice.metric is not None and choice.metric not in names:
        raise ConfigError(f"--metric {choice.metric}: it is not watched for a drop{nearest(choice.metric, names)}")
    until = moment(choice.until, now) if choice.until else None
    since = moment(choice.since or "14d", now)
    if since >= (until or now):
        raise ConfigError("--since: it lies after the end; nothing can be between them")
    found = gathered(store, since=since, until=until, metric=choice.metric, workflow=choice.workflow)
    most = choice.scores
    if most is None and choice.action == "accept" and not choice.since:
        most = max(LEARNT_SCORES, choice.least)
    return {key: scores[-most:] if most else scores for key, scores in found.items()}


def _too_few(found: list[FrozenBaseline], choice: BaselineFilter) -> str:
    if not found:
        return f"baseline {choice.action}: the store has no such scores; look with `ragtrace export`"
    best = max(found, key=lambda it: _effective(it.baseline))
    n, effective = best.baseline.n, _effective(best.baseline)
    kind, has = ("", str(n)) if n == effective else ("effective ", f"{effective} (of {n})")
    return (
        f"baseline {choice.action}: no series has {choice.least} {kind}scores; {_named(best.key)} has {has}:"
        f" wait, or take --since further back or --least lower (alerts leave one below {LEAST} aside)"
    )


def _named(key: SeriesKey) -> str:
    k = "" if key.k is None else f" K={key.k}"
    labels = ", ".join(filter(None, (key.label_scale, key.universe)))
    shown = f", labels {labels}" if labels else ""
    return f"{key.metric}{k} of {key.workflow} (version {key.version or ''}{shown})"


def _date(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
