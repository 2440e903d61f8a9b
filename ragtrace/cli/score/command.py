"""Command ``ragtrace score PATH``, which scores files of RAG answers."""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragtrace.cli.io.arguments import (
    BaseUrl,
    Embedder,
    Jobs,
    Judge,
    KValues,
    Limit,
    Metrics,
    Pairs,
    Resume,
    cutoffs,
    option,
)
from ragtrace.cli.io.jsonl_reader import BrokenLines, Line, as_record, open_lines, read_lines
from ragtrace.cli.io.jsonl_writer import ScoredLines, done_before
from ragtrace.cli.io.progress import progress
from ragtrace.cli.io.say import say
from ragtrace.cli.io.summary import Summary, limits_from, maker_text
from ragtrace.cli.score.parts import is_for_parts, score_parts
from ragtrace.cli.score.spending import Spending
from ragtrace.cli.worst import WorstAnswers
from ragtrace.errors import ConfigError, InputError
from ragtrace.model.printable import count_text

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterable, Iterator

    from ragtrace.cli.io.jsonl_writer import ScoredLine
    from ragtrace.model.codec import ScoreJson
    from ragtrace.scoring import Scorer
    from ragtrace.scoring.offline.file import Scores

EPILOG = """\
Input: JSON lines, plain or gzip. A line is a record (`ragtrace schema`), or just
{"query": ..., "answer": ..., "contexts": ["...", ...]}. Records of ragas and DeepEval
are read under their names (user_input, response, retrieved_contexts; input, actual_output,
retrieval_context, expected_output). Metrics ignore other fields, which stay in the output;
a warning names them. A missing answer gives na. An empty string counts as an empty answer.

Output: each line as it was, with its id and "scores". A row without an id gets its
line number; in folders and other files, a hash of its query. A line is written as soon as
it is scored, so the order of the input may change. The summary goes to standard
error where the lines go to standard output, else to standard output.

Each mean is over one K and one label scale; other K or scales have rows of their own. A
threshold over several of them is missed, so give --k-values.

Resuming matches lines by id, and lines of one id by their order in the file. Lines in
--out are not scored again. That includes errors and scores of another judge or other
metrics; a warning names them.

Several files: PATH is a folder, a pattern, a Parquet or CSV file, or an address such as
s3://bucket/runs; --engine takes a single file there too. They need the extra lake. Each file is split into parts
(row groups, ranges of bytes), and each part has an output of its own in the folder --out.
--resume goes on with the parts whose output is missing. Formats: records, ragas, phoenix,
langfuse, open_rag_eval, otlp; they are recognised by their columns.

Budgets: budget_usd_per_day and budget_tokens_per_day hold, of the same size as the scorer's and
apart from it. The parts of several files share them on the engine local; elsewhere each part has
its own. After --max-calls N, or when a budget is spent, the lines that are left are not written:
they stay unscored (budget_exceeded), and --resume goes on with them. So do parts.

Exit status: 0 fine, 1 broken lines, lines left by a budget, failed parts or files left out (the rest is scored;
with --resume also of the run before), 2 usage, 3 a threshold was
missed or had no score to measure, or a metric has no value since the judge failed on
every line that has one to judge (also when lines are broken), 130 stopped by Ctrl-C.
"""


def command(
    file: Annotated[
        str,
        typer.Argument(
            metavar="PATH", help="JSON lines, plain or gzip; - reads standard input. Or files, see below."
        ),
    ],
    *,
    metrics: Metrics = None,
    judge: Judge = None,
    judge_repeats: Annotated[int | None, option("judge_repeats", "N")] = None,
    consensus: Annotated[str | None, option("consensus", "RULE")] = None,
    base_url: BaseUrl = None,
    grading: Annotated[str | None, option("metric_options_grading", "SCALE")] = None,
    grade_cache: Annotated[str | None, option("grade_cache", "FILE")] = None,
    embedder: Embedder = None,
    pairs: Pairs = None,
    k_values: KValues = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Write scored lines there. Default: standard output. Of several files, a folder."
        ),
    ] = None,
    engine: Annotated[
        str | None, typer.Option(metavar="NAME", help="Score the parts of files on local, ray, spark or dask.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Parts that the engine scores at once.")
    ] = None,
    form: Annotated[
        str | None, typer.Option("--format", metavar="NAME", help="Format of the files. Default: by their columns.")
    ] = None,
    jobs: Jobs = 8,
    max_calls: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Make at most N calls of judge and embedder; the rest stays unscored."
        ),
    ] = None,
    limit: Limit = None,
    resume: Resume = False,
    fail_under: Annotated[
        list[str] | None, typer.Option(metavar="METRIC=VALUE", help="Exit with 3 when its mean is worse.")
    ] = None,
) -> int:
    """Score a file of RAG answers."""
    from ragtrace.service.judges import build_scorer, left_out_text
    from ragtrace.settings import Settings

    given = {
        "metrics": metrics or None,
        "judge": judge,
        "judge_repeats": judge_repeats,
        "consensus": consensus,
        "judge_base_url": base_url,
        "metric_options_grading": grading,
        "grade_cache": grade_cache,
        "embedder": embedder,
        "pairs": pairs,
        "metric_options_k_values": cutoffs(k_values),
    }
    settings = Settings.resolve(given)
    spending = Spending(settings, most_calls=max_calls)
    scorer = build_scorer(settings, spending.limiter)
    outputs = {output.name: output for metric in scorer.metrics for output in metric.spec.outputs}
    limits = limits_from(fail_under or [], outputs, scorer.options.k_values)
    if resume and out in {None, "-"}:
        raise ConfigError("--resume needs --out: the file to go on with")
    summary = Summary(_asked(scorer) if resume else None)
    if engine is not None or form is not None or is_for_parts(file):
        if limit is not None:
            raise ConfigError("--limit: it is for one local file of JSON lines; leave it out")
        if max_calls is not None:
            raise ConfigError("--max-calls: it is for one local file of JSON lines; leave it out")
        return score_parts(
            file, out, given, summary, limits,
            engine=engine or "local", workers=workers, form=form, jobs=jobs, is_resumed=resume,
        )  # fmt: skip
    worst = WorstAnswers(outputs)
    with closing(spending):
        is_whole = _score(file, out, scorer, summary, worst, spending, jobs=jobs, limit=limit, is_resumed=resume)
    _report(out, summary, worst, left_out_text(scorer), spending)
    missed = [*summary.missed(limits), *filter(None, [summary.unjudged()])]
    for line in missed:
        say(f"ragtrace: {line}", file=sys.stderr)
    hint = (
        "with --out FILE a run can be resumed" if out in {None, "-"} else "the same command with --resume goes on"
    )
    if not is_whole:
        say(f"ragtrace: stopped; {count_text(summary.lines, 'line')} written, {hint}", file=sys.stderr)
        return 130
    if spending.left:
        say(
            f"ragtrace: {count_text(spending.left, 'line')} left unscored ({spending.why}); {hint}", file=sys.stderr
        )
    return 3 if missed else 1 if summary.broken or spending.left else 0


def _score(
    file: str,
    out: str | None,
    scorer: Scorer,
    summary: Summary,
    worst: WorstAnswers,
    spending: Spending,
    *,
    jobs: int,
    limit: int | None,
    is_resumed: bool,
) -> bool:
    """Score and write the lines of a file; False when Ctrl-C ended that."""
    stream, broken = open_lines(file), BrokenLines(file)
    done: Counter[str] | None = None
    if is_resumed and out is not None:
        done = done_before(Path(out), _taking(summary, worst, out))
        summary.before = summary.lines
    with closing(ScoredLines(out, is_resumed=is_resumed)) as lines:

        def add(line: Line, scores: dict[str, ScoreJson]) -> None:
            if not spending.covers(scores):
                return
            lines.write(line.scored(scores))
            summary.add(scores, line.record)
            worst.add(line.record, scores, f"{file}:{line.number}")
            summary.unknown.update(line.unknown)
            step()

        try:
            with progress(file, limit=limit, done_before=done.total() if done else 0) as step:
                wanted = spending.counted(_wanted(read_lines(stream, file, broken), done, limit))
                asyncio.run(score_lines(wanted, scorer, jobs=jobs, add=add, fits=spending.fits))
                for _ in wanted:  # what is left is counted, and its broken lines are named
                    pass
                summary.broken = broken.count
                broken.close()
                if not (summary.lines or summary.broken or spending.left):
                    summary.without_records = ["<stdin>" if file == "-" else file]
        except KeyboardInterrupt:
            return False
        except InputError:
            lines.discard_if_empty()
            raise
    return True


def _asked(scorer: Scorer) -> dict[str, str | None]:
    """Return every requested output, with its maker where the settings tell it."""
    from ragtrace.metrics.evaluate import expected

    given = expected(scorer.metrics, scorer.judge, scorer.embedder, scorer.options, scorer.pairs)
    makers = {one.name: maker_text(one.judge.model if one.judge else None, one.version) for one in given}
    outputs = (output.name for metric in scorer.metrics for output in metric.spec.outputs)
    return {name: makers.get(name) for name in outputs}


async def score_lines(
    lines: Iterable[Line],
    scorer: Scores,
    *,
    jobs: int,
    add: Callable[[Line, dict[str, ScoreJson]], None],
    fits: Callable[[int], bool] = lambda _: True,
) -> None:
    """Score lines as they are read, and call `add` with each; `fits` is that of `score_stream`."""
    from ragtrace.model.codec import score_to_json
    from ragtrace.scoring.offline.file import score_stream

    items = ((line, line.record) for line in lines)
    async with aclosing(score_stream(items, scorer, jobs=jobs, fits=fits)) as scored:
        async for line, results in scored:
            add(line, {result.key: score_to_json(result) for result in results})


def _wanted(lines: Iterator[Line], done: Counter[str] | None, limit: int | None) -> Iterator[Line]:
    """Skip the lines that an earlier run scored, n-th line to n-th score of an id."""
    given = 0
    for line in lines:
        if limit is not None and given >= limit:
            return
        given += 1
        if done is not None and done[line.record.id] > 0:
            done[line.record.id] -= 1
            continue
        yield line


def _taking(summary: Summary, worst: WorstAnswers, name: str) -> Callable[[ScoredLine], None]:
    """Return a callback that adds a line of an earlier run to the summary."""
    from ragtrace.model.codec import record_from_json

    def take(line: ScoredLine) -> None:
        record = None
        with suppress(InputError):  # it was written by another version: its scores count all the same
            record = record_from_json(as_record(line), fallback_id="")
            worst.add(record, line["scores"], name)
        summary.add(line["scores"], record)

    return take


def _report(out: str | None, summary: Summary, worst: WorstAnswers, left_out: str, spending: Spending) -> None:
    from ragtrace.cli.io.console import Shown

    to_file = out not in {None, "-"}
    console = Shown(stderr=not to_file)
    summary.show(console)
    if spending.limiter is not None:
        console.print(str(spending.limiter.spent))
    if left_out:
        console.print(left_out)
    for warning in summary.warnings():
        console.print(f"warning: {warning}")
    where = f" in {out}" if to_file else ""
    now = where if summary.before is None else f" now{where}, {summary.before} there already"
    console.print(f"{summary.lines - (summary.before or 0)} scored{now}, {summary.broken} broken")
    for line in worst.lines(console.width, out if to_file else None):
        console.print(line)
