"""People's ratings through a real service: counted, sent as events, and compared with the judge."""

from __future__ import annotations

import threading

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import ragtrace
from ragtrace import semconv
from ragtrace.service import Pipeline, current
from tests import make
from tests.process.observing import points, providers, ran


class Seen:
    """What a service exported."""

    def __init__(self, path, **settings):
        self.reader, self.logs = InMemoryMetricReader(), InMemoryLogRecordExporter()
        logger_provider = LoggerProvider()
        logger_provider.add_log_record_processor(SimpleLogRecordProcessor(self.logs))
        given = providers(meter_provider=MeterProvider([self.reader]), logger_provider=logger_provider)
        ragtrace.configure(store=str(path), sample_rate=1.0, metrics=("faithfulness",), **settings, **given)

    def counted(self):
        assert ragtrace.flush(20.0)
        found = points(self.reader, semconv.FEEDBACK)
        return {
            (
                about[semconv.GEN_AI_WORKFLOW_NAME],
                about[semconv.GEN_AI_EVALUATION_NAME],
                about[semconv.FEEDBACK_LABEL],
            ): n
            for about, n in ((dict(key), n) for key, n in found.items())
        }

    def events(self):
        records = [log.log_record for log in self.logs.get_finished_logs()]
        return [one for one in records if dict(one.attributes).get(semconv.EVALUATOR) == "human"]


@pytest.fixture
def path(tmp_path):
    yield tmp_path / "store"
    ragtrace.shutdown(5.0)


def ask(answer="The lab is in Oslo."):
    with ragtrace.query("Where is the lab?", workflow="labs") as run:
        run.retrieved([{"id": "a", "text": "The lab is in Oslo.", "score": 0.9}])
        run.answered(answer)
    return run.trace_id


def test_a_rating_is_counted_once_with_its_workflow(path):
    seen = Seen(path)
    trace_id = ask()
    assert ragtrace.feedback(trace_id, 0.0)
    assert ragtrace.feedback(trace_id, 1.0, rater="bob", metric="faithfulness")
    assert ragtrace.feedback("f" * 32, 1.0)  # of a run of another process
    assert seen.counted() == {
        ("labs", "feedback", "bad"): 1, ("labs", "feedback", "good"): 0,
        ("labs", "faithfulness", "good"): 1, ("labs", "faithfulness", "bad"): 0,
        ("", "feedback", "good"): 1, ("", "feedback", "bad"): 0,
    }  # fmt: skip


def test_a_rating_that_is_given_again_counts_once(path):
    seen = Seen(path, content="full")
    trace_id = ask()
    for value, comment in ((0.0, None), (0.0, None), (0.25, "too short"), (0.25, "too short"), (1.0, None)):
        assert ragtrace.feedback(trace_id, value, comment)
    assert ragtrace.feedback(trace_id, 0.0, rater="bob")
    found = seen.counted()
    assert (found["labs", "feedback", "bad"], found["labs", "feedback", "good"]) == (2, 1), (
        "ada, who turned, and bob"
    )
    said = [dict(event.attributes) for event in seen.events()]
    assert [one[semconv.GEN_AI_EVALUATION_SCORE_VALUE] for one in said] == [0.0, 0.25, 1.0, 0.0]


def rated(path):
    """The human labels of a store, as a process that opens it anew reads them."""
    store = make.store(path)
    rows = [row for row in store.rows() if row["source"] == "human"]
    store.close()
    return rows


def test_ratings_within_runs_are_kept_as_labels_once(path):
    for _ in range(2):  # the second time is after a restart
        seen = Seen(path, content="full", redact=lambda text: text.replace("Ada", "[name]"))
        given = {}
        for value in (1.0, 0.0, 0.25):
            with ragtrace.query("Where?", workflow="labs", user="u-7", session="s-1") as run:
                run.answered("In Oslo.")
                run.feedback(value, "Ada says so")
            given[run.trace_id] = value
        assert seen.counted()["labs", "feedback", "bad"] == 2
        assert seen.counted()["labs", "feedback", "good"] == 1
        assert len(seen.events()) == 3
        assert ragtrace.shutdown(20.0)
        found = {row["trace_id"]: row for row in rated(path) if row["trace_id"] in given}
        assert {trace_id: row["value"] for trace_id, row in found.items()} == given
        assert {(row["version"], row["user"], row["session"], row["details"]) for row in found.values()} == {
            ("human", "u-7", "s-1", '{"comment": "[name] says so"}')
        }
    assert len(rated(path)) == 6


def test_a_rating_that_turns_within_the_run_counts_on_both_sides_once(path):
    seen = Seen(path)
    with ragtrace.query("Where?", workflow="labs") as run:
        run.feedback(0.0)
        run.feedback(1.0)
        run.feedback(0.5, source="ada")
    found = seen.counted()
    assert (found["labs", "feedback", "bad"], found["labs", "feedback", "good"]) == (1, 2)
    assert ragtrace.shutdown(20.0)
    assert [(row["version"], row["value"]) for row in rated(path)] == [("human", 1.0), ("human:ada", 0.5)]


@pytest.mark.parametrize("scorer", ["thread", "worker"])
def test_a_run_that_is_not_sampled_keeps_its_rating(path, scorer):
    ragtrace.configure(store=str(path), spool=str(path), scorer=scorer, sample_rate=0.0)
    with ragtrace.query("Where?", user="u-7") as run:
        run.feedback(1.0)
    assert ragtrace.shutdown(20.0)
    assert [(row["trace_id"], row["value"], row["user"]) for row in rated(path)] == [(run.trace_id, 1.0, "u-7")]


def test_a_rating_behind_the_run_replaces_one_within_it(path, monkeypatch):
    process, is_rated = Pipeline.process, threading.Event()
    monkeypatch.setattr(Pipeline, "process", lambda *given: (is_rated.wait(30), process(*given)))  # after feedback
    ragtrace.configure(store=str(path))
    with ragtrace.query("Where?") as run:
        run.feedback(0.25)
    assert ragtrace.feedback(run.trace_id, 1.0)
    is_rated.set()
    assert ragtrace.shutdown(20.0)
    assert [row["value"] for row in rated(path)] == [1.0]


def test_a_script_that_just_ends_keeps_every_rating(path):
    code = """
import sys
import ragtrace
ragtrace.configure(store=sys.argv[1], sample_rate=0.0)
ragtrace.feedback("f" * 32, 1.0)
for _ in range(200):
    with ragtrace.query("Where?") as run:
        run.feedback(1.0)
left = ragtrace.query("And where is the office?")
left.feedback(1.0)
"""
    done = ran("-c", code, str(path))
    assert (done.returncode, "ragtrace lost data" in done.stderr) == (0, False), done.stderr
    assert len(rated(path)) == 202


def test_a_rating_within_the_run_and_behind_it_counts_once(path):
    seen = Seen(path)
    with ragtrace.query("Where?", workflow="labs") as run:
        run.answered("In Oslo.")
        run.feedback(0.2)
    assert ragtrace.flush(20.0)
    ragtrace.feedback(run.trace_id, 0.2)
    assert seen.counted()["labs", "feedback", "bad"] == 1


def test_a_rating_within_the_run_is_counted_too(path):
    seen = Seen(path)
    with ragtrace.query("Where?", workflow="labs") as run:
        run.answered("In Oslo.")
        run.feedback(0.2, "wrong")
    assert seen.counted()["labs", "feedback", "bad"] == 1
    assert [dict(event.attributes)[semconv.GEN_AI_EVALUATION_SCORE_VALUE] for event in seen.events()] == [0.2]


@pytest.mark.parametrize(("content", "said"), [("full", "wrong town"), ("none", None)])
def test_its_event_stands_in_the_trace_and_has_the_comment_with_content_alone(path, content, said):
    seen = Seen(path, content=content)
    trace_id = ask()
    ragtrace.feedback(trace_id, 0.25, "wrong town", rater="ada")
    assert ragtrace.flush(20.0)
    [event] = seen.events()
    assert event.event_name == semconv.EVENT_EVALUATION_RESULT
    assert f"{event.trace_id:032x}" == trace_id
    assert event.span_id
    attributes = dict(event.attributes)
    assert attributes.get(semconv.GEN_AI_EVALUATION_EXPLANATION) == said
    assert attributes[semconv.GEN_AI_EVALUATION_SCORE_LABEL] == "fail"
    assert "ada" not in str(attributes)


def test_agreement_with_the_judge(path):
    seen = Seen(path)
    good, bad = [ask() for _ in range(3)], ask("The lab is in Rome. It was built in 1904 by nine monks.")
    for trace_id, value in (*((one, 1.0) for one in good), (bad, 1.0)):
        ragtrace.feedback(trace_id, value)
    assert ragtrace.flush(20.0)
    current().feedback._due_s = 0.0  # five minutes pass
    current().feedback.compare()
    [(key, ratio)] = points(seen.reader, semconv.FEEDBACK_AGREEMENT).items()
    about = dict(key)
    assert (about[semconv.GEN_AI_EVALUATION_NAME], about[semconv.JUDGE_MODEL]) == ("faithfulness", "overlap")
    assert ratio == 0.75
    assert list(points(seen.reader, semconv.FEEDBACK_AGREEMENT_N).values()) == [4]
