"""Command ``ragtrace worst``, which lists the answers with the lowest scores."""

from __future__ import annotations

import heapq
import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Generic, TypeVar

import typer

from ragtrace.cli.io.answers import file_answers, is_store, source_of
from ragtrace.cli.io.arguments import Source
from ragtrace.cli.io.stored import opened_store
from ragtrace.cli.io.verdicts import verdict_line
from ragtrace.errors import ConfigError, nearest
from ragtrace.model.diagnosis import DIAGNOSIS, FAILURES, verdict_in
from ragtrace.model.printable import count_text
from ragtrace.model.reading import ANY_SIGN, SIGNS
from ragtrace.views.scored_answer import FIRST_METRICS, ScoredAnswer, first_metric, stored_answer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rich.console import Console

    from ragtrace.metrics.base import Output
    from ragtrace.model import RagRecord
    from ragtrace.model.codec import ScoreJson
    from ragtrace.stores.sqlite import SqliteStore
    from ragtrace.stores.tables import Row

_READABLE = 140
T = TypeVar("T")


def command(
    source: Source = None,
    *,
    count: Annotated[
        int,
        typer.Option(
            "-n",
            "--count",
            min=1,
            metavar="N",
            help="Print at most N answers; sound ones with the best value are left out.",
        ),
    ] = 20,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Rank by this score, or by people's ratings: feedback. Default: faithfulness, else the first one "
            "there is.",
        ),
    ] = None,
    sign: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="List only answers with this sign of what capture is unsure of; any stands for all of them.",
        ),
    ] = None,
) -> int:
    """List the answers with the lowest scores, and their worst claims."""
    from ragtrace.cli.io.console import Shown

    if sign is not None and sign not in (ANY_SIGN, *SIGNS):
        raise ConfigError(f"--sign {sign}: there is no such sign{nearest(sign, (ANY_SIGN, *SIGNS))}")
    source = source_of(source)
    console = Shown()
    if is_store(source):
        with opened_store(Path(source)) as store:
            name = metric or next(filter(lambda one: any(store.rows(metric=one)), FIRST_METRICS), FIRST_METRICS[0])
            traces = _of_store(store, name, count, sign)
            _print(console, source, traces, [(value, stored_answer(store, it)) for value, it in traces.worst()])
    else:
        answers = _of_file(source, metric, count, sign)
        _print(console, source, answers, answers.worst())
    return 0


def _of_store(store: SqliteStore, metric: str, most: int, sign: str | None) -> Ranking[str]:
    """Rank the latest scores; the mean ratings of people where there is no score."""
    every = list(store.rows(metric=metric))
    if sign is not None:
        signed = store.signed_traces(None if sign == ANY_SIGN else sign)
        every = [row for row in every if row["trace_id"] in signed]
    rows = [row for row in every if row["value"] is not None]
    judged = [row for row in rows if row["source"] != "human"]
    latest = {row["trace_id"]: row["value"] for row in sorted(judged, key=itemgetter("scored_at"))}
    if not latest:
        return _of_people(rows, metric, most, sign=sign, why=_why_none(store, every))
    found = Ranking[str](metric, most, sign=sign)
    bad = _bad_traces(store)
    for trace_id, value in latest.items():
        found.add(value, trace_id, is_bad=trace_id in bad)
    return found


def _why_none(store: SqliteStore, rows: Iterable[Row]) -> str:
    """Say what a store without a value of one metric holds: nothing at all, or why the values are missing."""
    if next(iter(store.rows()), None) is None:
        return "; no run is scored yet, and a low sample_rate leaves questions out"
    reasons = Counter(row["reason"] for row in rows if row["reason"])
    told = ", ".join(f"{reason} in {count_text(n, 'answer')}" for reason, n in reasons.most_common(3))
    return f" ({told})" if told else ""


def _bad_traces(store: SqliteStore) -> set[str]:
    """Return the traces whose latest verdict is a failure."""
    rows = sorted(store.rows(metric=DIAGNOSIS), key=itemgetter("scored_at"))
    latest = {row["trace_id"]: verdict_in(json.loads(row["details"] or "{}")) for row in rows}
    return {trace_id for trace_id, verdict in latest.items() if verdict in FAILURES}


def _of_people(rows: Iterable[Row], metric: str, most: int, *, sign: str | None, why: str) -> Ranking[str]:
    ratings: defaultdict[str, list[float]] = defaultdict(list)
    for row in rows:
        ratings[row["trace_id"]].append(row["value"])
    found = Ranking[str](metric, most, sign=sign, is_by_people=True, why_none=why)
    for trace_id, values in ratings.items():
        found.add(fmean(values), trace_id)
    return found


@dataclass(slots=True)
class Ranking(Generic[T]):
    """Keeps the worst of many values of one metric.

    Attributes:
        metric: the key of the score.
        most: how many are kept.
        sign: the values are those of answers with this sign, or with any; None = of all.
        is_by_people: the values are ratings of people, from 0 (bad) to 1 (good) whatever the metric.
        count: values seen.
        best: values that are the best possible and were left out.
        why_none: what to say where there is no value.
    """

    metric: str
    most: int
    sign: str | None = None
    is_by_people: bool = False
    count: int = 0
    best: int = 0
    why_none: str = ""
    _kept: list[tuple[float, int, T]] = field(default_factory=list)
    _output: Output | None = None

    def __post_init__(self) -> None:
        from ragtrace.metrics.base import Output
        from ragtrace.metrics.registry import output

        if self.is_by_people:
            self._output = Output(name=self.metric, threshold=None)
            return
        try:
            self._output = output(self.metric)
        except ConfigError:  # an own metric that is not installed here: higher counts as better
            self._output = None

    @property
    def is_down(self) -> bool:
        """Whether a lower value is better."""
        return self._output is not None and self._output.direction == "down"

    @property
    def with_sign(self) -> str:
        """Words of a sentence on the answers that are ranked, where only those with a sign are."""
        if self.sign is None:
            return ""
        return " with a sign" if self.sign == ANY_SIGN else f" with the sign {self.sign}"

    def add(self, value: float, item: T, *, is_bad: bool = False) -> None:
        """Take one value; the best possible one is not kept.

        A metric of the whole answer keeps it where the answer is bad all the same.
        """
        self.count += 1
        is_told = is_bad and self.metric in FIRST_METRICS
        best = None if self._output is None else self._output.low if self.is_down else self._output.high
        if value == best and not is_told:
            self.best += 1
            return
        entry = (value if self.is_down else -value, -self.count, item)
        (heapq.heappush if len(self._kept) < self.most else heapq.heappushpop)(self._kept, entry)

    def worst(self) -> list[tuple[float, T]]:
        """Return value and item of the worst, the worst first."""
        ranked = sorted(self._kept, key=lambda entry: entry[:2], reverse=True)
        return [(value if self.is_down else -value, item) for value, _, item in ranked]


def _of_file(source: str, metric: str | None, most: int, sign: str | None) -> Ranking[ScoredAnswer]:
    found: Ranking[ScoredAnswer] | None = None
    for answer in file_answers(source):
        if found is None:
            found = Ranking[ScoredAnswer](metric or first_metric(answer.scores), most, sign=sign)
        value = value_of(answer.scores.get(found.metric))
        if value is not None and (sign is None or _has_sign(answer.record, sign)):
            found.add(value, answer, is_bad=answer.standing.word == "bad")
    if found is None:
        raise ConfigError(f"{source}: there is no scored line")
    return found


def _has_sign(record: RagRecord, sign: str) -> bool:
    """Return whether capture set a sign of this name; whether the run counts as signed for `ANY_SIGN`."""
    return record.reading is not None and sign in record.reading.counted_as


class WorstAnswers:
    """The three worst answers of a run of `ragtrace score`.

    Args:
        metrics: names of the scores to come.
    """

    def __init__(self, metrics: Iterable[str]) -> None:
        self._ranking = Ranking[ScoredAnswer](first_metric(metrics), 3)

    def add(self, record: RagRecord, scores: Mapping[str, ScoreJson], place: str) -> None:
        """Take one scored record."""
        value = value_of(scores.get(self._ranking.metric))
        if value is not None:
            answer = ScoredAnswer(place=place, name=record.id, record=record, scores=scores)
            self._ranking.add(value, answer, is_bad=answer.standing.word == "bad")

    def lines(self, width: int, out: str | None) -> Iterator[str]:
        """Yield the list and the command to see one answer; nothing where all are good."""
        found = self._ranking.worst()
        if not found:
            return
        yield ""
        yield f"Worst by {self._ranking.metric}:"
        for value, answer in found:
            yield from answer_lines(value, answer, min(width, _READABLE))
        if out is not None:
            yield f"The whole answer: ragtrace show {out} --id {found[0][1].name}"


def value_of(score: ScoreJson | None) -> float | None:
    """Return the value of a score, None without one."""
    value = score.get("value") if score else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _print(console: Console, source: str, found: Ranking[T], shown: list[tuple[float, ScoredAnswer]]) -> None:
    if not found.count and found.sign is not None:
        console.print(f"No answer{found.with_sign} has a score of {found.metric}.")
        return
    if not found.count:
        why = ", or let `ragtrace doctor` tell why the judge gives none" if found.metric in FIRST_METRICS else ""
        raise ConfigError(
            f"{source}: no answer has a score of {found.metric}{found.why_none}; choose another --metric{why}"
        )
    better = "lower" if found.is_down else "higher"
    if not shown:
        each = "The only answer" if found.count == 1 else f"Each of {found.count} answers"
        console.print(f"{each}{found.with_sign} has the best {found.metric}.")
        return
    ranked = f"people's ratings ({found.metric}, " if found.is_by_people else f"{found.metric} ("
    left_out = f"; left out: {found.best} with the best value" if found.best and len(shown) < found.most else ""
    counted = f"{count_text(found.count, 'answer')}{found.with_sign}"
    console.print(f"{len(shown)} worst of {counted} by {ranked}{better} is better){left_out}\n")
    for value, answer in shown:
        for line in answer_lines(value, answer, min(console.width, _READABLE)):
            console.print(line)
    console.print(f"\nThe whole answer: ragtrace show {source} {shown[0][1].name}")


def answer_lines(value: float, answer: ScoredAnswer, width: int) -> Iterator[str]:
    """Yield a line with value, place and question, the verdict, and the worst claim or specific."""
    from ragtrace.sinks.console import one_line

    head = f"{value:.2f}  {answer.place}  "
    query = answer.record.query if answer.has_texts else "(no texts were kept)"
    yield f"{head}{one_line(query, max(width - len(head), 20))}".rstrip()
    verdict = verdict_line(answer.scores)
    if verdict is not None:
        yield f"      {one_line(verdict, width - 6)}"
    for claim in answer.standing.claims[:1]:
        yield f"      {one_line(str(claim), width - 6)}"
