"""``ragtrace calibrate FILE --label FIELD``: how far a judge's scores agree with people."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import defaultdict, deque
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragtrace.cli.calibrate.label_reader import Labelled, good_lines, read_labelled
from ragtrace.cli.io.arguments import count, cutoffs, positive
from ragtrace.cli.io.jsonl_writer import ScoredLines, done_before
from ragtrace.cli.io.report_file import written
from ragtrace.cli.io.say import say
from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ragtrace.cli.io.jsonl_reader import Line
    from ragtrace.metrics.base import Output
    from ragtrace.scoring import Scorer
    from ragtrace.scoring.offline.calibrating import CalibrationScorer
    from ragtrace.scoring.offline.calibration import Calibration, Rated
    from ragtrace.settings import Settings

_COMPARED = "compared"  # of what is kept of a line: the score beside the label

EPILOG = """\
Input: JSON lines as `ragtrace score` reads them. --label names the field of the human
label: 0 or 1, 0 to 1, or a grade from 1 to 5; a list holds the labels of several
raters, and so does --label given more than once. A line without a label is scored
for the corrected mean alone; labelled lines should be a random choice of all.
A high label means what a high score means; --inverted where it is the opposite (for
example 1 = made up). Every line must be good: nothing is judged before all are read.
JudgeSession again: a metric with a length setting is judged twice on labelled lines, and
one that grades passages grades 200 of them one by one (--gate-pairs 0: not at all).
Exit status: 0 fine, 2 usage or bad input, 3 no line with a label has a score since the
judge failed, 130 stopped by Ctrl-C.
"""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "calibrate",
        help="compare a judge's scores with human labels",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("file", help="JSON lines, gzip too")
    add("--label", action="append", required=True, metavar="FIELD", help="where the human label stands; a.b too")
    add("--metric", default="faithfulness", help="the number to compare (faithfulness), NAME@K at one cut-off")
    add("--inverted", action="store_true", help="a high label means a low score")
    add("--high-from", type=float, metavar="LABEL", help="the high class begins here (.5; 3 of 1 to 5)")
    add("--judge", help="overlap (offline, the default) or openai:MODEL")
    add("--base-url", help="an OpenAI-compatible server for the judge")
    add("--embedder", help="as in `ragtrace score`")
    add("--pairs", metavar="onnx:FOLDER", help="as in `ragtrace score`")
    add("--k-values", help="cut-offs of @K metrics; without NAME@K the first one is compared")
    add("--out", help="where scored lines go, to go on with; default nowhere")
    add("--resume", action="store_true", help="go on with --out: what stands there is not judged again")
    add("--json", type=Path, metavar="FILE", help="write the report there, as JSON")
    add("--plot", type=Path, metavar="FILE", help="draw it, as .png or .svg (extra: plots)")
    add("--jobs", type=positive, default=8, help="records scored at once (8)")
    add("--limit", type=positive, help="read no further than so many lines")
    add("--gate-pairs", type=count, default=200, metavar="N", help="passages graded one by one (200)")
    add("--no-length-check", action="store_true", help="judge nothing again with the opposite length setting")


def run(args: argparse.Namespace) -> int:
    """Score, compare and report; see `EPILOG` for the exit status."""
    if args.resume and args.out in {None, "-"}:
        raise ConfigError("--resume needs --out: the file to go on with")
    if args.out == "-":
        raise ConfigError("--out - would stand among the report; name a file")
    _check_reports(args)
    settings = _settings(args)
    scorer, number = _scorer(args.metric, settings)
    labelled = read_labelled(
        args.file, args.label, limit=args.limit, is_inverted=args.inverted, high_from=args.high_from
    )
    has_batches = settings.batch_metrics and settings.grade_batch > 1 and _grades_with_judge(scorer)
    scores = _Scores(args.out, number)
    if args.resume:
        scores.load()
    out = None if args.out is None else ScoredLines(args.out, is_resumed=args.resume)
    try:
        asyncio.run(_score(args, _asking(args, scorer, labelled, has_batches=has_batches), scores, out))
    except KeyboardInterrupt:
        _say_stopped(args, scores)
        return 130
    finally:
        if out is not None:
            out.close()
    report = _calibration(labelled, scores, scorer, number, has_batches=has_batches)
    _report(args, report)
    if not report.points and any(state.startswith("error ") for state in report.states):
        why = ", ".join(f"{n} {state}" for state, n in report.states.items())
        say(f"ragtrace: no line with a label has a score to compare: {why}", file=sys.stderr)
        return 3
    return 0


@dataclass(frozen=True, slots=True)
class _Number:
    """The number that labels are compared with.

    Attributes:
        output: its name, range and direction.
        k: its cut-off; None where it has none, or each record its own.
    """

    output: Output
    k: int | None

    def __str__(self) -> str:
        return self.output.name if self.k is None else f"{self.output.name}@{self.k}"

    def of(self, scores: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return its score among those of a line, whatever place its K has there; None where there is none."""
        first: Mapping[str, Any] | None = scores.get(self.output.name)
        if self.k is None or first is None or first.get("k") == self.k:
            return first
        if first.get("k") is None and first["state"] != "ok":
            return first  # it failed at every K
        other: Mapping[str, Any] | None = scores.get(str(self))
        return other if other is not None and other.get("k") == self.k else None


@dataclass(slots=True)
class _Scores:
    """Scores by line number, and those of an earlier run by id in the order in which they stand."""

    path: str | None
    number: _Number
    by_line: dict[int, dict[str, Any]] = field(default_factory=dict)
    before: dict[str, deque[dict[str, Any]]] = field(default_factory=lambda: defaultdict(deque))

    def load(self) -> None:
        """Take the scores of an earlier run.

        Raises:
            ConfigError: the file holds something else, or scores of another metric.
        """
        path = Path(self.path or "")
        done_before(path, lambda _: None)
        if not path.exists():
            return
        with path.open(encoding="utf-8") as stream:
            for number, text in enumerate(stream, start=1):
                line = json.loads(text)
                if self.number.of(line["scores"]) is None:
                    raise ConfigError(f"{path}:{number}: no score of {self.number}; choose another --out")
                self.before[str(line["id"])].append(self._kept(line["scores"]))

    def take(self, line: Line) -> bool:
        """Take a line's scores from the earlier run; False when it has none."""
        known = self.before.get(line.record.id)
        if not known:
            return False
        self.by_line[line.number] = known.popleft()
        return True

    def add(self, line: Line, scores: Mapping[str, Any]) -> None:
        """Take the scores of a line."""
        self.by_line[line.number] = self._kept(scores)

    def _kept(self, scores: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the report reads; the details of every claim would fill the memory."""
        from ragtrace.scoring.offline.calibrating import GATE, OPPOSITE

        kept: dict[str, Any] = {}
        opposite = f"{self.number.output.name}@{OPPOSITE}"
        for key, score in ((_COMPARED, self.number.of(scores)), (OPPOSITE, scores.get(opposite))):
            if score is not None:
                kept[key] = {name: value for name, value in score.items() if name != "details"}
        if GATE in scores:
            kept[GATE] = scores[GATE]
        return kept


def _settings(args: argparse.Namespace) -> Settings:
    from ragtrace.settings import Settings

    if args.metric == "all":
        raise ConfigError("--metric all: labels are about one number; name it, as `ragtrace metrics` lists it")
    name, at, k = args.metric.partition("@")
    k_values = cutoffs(args.k_values)
    if at:
        try:
            cutoff = int(k)
        except ValueError:
            raise ConfigError(f"--metric {args.metric}: write K as a whole number, for example {name}@5") from None
        k_values = k_values or (cutoff,)
        if cutoff not in k_values:
            raise ConfigError(f"--metric {args.metric}: K {cutoff} is not computed; add it to --k-values")
    given = {
        "metrics": (args.metric,),
        "judge": args.judge,
        "judge_base_url": args.base_url,
        "embedder": args.embedder,
        "pairs": args.pairs,
        "k_values": k_values,
    }
    return Settings.resolve(given)


def _scorer(asked: str, settings: Settings) -> tuple[Scorer, _Number]:
    """Return the scorer of one metric, and the number of it that is compared."""
    from ragtrace.service.judges import build_scorer

    scorer = build_scorer(settings)
    name, _, k = asked.partition("@")
    outputs = scorer.metrics[0].spec.outputs
    output = next((output for output in outputs if output.name == name), outputs[0])
    if "_at_k" in output.name:  # the names of all numbers with a cut-off hold it (METRICS.md 0.9b)
        return scorer, _Number(output, int(k) if k else next(iter(settings.k_values), None))
    if k:
        raise ConfigError(f"--metric {asked}: {output.name} has no cut-off; write {name}")
    return scorer, _Number(output, None)


def _grades_with_judge(scorer: Scorer) -> bool:
    from ragtrace.scoring.offline.calibrating import grades_passages

    asks = grades_passages(scorer.metrics[0].spec)
    return asks and scorer.judge is not None and "grades" in scorer.judge.tasks


def _asking(
    args: argparse.Namespace, scorer: Scorer, labelled: Labelled, *, has_batches: bool
) -> CalibrationScorer:
    from ragtrace.scoring.offline.calibrating import CalibrationScorer, debiases_length

    has_twice = debiases_length(scorer.metrics[0].spec) and not args.no_length_check
    return CalibrationScorer(
        scorer=scorer,
        rejudged=frozenset(labelled.ids) if has_twice else frozenset(),
        gated=labelled.gated(args.gate_pairs) if has_batches else frozenset(),
    )


async def _score(
    args: argparse.Namespace, scorer: CalibrationScorer, scores: _Scores, out: ScoredLines | None
) -> None:
    from ragtrace.cli.io.progress import progress
    from ragtrace.model.codec import score_to_json
    from ragtrace.scoring.offline.file import score_stream

    def owed() -> Iterator[Line]:
        for line in good_lines(args.file, args.limit):
            if not scores.take(line):
                yield line

    before = sum(map(len, scores.before.values()))
    items = ((line, line.record) for line in owed())
    with progress(args.file, done_before=before) as step:
        async with aclosing(score_stream(items, scorer, jobs=args.jobs)) as scored:
            async for line, results in scored:
                shown = {result.key: score_to_json(result) for result in results}
                if out is not None:
                    out.write(line.scored(shown))
                scores.add(line, shown)
                step()


def _calibration(
    labelled: Labelled, scores: _Scores, scorer: Scorer, number: _Number, *, has_batches: bool
) -> Calibration:
    from ragtrace.scoring.offline.calibrating import GATE
    from ragtrace.scoring.offline.calibration import calibrate
    from ragtrace.scoring.offline.gate import gate

    rows = [_rated(labelled, line, found) for line, found in sorted(scores.by_line.items())]
    gates = [found[GATE] for found in scores.by_line.values() if GATE in found]
    pairs = [(a, b) for one in gates if one["state"] == "ok" for a, b in one["details"]["pairs"]]
    failures = [str(one["reason"]) for one in gates if one["state"] != "ok"]
    output = number.output
    return calibrate(
        rows,
        output=output,
        form=labelled.form,
        threshold=scorer.threshold_of(output),
        gate=gate(pairs, failures=failures) if has_batches else None,
    )


def _rated(labelled: Labelled, line: int, scores: Mapping[str, Any]) -> Rated:
    from ragtrace.scoring.offline.calibrating import OPPOSITE
    from ragtrace.scoring.offline.calibration import Rated

    score = scores[_COMPARED]
    return Rated(
        ratings=labelled.ratings[line],
        value=score["value"],
        state=score["state"],
        reason=score.get("reason"),
        opposite=scores.get(OPPOSITE, {}).get("value"),
        answer_chars=labelled.chars[line],
        maker=f"{score.get('judge') or 'labels'} {score.get('version') or ''}".strip(),
        k=score.get("k"),
        label_scale=score.get("label_scale"),
    )


def _check_reports(args: argparse.Namespace) -> None:
    """Refuse before any judge is asked what could not be written after all are."""
    taken = {Path(name).resolve() for name in (args.file, args.out) if name not in {None, "-"}}
    for flag, path in (("--json", args.json), ("--plot", args.plot)):
        if path is None:
            continue
        if path.resolve() in taken:
            raise ConfigError(f"{flag} {path} is a file of records; choose another")
        if path.is_dir() or not path.resolve().parent.is_dir():
            raise ConfigError(f"{flag} {path}: cannot be written there; name a file in a folder that exists")
    if args.plot is not None:
        from ragtrace.report.calibration_plot import check_plot

        check_plot(args.plot)


def _report(args: argparse.Namespace, report: Calibration) -> None:
    from ragtrace.cli.calibrate.table import show
    from ragtrace.cli.io.console import Shown

    show(report, Shown(), label=", ".join(args.label))
    if args.json is not None:
        with written("--json", args.json):
            args.json.write_text(f"{json.dumps(report.to_json(), indent=2)}\n", encoding="utf-8")
    if args.plot is not None:
        from ragtrace.report.calibration_plot import draw

        with written("--plot", args.plot):
            draw(report, args.plot)


def _say_stopped(args: argparse.Namespace, scores: _Scores) -> None:
    hint = "the same command with --resume goes on" if args.out else "with --out FILE a run can be resumed"
    say(f"ragtrace: stopped; {len(scores.by_line)} lines are scored, {hint}", file=sys.stderr)
