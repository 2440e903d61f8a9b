"""Verdicts on runs for people: one run with its evidence, and the shares in a file."""

from __future__ import annotations

from array import array
from collections import Counter
from textwrap import wrap
from typing import TYPE_CHECKING

from ragtrace.model.diagnosis import MEANINGS, STAGES, VERDICTS
from ragtrace.model.standing import standing_of
from ragtrace.scoring.offline.scored_row import clusters_of
from ragtrace.stats.intervals import clustered_interval

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import Console

    from ragtrace.model.codec import ScoreJson
    from ragtrace.model.diagnosis import Verdict
    from ragtrace.stats.intervals import Interval

_MOST_LOST = 5
_GRADERS = {"labels": "labels", "grades": "the judge's grades", "shadow": "a deeper retrieval"}
_YES_OR_NO = {
    "sufficient": "contexts sufficient",
    "related": "the question's words in the contexts",
    "attempted": "answered",
    "supported": "claims supported",
    "contradicted": "contradicted",
    "responsive": "to the question",
    "used": "needed passage used",
    "complete": "complete",
}

_LEVELS = {
    "answer_relevancy": "answer_relevancy",
    "query_coverage": "share of the question's words in the answer and its sources",
    "nuggets": "nuggets",
}


def verdict_line(scores: Mapping[str, ScoreJson]) -> str | None:
    """Return the verdict on a run in one line; None where its scores hold none.

    Example:
        >>> verdict_line({"diagnosis": {"details": {"verdict": "lost_in_rerank"}}})
        'lost_in_rerank (rerank): a needed passage was retrieved, and worse ones were selected in its place'
    """
    found = standing_of(scores)
    verdict, because = found.verdict, found.details.get("because")
    if verdict is None:
        return None
    stage = f" ({STAGES[verdict]})" if STAGES[verdict] != "none" else ""
    why = f", {because}" if isinstance(because, str) and verdict == "undetermined" else ""
    return f"{verdict}{stage}: {MEANINGS[verdict]}{why}"


def verdict_lines(scores: Mapping[str, ScoreJson], width: int) -> Iterator[str]:
    """Yield a section with the verdict and its evidence; nothing without a verdict."""
    line = verdict_line(scores)
    if line is None:
        return
    yield ""
    yield "Verdict"
    for text in (line, *_evidence(standing_of(scores).details)):
        yield from wrap(text, width, initial_indent="  ", subsequent_indent="    ")


def _evidence(details: Mapping[str, object]) -> Iterator[str]:
    if details.get("by") in _GRADERS:
        counts = {name: details.get(f"n_needed{name}") for name in ("", "_in_pool", "_in_prompt")}
        yield (
            f"needed passages by {_GRADERS[str(details['by'])]}, grade {details.get('relevant_grade')} and better: "
            f"{counts['']}, of which {counts['_in_pool']} in the pool and {counts['_in_prompt']} in the prompt"
        )
    yield from _lost(details)
    known = [
        f"{label} {'yes' if details[name] else 'no'}"
        for name, label in _YES_OR_NO.items()
        if isinstance(details.get(name), bool)
    ]
    if known:
        yield ", ".join(known)
    if "n_claims" in details:
        yield (
            f"claims: {details['n_claims']}, unsupported {details.get('n_unsupported')}, "
            f"contradicted {details.get('n_contradicted')}"
        )
    if details.get("n_invented"):
        yield f"numbers, dates, names, quotes and addresses that no context has: {details['n_invented']}"
    for name, label in _LEVELS.items():
        value, low = details.get(name), details.get(f"{name}_low")
        if isinstance(value, float | int):
            yield f"{label} {value:.2f}{'' if low is None else f', low below {low}'}"


def _lost(details: Mapping[str, object]) -> Iterator[str]:
    ranks = {"lost_rank": "in the pool", "lost_selected_rank": "in the selection"}
    places = [f"rank {details[name]} {place}" for name, place in ranks.items() if name in details]
    if places:
        yield f"first lost passage: {', '.join(places)}, grade {details.get('lost_grade')}"
    lost = details.get("lost")
    if isinstance(lost, list) and lost:
        named = [f"{it.get('id')} ({it.get('stage')})" for it in lost[:_MOST_LOST] if isinstance(it, dict)]
        more = f" and {len(lost) - _MOST_LOST} more" if len(lost) > _MOST_LOST else ""
        yield f"lost: {', '.join(named)}{more}"


class VerdictShares:
    """Counts the verdicts of a file, and keeps the cluster of each run."""

    def __init__(self) -> None:
        self.counts: Counter[Verdict] = Counter()
        self._found: list[Verdict] = []
        self._units: array[int] = array("q")

    def add(self, scores: Mapping[str, ScoreJson], unit: int) -> None:
        """Take the scores of one line, whose run is of a cluster."""
        verdict = standing_of(scores).verdict
        if verdict is not None:
            self.counts[verdict] += 1
            self._found.append(verdict)
            self._units.append(unit)

    def share(self, verdict: Verdict) -> Interval:
        """Return the share of a verdict with its 95 % interval over clusters; three None without verdicts."""
        return clustered_interval([float(it == verdict) for it in self._found], clusters_of(self._units))

    def show(self, console: Console) -> None:
        """Print each verdict that occurs with its share and interval; nothing without verdicts."""
        if not self.counts:
            return
        from rich.table import Table

        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("verdict", no_wrap=True)
        for head in ("n", "share", "95 % interval"):
            table.add_column(head, justify="right", no_wrap=True)
        table.add_column("stage", no_wrap=True)
        for verdict in VERDICTS:
            if verdict in self.counts:
                share, low, high = self.share(verdict)
                stage = STAGES[verdict] if STAGES[verdict] != "none" else ""
                table.add_row(verdict, str(self.counts[verdict]), f"{share:.1%}", f"{low:.1%} to {high:.1%}", stage)
        console.print("")
        console.print(table)
