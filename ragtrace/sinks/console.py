"""Print each scored run to standard error, for a first look without a collector."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ragtrace.model.diagnosis import verdict_of
from ragtrace.model.printable import printable
from ragtrace.model.standing import standing_by

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from ragtrace.model import MetricResult, RagRecord, Score

_MOST_QUERY_CHARS = 60
_MOST_CLAIM_CHARS = 100
_NOT_SEEN = (
    "ragtrace: the judge overlap compares words and facts: it misses contradictions in other words and swapped "
    "roles (docs/how-to/choose-a-judge.md)"
)


class ConsoleSink:
    """Writes a line for each scored run, and its worst claim on a second one.

    Lines go to standard error, as logging's do: standard output stays the application's. They hold the question and
    a claim of the answer, after redaction, whatever ``content`` says. Under the first claims of the offline judge
    one line tells what that judge does not see.

    Args:
        lower_is_better: names of the metrics where a high value is the bad one.
    """

    def __init__(self, lower_is_better: Collection[str] = ()) -> None:
        self._lower_is_better = lower_is_better
        self._has_told = False

    def emit(self, record: RagRecord, scores: Sequence[Score]) -> None:
        """Write the lines of one run."""
        results = [score.result for score in scores]
        lines = run_lines(record, results, self._lower_is_better)
        if not self._has_told and any(map(_is_of_words, results)):
            self._has_told = True
            lines.append(_NOT_SEEN)
        sys.stderr.write("".join(f"{line}\n" for line in lines))  # in one call: other threads write here too
        sys.stderr.flush()


def run_lines(
    record: RagRecord, results: Sequence[MetricResult], lower_is_better: Collection[str] = ()
) -> list[str]:
    """Return the lines of one scored run: its scores, and the worst claim where there is a bad one.

    Example:
        >>> from ragtrace.model import MetricResult, RagRecord
        >>> result = MetricResult(name="faithfulness", state="ok", value=0.5, passed=False)
        >>> run_lines(RagRecord(id="1", query="Where?"), [result])
        ['ragtrace: faithfulness 0.50 LOW | Where?']
    """
    parts = [
        ", ".join(_scores(results, lower_is_better)) or "no metrics",
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


def _scores(results: Sequence[MetricResult], lower_is_better: Collection[str]) -> Iterator[str]:
    valued = [result for result in results if result.value is not None]
    for result in valued:
        verdict = verdict_of(result)
        if verdict is not None:
            yield f"{result.key} {verdict}"
            continue
        missed = "HIGH" if result.name in lower_is_better else "LOW"
        yield f"{result.key} {result.value:.2f}{f' {missed}' if result.passed is False else ''}"
    for result in results:
        if result.value is None and (verdict := verdict_of(result)) is not None:
            yield f"{result.key} {verdict} ({result.details.get('because')})"
        elif result.state == "error" or (not valued and result.state != "ok"):
            yield f"{result.key} {result.state} ({result.reason})"
