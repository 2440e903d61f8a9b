"""Scored runs as a notebook shows them: small HTML without scripts, and text for other consoles."""

from __future__ import annotations

import os
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ragtrace.batch.fields import plain
from ragtrace.batch.resume import scored_line
from ragtrace.errors import ConfigError
from ragtrace.model.codec import record_to_json
from ragtrace.model.printable import count_text, printable
from ragtrace.sqlite_file import is_sqlite
from ragtrace.views.scored_answer import ScoredAnswer
from ragtrace.views.source import Views
from ragtrace.views.types import RunFilter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from ragtrace.stats.intervals import Interval
    from ragtrace.views.types import (
        AnswerPiece,
        ClaimRow,
        MetricView,
        PassageRow,
        RunLine,
        RunView,
        ScoreRow,
        VerdictShare,
    )

    Scored = Mapping[str, Any] | ScoredAnswer
    Cells = tuple[object, ...]
    Source: TypeAlias = str | os.PathLike[str] | pa.Table | Iterable[Scored] | Views

_MOST_CHARS = 300
_SIGNS = {"supported": "✓", "not_supported": "✗", "contradicted": "≠"}
_NOT_KEPT = (
    "The texts of this run are not kept. A store keeps those of bad runs and a share of the others, or of all,"
    " for a time."
)
# No colours of the page: a notebook may be light or dark, and has styles of its own.
_STYLE = """
.ragtrace{font:13px/1.45 system-ui,sans-serif;max-width:1100px;overflow-x:auto}
.ragtrace table{border-collapse:collapse;margin:6px 0}
.ragtrace :is(th,td){text-align:left;vertical-align:top;padding:3px 10px 3px 0}
.ragtrace tr{border-bottom:1px solid rgb(128 128 128/.3)}
.ragtrace th{font-weight:600;white-space:nowrap}
.ragtrace .n{font-variant-numeric:tabular-nums;white-space:nowrap;text-align:right}
.ragtrace .s{opacity:.72}
.ragtrace .t{white-space:pre-wrap;overflow-wrap:anywhere}
.ragtrace .bad{background:rgb(220 60 50/.18);text-decoration:underline wavy rgb(220 60 50)}
.ragtrace .good{background:rgb(40 160 90/.15)}
"""


class Html(str):
    """HTML that is escaped already."""

    __slots__ = ()


class Display:
    """Metrics, failures and the worst runs of a store, a scored file or a table.

    Args:
        views: over the runs.
        metric: the runs are ordered by it; default the first of the source.
        worst: number of runs listed.
    """

    def __init__(self, views: Views, *, metric: str | None = None, worst: int = 5) -> None:
        self._views = views
        self._filter = RunFilter(metric=metric)
        self._worst = worst

    def run(self, id: str | int) -> RunDisplay:  # noqa: A002 - the name of the list's column
        """Return one run whole.

        Args:
            id: a trace id of a store, or the number of a row from 1.

        Raises:
            ConfigError: there is no such run.
        """
        found = self._views.run(str(id))
        if found is None:
            raise ConfigError(f"{self._views.name}: there is no run {id!r}; the list of worst runs shows some ids")
        return RunDisplay(found)

    def _repr_html_(self) -> str:
        overview, listed = self._views.overview(), self._views.runs(self._filter, size=self._worst)
        failed = [share for share in overview.verdicts if share.stage != "none" and share.n]
        return _page(
            _tag("b", f"{overview.source}, {count_text(overview.runs, 'run')}"),
            _table(_METRIC_HEADS, map(_metric_cells, overview.metrics)),
            _table(("verdict", "runs", "share", "95 % interval", "stage"), map(_verdict_cells, failed)),
            _table(("id", listed.metric or "value", "worst runs", "verdict"), map(_line_cells, listed.lines)),
            *(_tag("div", note, "s") for note in overview.notes),
        )

    def __repr__(self) -> str:
        overview, listed = self._views.overview(), self._views.runs(self._filter, size=self._worst)
        metrics = [f"  {'  '.join(map(str, _metric_cells(metric)[:5]))}" for metric in overview.metrics]
        worst = [f"  {_value(line)}  {line.id}  {_cut(line.query or '')}" for line in listed.lines]
        head = f"{overview.source}, {count_text(overview.runs, 'run')}"
        return _text([head, *metrics, *([f"worst by {listed.metric}", *worst] if worst else []), *overview.notes])


class RunDisplay:
    """One run: question, answer with its claims marked, passages and scores."""

    def __init__(self, run: RunView) -> None:
        self.view = run

    def _repr_html_(self) -> str:
        run = self.view
        texts = (
            _tag("p", _answer(run), "t"),
            _table(("claim", "verdict", "support", "evidence"), map(_claim_cells, run.claims)),
            _table(_RUN_HEADS, (_passage_cells(it) for it in run.passages if it.has_rank)),
            _table(_UNRANKED_HEADS, (_unranked_cells(it) for it in run.passages if not it.has_rank)),
        )
        return _page(
            _tag("b", run.query or run.id, "t"),
            *(_tag("div", line, "s") for line in _verdict(run)),
            *(texts if run.has_texts else (_tag("p", _NOT_KEPT, "s"),)),
            _table(("metric", "value", "threshold", "judge", "weight"), map(_score_cells, run.scores)),
        )

    def __repr__(self) -> str:
        run = self.view
        claims = [f"  {claim.number}. {claim.verdict}: {_cut(claim.text)}" for claim in run.claims]
        scores = [
            f"  {score.key.metric}  {_value(score)}  {score.key.judge or ''}".rstrip() for score in run.scores
        ]
        texts = [run.answer, *_verdict(run), *claims] if run.has_texts else [_NOT_KEPT, *_verdict(run)]
        return _text([run.query or run.id, *texts, *scores])


def display(source: Source, *, metric: str | None = None, worst: int = 5) -> Display:
    """Return scored runs as a notebook shows them; ``display(...).run(id)`` is one run whole.

    Args:
        source: a store or file of scores, the table of `ragtrace.batch.score`, or rows with ``scores``.
        metric: the runs are ordered by it; default faithfulness, else the first of the source.
        worst: number of runs listed.

    Raises:
        ConfigError: there is no such file.

    Example:
        >>> scores = {"faithfulness": {"state": "ok", "value": 0.5, "judge": "overlap"}}
        >>> display([{"query": "Where?", "answer": "In Oslo.", "scores": scores}])
        1 row, 1 run
          faithfulness  0.500  0.000 to 1.000  1  overlap
        worst by faithfulness
          0.500  1  Where?
        the runs have no times, so there is no trend
    """
    return Display(_views(source), metric=metric, worst=worst)


def _views(source: Source) -> Views:
    if isinstance(source, Views):
        return source
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        return Views.of_store(path) if path.is_file() and is_sqlite(path) else Views.of_file(path)
    rows = list(_rows(source))
    return Views.of_file(Path(count_text(len(rows), "row")), rows=lambda _broken: enumerate(rows, start=1))


def _rows(source: Any) -> Iterator[dict[str, Any]]:
    if hasattr(source, "to_pylist"):  # a table of Arrow
        yield from (scored_line(row) for row in source.to_pylist(maps_as_pydicts="lossy") if row.get("scores"))
        return
    for row in source:
        is_answer = isinstance(row, ScoredAnswer)
        yield {**record_to_json(row.record), "scores": row.scores} if is_answer else plain(dict(row))


_METRIC_HEADS = ("metric", "mean", "95 % interval", "n", "judge", "better", "without a score")
_RUN_HEADS = ("passage", "rank", "selected", "in prompt", "score", "text")
_UNRANKED_HEADS = ("text of a tool, without rank", "tool", "text")


def _metric_cells(it: MetricView) -> Cells:
    counts = [(f"error {reason}", n) for reason, n in it.errors.items()]
    counts += [(f"na {reason}", n) for reason, n in it.na.items()]
    better = {"up": "higher", "down": "lower", None: ""}[it.direction]
    missing = ", ".join(f"{reason} ({n})" for reason, n in counts)
    return it.label, _number(it.mean.mean), _bounds(it.mean), it.n, it.key.judge or "", better, missing


def _line_cells(it: RunLine) -> Cells:
    claim = _tag("div", _cut(it.claim), "t s") if it.claim else Html()
    said = Html(_tag("div", _cut(it.query or "(no texts were kept)"), "t") + claim)
    return it.id, _value(it), said, it.verdict or ""


def _passage_cells(it: PassageRow) -> Cells:
    return it.id, it.rank or "", it.selected or "", it.used or "", _number(it.score), _cut(it.text)


def _unranked_cells(it: PassageRow) -> Cells:
    return it.id, it.source or "", _cut(it.text)


def _score_cells(it: ScoreRow) -> Cells:
    return it.key.metric, _value(it), _limit(it), it.key.judge or "", _number(it.weight)


def _limit(it: ScoreRow) -> str:
    """Return the threshold, and whether the score misses it."""
    if it.threshold is None:
        return "misses" if it.passed is False else ""
    own = ", the judge's own" if it.is_own_threshold else ""
    return f"{_number(it.threshold)}{own}{': missed' if it.passed is False else ''}"


def _claim_cells(it: ClaimRow) -> Cells:
    return f"{it.number}. {it.text}", it.verdict, _number(it.support), ", ".join(it.evidence)


def _verdict_cells(it: VerdictShare) -> Cells:
    return it.verdict, it.n, _number(it.share.mean, "{:.1%}"), _bounds(it.share, "{:.1%}"), it.stage


def _answer(run: RunView) -> Html:
    pieces = [_piece(run, piece) for piece in run.pieces]
    return Html("".join(pieces)) if pieces else _tag("span", run.answer or "(no answer)")


def _piece(run: RunView, piece: AnswerPiece) -> Html:
    if piece.claim is None:
        return _tag("span", piece.text)
    verdict = run.claims[piece.claim - 1].verdict
    marked = f"{piece.text} [{_SIGNS.get(verdict, '?')}{piece.claim}]"
    return _tag("span", marked, "good" if verdict == "supported" else "bad")


def _verdict(run: RunView) -> list[str]:
    return [f"{run.verdict} ({run.stage}): {run.meaning}"] if run.verdict else []


def _value(it: RunLine | ScoreRow) -> str:
    return _number(it.value) or f"{it.state}: {it.reason}"


def _number(value: float | None, form: str = "{:.3f}") -> str:
    return "" if value is None else form.format(value)


def _bounds(found: Interval, form: str = "{:.3f}") -> str:
    return "" if found.low is None else f"{form.format(found.low)} to {form.format(found.high)}"


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}..."


def _tag(name: str, content: object, kind: str = "") -> Html:
    text = content if isinstance(content, Html) else escape(printable(str(content), keep="\n\t"))
    head = f'{name} class="{kind}"' if kind else name
    return Html(f"<{head}>{text}</{name}>")


def _table(heads: Sequence[str], rows: Iterable[Cells]) -> Html:
    """Return a table; nothing without rows."""
    shown = [Html("".join(_tag("td", cell, "n" if isinstance(cell, int) else "") for cell in row)) for row in rows]
    head = Html("".join(_tag("th", name) for name in heads))
    return _tag("table", Html("".join(_tag("tr", row) for row in (head, *shown)))) if shown else Html()


def _page(*parts: Html) -> str:
    return _tag("div", Html(f"<style>{_STYLE}</style>{''.join(parts)}"), "ragtrace")


def _text(lines: Iterable[str]) -> str:
    return "\n".join(printable(line, keep="\t") for line in lines)
