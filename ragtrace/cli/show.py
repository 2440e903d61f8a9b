"""Command ``ragtrace show``, which prints one answer whole."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from ragtrace.cli.io.answers import find_line, find_stored, is_store, source_of
from ragtrace.cli.io.scored_files import is_in_parts
from ragtrace.cli.io.stored import opened_store
from ragtrace.cli.io.verdicts import verdict_lines
from ragtrace.errors import ConfigError
from ragtrace.model.printable import printable
from ragtrace.model.reading import preview
from ragtrace.views.pool import pooled
from ragtrace.views.run_view import quotes
from ragtrace.views.scored_answer import ScoredAnswer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ragtrace.model import BadClaim, Passage, RagRecord, Stage
    from ragtrace.views.pool import PooledPassage

_READABLE = 120
_MOST_ID_CHARS = 24
_WIDE = 100
_MOST_RATER_CHARS = 60
_COMMENT = " " * 6
EPILOG = """\
WHICH, in a file or folder: a line number as `ragtrace worst` prints it, a record's id, or a trace id; --id
takes a number for an id too. In a store: a trace id, or at least 6 of its first digits.
"""


def command(
    where: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE|STORE] WHICH",
            help="File, folder or store (default: RAGTRACE_STORE), and the answer in it.",
        ),
    ] = None,
    *,
    identity: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="Id of the record, also where it is a number.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Print passages whole.")] = False,
) -> int:
    """Show one answer: verdict, question, pool, prompt, what capture read, bad claims and reasons."""
    from ragtrace.cli.io.console import Shown

    given, which = _chosen(where or [], identity)
    source = source_of(given)
    if is_store(source):
        with opened_store(Path(source)) as store:
            answer = find_stored(store, which)
    else:
        answer = find_line(source, which, is_id=identity is not None)
    console = Shown()
    for line in lines_of(answer, min(console.width, _READABLE), is_full=full):
        console.print(line)
    return 0


def _chosen(where: Sequence[str], identity: str | None) -> tuple[str | None, str]:
    """Return the source, None for the setting's, and the name of the answer.

    Raises:
        ConfigError: no answer is named, or too much is.
    """
    *sources, which = [*where, identity] if identity is not None else where or [""]
    is_file_alone = not sources and identity is None and (Path(which).is_file() or is_in_parts(which))
    if not which or is_file_alone or len(sources) > 1:
        name = which if is_file_alone else "FILE"
        raise ConfigError(f"show: name one answer by its line, id or trace id: ragtrace show {name} 1")
    return (sources[0] if sources else None), which


def lines_of(answer: ScoredAnswer, width: int, *, is_full: bool = False) -> Iterator[str]:
    """Yield the lines that describe an answer."""
    record, claims = answer.record, answer.standing.claims
    yield "  ".join(_head(answer))
    yield from verdict_lines(answer.scores, width)
    if answer.has_texts:
        yield from _section("Question", record.query, width)
        yield from _pool(record, width, is_full=is_full)
        yield from _section("Answer", marked(record.answer, claims), width)
        if record.reference:
            yield from _section("Reference", record.reference, width)
    else:
        yield from _section(
            "Texts",
            "none are kept: with content=full the store keeps low runs and a part of the rest, or all runs"
            " (store_texts=all), for store_payload_hours",
            width,
        )
    yield from _read(record)
    yield from _claims(claims, width)
    yield from _scores(answer, width)


def _head(answer: ScoredAnswer) -> Iterator[str]:
    record = answer.record
    yield answer.place
    if not answer.place.startswith("trace "):
        yield f"id {record.id}"
        if record.trace_id:
            yield f"trace {record.trace_id}"
    for name in ("workflow", "session", "user", "model"):
        if getattr(record, name):
            yield f"{name} {getattr(record, name)}"
    if answer.has_texts and record.outcome != "answered":
        yield f"outcome {record.outcome}"


def _read(record: RagRecord) -> Iterator[str]:
    """Yield what capture read of a run; its lines are not folded, since one may be copied into a program."""
    if record.reading is not None:
        yield ""
        yield "Read"
        yield from (f"  {printable(line)}" for line in preview(record.reading))


def _section(title: str, text: str, width: int) -> Iterator[str]:
    yield ""
    yield title
    for paragraph in text.splitlines() or ["(empty)"]:
        yield from (f"  {line}".rstrip() for line in wrap(paragraph, width - 2) or [""])


def marked(answer: str, claims: Sequence[BadClaim]) -> str:
    """Return an answer with a mark behind each bad claim that it quotes.

    Example:
        >>> from ragtrace.model import BadClaim
        >>> marked("Oslo. It rains. Bye.", [BadClaim(text="It rains.", verdict="not_supported")])
        'Oslo. It rains. [bad claim 1] Bye.'
    """
    marks: dict[int, str] = {}
    for number, claim in enumerate(claims, start=1):
        end = next((end for _, end in quotes(answer, claim.text) if end not in marks), None)
        if end is not None:
            marks[end] = f" [bad claim {number}]"
    ends = sorted(marks)
    parts = [answer[begin:end] + marks[end] for begin, end in pairwise((0, *ends))]
    return "".join([*parts, answer[ends[-1] if ends else 0 :]])


_STAGES: dict[Stage, tuple[str, str]] = {
    "retrieved": ("rank", "retrieved"),
    "reranked": ("selected", "selected"),
    "used": ("prompt", "in the prompt"),
}


def _pool(record: RagRecord, width: int, *, is_full: bool) -> Iterator[str]:
    """Yield a line for each passage, with its ranks, score, id and text."""
    stages = {stage: record.pool(stage) for stage in _STAGES if record.pool(stage)}
    most = _MOST_ID_CHARS if width >= _WIDE else _MOST_ID_CHARS // 2
    passages = pooled(record)
    if stages:
        yield from _ranked([it for it in passages if it.places], stages, width, most, is_full=is_full)
    yield from _unranked([it for it in passages if not it.places], width, most, is_full=is_full)


def _ranked(
    passages: Sequence[PooledPassage],
    stages: Mapping[Stage, Sequence[Passage]],
    width: int,
    most: int,
    *,
    is_full: bool,
) -> Iterator[str]:
    yield ""
    yield f"Passages: {', '.join(f'{len(found)} {_STAGES[stage][1]}' for stage, found in stages.items())}"
    size = min(max(map(len, ["id", *(it.key for it in passages)])), most)
    yield "  ".join(["", *(f"{_STAGES[stage][0]:>8}" for stage in stages), "  score", f"{'id':<{size}}", "text"])
    for it in passages:
        cells = [f"{it.places.get(stage, '-'):>8}" for stage in stages]
        score = "" if it.passage.score is None else f"{it.passage.score:.3g}"
        row = "  ".join(["", *cells, f"{score:>7}", f"{_cut(it.key, size):<{size}}", ""])
        yield from _texts(row, it.passage.text, width, is_full=is_full)


def _unranked(passages: Sequence[PooledPassage], width: int, most: int, *, is_full: bool) -> Iterator[str]:
    """Yield a line for each text of a tool, with the tool's name and its id."""
    if not passages:
        return
    tools = [_cut(it.passage.source or "", most) for it in passages]
    names, ids = (
        min(max(map(len, column)), most) for column in (["tool", *tools], ["id", *(p.key for p in passages)])
    )
    yield ""
    yield f"Texts of tools, without rank: {len(passages)}"
    yield f"  {'tool':<{names}}  {'id':<{ids}}  text"
    for tool, it in zip(tools, passages, strict=True):
        row = f"  {tool:<{names}}  {_cut(it.key, ids):<{ids}}  "
        yield from _texts(row, it.passage.text, width, is_full=is_full)


def _texts(row: str, text: str, width: int, *, is_full: bool) -> Iterator[str]:
    if is_full:
        yield row.rstrip()
        for paragraph in text.splitlines():
            yield from (f"        {line}" for line in wrap(paragraph, width - 8))
    else:
        yield f"{row}{_cut(text, max(width - len(row), 20))}".rstrip()


def _cut(text: str, most: int) -> str:
    from ragtrace.sinks.console import one_line

    return one_line(text, most)


def _claims(claims: Sequence[BadClaim], width: int) -> Iterator[str]:
    if not claims:
        return
    yield ""
    yield "Bad claims"
    for number, claim in enumerate(claims, start=1):
        yield from wrap(f"{number}. {claim}", width, initial_indent="  ", subsequent_indent="     ")
        if claim.reason:
            yield from wrap(claim.reason, width, initial_indent="     ", subsequent_indent="     ")


def _scores(answer: ScoredAnswer, width: int) -> Iterator[str]:
    if not answer.scores and not answer.ratings:
        return
    from ragtrace.metrics.registry import is_lower_better

    yield ""
    yield "Scores"
    size = max(map(len, [*answer.scores, *(it.metric for it in answer.ratings)]))
    for name, score in answer.scores.items():
        if isinstance(score.get("value"), int | float):
            missed = "" if score.get("passed") is not False else "HIGH" if is_lower_better(name) else "LOW"
            yield f"  {name:<{size}}  {score['value']:>7.3f}  {missed:<4}  {score.get('judge') or ''}".rstrip()
    for rating in answer.ratings:
        rater = f"rater {_cut(rating.rater, _MOST_RATER_CHARS)}" if rating.rater else "a person"
        yield f"  {rating.metric:<{size}}  {rating.value:>7.3f}        {rater}"
        yield from wrap(rating.comment or "", width, initial_indent=_COMMENT, subsequent_indent=_COMMENT)
    for name, score in answer.scores.items():
        if not isinstance(score.get("value"), int | float):
            yield f"  {name:<{size}}  {score.get('state')}: {score.get('reason')}"
