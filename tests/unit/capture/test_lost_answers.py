"""An answer that never came, or came after the block, is missing and no refusal."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from msgspec.structs import replace

from ragtrace.capture import Recorder, internal_errors
from ragtrace.metrics import answer_lacking
from ragtrace.model import MetricResult, record_from_json, record_to_json
from tests.kept import Keeper, Waiting


def ask(recorder: Recorder, answer: str | None = None, workflow: str = "support") -> Any:
    with recorder.start(query="Where?", workflow=workflow) as run:
        run.retrieved(["The lab is in Oslo."])
        if answer is not None:
            run.answered(answer)
    return run


def lacking(keeper: Keeper) -> list[str | None]:
    return [answer_lacking(run.record) for run in keeper.runs]


@pytest.fixture
def keeper() -> Keeper:
    return Keeper()


@pytest.fixture
def recorder(keeper: Keeper) -> Recorder:
    return Recorder(keeper)


def test_an_answer_that_never_came_in_a_workflow_that_has_had_answers(keeper, recorder, caplog) -> None:
    caplog.set_level(logging.WARNING, "ragtrace")
    ask(recorder, "In Oslo.")
    ask(recorder)
    ask(recorder)
    assert lacking(keeper) == [None, "answer_missing", "answer_missing"]
    assert keeper.runs[1].record.lossy["answer"] == 1


def test_a_workflow_that_only_retrieves_is_of_the_set_up(keeper, recorder) -> None:
    before = internal_errors()
    ask(recorder, "In Oslo.", workflow="support")
    ask(recorder, workflow="search")
    assert lacking(keeper) == [None, "missing_input:answer"]
    assert internal_errors() == before


def test_a_blank_answer_stays_no_answer(keeper, recorder) -> None:
    ask(recorder, "In Oslo.")
    ask(recorder, "  ")
    assert lacking(keeper) == [None, "no_answer"]


def test_a_run_that_failed_is_no_lost_answer(keeper, recorder) -> None:
    ask(recorder, "In Oslo.")
    with pytest.raises(ConnectionError), recorder.start(query="Where?", workflow="support"):
        raise ConnectionError
    assert lacking(keeper) == [None, "partial_run"]


@pytest.mark.parametrize("n_before", [0, 1])
def test_an_answer_after_the_block_comes_too_late(n_before: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "ragtrace")
    kept = Waiting()
    recorder = Recorder(kept)
    before = internal_errors().get("ragtrace.capture.run.answered_late", 0)
    for _ in range(n_before):
        ask(recorder, "In Oslo.")
    ask(recorder).answered("In Oslo.")
    ask(recorder).answered("In Oslo.")
    kept.process()
    assert lacking(kept)[n_before:] == ["answer_missing", "answer_missing"]
    assert internal_errors()["ragtrace.capture.run.answered_late"] == before + 2
    told = [one.getMessage() for one in caplog.records if "after" in one.getMessage()]
    assert len(told) == (1 if before == 0 else 0)


def test_a_late_answer_tells_of_the_runs_that_follow(keeper, recorder) -> None:
    ask(recorder).answered("In Oslo.")
    ask(recorder)
    assert lacking(keeper)[1] == "answer_missing"


def test_another_recorder_knows_nothing_of_it(keeper, recorder) -> None:
    ask(recorder, "In Oslo.")
    other = Keeper()
    ask(Recorder(other))
    assert lacking(other) == ["missing_input:answer"]


def test_a_recorder_remembers_a_bounded_number_of_workflows(keeper, recorder) -> None:
    for n in range(3_000):
        ask(recorder, "In Oslo.", workflow=f"w{n}")
    ask(recorder, workflow="w2999")
    ask(recorder, workflow="w0")
    assert lacking(keeper)[-2:] == ["answer_missing", "missing_input:answer"]


def test_the_name_that_a_run_got_later_counts(keeper, recorder) -> None:
    with recorder.start(query="Where?") as run:
        run.set_attributes(workflow="late name")
        run.answered("In Oslo.")
    ask(recorder, workflow="late name")
    assert lacking(keeper) == [None, "answer_missing"]


def test_it_is_a_missing_score() -> None:
    for reason in ("answer_missing", "contexts_truncated"):
        assert MetricResult(name="faithfulness", state="na", reason=reason).is_missing
    assert not MetricResult(name="faithfulness", state="na", reason="missing_input:answer").is_missing


def test_it_survives_a_file(keeper, recorder) -> None:
    ask(recorder, "In Oslo.")
    ask(recorder)
    for run in keeper.runs:
        for record in (run.record, replace(run.record, is_refused=True)):
            again = record_from_json(record_to_json(record), fallback_id="x")
            assert answer_lacking(again) == answer_lacking(record)
            assert again.is_refused == record.is_refused


def test_an_answer_cut_for_size_is_not_whole() -> None:
    from ragtrace.capture import Limits

    kept = Keeper()
    ask(Recorder(kept, limits=Limits(text_chars=100)), "The lab is in Oslo. " * 20)
    assert lacking(kept) == ["answer_missing"]
