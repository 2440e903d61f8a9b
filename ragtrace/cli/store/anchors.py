"""Command ``ragtrace anchors``, which keeps runs that tell whether the judge changed."""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
import time
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ragtrace.cli.io.arguments import AsJson, BaseUrl, Jobs, Judge, Metrics, Store, Workflow
from ragtrace.cli.io.jsonl_reader import JSON_ESCAPES
from ragtrace.cli.io.say import say
from ragtrace.cli.io.stored import opened_store, store_path
from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ragtrace.scoring import Scorer
    from ragtrace.scoring.anchors.choosing import Band
    from ragtrace.scoring.anchors.reference import Reference
    from ragtrace.scoring.limits import JudgeLimiter
    from ragtrace.service.anchors.monitor import AnchorState
    from ragtrace.settings import Settings
    from ragtrace.stores.anchors import Anchor, AnchorScore, AnchorSeries, UnfinishedReference
    from ragtrace.stores.sqlite import SqliteStore

LEAST, MOST, DEFAULT = 50, 300, 200
EPILOG = """\
An anchor is a run that stays in the store with its question, answer and passages, so content=full is needed.
Neither age nor size deletes it, but `ragtrace forget` and `ragtrace anchors drop` do. A running scorer with the
same store scores each anchor once a day under a budget of its own (anchors_every_s, anchors_usd_per_day,
anchors_tokens_per_day), and compares it with the reference that `freeze` made. So it sees a judge that changed
behind the same name. Each judge version has a reference of its own. A new one learns it in its first rounds.
With --again the old reference of the same judge and metrics stays in use until the new one is complete, and the
references of other judges and metrics stay as they are. A command that was stopped goes on when it is run again
within a day.

Exit status: 0 done, 1 the judge did not score every run, 2 usage or a failure, 130 stopped by Ctrl-C.
"""

command = typer.Typer(
    help="Keep runs that tell whether the judge changed.", epilog=EPILOG, rich_markup_mode="markdown"
)


class _RoundOptions(NamedTuple):
    repeats: int
    jobs: int


@command.command()
def freeze(
    *,
    store: Store = None,
    n: Annotated[
        int, typer.Option("--n", min=LEAST, max=MOST, metavar="N", help="Number of runs, 50 to 300.")
    ] = DEFAULT,
    workflow: Workflow = None,
    file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Take the runs of a file of records, not those that the store kept."),
    ] = None,
    metrics: Metrics = None,
    judge: Judge = None,
    base_url: BaseUrl = None,
    repeats: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=10,
            metavar="N",
            help="Reference scores of each run, to measure noise. Default: 3, or 1 for the offline judge.",
        ),
    ] = None,
    again: Annotated[
        bool,
        typer.Option("--again", help="Keep the runs of before, and replace this judge's reference by a new one."),
    ] = False,
    jobs: Jobs = 4,
) -> int:
    """Choose runs over all bands of scores, score them, and keep both."""
    from ragtrace.judges.registry import costs
    from ragtrace.service.anchors.build import judged_metrics, reference_signature
    from ragtrace.service.judges import build_scorer
    from ragtrace.settings import Settings

    settings = Settings.resolve({"metrics": metrics, "judge": judge, "judge_base_url": base_url})
    options = _RoundOptions(repeats or (3 if costs(settings.judge.name) else 1), jobs)
    is_new = file is not None
    with opened_store(store_path(store, "anchors", is_new=is_new), is_new=is_new) as opened:
        _check(opened, settings, again=again)
        scorer = build_scorer(settings)
        if not judged_metrics(scorer):
            raise ConfigError(f"anchors freeze: judge {settings.judge.name!r} computes none of the metrics")
        if again:
            return _frozen_again(opened, settings, scorer, options)
        done = _resumed(opened, scorer, options)
        if done is not None:
            return _frozen(opened, settings, scorer, options, done)
        chosen = _chosen(opened, settings, n, workflow, file)
        opened.anchors.replace(chosen, repeats=options.repeats, signature=reference_signature(scorer))
        return _frozen(opened, settings, scorer, options, {})


@command.command()
def show(*, store: Store = None, as_json: AsJson = False) -> int:
    """Show how far each judge is from its reference."""
    from ragtrace.service.anchors.monitor import DEFAULT_EVERY_S, FRESH_ROUNDS, anchors_period_s, state_of
    from ragtrace.settings import Settings

    every_s = anchors_period_s(Settings.resolve({})) or DEFAULT_EVERY_S
    with opened_store(store_path(store, "anchors")) as opened:
        facts = opened.anchors.facts()
        series = opened.anchors.series(fresh_s=FRESH_ROUNDS * every_s)
        states = [(it, state_of(it)) for it in series]
        unfinished = opened.anchors.unfinished()
        if as_json:
            kept: dict[str, object] = {"n": facts.n, "repeats": facts.repeats, "frozen_at": _date(facts.frozen_at)}
            kept["unfinished"] = _plain_unfinished(unfinished) if unfinished is not None else None
            text = json.dumps(kept | {"metrics": [_plain(*it) for it in states]}, ensure_ascii=False, indent=2)
            say(text.translate(JSON_ESCAPES))
        elif not facts.n:
            say(f"{opened.path}: there are no anchors; `ragtrace anchors freeze` keeps some")
        else:
            say(f"{facts.n} anchors, frozen {_date(facts.frozen_at)} (reference: runs x scores of each)")
            _table(states)
            if unfinished is not None:
                say(_said_unfinished(unfinished))
    return 0


@command.command()
def drop(*, store: Store = None) -> int:
    """Delete all anchors with their texts and scores."""
    with opened_store(store_path(store, "anchors")) as opened:
        dropped = opened.anchors.drop()
        if dropped:
            opened.empty_journal()
        say(f"{dropped} anchors dropped")
    return 0


def _check(store: SqliteStore, settings: Settings, *, again: bool) -> None:
    if settings.content != "full":
        raise ConfigError(
            "anchors freeze: content=none forbids to keep the texts of runs: set RAGTRACE_CONTENT=full"
        )
    if again and not store.anchors.facts().n:
        raise ConfigError("anchors freeze --again: there are no anchors; leave --again out")


def _resumed(store: SqliteStore, scorer: Scorer, options: _RoundOptions) -> dict[int, int] | None:
    """Return the scores of a stopped first `freeze` by anchor; None without any anchors."""
    from ragtrace.service.anchors.build import reference_signature

    n = store.anchors.facts().n
    if not n:
        return None
    judge = scorer.judge.name if scorer.judge is not None else ""
    signature = reference_signature(scorer)
    done = store.anchors.resume_first(repeats=options.repeats, signature=signature, judge=judge)
    if done is not None:
        there = f"{sum(done.values())} of {n * options.repeats} scores are there"
        say(f"ragtrace: going on with the {n} anchors of the stopped freeze; {there}", file=sys.stderr)
        return done
    unfinished = store.anchors.unfinished()
    same = ""
    if unfinished is not None and unfinished.is_first:
        same = " the stopped freeze goes on with the same judge, metrics and --repeats;"
    raise ConfigError(
        f"anchors freeze: {n} anchors are kept already:{same} --again makes a new reference for them, and"
        " `ragtrace anchors drop` deletes them"
    )


def _chosen(store: SqliteStore, settings: Settings, n: int, workflow: str | None, file: str | None) -> list[Anchor]:
    from ragtrace.cli.io.anchor_runs import file_candidates, labelled, stored_candidates
    from ragtrace.scoring.anchors.choosing import choose
    from ragtrace.service.baselines import watched_outputs

    traffic: dict[int, float] | None = None
    if file is None:
        since = time.time() - settings.store.payload_hours * 3_600.0
        found, traffic = stored_candidates(store, watched_outputs(), workflow, since=since)
        hint = "the store keeps records with content=full, for store_payload_hours; or give --file"
    else:
        found = file_candidates(file, watched_outputs(), workflow)
        hint = "add records to the file"
    if len(found) < LEAST:
        raise ConfigError(f"anchors freeze: {LEAST} runs are needed, and there are {len(found)}: {hint}")
    anchors, bands = choose(found, n, seed=secrets.randbits(32), traffic=traffic)
    for line in _short_bands(bands, is_file=file is not None):
        say(line, file=sys.stderr)
    return labelled(store, anchors)


def _short_bands(bands: dict[int, Band], *, is_file: bool) -> list[str]:
    from ragtrace.scoring.anchors.choosing import EDGES

    edges = (0.0, *EDGES, 1.0)
    more, some = (
        ("", "") if is_file else (" (a file of records may have more)", " (a file of records may have some)")
    )
    said = []
    for band, it in sorted(bands.items()):
        of = f"from {edges[band]:g} to {edges[band + 1]:g}"
        if it.missing and it.kept:
            said.append(
                f"few runs {of}: {it.kept}, {it.kept + it.missing} were wanted for {it.share:.0%} of the traffic;"
                f" intervals are wider for that{more}"
            )
        elif it.missing:
            said.append(f"no runs {of}: anchors will say nothing of {it.share:.0%} of the traffic{some}")
    return said


def _frozen(
    store: SqliteStore, settings: Settings, scorer: Scorer, options: _RoundOptions, done: Mapping[int, int]
) -> int:
    """Score the anchors into their first reference."""
    anchors = store.anchors.all()
    rest = "the same command goes on from here within a day"
    try:
        reference = _scored(settings, scorer, anchors, options, note=store.anchors.note, done=done)
    except KeyboardInterrupt:
        say(f"ragtrace: stopped; {rest}", file=sys.stderr)
        return 130
    if not reference.stopped_by:
        store.anchors.finish_first()
        rest = _left_out(settings)
    return _told(settings, reference, len(anchors), options, rest)


def _frozen_again(store: SqliteStore, settings: Settings, scorer: Scorer, options: _RoundOptions) -> int:
    """Score the anchors into a draft, which replaces the reference at the end."""
    from ragtrace.service.anchors.build import reference_signature

    anchors = store.anchors.all()
    done = store.anchors.begin_draft(repeats=options.repeats, signature=reference_signature(scorer))
    rest = "the old reference stays in use, and the same command goes on from here within a day"
    try:
        reference = _scored(settings, scorer, anchors, options, note=store.anchors.note_draft, done=done)
    except KeyboardInterrupt:
        say(f"ragtrace: stopped; {rest}", file=sys.stderr)
        return 130
    if not reference.stopped_by and store.anchors.adopt_draft():
        rest = _left_out(settings)
    elif reference.n == len(anchors) * options.repeats:
        say(
            "ragtrace: too few runs have a value of the judge, or another command changed the anchors meanwhile;"
            " the old reference stays in use",
            file=sys.stderr,
        )
        return 1
    return _told(settings, reference, len(anchors), options, rest)


def _scored(
    settings: Settings,
    scorer: Scorer,
    anchors: list[Anchor],
    options: _RoundOptions,
    *,
    note: Callable[[Anchor, Sequence[AnchorScore]], None],
    done: Mapping[int, int],
) -> Reference:
    from ragtrace.scoring.anchors.reference import Reference
    from ragtrace.service.anchors.build import anchor_settings, watched_metrics
    from ragtrace.service.judges import build_scorer

    own = anchor_settings(settings, scorer)
    with ExitStack() as stack:
        limiter = _limiter(settings, stack)
        names = watched_metrics(scorer)
        reference = Reference(note, build_scorer(own, limiter), watched=names, jobs=options.jobs, limiter=limiter)
        asyncio.run(_work(reference, anchors, options.repeats, done))
    return reference


def _left_out(settings: Settings) -> str:
    """Say who scores the runs that the judge could not score."""
    from ragtrace.service.anchors.monitor import anchors_period_s

    if anchors_period_s(settings):
        return "the scorer's rounds complete the reference"
    return "these runs stay without a whole reference"


def _told(settings: Settings, reference: Reference, n: int, options: _RoundOptions, rest: str) -> int:
    from ragtrace.service.anchors.monitor import anchors_period_s

    wanted = n * options.repeats
    say(f"{n} anchors, {reference.n} of {wanted} scores of the reference")
    if not anchors_period_s(settings):
        say("no scorer will score them again: see the setting anchors_every_s (off for the offline judge)")
    if reference.n < wanted:
        why = reference.stopped_by or reference.failed_by
        say(f"ragtrace: {wanted - reference.n} scores are missing ({why}); {rest}", file=sys.stderr)
        return 1
    return 0


async def _work(reference: Reference, anchors: list[Anchor], repeats: int, done: Mapping[int, int]) -> None:
    from ragtrace.cli.io.progress import progress

    try:
        with progress("-", done_before=sum(done.values())) as step:
            await reference.run(anchors, repeats, done=done, step=step)
    finally:
        await reference.aclose()


def _limiter(settings: Settings, stack: ExitStack) -> JudgeLimiter | None:
    from ragtrace.service.judges import is_limited
    from ragtrace.service.limits import BACKFILL, build_limiter

    return stack.enter_context(closing(build_limiter(settings, account=BACKFILL))) if is_limited(settings) else None


def _table(states: list[tuple[AnchorSeries, AnchorState]]) -> None:
    from rich.table import Table

    from ragtrace.cli.io.console import Shown

    table = Table(box=None, pad_edge=False)
    for name in (
        "metric",
        "judge",
        "version",
        "K",
        "reference",
        "now",
        "change",
        "95 % interval",
        "state",
        "people",
    ):
        table.add_column(name, justify="right" if name in {"reference", "now", "change"} else "left", no_wrap=True)
    for series, state in states:
        change = state.change
        table.add_row(
            series.key.metric,
            series.key.judge,
            series.key.version,
            "" if series.key.k is None else str(series.key.k),
            f"{series.n_reference} x {series.repeats}",
            str(state.n),
            "" if change is None else f"{change.mean:+.3f}",
            "" if change is None else f"{change.low:+.3f} to {change.high:+.3f}",
            state.state,
            _people(series),
        )
    Shown().print(table)


def _people(series: AnchorSeries) -> str:
    """Return the mean distance to human labels, by the reference and now."""
    if not series.labelled:
        return ""
    then = fmean(abs(label - reference) for label, reference, _ in series.labelled)
    later = [(label, now) for label, _, now in series.labelled if now is not None]
    now = f", now {fmean(abs(label - it) for label, it in later):.2f}" if later else ""
    return f"off by {then:.2f}{now} ({len(series.labelled)} labels)"


def _plain(series: AnchorSeries, state: AnchorState) -> dict[str, object]:
    change = state.change
    return {
        "metric": series.key.metric,
        **series.key.maker(),
        "n_reference": series.n_reference,
        "repeats": series.repeats,
        "n": state.n,
        "state": state.state,
        "mean": change.mean if change else None,
        "low": change.low if change else None,
        "high": change.high if change else None,
        "labelled": len(series.labelled),
    }


def _said_unfinished(it: UnfinishedReference) -> str:
    which, option = ("the first reference", "") if it.is_first else ("a new reference", " --again")
    of = f" of {it.judge}" if it.judge else ""
    return (
        f"{which}{of} is not complete: {it.n_scores} of {it.n_wanted} scores; the same `ragtrace anchors"
        f" freeze{option}` goes on from there until {_date(it.until)}"
    )


def _plain_unfinished(it: UnfinishedReference) -> dict[str, object]:
    return {
        "judge": it.judge,
        "is_first": it.is_first,
        "scores": it.n_scores,
        "wanted": it.n_wanted,
        "until": _date(it.until),
    }


def _date(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
