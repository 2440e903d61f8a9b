"""The evaluation span, its events, details."""

from __future__ import annotations

import json
import math

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.trace import SpanKind

from ragtrace._version import __version__
from ragtrace.model import JudgeInfo, MetricResult, RagRecord, ScoreKey
from ragtrace.telemetry import EvaluationWriter, SpanWriter, event_key, input_digest
from tests import make
from tests.unit.telemetry.runs import MS, T0, score, support_run

JUDGE = JudgeInfo(model="overlap", prompt_hash="abcd0123")


class Logs:
    def __init__(self):
        self.exporter = InMemoryLogRecordExporter()
        provider = LoggerProvider(shutdown_on_exit=False)
        provider.add_log_record_processor(SimpleLogRecordProcessor(self.exporter))
        self.logger = provider.get_logger("ragtrace")

    @property
    def records(self):
        return [found.log_record for found in self.exporter.get_finished_logs()]


@pytest.fixture
def logs():
    return Logs()


def finished_run(spans, **options):
    writer = SpanWriter(spans.tracer, **options)
    root, captured = support_run(writer)
    writer.write(root, captured, decision="random", reason=None, probability=0.05)
    return writer, root, captured


def three_scores(root):
    return [
        score(
            root=root,
            judge=JUDGE,
            passed=False,
            llm_calls=1,
            details={"claims": ["It rains."], "supported": 3, "unsupported": ["It rains."]},
        ),
        score("p_at_k", 0.5, root=root, k=8, passed=True),
        score("citations", root=root, state="error", reason="judge_timeout", judge=JUDGE),
    ]


def evaluate(spans, logs, *, content="none", attach="child", is_root_sampled=True, scores=None):
    _, root, captured = finished_run(spans)
    root.end(captured.ended_ns)
    EvaluationWriter(spans.tracer, logs.logger, content=content, attach=attach).write(
        captured.record,
        three_scores(root) if scores is None else scores,
        is_root_sampled=is_root_sampled,
        decision="random",
        probability=0.05,
        started_ns=T0 + 1_000 * MS,
        ended_ns=T0 + 1_200 * MS,
        root=root,
    )
    return root


def test_the_evaluation_span_whole(spans, logs):
    root = evaluate(spans, logs)
    span = spans.one("evaluation")
    assert span.name == "evaluation support"
    assert span.kind is SpanKind.INTERNAL
    assert span.start_time == span.end_time == spans.one("invoke_workflow").end_time == T0 + 530 * MS
    assert {event.timestamp for event in span.events} == {span.end_time}
    assert format(span.context.trace_id, "032x") == root.trace_id
    assert format(span.parent.span_id, "016x") == root.span_id
    assert {link.context.span_id for link in span.links} == {
        spans.one("retrieval").context.span_id, spans.one("chat").context.span_id,
    }  # fmt: skip
    attributes = dict(span.attributes)
    digest = attributes.pop("ragtrace.evaluation.input_digest")
    assert len(digest) == 16
    assert json.loads(attributes.pop("ragtrace.evaluation.details")) == {
        "faithfulness": {
            "version": "0a1b2c3d",
            "judge": "overlap",
            "prompt": "abcd0123",
            "details": {"supported": 3},
        },
        "p_at_k": {"version": "0a1b2c3d", "k": 8},
        "citations": {"version": "0a1b2c3d", "judge": "overlap", "prompt": "abcd0123"},
    }
    assert attributes == {
        "gen_ai.operation.name": "evaluation",
        "openinference.span.kind": "EVALUATOR",
        "gen_ai.workflow.name": "support",
        "ragtrace.evaluation.request.model": "gpt-x",
        "gen_ai.data_source.id": "faq",
        "gen_ai.conversation.id": "s-1",
        "ragtrace.evaluation.evaluator": "ragtrace",
        "ragtrace.evaluation.version": __version__,
        "ragtrace.evaluation.judge.model": "overlap",
        "ragtrace.evaluation.k": 8,
        "ragtrace.evaluation.llm_calls": 1,
        "ragtrace.evaluation.start.time": (T0 + 1_000 * MS) / 1e9,
        "ragtrace.evaluation.end.time": (T0 + 1_200 * MS) / 1e9,
        "ragtrace.sampling.decision": "random",
        "ragtrace.sampling.probability": 0.05,
        "ragtrace.score.faithfulness": 0.75,
        "ragtrace.score.p_at_k": 0.5,
        "ragtrace.score.citations.state": "error",
        "ragtrace.score.citations.reason": "judge_timeout",
    }


def test_events_on_the_span_and_as_logs_with_the_roots_context(spans, logs):
    root = evaluate(spans, logs)
    ids = f"{root.trace_id}:{root.span_id}"
    expected = [
        {
            "gen_ai.evaluation.name": "faithfulness",
            "gen_ai.evaluation.score.value": 0.75,
            "gen_ai.evaluation.score.label": "fail",
            "gen_ai.response.id": "resp-1",
            "ragtrace.evaluation.judge.model": "overlap",
            "ragtrace.evaluation.key": f"{ids}:faithfulness:0a1b2c3d",
        },
        {
            "gen_ai.evaluation.name": "p_at_k",
            "gen_ai.evaluation.score.value": 0.5,
            "gen_ai.evaluation.score.label": "pass",
            "gen_ai.response.id": "resp-1",
            "ragtrace.evaluation.key": f"{ids}:p_at_k:0a1b2c3d",
        },
        {
            "gen_ai.evaluation.name": "citations",
            "gen_ai.response.id": "resp-1",
            "error.type": "judge_timeout",
            "ragtrace.evaluation.judge.model": "overlap",
            "ragtrace.evaluation.key": f"{ids}:citations:0a1b2c3d",
            "ragtrace.outcome": "error",
            "ragtrace.reason": "judge_timeout",
        },
    ]
    events = spans.one("evaluation").events
    assert [event.name for event in events] == ["gen_ai.evaluation.result"] * 3
    assert [dict(event.attributes) for event in events] == expected
    assert [dict(record.attributes) for record in logs.records] == expected
    assert {record.event_name for record in logs.records} == {"gen_ai.evaluation.result"}
    assert {format(record.trace_id, "032x") for record in logs.records} == {root.trace_id}
    assert {format(record.span_id, "016x") for record in logs.records} == {root.span_id}


@pytest.mark.parametrize(
    ("details", "label"),
    [
        ({"verdict": "lost_in_rerank", "lost": ["a"]}, "lost_in_rerank"),
        ({"verdict": "undetermined"}, "undetermined"),
        ({"verdict": "Oslo"}, None),
    ],
)
def test_the_label_of_a_diagnosis_is_its_verdict(spans, logs, details, label):
    given = {"state": "na", "reason": "undetermined"} if label == "undetermined" else {"state": "ok", "value": 0.0}
    found = MetricResult(name="diagnosis", details=details, **given)
    evaluate(spans, logs, scores=make.scores(None, found))
    for event in (*spans.one("evaluation").events, *logs.records):
        assert event.attributes.get("gen_ai.evaluation.score.label") == label


def test_claims_and_explanations_need_content(spans, logs):
    evaluate(spans, logs, content="full")
    details = json.loads(spans.one("evaluation").attributes["ragtrace.evaluation.details"])
    assert details["faithfulness"]["details"]["claims"] == ["It rains."]
    assert "It rains." in logs.records[0].attributes["gen_ai.evaluation.explanation"]


@pytest.mark.parametrize("attach", ["child", "link"])
@pytest.mark.parametrize("is_from_a_spool", [False, True])
def test_a_late_score_stands_at_the_end_of_its_run(spans, logs, attach, is_from_a_spool):
    _, root, captured = finished_run(spans)
    root.end(captured.ended_ns)
    EvaluationWriter(spans.tracer, logs.logger, attach=attach).write(
        captured.record,
        [score(root=root)],
        is_root_sampled=True,
        decision="random",
        probability=1.0,
        started_ns=captured.ended_ns + 66_000 * MS,
        ended_ns=captured.ended_ns + 67_000 * MS,
        root=None if is_from_a_spool else root,
    )
    span = spans.one("evaluation")
    assert span.start_time == span.end_time
    assert 0 <= captured.ended_ns - span.end_time <= (1_000 if is_from_a_spool else 0)
    assert span.attributes["ragtrace.evaluation.end.time"] == pytest.approx(captured.ended_ns / 1e9 + 67)
    assert logs.records[0].timestamp == captured.ended_ns + 67_000 * MS


def test_link_is_a_trace_of_its_own(spans, logs):
    root = evaluate(spans, logs, attach="link")
    span = spans.one("evaluation")
    assert span.parent is None
    assert format(span.context.trace_id, "032x") != root.trace_id
    assert format(span.links[0].context.span_id, "016x") == root.span_id
    assert len(span.links) == 3


def test_no_span_but_events_for_an_unsampled_root(spans, logs):
    evaluate(spans, logs, is_root_sampled=False)
    assert not spans.named("evaluation")
    assert len(logs.records) == 3


def test_a_hundred_scores_stay_within_a_hundred_attributes(spans, logs):
    many = [score(f"m{i}", state="na", reason="no_labels") for i in range(100)]
    evaluate(spans, logs, scores=many)
    span = spans.one("evaluation")
    assert len(span.attributes) <= 100
    assert len(json.loads(span.attributes["ragtrace.evaluation.details"])) == 100


def test_details_over_the_budget_lose_details_first_and_stay_json(spans, logs):
    big = [score(f"m{i}", details={"claims": ["ü" * 9_000]}) for i in range(40)]
    evaluate(spans, logs, scores=big, content="full")
    text = spans.one("evaluation").attributes["ragtrace.evaluation.details"]
    rows = json.loads(text)
    assert len(text.encode()) <= 131_072
    assert len(rows) == 40
    assert "details" in rows["m0"]
    assert "details" not in rows["m39"]


def test_without_content_numbers_and_truth_values_are_all_that_leaves(spans, logs):
    details = {"n": 3, "share": 0.5, "is_cut": True, "ratio": math.inf, "claims": ["The Hague"], "deep": {"n": 1}}
    evaluate(spans, logs, scores=[score("mrr", details=details)], content="none")
    rows = json.loads(spans.one("evaluation").attributes["ragtrace.evaluation.details"])
    assert rows["mrr"]["details"] == {"n": 3, "share": 0.5, "is_cut": True}


def test_a_record_that_never_was_a_trace(spans, logs):
    EvaluationWriter(spans.tracer, logs.logger).write(
        RagRecord(id="7"),
        [score()],
        is_root_sampled=False,
        decision="random",
        probability=1.0,
        started_ns=1,
        ended_ns=2,
    )
    assert logs.records[0].trace_id == 0


def test_digests_and_keys_tell_records_and_long_names_apart():
    one = RagRecord(id="1", query="ab", answer="c")
    assert input_digest(one) != input_digest(RagRecord(id="1", query="a", answer="bc"))
    keys = [ScoreKey(trace_id="t", span_id="s", metric="m" * 10_000 + end, version="v") for end in "ab"]
    assert [len(event_key(one, key)) <= 256 for key in keys] == [True, True]
    assert event_key(one, keys[0]) != event_key(one, keys[1])
    assert event_key(one, keys[0]) == event_key(one, keys[0])
    bare = ScoreKey(trace_id="", span_id="", metric="mrr", version="v")
    assert event_key(RagRecord(id="1"), bare) != event_key(RagRecord(id="2"), bare)
