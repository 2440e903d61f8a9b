"""One record with its scores and ratings, from a scored line or a store."""

from __future__ import annotations

import json
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from msgspec import structs

from ragtrace.model.standing import Standing, standing_of
from ragtrace.stores.tables import record_from

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ragtrace.model import RagRecord
    from ragtrace.model.codec import ScoreJson
    from ragtrace.stores.sqlite import SqliteStore

FIRST_METRICS = ("faithfulness", "hallucination", "faithfulness_1to5", "answer_relevancy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """One person's value of one answer.

    Attributes:
        metric: the exported name; `feedback` for the answer as a whole.
        rater: name of the person; empty where it was not given.
        value: 0 (bad) to 1 (good).
        comment: in words; None where there is none, or none was kept.
    """

    metric: str
    rater: str
    value: float
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredAnswer:
    """One record with its scores.

    Attributes:
        place: ``file:line`` (of a folder, its name and the number of the row), or the trace id in a store.
        name: the argument that `ragtrace show` knows it by.
        record: texts and ids; without texts where the store kept none.
        scores: each score by its key, in the form of a scored line.
        has_texts: whether question, answer and contexts were kept.
        ratings: people's values, by metric and then by time.
    """

    place: str
    name: str
    record: RagRecord
    scores: Mapping[str, ScoreJson]
    has_texts: bool = True
    ratings: tuple[Rating, ...] = ()

    @property
    def standing(self) -> Standing:
        """Its verdict, and the claims against it."""
        return standing_of(self.scores)


def first_metric(metrics: Iterable[str]) -> str:
    """Return the default metric to rank by, else the first by name.

    Example:
        >>> first_metric(["mrr", "faithfulness"]), first_metric(["ndcg_at_k", "mrr"])
        ('faithfulness', 'mrr')
    """
    names = set(metrics)
    return next((name for name in FIRST_METRICS if name in names), min(names, default=FIRST_METRICS[0]))


def usual_order(metrics: Iterable[str]) -> list[str]:
    """Return metrics with the default one first; that one alone where there is none.

    Example:
        >>> usual_order(["mrr", "faithfulness"]), usual_order([])
        (['faithfulness', 'mrr'], ['faithfulness'])
    """
    names = [*metrics]
    first = first_metric(names)
    return [first, *(name for name in names if name != first)]


def stored_answer(store: SqliteStore, trace_id: str) -> ScoredAnswer:
    """Return a trace of a store with its latest scores, what capture read of it, and its texts where kept.

    Raises:
        LookupError: the store has no such trace.
    """
    rows = sorted(store.rows(trace=trace_id), key=lambda row: row["scored_at"])
    if not rows:
        raise LookupError(trace_id)
    judged = [row for row in rows if row["source"] != "human"]
    kept = store.record(trace_id)
    record = kept or structs.replace(record_from((judged or rows)[-1]), reading=store.reading(trace_id))
    return ScoredAnswer(
        place=f"trace {trace_id}",
        name=trace_id,
        record=record,
        scores={row["metric"]: _score(row) for row in judged},
        has_texts=kept is not None,
        ratings=tuple(sorted((_rating(row) for row in rows if row["source"] == "human"), key=attrgetter("metric"))),
    )


def _rating(row: Mapping[str, Any]) -> Rating:
    _, _, rater = row["version"].partition(":")
    comment = json.loads(row["details"] or "{}").get("comment")
    return Rating(metric=row["metric"], rater=rater, value=row["value"], comment=comment)


def _score(row: Mapping[str, Any]) -> ScoreJson:
    return {
        "state": row["state"],
        "value": row["value"],
        "passed": None if row["passed"] is None else bool(row["passed"]),
        "reason": row["reason"],
        "details": json.loads(row["details"] or "{}"),
        "judge": row["judge"],
        "version": row["version"],
        "k": row["k"],
        "universe": row["universe"],
        "label_scale": row["label_scale"],
    }
