"""The fields of a scored line that a comparison reads."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, get_args

from ragtrace.errors import ConfigError, InputError
from ragtrace.judges.scales import gains, is_whole
from ragtrace.metrics.consistency.runs import answers_of, query_key
from ragtrace.metrics.registry import output
from ragtrace.model.codec import record_from_json
from ragtrace.model.score import Scale, SeriesKey, State
from ragtrace.stats.intervals import UNIT, Range

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Mapping, Sequence

    from ragtrace.metrics.consistency.runs import QueryKey
    from ragtrace.model import RagRecord
    from ragtrace.stats.intervals import Ends

ANSWERED = "answered"  # a share is made of it
_LABELS = "labels"
_OF_SERIES = tuple(SeriesKey("").maker())
_STATES = frozenset(get_args(State))
_MOST = 1e100  # sums of squares of millions of such values are finite; no score is near


@dataclass(frozen=True, slots=True)
class Scored:
    """One score of a line, with a value or a reason.

    `labels` is the version of the labels it was computed over. It is of the query, not of the series: a label cache
    has another for each query, and grows query by query. So a mean may hold several; a pair has one.
    """

    state: str
    value: float | None
    reason: str | None
    key: SeriesKey
    labels: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRow:
    """One line of a scored file.

    Attributes:
        id: of the record, else the number of its line.
        query: as it was asked.
        key: what runs of the same query share; None without a query.
        answer: where the run ended as ``answered`` and says something, else "".
        unit: the session or user of the record, as (kind, id); None without one.
        scores: by their key in the file.
        umbrela: UMBRELA grades of the delivered contexts by id, None where no metric over grades has a value.
    """

    id: str
    query: str
    key: QueryKey | None
    answer: str
    unit: tuple[str, str] | None
    scores: Mapping[str, Scored]
    umbrela: Mapping[str, int] | None


def scored_row(given: object, number: int) -> ScoredRow:
    """Read one parsed line.

    Args:
        given: the parsed JSON.
        number: of the line, from 1; the id of a line that has none.

    Raises:
        InputError: it is not a record with scores; the message names the field.

    Example:
        >>> line = {"id": 7, "query": "Where?", "scores": {"mrr": {"state": "ok", "value": 1, "version": "a1"}}}
        >>> row = scored_row(line, 1)
        >>> row.id, row.scores["mrr"].value, row.scores["mrr"].key.version
        ('7', 1.0, 'a1')
    """
    record = record_from_json(given, fallback_id=str(number))
    scores = given.get("scores") if isinstance(given, dict) else None
    if not isinstance(scores, dict):
        raise InputError("not a line of `ragtrace score`: no scores in it")
    return ScoredRow(
        id=record.id,
        query=record.query,
        key=query_key(record),
        answer="".join(answers_of([record])),
        unit=unit_of(record),
        scores={name: read_score(name, score) for name, score in scores.items()},
        umbrela=_umbrela(record, scores),
    )


def unit_of(record: RagRecord) -> tuple[str, str] | None:
    """Return the session or user of a record, as (kind, id); None without one.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> unit_of(RagRecord(id="1", session="s1")), unit_of(RagRecord(id="2"))
        (('session', 's1'), None)
    """
    return ("session", record.session) if record.session else ("user", record.user) if record.user else None


def clusters_of(units: Sequence[Hashable]) -> Sequence[Hashable] | None:
    """Return the clusters of an interval; None where each score is alone.

    Example:
        >>> clusters_of(["s1", "s1", "s2"]), clusters_of(["s1", "s1"]), clusters_of(["s1", "s2"])
        (['s1', 's1', 's2'], ['s1', 's1'], None)
    """
    return units if len(set(units)) < len(units) else None


def ends_of(name: str, values: Collection[float]) -> Ends | None:
    """Return the lowest and highest score of a metric; None where some of its scores lie outside.

    A share or grade has ends. A length or a cosine has a `Range`, at whose ends no labels are added. Of a metric
    that is not installed here the values decide: all of them in [0, 1] are shares.

    Example:
        >>> ends_of("faithfulness", [1.0]), ends_of("answer_similarity", [0.7]), ends_of("my_metric", [0.0, 0.7])
        ((0.0, 1.0), Range(low=-1.0, high=1.0), (0.0, 1.0))
    """
    ends = _declared(name)
    return ends if all(ends[0] <= value <= ends[1] for value in values) else None


def _declared(name: str) -> Ends:
    try:
        found = output(name.partition("(")[0])
    except ConfigError:
        return UNIT
    scale = Scale(low=found.low, high=found.high)
    if scale.is_five_point:
        return found.low, found.high
    return UNIT if scale.is_unit else Range(found.low, found.high)


def read_score(name: str, score: object) -> Scored:
    """Return one score of a scored line.

    Raises:
        InputError: it is no score with a state, or its value is not a finite number.
    """
    if not isinstance(score, dict) or score.get("state") not in _STATES:
        raise InputError(f"field 'scores.{name}' is not a score with a state")
    value = score.get("value")
    if score["state"] != "ok":
        return Scored(score["state"], None, str(score.get("reason")), key_of(name, score))
    try:
        number = math.nan if isinstance(value, bool) or not isinstance(value, int | float) else float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"field 'scores.{name}.value' must be a finite number")
    if name == ANSWERED and not 0.0 <= number <= 1.0:
        raise InputError(f"field 'scores.{name}.value' must lie between 0 and 1")
    if abs(number) > _MOST:
        raise InputError(f"field 'scores.{name}.value' must lie between -1e100 and 1e100")
    details = score.get("details")
    labels = details.get("labels_version") if isinstance(details, dict) else None
    return Scored("ok", number, None, key_of(name, score), _text(labels))


def key_of(name: str, score: Mapping[str, object]) -> SeriesKey:
    """Return the key of a score's series, as a scored line tells it.

    Example:
        >>> key_of("mrr", {"state": "ok", "value": 0.5, "judge": "labels", "version": "a1", "k": 3}).k
        3
    """
    parts = tuple(map(score.get, _OF_SERIES))
    try:
        return _known_key(name, *parts)
    except TypeError:  # a list, of a line that somebody made
        return _key(name, *parts)


def _key(name: str, judge: object, version: object, k: object, label_scale: object, universe: object) -> SeriesKey:
    return SeriesKey(
        metric=name,
        judge=_text(judge),
        version=_text(version),
        k=k if is_whole(k) else None,
        label_scale=_text(label_scale),
        universe=_text(universe),
    )


_known_key = lru_cache(4_096, typed=True)(_key)  # most lines have the keys of the line before


def home(key: SeriesKey, keys: Sequence[SeriesKey]) -> SeriesKey:
    """Return the key of a metric under which a score without a value is counted.

    Example:
        >>> home(SeriesKey("mrr", judge="j"), [SeriesKey("mrr", judge="i"), SeriesKey("mrr", judge="j", k=2)]).k
        2
    """
    own = key.maker()
    fitting = (it for it in keys if all(own[name] in {None, part} for name, part in it.maker().items()))
    return next(fitting, keys[0])


def label_of(key: SeriesKey, keys: Collection[SeriesKey]) -> str:
    """Return a metric's name with the parts that tell its series from others of it.

    Example:
        >>> label_of(SeriesKey("p_at_k", k=2), [SeriesKey("p_at_k", k=2), SeriesKey("p_at_k", k=3)])
        'p_at_k (K 2)'
    """
    parts = [
        f"K {part}" if name == "k" else shown(part)
        for name, part in key.maker().items()
        if len({getattr(other, name) for other in keys}) > 1
    ]
    return f"{key.metric} ({', '.join(parts)})" if parts else key.metric


def shown(part: object) -> str:
    """Return one part of a key in words.

    Example:
        >>> shown(None), shown(3)
        ('none', '3')
    """
    return "none" if part is None else str(part)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _umbrela(record: RagRecord, scores: Mapping[str, Mapping[str, object]]) -> dict[str, int] | None:
    """Return grades by passage from the longest list of grades in the details."""
    found: list[object] = []
    source: Mapping[str, object] = {}
    for score in scores.values():
        details = score.get("details") if score["state"] == "ok" else None
        grades = details.get("grades") if isinstance(details, dict) else None
        if isinstance(grades, list) and len(grades) > len(found):
            found, source = grades, score
    is_judged = source.get("judge") != _LABELS
    ids = dict.fromkeys(p.id for p in record.ranked_contexts if p.text.strip() or not is_judged)
    graded = {key: grade for key, grade in zip(ids, found, strict=False) if is_whole(grade) and 1 <= grade <= 5}
    return gains(graded, scale=_text(source.get("label_scale"))) or None
