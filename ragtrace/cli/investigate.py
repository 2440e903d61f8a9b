"""Command ``ragtrace investigate``, which says what fell, since when, at which stage and where."""

from __future__ import annotations

import json
import sys
import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragtrace.cli.io.answers import file_answers, find_line, is_store, source_of
from ragtrace.cli.io.arguments import AsJson, Source, Store, Workflow
from ragtrace.cli.io.jsonl_reader import JSON_ESCAPES
from ragtrace.cli.io.label_ids import LabelIds
from ragtrace.cli.io.say import say
from ragtrace.cli.io.stored import MOMENT, moment, opened_store, store_path
from ragtrace.errors import ConfigError
from ragtrace.views.scored_answer import stored_answer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ragtrace.model import RagRecord
    from ragtrace.model.codec import ScoreJson
    from ragtrace.scoring.investigation.runs import Source as Scores
    from ragtrace.stores.sqlite import SqliteStore

FALLEN = 3
"""Exit status of ``--check`` where something fell."""
TOO_FEW = 4
"""Exit status of ``--check`` where there are too few scores to tell."""
EPILOG = """\
Looks at windows of 1.5 hours to 7 days that end with the last run, and takes the one in which the mean is most
surely worse than before. All figures are of the runs since that onset against those before. "Fell" is said of a
mean that is worse by more than 0.02 of its scale, by 3.25 standard errors that count how much such windows always
differ. Where all runs together show nothing, parts of the traffic are looked at in the same way, by 4.5. By chance
alone that happens in at most 5 % of the months in which somebody looks each day.

Where: a part of the traffic is named where the mean would have changed clearly less without it. Runs count by
their weights, and sessions (else runs of one question) as one. At most 5 % of named parts are expected to stand
there by chance. A part is left out if most of its runs are in parts named before it. Searched are workflow,
environment, data source, tag, source of the passages, model, prompt, K, language, kind and length of the question.

Changed: facts whose value nearly all runs changed, such as the model. This need not be the cause.

Exit status: 0 it answered, 2 usage, a failure, or too few scores. With --check: 0 nothing fell, 3 something did,
4 too few scores.
"""


def command(
    source: Source = None,
    *,
    store: Store = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Investigate this metric. Default: the one that changed for the worse most surely."
        ),
    ] = None,
    workflow: Workflow = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="WHEN", help=f"Begin of the window: {MOMENT}. Default: the surest step is looked for."
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="WHEN", help="End of the window. Default: now, or a file's last record.")
    ] = None,
    before: Annotated[
        str, typer.Option(metavar="WHEN", help="Begin of the time that the window is compared with.")
    ] = "14d",
    as_status: Annotated[
        bool, typer.Option("--check", help="Exit 3 where something fell, 4 with too few scores, else 0.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Say what fell, since when, at which stage and in which part of the traffic."""
    from ragtrace.scoring.investigation.comparison import NoMetric, TooFewScores
    from ragtrace.scoring.investigation.lines import report
    from ragtrace.scoring.investigation.runs import ScoredSource, StoreSource
    from ragtrace.scoring.investigation.search import investigated

    if source is not None and store is not None:
        raise ConfigError("investigate: give the store once: STORE or --store STORE")
    name = str(store_path(store, "investigate")) if store is not None else source_of(source)
    label_ids = LabelIds()
    with opened_store(Path(name)) if is_store(name) else nullcontext() as opened:
        if opened is not None:
            now = time.time()
            scores: Scores = StoreSource(opened, workflow=workflow)
        else:
            scores = scored = ScoredSource(_read(name, workflow, label_ids), workflow=workflow)
            now = _last(scored.times(), name)
        begin, end = moment(before, now), moment(until, now) if until else now
        named = moment(since, now) if since is not None else None
        if not begin < (end if named is None else named) <= end:
            raise ConfigError("--before, --since and --until: each must lie before the next")
        try:
            found = investigated(scores, metric=metric, before=begin, until=end, since=named)
        except (TooFewScores, NoMetric) as error:
            if not as_status or (metric is not None and isinstance(error, NoMetric)):
                raise
            say(json.dumps({"is_fallen": None, "error": str(error)}) if as_json else str(error))
            return TOO_FEW
        warnings = [*filter(None, [label_ids.warning()])]
        if as_json:
            figures = {**found.to_json(), "warnings": warnings}
            say(json.dumps(figures, ensure_ascii=False, indent=2).translate(JSON_ESCAPES))
        else:
            shown = "FILE" if name == "-" else name
            show = f"ragtrace show {shown}{'' if opened is not None else ' --id'}"
            for line in report(found, partial(_texts, name, opened), show):
                say(line)
    for warning in warnings:
        say(f"ragtrace: warning: {warning}", file=sys.stderr)
    return FALLEN if as_status and found.is_fallen else 0


def _read(
    name: str, workflow: str | None, label_ids: LabelIds
) -> Iterator[tuple[RagRecord, Mapping[str, ScoreJson]]]:
    for answer in file_answers(name):
        if workflow is None or answer.record.workflow == workflow:
            label_ids.add(answer.record)
        yield answer.record, answer.scores


def _last(times: list[float], name: str) -> float:
    if not times:
        raise ConfigError(f"{name}: no record is of this --workflow")
    last = max(times)
    if not last:
        raise ConfigError(f"{name}: its records have no times (ended or started), so nothing is before or after")
    return last + 1e-3  # the end of a window is exclusive


def _texts(name: str, store: SqliteStore | None, trace_id: str) -> list[str]:
    """Return the question and the worst claim of a trace, where they can be read again."""
    from ragtrace.scoring.investigation.lines import example_texts

    if name == "-":
        return []
    answer = (
        stored_answer(store, trace_id)
        if store is not None
        else find_line(name, trace_id, is_id=True, is_quiet=True)
    )
    return example_texts(answer.record, answer.standing.claims) if answer.has_texts else []
