"""Calls that a run puts off: made in their order by the pipeline's thread, each behind a guard of its own."""

from __future__ import annotations

import pytest

from ragtrace.capture import MAX_LATER, Recorder, internal_errors
from tests.kept import Keeper


def started(**options):
    keeper = Keeper()
    return keeper, Recorder(keeper, **options).start(query="Where?")


def test_calls_wait_for_the_end_and_keep_their_order():
    keeper, run = started()
    run.later(run.answered, "first")
    run.later(run.answered, "second")
    assert "answer" not in run.attributes
    run.finish()
    assert keeper.only.record.answer == "second"


def test_calls_are_made_at_once_where_texts_are_redacted():
    _, run = started(redact=lambda text: text.replace("Ada", "[x]"))
    run.later(run.answered, "Ada knows.")
    assert run.attributes["answer"] == "[x] knows."


def test_an_endless_run_makes_its_calls_itself():
    _, run = started()
    for number in range(MAX_LATER):
        assert "answer" not in run.attributes
        run.later(run.answered, str(number))
    assert run.attributes["answer"] == str(MAX_LATER - 1)


def test_a_failing_call_is_counted_and_the_others_are_made():
    keeper, run = started()
    before = sum(internal_errors().values())
    run.later({}.__getitem__, "absent")
    run.later(run.answered, "In Oslo.")
    run.finish()
    assert (keeper.only.record.answer, sum(internal_errors().values())) == ("In Oslo.", before + 1)


@pytest.mark.parametrize("call", ["discard", "failed"])
def test_a_late_call_decides_how_the_run_ends(call):
    keeper, run = started()
    run.later(run.discard) if call == "discard" else run.later(run.failed, ValueError("no"))
    run.finish()
    assert [one.record.outcome for one in keeper.runs] == ([] if call == "discard" else ["error"])
