"""``ragtrace score FILE``: scores a file of RAG answers."""

from __future__ import annotations

import argparse
import asyncio
import sys
from contextlib import aclosing, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ragtrace.cli.io.arguments import cutoffs, positive
from ragtrace.cli.io.jsonl_reader import BrokenLines, Line, open_lines, read_lines
from ragtrace.cli.io.jsonl_writer import ScoredLines, done_before
from ragtrace.cli.io.say import say
from ragtrace.cli.io.summary import Summary, limits_from, maker_text
from ragtrace.cli.worst import WorstAnswers
from ragtrace.errors import ConfigError, InputError

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterator

    from ragtrace.metrics.base import Output
    from ragtrace.scoring import Scorer

EPILOG = """\
Input: JSON lines, plain or gzip. A line is a record (`ragtrace schema`), or just
{"query": ..., "answer": ..., "contexts": ["...", ...]}. Records of ragas and DeepEval
are read under their names (user_input, response, retrieved_contexts; input, actual_output,
retrieval_context, expected_output). Other fields stay in the output and are read by no
metric; a warning names them. An answer that is missing is na, and one that is blank is of
an application that answered nothing.
Output: each line as it was, with its id (or line number) and "scores", written as
soon as it is scored, and so not always in the order of the input. The summary goes
to standard error where the lines go to standard output, else to standard output.
Means are over one K and one label scale; other K or scales have rows of their own, and a
threshold over several of them is missed: give --k-values.
Resuming: a line is known by its id, lines of one id by their order in the file. Lines
that stand in --out are not scored again, also those whose scores are errors, of another
judge or of other metrics; a warning tells.
Exit status: 0 fine, 1 broken lines (the rest is scored), 2 usage, 3 a threshold was
missed or had no score to measure, or a metric has no value since the judge failed on
every line that has one to judge (also when lines are broken), 130 stopped by Ctrl-C.
"""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "score",
        help="score a file of RAG answers",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("file", help="JSON lines, gzip too; - reads standard input")
    add("--metrics", help="names, separated by commas, as `ragtrace metrics` lists them; or all")
    add("--judge", help="overlap (offline, the default) or openai:MODEL; several, with commas, are a panel")
    add("--judge-repeats", type=positive, metavar="N", help="ask each judge so often, with other seeds (1)")
    add("--consensus", metavar="RULE", help="how several judges become one number: mean (the default) or median")
    add("--base-url", help="an OpenAI-compatible server for the judge")
    add("--grading", metavar="SCALE", help="scale of the judge's grades: direct5, umbrela or umbrela_strict")
    add("--unfused", action="store_true", help="ask the judge step by step, to compare with fused calls; dearer")
    add("--grade-cache", metavar="FILE", help="keep grades there, and ask for none twice; or memory (default), off")
    add("--embedder", help="overlap (offline, the default), local or local:FOLDER (offline), or openai:MODEL")
    add("--pairs", metavar="onnx:FOLDER", help="a local model that scores pairs, for the metric hallucination")
    add("--k-values", help="cut-offs of @K metrics, separated by commas; default the number of contexts")
    add("--out", help="where scored lines go; default standard output")
    add("--jobs", type=positive, default=8, help="records scored at once (8)")
    add("--limit", type=positive, help="read no further than so many good lines")
    add("--resume", action="store_true", help="go on with --out: what stands there is not scored again")
    add("--fail-under", action="append", default=[], metavar="METRIC=VALUE", help="exit 3 when its mean is worse")


def run(args: argparse.Namespace) -> int:
    """Score the file; see `EPILOG` for the exit status."""
    from ragtrace.service.judges import left_out_text

    scorer = _scorer(args)
    outputs: dict[str, Output] = {o.name: o for metric in scorer.metrics for o in metric.spec.outputs}
    limits = limits_from(args.fail_under, outputs, scorer.options.k_values)
    if args.resume and args.out in {None, "-"}:
        raise ConfigError("--resume needs --out: the file to go on with")
    summary = Summary(_asked(scorer) if args.resume else None)
    stream = open_lines(args.file)
    worst = WorstAnswers(outputs)
    done = done_before(Path(args.out), _taking(summary, worst, args.out)) if args.resume else None
    before = summary.lines
    out = ScoredLines(args.out, is_resumed=args.resume)
    is_interrupted = False
    try:
        asyncio.run(_score(args, scorer, stream, out, summary, worst, done))
    except KeyboardInterrupt:
        is_interrupted = True
    except InputError:
        out.discard_if_empty()
        raise
    finally:
        out.close()
    missed = [*summary.missed(limits), *filter(None, [summary.unjudged()])]
    _report(args, summary, worst, missed, before, left_out_text(scorer), is_interrupted=is_interrupted)
    if is_interrupted:
        return 130
    return 3 if missed else 1 if summary.broken else 0


def _scorer(args: argparse.Namespace) -> Scorer:
    from ragtrace.service.judges import build_scorer
    from ragtrace.settings import Settings

    given = {
        "metrics": args.metrics or None,
        "judge": args.judge,
        "judge_repeats": args.judge_repeats,
        "consensus": args.consensus,
        "judge_base_url": args.base_url,
        "grading": args.grading,
        "batch_metrics": False if args.unfused else None,
        "grade_cache": args.grade_cache,
        "embedder": args.embedder,
        "pairs": args.pairs,
        "k_values": cutoffs(args.k_values),
    }
    return build_scorer(Settings.resolve(given))


def _asked(scorer: Scorer) -> dict[str, str | None]:
    """Return every output that is asked for, with its maker where that is known before any record."""
    from ragtrace.metrics.evaluate import expected

    given = expected(scorer.metrics, scorer.judge, scorer.embedder, scorer.options, scorer.pairs)
    makers = {one.name: maker_text(one.judge.model if one.judge else None, one.version) for one in given}
    outputs = (output.name for metric in scorer.metrics for output in metric.spec.outputs)
    return {name: makers.get(name) for name in outputs}


async def _score(
    args: argparse.Namespace,
    scorer: Scorer,
    stream: IO[bytes],
    out: ScoredLines,
    summary: Summary,
    worst: WorstAnswers,
    done: Counter[str] | None,
) -> None:
    from ragtrace.cli.io.progress import progress
    from ragtrace.model.codec import score_to_json
    from ragtrace.scoring.offline.file import score_stream

    broken = BrokenLines(args.file)
    lines = _wanted(read_lines(stream, args.file, broken), done, args.limit)
    items = ((line, line.record) for line in lines)
    with progress(args.file, limit=args.limit, done_before=sum(done.values()) if done else 0) as step:
        async with aclosing(score_stream(items, scorer, jobs=args.jobs)) as scored:
            async for line, results in scored:
                scores = {result.key: score_to_json(result) for result in results}
                out.write(line.scored(scores))
                summary.add(scores)
                worst.add(line.record, scores, f"{args.file}:{line.number}")
                summary.unknown.update(line.unknown)
                step()
    summary.broken = broken.count
    broken.close()


def _wanted(lines: Iterator[Line], done: Counter[str] | None, limit: int | None) -> Iterator[Line]:
    """Pass over what an earlier run has scored: the n-th line of an id is matched with its n-th score."""
    given = 0
    for line in lines:
        if limit is not None and given >= limit:
            return
        given += 1
        if done is not None and done[line.record.id] > 0:
            done[line.record.id] -= 1
            continue
        yield line


def _taking(summary: Summary, worst: WorstAnswers, name: str) -> Callable[[dict[str, Any]], None]:
    """Return what takes a line of an earlier run into the summary."""
    from ragtrace.model.codec import record_from_json

    def take(line: dict[str, Any]) -> None:
        summary.add(line["scores"])
        with suppress(InputError):  # it was written by another version: its scores count all the same
            worst.add(record_from_json(line, fallback_id=""), line["scores"], name)

    return take


def _report(
    args: argparse.Namespace,
    summary: Summary,
    worst: WorstAnswers,
    missed: list[str],
    before: int,
    left_out: str,
    *,
    is_interrupted: bool,
) -> None:
    from ragtrace.cli.io.console import Shown

    to_file = args.out not in {None, "-"}
    console = Shown(stderr=not to_file)
    summary.show(console)
    if left_out:
        console.print(left_out)
    for warning in summary.warnings():
        console.print(f"warning: {warning}")
    where = f" in {args.out}" if to_file else ""
    now = f" now{where}, {before} there already" if args.resume else where
    console.print(f"{summary.lines - before} scored{now}, {summary.broken} broken")
    for line in worst.lines(console.width, args.out if to_file else None):
        console.print(line)
    for line in missed:
        say(f"ragtrace: {line}", file=sys.stderr)
    if is_interrupted:
        hint = "the same command with --resume goes on" if to_file else "with --out FILE a run can be resumed"
        say(f"ragtrace: stopped; {summary.lines} lines are written, {hint}", file=sys.stderr)
