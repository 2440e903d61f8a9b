"""Command ``ragtrace export``, which writes rows of a store."""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Literal

import typer

from ragtrace.cli.io.arguments import Since, Store, Until, Workflow
from ragtrace.cli.io.jsonl_reader import one_line
from ragtrace.cli.io.say import say
from ragtrace.cli.io.stored import moment, opened_store, store_path
from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ragtrace.stores.sqlite import SqliteStore

_CACHED = 64  # traces with their texts at hand; rows of one trace stand together
EPILOG = """\
A row is a score, a human label (source=human) or a label of another judge (source=foreign). Rows of one trace have
one trace_id. Weighted means: the random stratum alone, sum(weight * value) / sum(weight).
CSV is safe to open in a spreadsheet: a text that it could take
for a formula begins with an apostrophe. Where the store has a trace's texts (content=full: those of store_texts),
its rows have query, answer and contexts too. kept_for says why they were kept: low, failed or flagged; sample (1 %
of the others); or all (store_texts=all). It is empty where none were.

Exit status: 0 written (also when nothing fits), 2 usage or a failure; an --out that failed is removed.
"""


def command(
    source: Annotated[str | None, typer.Argument(metavar="STORE", help="The same as --store.")] = None,
    *,
    store: Store = None,
    form: Annotated[Literal["jsonl", "csv"], typer.Option("--format", help="Form of the rows.")] = "jsonl",
    out: Annotated[
        str, typer.Option(metavar="FILE", help="Write the rows into this new file; - is standard output.")
    ],
    since: Since = None,
    until: Until = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Take this metric alone, by a name that `ragtrace metrics` lists or that stands in the store.",
        ),
    ] = None,
    workflow: Workflow = None,
    no_texts: Annotated[
        bool, typer.Option("--no-texts", help="Leave query, answer and contexts empty, also where they were kept.")
    ] = False,
) -> int:
    """Write the scores of a store as JSON lines or CSV."""
    from ragtrace.cli.io.row_writers import writer_of
    from ragtrace.stores.base import exported_source

    if source is not None and store is not None:
        raise ConfigError("export: give the store once: STORE or --store STORE")
    path = store_path(store or source, "export")
    now = time.time()
    earliest = moment(since, now) if since else 0.0
    latest = moment(until, now) if until else None
    names, unknown = _names(metric)
    count = 0
    with opened_store(path) as opened, _out(out) as stream, writer_of(form, stream) as write:
        facts_of = lru_cache(_CACHED)(lambda trace_id: _facts(opened, trace_id, has_texts=not no_texts))
        for name in names:
            for row in opened.rows(since=earliest, until=latest, metric=name, workflow=workflow):
                shown = exported_source(row)
                write({**shown, **facts_of(row["trace_id"])})
                count += 1
        if unknown is not None and not count:
            raise unknown
    say(f"{count} rows{'' if out == '-' else f' in {out}'}", file=sys.stderr)
    return 0


def _facts(store: SqliteStore, trace_id: str, *, has_texts: bool) -> dict[str, str | None]:
    kept_for = store.kept_for(trace_id)
    record = store.record(trace_id) if has_texts else None
    if record is None:
        return {"kept_for": kept_for}
    contexts = [{"id": passage.id, "text": passage.text} for passage in record.contexts]
    return {
        "kept_for": kept_for,
        "query": record.query,
        "answer": record.answer,
        "contexts": one_line(contexts),
    }


def _names(metric: str | None) -> tuple[tuple[str | None, ...], ConfigError | None]:
    """Return the names of a metric in a store, and the error of an unknown one."""
    from ragtrace.metrics.registry import select
    from ragtrace.stores.base import FEEDBACK

    if metric is None or metric == "all":
        return (None,), None
    try:
        outputs = [output.name for one in select([metric]) for output in one.spec.outputs]
    except ConfigError as error:  # a label may have any name
        return (metric,), None if metric == FEEDBACK else error
    return (metric,) if metric.partition("@")[0] in outputs else (metric, *outputs), None


@contextmanager
def _out(name: str) -> Iterator[IO[bytes]]:
    """Open a new file for its owner alone; remove it when it cannot be finished."""
    if name == "-":
        yield sys.stdout.buffer
        return
    try:
        stream = os.fdopen(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
    except FileExistsError:
        raise ConfigError(f"{name} exists; choose another --out") from None
    except OSError as error:
        raise ConfigError(f"{name}: {error.strerror or error}; choose another --out") from None
    try:
        with stream:
            yield stream
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise ConfigError(f"{name}: {error.strerror or error}; make room, or choose another --out") from None
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
