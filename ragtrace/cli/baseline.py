"""``ragtrace baseline``: what drift detectors hold new scores against, kept over restarts."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ragtrace.cli.io.arguments import positive
from ragtrace.cli.io.jsonl_reader import JSON_ESCAPES
from ragtrace.cli.io.say import say
from ragtrace.cli.io.stored import MOMENT, add_store, failures, moment, open_store, store_path
from ragtrace.errors import ConfigError, nearest

if TYPE_CHECKING:
    from ragtrace.service.baselines import Weighed
    from ragtrace.stats.baseline import Baseline, Series
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


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "baseline",
        help="show, freeze or accept what the drift detectors take for normal",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = actions.add_parser("show", help="list the frozen baselines")
    add_store(show)
    show.add_argument("--json", action="store_true", help="print one JSON array")
    _add_choice(actions, "freeze", "keep the scores of the store as the normal; frozen baselines stay as they are")
    _add_choice(actions, "accept", "make recent scores the new normal, over frozen ones; give --since the change")


def _add_choice(actions: Any, name: str, text: str) -> None:
    parser = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    add_store(parser)
    last = "all since then" if name == "freeze" else "RAGTRACE_DRIFT_BASELINE (500), all where --since is given"
    parser.add_argument("--since", metavar="WHEN", help=f"{MOMENT}; default 14d")
    parser.add_argument("--until", metavar="WHEN", help="the same; default now")
    parser.add_argument("--scores", metavar="N", type=positive, help=f"the last N of each series; default {last}")
    parser.add_argument(
        "--least", metavar="N", type=positive, default=LEAST, help=f"effective scores needed; default {LEAST}"
    )
    parser.add_argument("--metric", help="of this metric alone, by its exported name")
    parser.add_argument("--workflow", help="of this workflow alone")
    parser.add_argument("--note", default="", help="a release or a reason, shown by show")


def run(args: argparse.Namespace) -> int:
    """List baselines, or write them.

    Raises:
        ConfigError: an option is wrong, the store cannot be used, or no series has enough scores.
    """
    path = store_path(args)
    store = open_store(path)
    try:
        with failures(path):
            return _show(store, is_json=args.json) if args.action == "show" else _write(store, args)
    finally:
        store.close()


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


def _write(store: SqliteStore, args: argparse.Namespace) -> int:
    from ragtrace.service.baselines import frozen_baseline

    now = time.time()
    kept = {it.series: it for it in store.baselines()} if args.action == "freeze" else {}
    found = [
        frozen_baseline(key, scores, at=now, note=args.note) for key, scores in _chosen(store, args, now).items()
    ]
    enough = [it for it in found if _worth(it.baseline) >= args.least]
    if not enough:
        raise ConfigError(_too_few(found, args))
    made = [it for it in enough if it.series not in kept]
    store.freeze(made)
    for it in made:
        say(f"{_done(args)}: {_named(it.series)}: mean {it.baseline.mean:.3f} over {_counted(it.baseline)}")
        if _worth(it.baseline) < LEAST:
            say(_aside(it.baseline), file=sys.stderr)
    if args.action == "accept" and not args.since:
        say("Taken are the last scores, also from before a change: give --since the change to leave those out.")
    for it in enough:
        if it.series in kept:
            say(f"kept: {_named(it.series)}, frozen {_date(kept[it.series].frozen_at)}; accept replaces it")
    for it in (it for it in found if it not in enough):
        say(f"too few: {_named(it.series)}: {_counted(it.baseline)}, {args.least} are needed", file=sys.stderr)
    return 0


def _aside(baseline: Baseline) -> str:
    return (
        f"{_worth(baseline)} effective scores are too few for alerts: they leave that baseline aside below {LEAST}."
        " Rules of Prometheus take their rolling one, those of Grafana compare with nothing."
    )


def _worth(baseline: Baseline) -> int:
    """Return the whole effective number; equal weights add up to a hair less than the number of scores."""
    return math.floor(round(baseline.effective, 6))


def _counted(baseline: Baseline) -> str:
    n, worth = baseline.n, _worth(baseline)
    return f"{n} scores" if n == worth else f"{worth} effective scores (of {n})"


def _done(args: argparse.Namespace) -> str:
    return "frozen" if args.action == "freeze" else "accepted"


def _chosen(store: SqliteStore, args: argparse.Namespace, now: float) -> dict[Series, list[Weighed]]:
    from ragtrace.service.baselines import gathered, watched_outputs
    from ragtrace.settings import Settings

    names = watched_outputs()
    if args.metric is not None and args.metric not in names:
        raise ConfigError(f"--metric {args.metric}: no drift detector watches it{nearest(args.metric, names)}")
    until = moment(args.until, now) if args.until else None
    since = moment(args.since or "14d", now)
    if since >= (until or now):
        raise ConfigError("--since: it lies after the end; nothing can be between them")
    found = gathered(store, since=since, until=until, metric=args.metric, workflow=args.workflow)
    most = args.scores
    if most is None and args.action == "accept" and not args.since:
        most = max(Settings.resolve({}).drift_baseline, args.least)
    return {key: scores[-most:] if most else scores for key, scores in found.items()}


def _too_few(found: list[FrozenBaseline], args: argparse.Namespace) -> str:
    if not found:
        return f"baseline {args.action}: the store has no such scores; look with `ragtrace export`"
    best = max(found, key=lambda it: _worth(it.baseline))
    n, worth = best.baseline.n, _worth(best.baseline)
    needed, has = (
        (f"{args.least} scores", str(n)) if n == worth else (f"{args.least} effective scores", f"{worth} (of {n})")
    )
    return (
        f"baseline {args.action}: no series has {needed}; {_named(best.series)} has {has}: wait, or take --since"
        f" further back or --least lower (alerts leave one below {LEAST} aside)"
    )


def _named(series: Series) -> str:
    k = "" if series.k is None else f" K={series.k}"
    labels = ", ".join(filter(None, (series.label_scale, series.universe)))
    shown = f", labels {labels}" if labels else ""
    return f"{series.metric}{k} of {series.workflow} (version {series.version}{shown})"


def _date(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
