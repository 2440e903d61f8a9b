"""Scores of answers in a test, and thresholds that fail it with the worst answers shown."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import math
import os
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from msgspec.structs import replace

from ragtrace.batch.rows import read_record, record_of, score_records
from ragtrace.batch.table import arguments, warn_of_unread
from ragtrace.cli.io.answers import file_answers
from ragtrace.cli.io.summary import Limit, Summary
from ragtrace.cli.io.verdicts import verdict_line
from ragtrace.cli.show import marked
from ragtrace.cli.worst import Ranking, value_of
from ragtrace.errors import ConfigError, InputError, nearest
from ragtrace.metrics.registry import is_lower_better
from ragtrace.model import RagRecord
from ragtrace.model.printable import count_text, printable
from ragtrace.service.runtime import captured_by
from ragtrace.settings import Settings
from ragtrace.testing.recording import Recording
from ragtrace.views.scored_answer import ScoredAnswer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

    from ragtrace.capture import Run
    from ragtrace.cli.io.summary import SummaryColumn

    Row = Mapping[str, Any] | RagRecord
    Source = str | os.PathLike[str] | Iterable[Row]
    App = Callable[[str], Any]
    FailOn = Literal["mean", "proof", "doubt"]

_MOST_SHOWN = 3
_MOST_CHARS = 600  # of an answer in a failure


class Evaluator:
    """The fixture `ragtrace_eval`: scores records, a file, captured runs, or the answers of an application.

    Args:
        note: takes one line for each threshold that is checked.

    Example:
        >>> rows = [{"query": "Where?", "answer": "In Oslo.", "contexts": ["The lab is in Oslo."]}]
        >>> Evaluator()(rows, metrics=["faithfulness"]).check(faithfulness=0.8)
    """

    def __init__(self, note: Callable[[str], object] = str) -> None:
        self._note = note

    def __call__(
        self,
        source: Source | App,
        questions: Iterable[str | Mapping[str, Any]] | None = None,
        *,
        metrics: str | Sequence[str] | None = None,
        judge: str | None = None,
        jobs: int = 8,
        **settings: Any,
    ) -> Evaluation:
        """Return the scores of answers; a file or rows that hold scores are scored again only if you name a judge.

        Args:
            source: rows as `ragtrace score` reads them, records, a file of such rows, or an application. It takes
                a question, and is captured or returns ``{"answer": ..., "contexts": [...]}``.
            questions: of an application: texts, or rows with ``query`` and ``reference`` or ``labels``.
            metrics: names; default RAGTRACE_METRICS, else the default metrics that the judge can compute.
            judge: default RAGTRACE_JUDGE, else ``overlap``, which is offline.
            jobs: records that are scored at once.
            settings: further arguments of `ragtrace.configure` that a scorer has.

        Raises:
            ConfigError: a wrong setting, no record at all, or an application of which nothing was captured.
            InputError: a row has a wrong form; the message has its number, from 1.
        """
        answers = self._answers(source, questions)
        if not answers:
            raise ConfigError("there is no record to score; give at least one row, run or question")
        if metrics or judge or settings or not all(answer.scores for answer in answers):
            resolved = Settings.resolve(arguments(metrics=metrics, judge=judge, **settings))
            scored = score_records([answer.record for answer in answers], resolved, jobs=jobs)
            answers = [
                dataclasses.replace(answer, scores=found) for answer, found in zip(answers, scored, strict=True)
            ]
        return Evaluation(tuple(answers), self._note)

    @contextmanager
    def capture(self) -> Iterator[list[RagRecord]]:
        """Give a list that every run captured in the block is added to as it ends.

        Runs of LangChain, LlamaIndex and `ragtrace.query` in any thread of the process count. Nothing is exported.

        Raises:
            ConfigError: inside another such block.
        """
        kept = _Kept()
        with captured_by(kept):
            yield kept.kept

    def _answers(
        self, source: Source | App, questions: Iterable[str | Mapping[str, Any]] | None
    ) -> list[ScoredAnswer]:
        if callable(source):
            if questions is None:
                raise ConfigError("give an application with its questions: ragtrace_eval(app, questions)")
            return [
                _answer(record, number, []) for number, record in enumerate(self._asked(source, questions), start=1)
            ]
        if questions is not None:
            raise ConfigError("questions go with an application; these rows have their own")
        if isinstance(source, str | os.PathLike):
            return list(file_answers(os.fspath(source), needs_scores=False))
        unread: list[str] = []
        answers = [_answer(row, number, unread) for number, row in enumerate(source, start=1)]
        warn_of_unread(unread)
        return answers

    def _asked(self, app: App, questions: Iterable[str | Mapping[str, Any]]) -> list[RagRecord]:
        rows = [{"query": one} if isinstance(one, str) else dict(one) for one in questions]
        with self.capture() as runs:
            if not inspect.iscoroutinefunction(app):
                return [record for row in rows for record in _records(app(_query(row)), row, _taken(runs))]
            return _run(_asked_async(app, rows, runs))


async def _asked_async(
    app: Callable[[str], Awaitable[Any]], rows: Sequence[dict[str, Any]], runs: list[RagRecord]
) -> list[RagRecord]:
    return [record for row in rows for record in _records(await app(_query(row)), row, _taken(runs))]


def _run(asking: Any) -> list[RagRecord]:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        found: list[RagRecord] = asyncio.run(asking)
        return found
    asking.close()
    raise ConfigError(
        "an event loop runs already: await the application in `with ragtrace_eval.capture() as runs:`; give runs"
    )


def _query(row: Mapping[str, Any]) -> str:
    return record_of(row).query


def _taken(runs: list[RagRecord]) -> Callable[[], list[RagRecord]]:
    def take() -> list[RagRecord]:
        found = list(runs)
        runs.clear()
        return found

    return take


def _records(answer: object, row: Mapping[str, Any], take: Callable[[], list[RagRecord]]) -> list[RagRecord]:
    """Return the runs captured for one question, else the record that the application returned."""
    given, runs = record_of(row), take()
    if runs:
        return [
            replace(run, reference=run.reference or given.reference, labels=run.labels or given.labels)
            for run in runs
        ]
    if not hasattr(answer, "keys"):
        raise ConfigError(
            f"the application returned a {type(answer).__name__} and no run was captured: return a dictionary with "
            '"answer" and "contexts", or capture with the handler of your framework or with ragtrace.query'
        )
    return [record_of({**row, **dict(answer)})]  # type: ignore[call-overload]


def _answer(row: Row, number: int, unread: list[str]) -> ScoredAnswer:
    """Return the answer of a row, and add the names of what is not read of it."""
    if isinstance(row, RagRecord):
        return ScoredAnswer(place=f"row {number}", name=str(number), record=row, scores={})
    if not hasattr(row, "keys"):
        raise InputError(
            f"row {number} is a {type(row).__name__}, and no mapping of a record's fields; of a table give "
            "df.to_dict(orient='records') or table.to_pylist()"
        )
    try:
        record, names = read_record(row)
    except InputError as error:
        raise InputError(f"row {number}: {error}") from None
    unread += names
    scores = row.get("scores")
    return ScoredAnswer(
        place=f"row {number}", name=str(number), record=record, scores=scores if isinstance(scores, dict) else {}
    )


class _Kept(Recording):
    """Keeps the records of runs as they end."""

    def __init__(self) -> None:
        super().__init__(content="none")
        self.kept: list[RagRecord] = []

    def on_end(self, root: Any, run: Run) -> None:
        count = len(self.runs)
        super().on_end(root, run)
        self.kept.extend(self.records[count:])


@dataclass(frozen=True)
class Evaluation:
    """Scored answers of one test.

    Attributes:
        answers: records with their scores, in the order in which they were given.
        note: takes one line for each threshold that is checked.
    """

    answers: tuple[ScoredAnswer, ...]
    note: Callable[[str], object] = str

    @cached_property
    def summary(self) -> Summary:
        """Means, intervals and reasons, as `ragtrace score` prints them."""
        found = Summary()
        for answer in self.answers:
            found.add(answer.scores, answer.record)
        return found

    def check(
        self,
        limits: Mapping[str, float] | None = None,
        /,
        *,
        each: bool = False,
        fail_on: FailOn = "mean",
        min_n: int = 1,
        max_errors: int = 0,
        **more: float,
    ) -> None:
        """Fail where a metric misses its threshold, with the worst answers shown.

        A threshold is the least value, or the most where lower is better. An answer without a value (``na``) enters
        no mean. It fails nothing by itself, but no value at all does.

        Args:
            limits: thresholds by metric; for keys that are no Python names, such as ``p_at_k@5``.
            each: hold every answer against the threshold, not the mean.
            fail_on: ``mean`` fails where the mean misses. ``proof`` fails only where the whole 95 % interval
                misses. ``doubt`` fails unless the whole interval meets the threshold.
            min_n: least number of answers with a value.
            max_errors: most answers that the judge failed on.
            more: thresholds by metric.

        Raises:
            AssertionError: a threshold is missed, or cannot be measured.
            ConfigError: no threshold, an unknown metric, or not a finite number.
        """
        __tracebackhide__ = True
        chosen = [self._limit(name, value) for name, value in {**(limits or {}), **more}.items()]
        if not chosen:
            raise ConfigError("check: give a threshold, for example check(faithfulness=0.8)")
        if fail_on not in {"mean", "proof", "doubt"}:
            raise ConfigError(f"check: fail_on={fail_on!r} is not mean, proof or doubt")
        failures = []
        for limit in chosen:
            column = self._column(limit)
            self.note(
                f"{limit.name} {_figure(limit.name, column)}, {'least' if limit.is_up else 'most'} {limit.value:g}"
            )
            why = _missing(column, min_n, max_errors) or (
                self._each(limit) if each else _missed(limit, column, fail_on)
            )
            if why:
                failures.append(
                    "\n".join([f"{limit.name}: {why}", _figure(limit.name, column), *self._worst(limit)])
                )
        if failures:
            raise AssertionError("\n\n".join(failures))

    def _limit(self, name: str, value: object) -> Limit:
        known = self.summary.columns
        if name not in known:
            raise ConfigError(f"check: {name!r} is not among the scores{nearest(name, known)}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ConfigError(f"check: {name}={value!r} is not a number; write for example {name}=0.8")
        return Limit(name, value, not is_lower_better(name))

    def _column(self, limit: Limit) -> SummaryColumn:
        try:
            return self.summary.column(limit.name)
        except ConfigError as error:
            raise ConfigError(f"check: {limit.name} has no one mean: {error}") from None

    def _each(self, limit: Limit) -> str:
        values = [
            value for answer in self.answers if (value := value_of(answer.scores.get(limit.name))) is not None
        ]
        bad = [value for value in values if not limit.is_met(value)]
        side = "below" if limit.is_up else "above"
        return f"{len(bad)} of {count_text(len(values), 'answer')} {side} {limit.value:g}" if bad else ""

    def _worst(self, limit: Limit) -> Iterator[str]:
        """Yield the worst answers; sound ones with the best possible value are left out."""
        found = Ranking[ScoredAnswer](limit.name, _MOST_SHOWN)
        for answer in self.answers:
            if (value := value_of(answer.scores.get(limit.name))) is not None:
                found.add(value, answer, is_bad=answer.standing.word == "bad")
        for value, answer in found.worst():
            yield from _shown(value, answer)


def _missing(column: SummaryColumn, min_n: int, max_errors: int) -> str:
    n, errors = len(column.values), column.errors.total()
    if not n:
        return "no answer has a value"
    if errors > max_errors:
        return f"{count_text(errors, 'answer')} could not be scored, allowed are {max_errors}"
    return f"{count_text(n, 'answer')} with a value, needed are {min_n}" if n < min_n else ""


def _missed(limit: Limit, column: SummaryColumn, fail_on: FailOn) -> str:
    """Return why a mean misses its threshold, "" where it does not."""
    _, low, high = column.interval(limit.name)
    worse, better = (low, high) if limit.is_up else (high, low)
    side, at = "below" if limit.is_up else "above", f"{limit.value:g}"
    if fail_on == "doubt":
        is_met = worse is not None and limit.is_met(worse)
        return "" if is_met else f"a mean {side} {at} cannot be ruled out"
    is_possible = better is None or limit.is_met(better)
    if fail_on == "proof":
        return "" if is_possible else f"the whole interval is {side} {at}"
    if limit.is_met(column.mean):
        return ""
    return f"the mean is {side} {at}{', which the interval does not prove' if is_possible else ''}"


def _figure(key: str, column: SummaryColumn) -> str:
    """Return a mean with all that it takes to trust it."""
    mean, low, high = column.interval(key)
    reasons = [
        f"{state} {', '.join(f'{reason} ({n})' for reason, n in counts.most_common())}"
        for state, counts in (("na", column.na), ("error", column.errors))
        if counts
    ]
    if mean is None:
        return ", ".join(["n = 0", *reasons])
    bounds = "no interval" if low is None else f"95 % interval {low:.3f} to {high:.3f}"
    return ", ".join(
        [f"mean {mean:.3f}", bounds, f"n = {len(column.values)}", f"judge {' and '.join(column.makers)}", *reasons]
    )


def _shown(value: float, answer: ScoredAnswer) -> Iterator[str]:
    claims = answer.standing.claims
    yield f"\n{value:.2f}  {answer.place}  {_plain(answer.record.query)}"
    yield f"      answer   {_plain(marked(answer.record.answer, claims)) or '(empty)'}"
    if (verdict := verdict_line(answer.scores)) is not None:
        yield f"      verdict  {_plain(verdict)}"
    for number, claim in enumerate(claims, start=1):
        yield f"      claim {number}  {_plain(str(claim))}"


def _plain(text: str) -> str:
    plain = printable(" ".join(text.split()))
    return plain if len(plain) <= _MOST_CHARS else f"{plain[:_MOST_CHARS]}..."
