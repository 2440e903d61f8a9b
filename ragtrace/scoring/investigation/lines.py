"""The lines of an investigation for people: of the command, the log and the demo."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ragtrace.model.printable import printable
from ragtrace.scoring.investigation.comparison import worse_of
from ragtrace.sinks.console import one_line
from ragtrace.stats.change.slices import LEAST_CLUSTERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ragtrace.model import BadClaim, RagRecord
    from ragtrace.model.diagnosis import Stage, Verdict
    from ragtrace.scoring.investigation.replaced import Replaced
    from ragtrace.scoring.investigation.search import AlsoWorse, Investigation
    from ragtrace.stats.change.mean import Change, Mean
    from ragtrace.stats.change.slices import How, Slice, SliceChange

ALL = 0.95
"""Part of a change from which on it is called all of it."""
_INDENT = 10
_WIDE = 100
_MOST_VALUES = 3
_MOST_ALSO = 2
_DIMENSIONS = {
    "corpus": "data source",
    "source": "passages from",
    "k": "K",
    "kind": "questions of kind",
    "language": "questions in",
    "query_length": "questions of",
}
_LANGUAGES = {"en": "English", "other": "another language than English"}
_STAGES: dict[Stage, str] = {
    "retrieval": "retrieval",
    "rerank": "reranking",
    "prompt": "the prompt",
    "model": "the model",
    "none": "no stage",
}
_HOW: dict[How, str] = {
    "worse": "its runs became worse",
    "more": "there is more of it",
    "less": "there is less of it",
    "new": "it is new",
    "gone": "it is gone",
}
MEANINGS: dict[Verdict, str] = {
    "not_retrieved": "the search did not find the needed passages",
    "unknown_retrieval": "the contexts do not suffice; whether better passages exist is unknown",
    "lost_in_rerank": "the needed passages were found, and then dropped for worse ones",
    "cut_from_prompt": "the needed passages were chosen, and do not stand in the prompt",
    "insufficient_but_answered": "the contexts do not suffice, and the model answered",
    "sufficient_but_ignored": "the contexts suffice, and the answer does not use them",
    "contradicted": "the answer contradicts its contexts",
    "unsupported": "the answer says things that no context says",
    "wrongly_refused": "the contexts suffice, and the model refused",
}
"""Meanings of the failures, for people."""
_LOOK: dict[Stage, str] = {
    "retrieval": "what changed in the index, the embedder or the search then?",
    "rerank": "what changed in the reranker or the filter then?",
    "prompt": "what changed in the prompt's room or its builder then?",
    "model": "what changed in the model, its settings or the prompt then?",
    "none": "what changed in the application then?",
}


def slice_name(name: Slice) -> str:
    """Return a slice in words.

    Example:
        >>> from ragtrace.stats.change.slices import Slice
        >>> slice_name(Slice("tag", "beta")), slice_name(Slice("query_length", "over 310"))
        ('tag beta', 'questions of over 310 characters')
    """
    unit = " characters" if name.dimension == "query_length" else ""
    return f"{_DIMENSIONS.get(name.dimension, name.dimension)} {_value(name.dimension, name.value)}{unit}"


def _value(dimension: str, value: str) -> str:
    return _LANGUAGES.get(value, value) if dimension == "language" else printable(value)


def lines(found: Investigation) -> Iterator[str]:
    """Yield the fall with its time, stage, place and replaced facts, in 100 columns for usual names."""
    yield from _headed("What", _what(found))
    if not found.is_fallen:
        return
    yield from _headed("Since", [f"about {moment_text(found.since)}"])
    yield from _headed("Stage", _stage(found))
    yield from _headed("Where", _where(found))
    yield from _headed("Changed", _changed(found))


def report(found: Investigation, texts_of: Callable[[str], list[str]], show: str) -> Iterator[str]:
    """Yield `lines`, then the share of each verdict, three examples and a next step.

    Args:
        found: the investigation.
        texts_of: the question and the worst claim of a trace, as far as they were kept.
        show: the command that shows a trace, without the id of the trace.
    """
    yield from lines(found)
    yield from _headed("Verdicts", _shares(found))
    if not found.is_fallen:
        return
    rows = []
    for it in found.examples:
        rows.append(f"{it.value:.2f}  {it.trace_id}{f'  {it.verdict}' if it.verdict else ''}")
        rows += [f"      {one_line(text, _WIDE - _INDENT - 6)}" for text in texts_of(it.trace_id)]
    yield from _headed("Examples", rows)
    yield from _headed("Next", [advice(found), *(f"{show} {it.trace_id}" for it in found.examples[:1])])


def example_texts(record: RagRecord, claims: Sequence[BadClaim]) -> list[str]:
    """Return the question and the worst claim of an example, as far as there are such.

    Example:
        >>> from ragtrace import RagRecord
        >>> example_texts(RagRecord(id="1", query="Where?"), [])
        ['Where?']
    """
    return [text for text in (record.query, *map(str, claims[:1])) if text]


def advice(found: Investigation) -> str:
    """Return what to look at first."""
    return _LOOK[found.verdict.stage if found.verdict is not None else "none"]


def _headed(head: str, rows: list[str]) -> Iterator[str]:
    for i, row in enumerate(rows):
        yield f"{head if not i else '':<{_INDENT}}{row}"


def _what(found: Investigation) -> list[str]:
    change = found.change
    if not found.is_fallen:
        verb = "nothing is shown to have fallen" if found.direction == "up" else "nothing is shown to have risen"
        return [
            f"{found.key.metric}: {verb}",
            moved(found),
            f"from {_mean(change.before)}",
            f"to   {_mean(change.window)}",
        ]
    verb = "fell" if found.direction == "up" else "rose, and lower is better,"
    rows = [
        f"{found.key.metric} {verb} by {abs(change.value):.3f}{_interval(change, is_turned=change.value < 0)}",
        f"from {_mean(change.before)}",
        f"to   {_mean(change.window)}",
    ]
    if judges := {it.judge for it in found.others if it.judge} - {found.key.judge}:
        rows.append(f"as {found.key.judge} scored it; shown less surely: {', '.join(sorted(judges))}")
    if found.also:
        rows.append(
            f"also worse: {', '.join(map(_also, found.also[:_MOST_ALSO]))}; see --metric {found.also[0].metric}"
        )
    return rows


def moved(found: Investigation) -> str:
    """Return what moved most where nothing is shown to have fallen."""
    change, metric = found.change, found.key.metric
    if found.ended is not None:
        times = f"from {moment_text(found.since)} to {moment_text(found.ended)}"
        return f"{metric} was worse by {abs(change.value):.3f} {times}, and is not now"
    if worse_of(found.direction) * change.value <= 0.0:
        return f"{metric} is not worse of late than it was"
    return f"{metric} moved most, by {_signed(change)} about {moment_text(found.since)}; this may be chance"


def _also(it: AlsoWorse) -> str:
    before, window = ("none" if mean is None else f"{mean:.3f}" for mean in (it.before, it.window))
    return f"{it.metric} {before} -> {window}"


def _stage(found: Investigation) -> list[str]:
    if not found.has_verdicts:
        return ["unknown: the runs have no verdicts; the metric diagnosis gives them"]
    grown = found.verdict
    if grown is None:
        return ["no verdict's share is shown to have grown"]
    it = grown.share
    shares = f"{it.before:.1%} to {it.window:.1%} of the runs"
    change = f"{it.difference:+.1%}, {it.low:+.1%} to {it.high:+.1%}"
    return [
        f"{_STAGES[grown.stage]}: {grown.verdict} grew from {shares} ({change})",
        f"   ({MEANINGS[grown.verdict]})",
    ]


def _shares(found: Investigation) -> list[str]:
    if not found.shares:
        return []
    rows = [f"  {'':<25}   before      n    after      n   change"]
    for it in found.shares:
        mark = "*" if it.is_changed else " "
        shares = f"{it.before:>9.1%} {it.n_before:>6} {it.window:>8.1%} {it.n_window:>6}"
        rows.append(f"{mark} {it.verdict:<25}{shares}   {it.difference:+.1%} ({it.low:+.1%} to {it.high:+.1%})")
    if any(it.is_changed for it in found.shares):
        rows.append("* its share changed: the 95 % interval of the change leaves 0 out")
    return rows


def _where(found: Investigation) -> list[str]:
    explained = found.explained
    if not explained.tested:
        n = f"{LEAST_CLUSTERS:.0f}"
        rows = [
            "unknown: no part of the traffic is large enough to be searched",
            f"   (it needs {n} independent runs in a period, and the runs outside it need {n} in both)",
        ]
    elif not explained.slices:
        rows = [
            f"everywhere: no part of the traffic stands out ({explained.tested} were large enough to be searched)"
        ]
    else:
        rows = [row for i, it in enumerate(explained.slices, start=1) for row in _slice_rows(i, it, found)]
        rows += [rest_text(found)]
    if not found.has_facts:
        rows.append("older runs lack tags, sources, K, language and lengths: these were not searched")
    return rows


def _changed(found: Investigation) -> list[str]:
    rows = [_replaced_text(it) for it in found.replaced]
    return [*rows, "   (it coincides with the change of the scores, and need not be its cause)"] if rows else []


def _replaced_text(fact: Replaced) -> str:
    name = _DIMENSIONS.get(fact.dimension, fact.dimension)
    before, window = _values(fact.dimension, fact.before), _values(fact.dimension, fact.window)
    if before and window:
        return f"{name} {before} -> {window}"
    if window:
        return f"{name} {window}: hardly any runs before, nearly all now"
    return f"{name} {before}: nearly all runs before, hardly any now"


def _values(dimension: str, values: Sequence[str]) -> str:
    more = ["..."] if len(values) > _MOST_VALUES else []
    return ", ".join([*(_value(dimension, it) for it in values[:_MOST_VALUES]), *more])


def _slice_rows(number: int, it: SliceChange, found: Investigation) -> Iterator[str]:
    whole = found.change.value
    part = min(it.explained / whole, 1.0)
    bounds = f"{it.explained:+.3f}, {it.low:+.3f} to {it.high:+.3f}"
    yield f"{number}. {slice_name(it.slice)}: {f'{part:.0%}' if part < ALL else 'all'} of the change ({bounds})"
    yield f"   {_mean_and_share(it)}"
    yield f"   {_cause(it)}; without it the mean changed by {it.outside.value:+.3f}"


def _mean_and_share(it: SliceChange) -> str:
    before, window = it.inside.before, it.inside.window
    if not before.n:
        return f"its mean {_short(window)}; none of the runs before, {it.share_window:.0%} now"
    if not window.n:
        return f"its mean was {_short(before)}; {it.share_before:.0%} of the runs before, none now"
    shares = f"{it.share_before:.0%} of the runs before, {it.share_window:.0%} now"
    return f"its mean {_short(before)} -> {_short(window)}; {shares}"


def _cause(it: SliceChange) -> str:
    is_mixed = it.how == "worse" and abs(it.by_mean) < 2.0 * abs(it.by_share)
    return f"{_HOW[it.how]}{', and its share changed' if is_mixed else ''}"


def rest_text(found: Investigation) -> str:
    """Return whether the mean changed outside the slices that explain the change."""
    rest = found.explained.rest
    if rest is None or rest.low is None or rest.high is None:
        return "outside these parts there are too few scores to tell"
    sure = rest.low > 0.0 or rest.high < 0.0
    said = "changed too" if sure else "is not shown to have changed"
    return f"outside these parts the mean {said} ({rest.value:+.3f}, {rest.low:+.3f} to {rest.high:+.3f})"


def moment_text(at: float) -> str:
    """Return Unix seconds as a time in UTC.

    Example:
        >>> moment_text(0.0)
        '1970-01-01 00:00:00 UTC'
    """
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _mean(mean: Mean) -> str:
    bounds = "" if mean.low is None or mean.high is None else f"{mean.low:.3f} to {mean.high:.3f}, "
    return f"{_short(mean)} ({bounds}{mean.n} scores)"


def _short(mean: Mean) -> str:
    return "none" if mean.mean is None else f"{mean.mean:.3f}"


def _interval(change: Change, *, is_turned: bool) -> str:
    if change.low is None or change.high is None:
        return ""
    low, high = (-change.high, -change.low) if is_turned else (change.low, change.high)
    return f" ({low:.3f} to {high:.3f})"


def _signed(change: Change) -> str:
    bounds = "" if change.low is None else f" ({change.low:+.3f} to {change.high:+.3f})"
    return f"{change.value:+.3f}{bounds}"
