"""Command ``ragtrace calibrate FILE --label FIELD``, which compares a judge with people."""

from __future__ import annotations

import asyncio
import sys
from collections import defaultdict, deque
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import structs

from ragtrace.cli.calibrate.label_reader import Labelled, good_lines, read_labelled
from ragtrace.cli.io.arguments import (
    BaseUrl,
    Embedder,
    Jobs,
    JsonFile,
    Judge,
    KValues,
    Limit,
    Pairs,
    Plot,
    Resume,
    cutoffs,
)
from ragtrace.cli.io.jsonl_writer import ScoredLines, done_before
from ragtrace.cli.io.progress import progress
from ragtrace.cli.io.report_file import check_reports, write_json, written
from ragtrace.cli.io.say import say
from ragtrace.cli.score.command import score_lines
from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace.cli.io.jsonl_reader import Line
    from ragtrace.cli.io.jsonl_writer import ScoredLine
    from ragtrace.metrics.base import Output
    from ragtrace.model.codec import ScoreJson
    from ragtrace.scoring import Scorer
    from ragtrace.scoring.offline.calibration import Calibration, Rated
    from ragtrace.settings import Settings

EPILOG = """\
Input: JSON lines as `ragtrace score` reads them. --label names the field of the human
label: 0 or 1, 0 to 1, or a grade from 1 to 5; a list holds the labels of several
raters, and so does --label given more than once. A line without a label is scored
for the corrected mean alone; labelled lines should be a random choice of all. Where
kept_for, a field of `ragtrace export`, says that they were not, the report says so.

A high label stands for a high score; give --inverted for the opposite (for example
1 = made up). Every line must be good, since all are read before any is judged.

The judge gives all grades: grades of passages that a line brings are not read.

Exit status: 0 fine, 2 usage or bad input, 3 no line with a label has a score since the
judge failed, 130 stopped by Ctrl-C.
"""


def command(
    file: Annotated[str, typer.Argument(help="JSON lines, plain or gzip.")],
    *,
    label: Annotated[
        list[str],
        typer.Option(
            metavar="FIELD", help="Field of the human label; a.b is field b of a. May be given more than once."
        ),
    ],
    metric: Annotated[
        str, typer.Option(metavar="NAME", help="Number to compare with the label; NAME@K at one cut-off.")
    ] = "faithfulness",
    inverted: Annotated[bool, typer.Option("--inverted", help="A high label stands for a low score.")] = False,
    high_from: Annotated[
        float | None,
        typer.Option(metavar="LABEL", help="Lowest label of the high class. Default: .5, or 3 of grades 1 to 5."),
    ] = None,
    judge: Judge = None,
    base_url: BaseUrl = None,
    embedder: Embedder = None,
    pairs: Pairs = None,
    k_values: KValues = None,
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write scored lines there, to go on with. Default: nowhere.")
    ] = None,
    resume: Resume = False,
    json_file: JsonFile = None,
    plot: Plot = None,
    jobs: Jobs = 8,
    limit: Limit = None,
) -> int:
    """Compare a judge's scores with human labels."""
    if resume and out in {None, "-"}:
        raise ConfigError("--resume needs --out: the file to go on with")
    if out == "-":
        raise ConfigError("--out - would stand among the report; name a file")
    check_reports({"--json": json_file, "--plot": plot}, taken=(file, out))
    given = {"judge": judge, "judge_base_url": base_url, "embedder": embedder, "pairs": pairs}
    settings = _settings(metric, cutoffs(k_values), given)
    scorer, number = _scorer(metric, settings)
    labelled = read_labelled(file, label, limit=limit, is_inverted=inverted, high_from=high_from)
    scores = _JudgeScores(out, number)
    if resume:
        scores.load()
    try:
        _score(file, scorer, scores, jobs=jobs, limit=limit, is_resumed=resume)
    except KeyboardInterrupt:
        hint = "the same command with --resume goes on" if out else "with --out FILE a run can be resumed"
        say(f"ragtrace: stopped; {len(scores.by_line)} lines are scored, {hint}", file=sys.stderr)
        return 130
    report = _calibration(labelled, scores, scorer, number)
    _report(report, ", ".join(label), json_file, plot)
    if not report.points and any(state.startswith("error ") for state in report.states):
        why = ", ".join(f"{n} {state}" for state, n in report.states.items())
        say(f"ragtrace: no line with a label has a score to compare: {why}", file=sys.stderr)
        return 3
    return 0


def _score(
    file: str, scorer: Scorer, scores: _JudgeScores, *, jobs: int, limit: int | None, is_resumed: bool
) -> None:
    with ExitStack() as stack:
        out = None
        if scores.path is not None:
            out = stack.enter_context(closing(ScoredLines(scores.path, is_resumed=is_resumed)))
        step = stack.enter_context(progress(file, done_before=sum(map(len, scores.before.values()))))

        def add(line: Line, found: dict[str, ScoreJson]) -> None:
            if out is not None:
                out.write(line.scored(found))
            scores.add(line, found)
            step()

        owed = (_as_judged(line, scorer) for line in good_lines(file, limit) if not scores.take(line))
        asyncio.run(score_lines(owed, scorer, jobs=jobs, add=add))


def _as_judged(line: Line, scorer: Scorer) -> Line:
    """Return the line without labels of passages, where the metric could ask the judge for them."""
    spec = scorer.metrics[0].spec
    asks = spec.task == "grades" or {"judge", "labels"} <= set(spec.needs)
    return replace(line, record=structs.replace(line.record, labels=None)) if asks else line


def _report(report: Calibration, label: str, json_file: Path | None, plot: Path | None) -> None:
    from ragtrace.cli.calibrate.table import show
    from ragtrace.cli.io.console import Shown

    show(report, Shown(), label=label)
    write_json(json_file, report.to_json())
    if plot is not None:
        from ragtrace.report.calibration_plot import draw

        with written("--plot", plot):
            draw(report, plot)


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

    def of(self, scores: Mapping[str, ScoreJson]) -> ScoreJson | None:
        """Return the score of this K, whatever its key; None without one."""
        first = scores.get(self.output.name)
        if self.k is None or first is None or first.get("k") == self.k:
            return first
        if first.get("k") is None and first.get("state") != "ok":
            return first  # it failed at every K
        other = scores.get(str(self))
        return other if other is not None and other.get("k") == self.k else None


@dataclass(slots=True)
class _JudgeScores:
    """Scores by line number, and those of an earlier run by id."""

    path: str | None
    number: _Number
    by_line: dict[int, ScoreJson] = field(default_factory=dict)
    before: dict[str, deque[ScoreJson]] = field(default_factory=lambda: defaultdict(deque))

    def load(self) -> None:
        """Take the scores of an earlier run.

        Raises:
            ConfigError: the file holds something else, or scores of another metric.
        """
        numbers = count(1)

        def take(line: ScoredLine) -> None:
            number, score = next(numbers), self.number.of(line["scores"])
            if score is None:
                raise ConfigError(f"{self.path}:{number}: no score of {self.number}; choose another --out")
            self.before[str(line["id"])].append(_kept(score))

        done_before(Path(self.path or ""), take)

    def take(self, line: Line) -> bool:
        """Take a line's scores from the earlier run; False without any."""
        known = self.before.get(line.record.id)
        if not known:
            return False
        self.by_line[line.number] = known.popleft()
        return True

    def add(self, line: Line, scores: Mapping[str, ScoreJson]) -> None:
        """Take the scores of a line."""
        score = self.number.of(scores)
        if score is None:
            raise KeyError(str(self.number))
        self.by_line[line.number] = _kept(score)


def _kept(score: ScoreJson) -> ScoreJson:
    """Return a score without details: those of all claims would fill the memory."""
    return {**score, "details": {}}


def _settings(metric: str, k_values: tuple[int, ...] | None, given: dict[str, str | None]) -> Settings:
    from ragtrace.settings import Settings

    if metric == "all":
        raise ConfigError("--metric all: labels are about one number; name it, as `ragtrace metrics` lists it")
    name, at, k = metric.partition("@")
    if at:
        try:
            cutoff = int(k)
        except ValueError:
            raise ConfigError(f"--metric {metric}: write K as a whole number, for example {name}@5") from None
        k_values = k_values or (cutoff,)
        if cutoff not in k_values:
            raise ConfigError(f"--metric {metric}: K {cutoff} is not computed; add it to --k-values")
    return Settings.resolve({**given, "metrics": (metric,), "metric_options_k_values": k_values})


def _scorer(asked: str, settings: Settings) -> tuple[Scorer, _Number]:
    from ragtrace.service.judges import build_scorer

    scorer = build_scorer(settings)
    name, _, k = asked.partition("@")
    outputs = scorer.metrics[0].spec.outputs
    output = next((output for output in outputs if output.name == name), outputs[0])
    if "_at_k" in output.name:  # in the name of every number with a cut-off
        return scorer, _Number(output, int(k) if k else next(iter(settings.metric_options.k_values), None))
    if k:
        raise ConfigError(f"--metric {asked}: {output.name} has no cut-off; write {name}")
    return scorer, _Number(output, None)


def _calibration(labelled: Labelled, scores: _JudgeScores, scorer: Scorer, number: _Number) -> Calibration:
    from ragtrace.scoring.offline.calibration import calibrate

    output = number.output
    rows = [_rated(labelled, line, output.name, score) for line, score in sorted(scores.by_line.items())]
    return calibrate(rows, output=output, form=labelled.form, threshold=scorer.threshold_of(output))


def _rated(labelled: Labelled, line: int, name: str, score: ScoreJson) -> Rated:
    from ragtrace.scoring.offline.calibration import Rated
    from ragtrace.scoring.offline.scored_row import key_of

    return Rated(
        ratings=labelled.ratings[line],
        value=score["value"],
        state=score["state"],
        reason=score.get("reason"),
        answer_chars=labelled.chars[line],
        key=key_of(name, score),
        kept_for=labelled.kept_for.get(line),
    )
