"""Take evaluation results of other tools, and of people, as labels of their traces."""

from __future__ import annotations

import math
import re
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from ragtrace import semconv
from ragtrace.ingest.spans import plain_attributes, received_spans
from ragtrace.model import is_trace_id
from ragtrace.stores import Label
from ragtrace.stores.base import FOREIGN
from ragtrace.text import MAX_NAME_CHARS, cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ragtrace.ingest.base import RawLog, RawSpan

_NS = 1e9
_MOST_COMMENT_CHARS = 4_096  # 4,096 labels may wait to be written
_ANNOTATION: Final = re.compile(
    r"(?:trace\.)?(annotations|evaluations)\.(\d{1,6})\.(?:annotation|evaluation)\."
    r"(name|score|label|explanation|annotator_kind|identifier)"
)
_PREFIXES = ("annotations.", "evaluations.", "trace.annotations.", "trace.evaluations.")
# Neither convention says who judged; these are what senders write.
_KINDS = (
    semconv.EVALUATOR, "annotator_kind", "gen_ai.evaluation.evaluator.type", "gen_ai.evaluator.type",
    "gen_ai.evaluation.source",
)  # fmt: skip
_NAMES = ("gen_ai.evaluation.evaluator", "gen_ai.evaluation.evaluator.name", "gen_ai.evaluator.name", "identifier")
_GOOD = frozenset({"pass", "passed", "correct", "good", "true", "yes", "thumbs_up", "positive"})
_BAD = frozenset({"fail", "failed", "incorrect", "bad", "false", "no", "thumbs_down", "negative"})
_EVENT_FIELDS = {
    "name": semconv.GEN_AI_EVALUATION_NAME,
    "score": semconv.GEN_AI_EVALUATION_SCORE_VALUE,
    "label": semconv.GEN_AI_EVALUATION_SCORE_LABEL,
    "explanation": semconv.GEN_AI_EVALUATION_EXPLANATION,
}


class ForeignScores:
    """Hands labels of other evaluators to the store, and counts them. Thread-safe as far as `rate` is.

    A person's label is kept as `ragtrace.feedback` keeps it. That of another judge has the rater ``foreign:NAME``,
    and stays out of all series and of the agreement with people. Results of ragtrace itself are ignored.

    Args:
        rate: takes a label; None without a store.
        say: told once that there is no store.

    Attributes:
        counts: results by ``label_human``, ``label_foreign``, ``label_no_store``, and of rejected ones
            ``label_no_trace``, ``label_no_name``, ``label_bad_value``, ``label_unknown_word``.
    """

    def __init__(self, rate: Callable[[Label], None] | None, say: Callable[[str], None]) -> None:
        self._rate = rate
        self._say = say
        self.counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def take_logs(self, logs: Iterable[RawLog]) -> list[str]:
        """Take the evaluation results among log records; return why each rejected one was rejected."""
        rejected = []
        for log in logs:
            attributes = plain_attributes(log.record.attributes)
            at = (log.record.time_unix_nano or log.record.observed_time_unix_nano) / _NS
            ids = log.record.trace_id.hex(), log.record.span_id.hex()
            rejected.append(self._take(ids, _fields(attributes), attributes, at, log.scope))
        return [reason for reason in rejected if reason is not None]

    def take_spans(self, spans: Iterable[RawSpan]) -> None:
        """Take the evaluation results that spans have as events or annotations."""
        for span in received_spans(filter(_has_results, spans)):
            ids = span.trace_id, span.span_id
            for event in span.events:
                if event.name == semconv.EVENT_EVALUATION_RESULT:
                    self._take(ids, _fields(event.attributes), event.attributes, event.time_ns / _NS, span.scope)
            for annotation in _annotations(span.attributes):
                self._take(ids, annotation, annotation, span.ended_ns / _NS)

    def _take(
        self, ids: tuple[str, str], fields: Mapping[str, Any], about: Mapping[str, Any], at: float, scope: str = ""
    ) -> str | None:
        """Take one result of a trace and a span; return why it is rejected."""
        if semconv.EVALUATION_KEY in about:
            return None
        trace_id, span_id = ids
        value, name = _value_of(fields), fields.get("name")
        if not is_trace_id(trace_id):
            return self._reject("no_trace", "it has no valid trace id")
        if not isinstance(name, str) or not name:
            return self._reject("no_name", f"it has no {semconv.GEN_AI_EVALUATION_NAME}")
        if value is None:
            return self._reject(*_why_not(fields))
        is_human = any(str(about.get(key)).lower() == "human" for key in _KINDS)
        if self._rate is None:
            self._say_no_store(name)
            return None
        evaluator = next((str(about[key]) for key in _NAMES if about.get(key)), "")
        judge = about.get(semconv.EVALUATOR) or evaluator or scope or "unknown"
        rater = evaluator if is_human else f"{FOREIGN}{judge}"
        comment = fields.get("explanation")
        self._count("human" if is_human else "foreign")
        self._rate(
            Label(
                trace_id=trace_id,
                value=value,
                metric=cut(name, MAX_NAME_CHARS)[0],
                rater=cut(rater, MAX_NAME_CHARS)[0],
                at=at,
                comment=cut(comment, _MOST_COMMENT_CHARS)[0] if isinstance(comment, str) else None,
                span_id=span_id,
            )
        )
        return None

    def _reject(self, name: str, reason: str) -> str:
        self._count(name)
        return reason

    def _say_no_store(self, name: str) -> None:
        if self._count("no_store") == 1:
            self._say(f"a score of another evaluator came ({name:.60}); it is kept with --store FILE alone")

    def _count(self, name: str) -> int:
        with self._lock:
            self.counts[f"label_{name}"] += 1
            return self.counts[f"label_{name}"]


def _has_results(raw: RawSpan) -> bool:
    is_event = any(event.name == semconv.EVENT_EVALUATION_RESULT for event in raw.span.events)
    return is_event or any(pair.key.startswith(_PREFIXES) for pair in raw.span.attributes)


def _fields(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {field: attributes.get(name) for field, name in _EVENT_FIELDS.items()}


def _annotations(attributes: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the annotations and evaluations of a span and of its trace; those of sessions are left alone."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for key, value in attributes.items():
        if (match := _ANNOTATION.fullmatch(key)) is not None:
            kind, place, field = match.groups()
            found.setdefault((f"{key[: match.start(1)]}{kind}", place), {})[field] = value
    yield from found.values()


def _value_of(fields: Mapping[str, Any]) -> float | None:
    """Return a score from 0 to 1, that of its label's word where there is none, else None."""
    score, word = fields.get("score"), str(fields.get("label")).strip().lower().replace(" ", "_").replace("-", "_")
    if isinstance(score, int | float):
        return float(score) if math.isfinite(score) and 0.0 <= score <= 1.0 else None
    return 1.0 if word in _GOOD else 0.0 if word in _BAD else None


def _why_not(fields: Mapping[str, Any]) -> tuple[str, str]:
    score = fields.get("score")
    if isinstance(score, int | float):
        return "bad_value", f"its score value {score:.6g} is not in 0 to 1"
    if score is not None:
        return "bad_value", "its score value is not a number"
    if fields.get("label") is None:
        return "bad_value", "it has neither a score value nor a label"
    return "unknown_word", f"its label is not a known word ({', '.join(sorted(_GOOD | _BAD))})"
