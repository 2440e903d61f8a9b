"""Print each scored run to standard error, for a first look without a collector."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ragtrace.model.diagnosis import verdict_of
from ragtrace.model.printable import printable
from ragtrace.model.reasons import na_reason
from ragtrace.model.score import is_of_set_up
from ragtrace.model.standing import standing_by
from ragtrace.sinks.console_readings import ConsoleReadings

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from ragtrace.model import MetricResult, RagRecord, Score

_MOST_QUERY_CHARS = 60
_MOST_CLAIM_CHARS = 100
_RUNS = 3  # that a reason which a run may decide must hold for from the first on, before it is one of every run
_NOT_SEEN = (
    "ragtrace: the judge overlap compares words and facts: it misses contradictions in other words and swapped "
    "roles (docs/how-to/choose-a-judge.md)"
)


class ConsoleSink:
    """Writes a line for each scored run, and its worst claim on a second one.

    Lines go to standard error, as logging's do: standard output stays the application's. They hold the question and
    a claim of the answer, after redaction, whatever ``content`` says. Under the first claims of the offline judge
    one line tells what that judge does not see. Metrics that are ``na`` for one reason in every run so far stand in
    one line, once, and in no line of a run after it.

    A service gives it every captured run, scored or not, by `remember`: so what was read of the first ones is
    shown, see `ragtrace.sinks.console_readings`.

    Args:
        lower_is_better: names of the metrics where a high value is the bad one.
        threshold_of: the threshold that a result was marked by; None where it is unknown.
    """

    def __init__(
        self,
        lower_is_better: Collection[str] = (),
        threshold_of: Callable[[MetricResult], float | None] = lambda _result: None,
    ) -> None:
        self._lower_is_better = lower_is_better
        self._threshold_of = threshold_of
        self._without = _WithoutScore()
        self._has_told = False
        self.remember = ConsoleReadings().remember

    def emit(self, record: RagRecord, scores: Sequence[Score]) -> None:
        """Write the lines of one run."""
        results = [score.result for score in scores]
        told = self._without.take(results)
        lines = run_lines(record, results, self._lower_is_better, self._threshold_of, self._without.has_told)
        lines += told
        if not self._has_told and any(map(_is_of_words, results)):
            self._has_told = True
            lines.append(_NOT_SEEN)
        sys.stderr.write("".join(f"{line}\n" for line in lines))  # in one call: other threads write here too
        sys.stderr.flush()


class _WithoutScore:
    """Metrics that are ``na`` for one reason in every run so far.

    A reason of the set-up or the record is told at the first run, another one at the third.
    """

    def __init__(self) -> None:
        self._so_far: dict[str, tuple[str, int]] = {}  # reason and runs by key of the metric; "" = something else

    def take(self, results: Sequence[MetricResult]) -> list[str]:
        """Count the results of one run, and return a line for each reason that is to be told now."""
        now: dict[str, list[str]] = {}
        for result in results:
            if result.state == "skipped":
                continue
            shown = _na(result)
            reason, runs = self._so_far.get(result.key, (shown, 0))
            self._so_far[result.key] = (shown, runs + 1) if shown == reason else ("", 0)
            if shown and shown == reason and runs + 1 == _runs_to_tell(result):
                now.setdefault(shown, []).append(result.key)
        return [_told(reason, keys) for reason, keys in now.items()]

    def has_told(self, result: MetricResult) -> bool:
        """Return whether the reason of a result has been told, and held for every run."""
        reason, runs = self._so_far.get(result.key, ("", 0))
        return reason != "" and runs >= _runs_to_tell(result)


def _na(result: MetricResult) -> str:
    """Return the reason of a result of state ``na``, with what a diagnosis lacks; "" in another state."""
    if result.state != "na" or result.reason is None:
        return ""
    because = result.details.get("because") if result.reason == "undetermined" else None
    return f"{result.reason}: {because}" if because else result.reason


def _runs_to_tell(result: MetricResult) -> int:
    return 1 if is_of_set_up(result.reason or "") else _RUNS


def _told(reason: str, keys: Sequence[str]) -> str:
    meaning, advice = na_reason(reason.partition(": ")[0])
    return printable(
        f"ragtrace: {', '.join(keys)}: na ({reason}) in every run so far, since {meaning}; {advice}"
    ).replace("`", "")


def run_lines(
    record: RagRecord,
    results: Sequence[MetricResult],
    lower_is_better: Collection[str] = (),
    threshold_of: Callable[[MetricResult], float | None] = lambda _result: None,
    has_told: Callable[[MetricResult], bool] = lambda _result: False,
) -> list[str]:
    """Return the lines of one scored run: its scores, and the worst claim where there is a bad one.

    Example:
        >>> from ragtrace.model import MetricResult, RagRecord
        >>> result = MetricResult(name="faithfulness", state="ok", value=0.5, passed=False)
        >>> run_lines(RagRecord(id="1", query="Where?"), [result])
        ['ragtrace: faithfulness 0.50 LOW | Where?']
    """
    shown = [result for result in results if not has_told(result)]
    parts = [
        ", ".join(_scores(shown, lower_is_better, threshold_of)) or ("no score" if results else "no metrics"),
        one_line(record.query, _MOST_QUERY_CHARS),
        f"trace {record.trace_id}" if record.trace_id else "",
    ]
    lines = [printable(f"ragtrace: {' | '.join(filter(None, parts))}")]
    worst = standing_by(results).claim
    if worst is not None:
        lines.append(f"          {one_line(str(worst), _MOST_CLAIM_CHARS)}")
    return lines


def one_line(text: str, most_chars: int) -> str:
    r"""Return a text as one printable line of a bounded length.

    Example:
        >>> one_line("How do\nI  cancel?", 40), one_line("How do I cancel?", 9)
        ('How do I cancel?', 'How do...')
    """
    joined = printable(" ".join(text.split()))
    return joined if len(joined) <= most_chars else f"{joined[: most_chars - 3].rstrip()}..."


def _is_of_words(result: MetricResult) -> bool:
    """Return whether a result has claims that the offline judge read."""
    return "claims" in result.details and result.judge is not None and result.judge.model == "overlap"


def _scores(
    results: Sequence[MetricResult],
    lower_is_better: Collection[str],
    threshold_of: Callable[[MetricResult], float | None],
) -> Iterator[str]:
    valued = [result for result in results if result.value is not None]
    for result in valued:
        verdict = verdict_of(result)
        if verdict is not None:
            yield f"{result.key} {verdict}"
            continue
        is_bad = result.passed is False
        shown = _marked(result, lower_is_better, threshold_of) if is_bad else f"{result.value:.2f}"
        yield f"{result.key} {shown}"
    for result in results:
        if result.value is None and (verdict := verdict_of(result)) is not None:
            yield f"{result.key} {verdict} ({result.details.get('because')})"
        elif result.state == "error" or (not valued and result.state != "ok"):
            yield f"{result.key} {result.state} ({result.reason})"


def _marked(
    result: MetricResult, lower_is_better: Collection[str], threshold_of: Callable[[MetricResult], float | None]
) -> str:
    """Return a value that misses its threshold, with its mark and the threshold."""
    word, side = ("HIGH", "above") if result.name in lower_is_better else ("LOW", "below")
    value, threshold = f"{result.value:.2f}", threshold_of(result)
    if threshold is None:
        return f"{value} {word}"
    if float(value) == threshold:  # it lies closer to the threshold than two digits tell
        value = f"{result.value:.6g}"
    return f"{value} {word} (bad {side} {threshold:g})"
