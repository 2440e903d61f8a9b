"""The store behind a service: joined with a spool or not, feedback from the application, and what a crash leaves."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter

import pytest

import ragtrace
from ragtrace.capture import Recorder, guard, internal_errors
from ragtrace.errors import ConfigError
from ragtrace.service import Pipeline, Storing
from ragtrace.settings import Settings
from tests import make

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.fixture
def made():
    found = []

    def make(**settings):
        storing = Storing.of(Settings.resolve(settings, {}))
        found.append(storing)
        return storing

    yield make
    for storing in found:
        if storing is not None:
            storing.close(1.0)


def test_without_a_store_there_is_none(made):
    assert made() is None


def test_one_file_is_opened_once_and_a_closed_one_anew(made, tmp_path):
    first = made(store=str(tmp_path / "s"))
    assert made(store=str(tmp_path / "s")) is first
    first.close(1.0)
    assert made(store=str(tmp_path / "s")) is not first


def test_a_wrong_path_is_a_setting_s_error(made, tmp_path):
    with pytest.raises(ConfigError, match=r"store: the store .* cannot be"):
        made(store=str(tmp_path / "no" / "s"))


def test_feedback_reaches_the_store_that_is_set(tmp_path):
    path = tmp_path / "s"
    ragtrace.configure(store=str(path), content="full", redact=lambda text: text.replace("Ada", "[name]"))
    try:
        assert ragtrace.feedback(TRACE, 1, "Ada is content")
        assert ragtrace.feedback(TRACE, 0.0, rater="bob", metric="faithfulness")
        storing = Storing.of(Settings.resolve({"store": str(path)}, {}))
        assert storing.flush(30)
        storing.close(5.0)
    finally:
        ragtrace.shutdown(5.0)
    rows = {(row["metric"], row["version"], row["value"], row["details"]) for row in make.store(path).rows()}
    assert rows == {
        ("feedback", "human", 1.0, '{"comment": "[name] is content"}'),
        ("faithfulness", "human:bob", 0.0, None),
    }


@pytest.fixture
def first_losses(monkeypatch):
    """Log each site anew, as in a process of its own."""
    monkeypatch.setattr(guard, "_losses", Counter())


@pytest.mark.parametrize(
    ("trace", "value", "line"),
    [
        ("", 1.0, "a trace id has 32 hex digits that are not all 0"),
        ("nonsense", 0.5, "a trace id has 32 hex digits that are not all 0"),
        (TRACE[:8], 0.5, "a trace id has 32 hex digits that are not all 0"),
        ("0" * 32, 0.0, "a trace id has 32 hex digits that are not all 0"),
        (None, 1.0, "a trace id has 32 hex digits that are not all 0"),
        (TRACE, 5.0, "a rating must lie between 0 and 1"),
        (TRACE, float("nan"), "a rating must lie between 0 and 1"),
        (TRACE, "good", "a rating must lie between 0 and 1"),
    ],
)
@pytest.mark.usefixtures("first_losses")
def test_feedback_that_is_refused_says_why_in_one_line(tmp_path, caplog, trace, value, line):
    ragtrace.configure(store=str(tmp_path / "s"))
    try:
        assert ragtrace.feedback(trace, value) is False
    finally:
        ragtrace.shutdown(5.0)
    said = [text for text in caplog.messages if "wrong call" in text]
    assert said == [f"ragtrace: wrong call ragtrace.feedback(): {line}; the application is not affected"]
    assert "lost data" not in caplog.text
    assert list(make.store(tmp_path / "s").rows()) == []


@pytest.mark.usefixtures("first_losses")
def test_a_rating_within_a_run_that_is_refused_says_why(caplog):
    with Recorder().start(query="Where?") as run:
        run.feedback(7.0)
    line = "ragtrace: wrong call run.feedback(): a rating must lie between 0 and 1; the application is not affected"
    assert [text for text in caplog.messages if "wrong call" in text] == [line]
    assert "lost data" not in caplog.text


def test_feedback_without_a_store_is_counted_and_never_raises():
    ragtrace.configure()
    try:
        before = internal_errors().get("ragtrace.feedback.no_store", 0)
        assert not ragtrace.feedback(TRACE, 1.0)
        assert internal_errors()["ragtrace.feedback.no_store"] == before + 1
    finally:
        ragtrace.shutdown(5.0)


def test_feedback_waits_in_memory_while_another_holds_the_file(made, tmp_path, monkeypatch):
    from ragtrace.stores import Label, sqlite

    monkeypatch.setattr(sqlite, "BUSY_S", 0.05)
    path = tmp_path / "s"
    storing = made(store=str(path))
    storing.store.close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    storing.rate(Label(trace_id=TRACE, value=1.0))
    assert not storing.flush(0.3)
    other.execute("ROLLBACK")
    assert storing.flush(10.0)
    assert [row["value"] for row in storing.store.rows()] == [1.0]


def test_feedback_on_a_run_that_was_not_drawn_is_found_by_its_user_and_session(tmp_path, monkeypatch):
    process, is_rated = Pipeline.process, threading.Event()
    monkeypatch.setattr(Pipeline, "process", lambda *given: (is_rated.wait(30), process(*given)))  # after feedback
    path = tmp_path / "s"
    ragtrace.configure(store=str(path), sample_rate=0.0, redact=lambda text: text.replace("Ada", "[name]"))
    try:
        traces = []
        for user, session in (("Ada", "first"), ("Bob", "second")):
            with ragtrace.query("Where?", user=user, session=session) as run:
                traces.append(run.trace_id)
        for trace in traces:
            assert ragtrace.feedback(trace, 0.0, rater="Ada")
        assert ragtrace.feedback(TRACE, 1.0, user="Ada", session="of another process")
        is_rated.set()
        storing = Storing.of(Settings.resolve({"store": str(path)}, {}))
        assert storing.flush(30)
        storing.close(5.0)
    finally:
        ragtrace.shutdown(5.0)
    store = make.store(path)
    found = [(row["trace_id"], row["user"], row["session"], row["version"]) for row in store.rows()]
    assert found == [
        (traces[0], "[name]", "first", "human:[name]"),
        (traces[1], "Bob", "second", "human:[name]"),
        (TRACE, "[name]", "of another process", "human"),
    ]
    assert store.forget("user", "[name]").labels == 3
    store.close()
