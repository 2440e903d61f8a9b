"""Evaluation results of others become labels, and none of them counts as a person's without saying so."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from ragtrace.ingest import RawLog, RawSpan
from ragtrace.service import ForeignScores
from tests import make

if TYPE_CHECKING:
    from pathlib import Path

    from ragtrace.stores import Label

TRACE = bytes(range(1, 17))
RESOURCE = Resource()
PASS = {"gen_ai.evaluation.name": "faithfulness", "gen_ai.evaluation.score.value": 0.75}


def pairs(given: dict[str, Any]) -> list[KeyValue]:
    kinds = {str: "string_value", float: "double_value", int: "int_value"}
    return [KeyValue(key=key, value=AnyValue(**{kinds[type(value)]: value})) for key, value in given.items()]


def log(given: dict[str, Any], trace_id: bytes = TRACE) -> RawLog:
    record = LogRecord(trace_id=trace_id, time_unix_nano=5_000_000_000, attributes=pairs(given))
    return RawLog(record, RESOURCE)


def taken(*logs: RawLog, spans: tuple[Span, ...] = ()) -> tuple[list[Label], ForeignScores, list[str]]:
    labels: list[Label] = []
    scores = ForeignScores(labels.append, lambda _line: None)
    rejected = scores.take_logs(logs)
    scores.take_spans([RawSpan(span, RESOURCE) for span in spans])
    return labels, scores, rejected


def test_a_foreign_judges_score_has_a_rater_that_says_so() -> None:
    (label,), scores, rejected = taken(log({**PASS, "gen_ai.evaluation.evaluator.name": "deepeval"}))
    assert (label.metric, label.value, label.rater, label.at) == ("faithfulness", 0.75, "foreign:deepeval", 5.0)
    assert (scores.counts["label_foreign"], rejected) == (1, [])


def test_a_persons_score_is_a_label_as_of_feedback() -> None:
    given = {"gen_ai.evaluation.name": "feedback", "gen_ai.evaluation.score.label": "thumbs down"}
    (label,), _, _ = taken(log({**given, "ragtrace.evaluator": "human", "gen_ai.evaluation.explanation": "Wrong."}))
    assert (label.metric, label.value, label.rater, label.comment) == ("feedback", 0.0, "", "Wrong.")


def test_long_texts_of_strangers_are_cut() -> None:
    given = {**PASS, "gen_ai.evaluation.name": "n" * 9_000, "gen_ai.evaluation.explanation": "x" * 9_000}
    (label,), _, _ = taken(log({**given, "gen_ai.evaluation.evaluator.name": "e" * 9_000}))
    assert (len(label.metric), len(label.rater), len(label.comment or "")) == (256, 256, 4_096)


def test_our_own_results_are_ignored() -> None:
    labels, scores, rejected = taken(log({**PASS, "ragtrace.evaluation.key": "t:s:m:v"}))
    assert (labels, rejected, +scores.counts) == ([], [], {})


@pytest.mark.parametrize(
    ("given", "count", "why"),
    [
        ({"gen_ai.evaluation.name": "faithfulness"}, "bad_value", "it has neither a score value nor a label"),
        ({"gen_ai.evaluation.score.value": 0.5}, "no_name", "it has no gen_ai.evaluation.name"),
        ({**PASS, "gen_ai.evaluation.score.value": 4.0}, "bad_value", "its score value 4 is not in 0 to 1"),
        ({**PASS, "gen_ai.evaluation.score.value": float("nan")}, "bad_value", "score value nan is not in 0 to 1"),
        ({**PASS, "gen_ai.evaluation.score.value": "high"}, "bad_value", "its score value is not a number"),
        (
            {"gen_ai.evaluation.name": "feedback", "gen_ai.evaluation.score.label": "meh"},
            "unknown_word",
            "its label is not a known word (bad, correct",
        ),
    ],
)
def test_a_rejected_result_says_why(given: dict[str, Any], count: str, why: str) -> None:
    labels, scores, rejected = taken(log(given))
    assert (labels, len(rejected), scores.counts) == ([], 1, {f"label_{count}": 1})
    assert why in rejected[0]
    assert "meh" not in rejected[0]


def test_a_result_without_a_trace_is_rejected() -> None:
    assert taken(log(PASS, b""))[2] == ["it has no valid trace id"]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"ragtrace.evaluator": "azure", "gen_ai.evaluation.evaluator": "b"}, "azure"),
        ({"gen_ai.evaluation.evaluator": "b", "gen_ai.evaluator.name": "c"}, "b"),
        ({"gen_ai.evaluator.name": "c"}, "c"),
        ({}, "deepeval.otel"),
    ],
)
def test_a_judges_name_is_the_first_attribute_that_gives_one(given: dict[str, str], name: str) -> None:
    (label,), _, _ = taken(log({**PASS, **given})._replace(scope="deepeval.otel"))
    assert label.rater == f"foreign:{name}"


def test_span_events_and_annotations_of_openinference_are_taken() -> None:
    span = Span(trace_id=TRACE, span_id=b"12345678", end_time_unix_nano=9_000_000_000)
    span.events.add(name="gen_ai.evaluation.result", time_unix_nano=7_000_000_000).attributes.extend(pairs(PASS))
    span.attributes.extend(
        pairs(
            {
                "annotations.0.annotation.name": "correctness",
                "annotations.0.annotation.label": "correct",
                "annotations.0.annotation.annotator_kind": "HUMAN",
                "annotations.0.annotation.identifier": "ada",
                "trace.evaluations.0.evaluation.name": "relevance",
                "trace.evaluations.0.evaluation.score": 0.25,
                "trace.evaluations.0.evaluation.annotator_kind": "LLM",
                "session.evaluations.0.evaluation.name": "tone",
                "session.evaluations.0.evaluation.score": 0.25,
            }
        )
    )
    labels, _, _ = taken(spans=(span,))
    assert {(label.metric, label.value, label.rater) for label in labels} == {
        ("faithfulness", 0.75, "foreign:unknown"),
        ("correctness", 1.0, "ada"),
        ("relevance", 0.25, "foreign:unknown"),
    }


def test_without_a_store_scores_are_counted_and_that_is_said_once() -> None:
    said: list[str] = []
    scores = ForeignScores(None, said.append)
    assert scores.take_logs([log(PASS), log(PASS)]) == []
    assert scores.counts["label_no_store"] == 2
    assert len(said) == 1
    assert "--store FILE" in said[0]


def test_a_foreign_label_is_kept_and_stays_out_of_the_agreement_with_people(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    store = make.store(path)
    labels, _, _ = taken(log(PASS))
    store.rate(labels)
    assert list(store.agreement()) == []
    store.close()
    with sqlite3.connect(path) as opened:
        assert opened.execute("SELECT source, version, value FROM scored").fetchall() == [
            ("human", "human:foreign:unknown", 0.75)
        ]
