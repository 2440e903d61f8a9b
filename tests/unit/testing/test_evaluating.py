"""The fixture `ragtrace_eval`: sources, thresholds, and failures that show the worst answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import ragtrace
from ragtrace.errors import ConfigError, InputError
from ragtrace.model import RagRecord
from ragtrace.service import runtime
from ragtrace.testing.evaluating import Evaluator

if TYPE_CHECKING:
    from pathlib import Path

GOOD = {"query": "Who runs it?", "answer": "Ada Lovelace runs it.", "contexts": ["Ada Lovelace runs it."]}
BAD = {
    "query": "Where is the lab?",
    "answer": "The lab is in Oslo. It has 40 rooms and a sauna.",
    "contexts": ["The lab is in Oslo."],
}
REFUSED = {"query": "When?", "answer": "I do not know.", "contexts": ["The lab is in Oslo."]}


@pytest.fixture
def ragtrace_eval() -> Evaluator:
    """The fixture without its lines at the end of our own test run."""
    return Evaluator()


def answer_by_hand(question: str) -> None:
    with ragtrace.query(question) as run:
        run.retrieved(["The lab is in Oslo."])
        run.answered("The lab is in Oslo.")


def test_a_missed_mean_shows_the_figure_and_the_worst_answer(ragtrace_eval: Evaluator) -> None:
    found = ragtrace_eval([GOOD, BAD], metrics="faithfulness,diagnosis")
    with pytest.raises(AssertionError) as failure:
        found.check(faithfulness=0.9)
    first, figure, *shown = str(failure.value).splitlines()
    assert first == "faithfulness: the mean is below 0.9, which the interval does not prove"
    assert figure.startswith("mean 0.750, 95 % interval 0.000 to 1.000, n = 2, judge overlap ")
    assert shown == [
        "",
        "0.50  row 2  Where is the lab?",
        "      answer   The lab is in Oslo. It has 40 rooms and a sauna. [bad claim 1]",
        "      verdict  unsupported (model): the answer says what the contexts do not hold",
        "      claim 1  not supported (0.00): It has 40 rooms and a sauna.",
    ]


def test_a_threshold_is_the_most_where_lower_is_better(ragtrace_eval: Evaluator) -> None:
    found = ragtrace_eval([GOOD, BAD], metrics="invented_specifics")
    found.check(invented_specifics=0.5)
    with pytest.raises(AssertionError, match=r"the mean is above 0\.4"):
        found.check(invented_specifics=0.4)


def test_each_answer_can_be_held_against_the_threshold(ragtrace_eval: Evaluator) -> None:
    found = ragtrace_eval([GOOD, BAD, REFUSED], metrics="faithfulness")
    found.check(faithfulness=0.5, each=True)
    with pytest.raises(AssertionError, match=r"1 of 2 answers below 0\.8"):
        found.check(faithfulness=0.8, each=True)


@pytest.mark.parametrize(
    ("rows", "fail_on", "limit", "is_missed"),
    [
        ([GOOD] * 2 + [BAD] * 2, "mean", 0.75, False),
        ([GOOD] * 2 + [BAD] * 2, "proof", 0.95, False),
        ([GOOD] * 2 + [BAD] * 2, "doubt", 0.5, True),
        ([BAD] * 40, "proof", 0.9, True),
        ([GOOD] * 40, "doubt", 0.8, False),
    ],
)
def test_the_interval_decides_where_it_is_asked_to(
    ragtrace_eval: Evaluator, rows: list[dict[str, Any]], fail_on: Any, limit: float, *, is_missed: bool
) -> None:
    rows = [{**row, "session": f"s{number}"} for number, row in enumerate(rows)]  # else a repeat counts once
    found = ragtrace_eval(rows, metrics="faithfulness")
    if is_missed:
        with pytest.raises(AssertionError):
            found.check(faithfulness=limit, fail_on=fail_on)
    else:
        found.check(faithfulness=limit, fail_on=fail_on)


def test_no_value_at_all_fails_with_the_reason(ragtrace_eval: Evaluator) -> None:
    with pytest.raises(AssertionError, match=r"no answer has a value\nn = 0, na abstained \(2\)"):
        ragtrace_eval([REFUSED, REFUSED], metrics="faithfulness").check(faithfulness=0.0)


def test_refusals_are_seen_with_min_n(ragtrace_eval: Evaluator) -> None:
    found = ragtrace_eval([GOOD, REFUSED], metrics="faithfulness")
    found.check(faithfulness=1.0)
    with pytest.raises(
        AssertionError, match=r"1 answer with a value, needed are 2\nmean 1.000.*na abstained \(1\)"
    ):
        found.check(faithfulness=1.0, min_n=2)


def test_an_error_of_the_judge_fails_unless_it_is_allowed(ragtrace_eval: Evaluator) -> None:
    failed = {"faithfulness": {"state": "error", "reason": "judge_timeout"}}
    good = {"faithfulness": {"state": "ok", "value": 1.0, "judge": "overlap", "version": "a1"}}
    found = ragtrace_eval([{**GOOD, "scores": good}, {**BAD, "scores": failed}])
    with pytest.raises(AssertionError, match="1 answer could not be scored, allowed are 0"):
        found.check(faithfulness=0.5)
    found.check(faithfulness=0.5, max_errors=1)


def test_a_scored_file_is_not_scored_again(ragtrace_eval: Evaluator, tmp_path: Path) -> None:
    scores = {"faithfulness": {"state": "ok", "value": 0.25, "judge": "somebody", "version": "a1"}}
    path = tmp_path / "scored.jsonl"
    path.write_text(json.dumps({**GOOD, "scores": scores}) + "\n", encoding="utf-8")
    with pytest.raises(AssertionError, match=r"mean 0\.250.*judge somebody a1"):
        ragtrace_eval(path).check(faithfulness=0.5)
    ragtrace_eval(path, metrics="faithfulness").check(faithfulness=0.5)


def test_an_application_is_captured_or_returns_its_answer(ragtrace_eval: Evaluator) -> None:
    ragtrace_eval(answer_by_hand, ["Where?", "Where is it?"], metrics="faithfulness").check(
        faithfulness=1.0, min_n=2
    )
    ragtrace_eval(lambda _: BAD, ["Where is the lab?"], metrics="faithfulness").check(faithfulness=0.5)
    with pytest.raises(ConfigError, match="returned a str and no run was captured"):
        ragtrace_eval(lambda _: "Oslo.", ["Where?"])


def test_questions_bring_references(ragtrace_eval: Evaluator) -> None:
    questions = [{"query": "Where is the lab?", "reference": "In Oslo."}]
    found = ragtrace_eval(answer_by_hand, questions, metrics="semantic_similarity")
    assert found.answers[0].record.reference == "In Oslo."


def test_an_async_application_runs_in_one_loop(ragtrace_eval: Evaluator) -> None:
    async def app(question: str) -> None:
        answer_by_hand(question)

    ragtrace_eval(app, ["Where?"], metrics="faithfulness").check(faithfulness=1.0)


async def test_in_an_async_test_runs_are_captured(ragtrace_eval: Evaluator) -> None:
    async def app(question: str) -> None:
        answer_by_hand(question)

    with pytest.raises(ConfigError, match="an event loop runs already"):
        ragtrace_eval(app, ["Where?"])
    with ragtrace_eval.capture() as runs:
        await app("Where?")
    ragtrace_eval(runs, metrics="faithfulness").check(faithfulness=1.0)


def test_capture_leaves_the_recorder_as_it_was(ragtrace_eval: Evaluator) -> None:
    before = runtime._state.recorder.config, runtime._state.is_configured
    with ragtrace_eval.capture() as runs:
        answer_by_hand("Where?")
        with pytest.raises(ConfigError, match="captured already"), ragtrace_eval.capture():
            pass
    assert [run.query for run in runs] == ["Where?"]
    assert (runtime._state.recorder.config, runtime._state.is_configured) == before


def test_an_application_that_configures_itself_is_captured_too(ragtrace_eval: Evaluator) -> None:
    with ragtrace_eval.capture() as runs:
        ragtrace.configure(sample_rate=0.0)
        answer_by_hand("Where?")
    try:
        answer_by_hand("Later?")
        assert [run.query for run in runs] == ["Where?"]
        assert runtime._state.service is not None
        assert runtime._state.recorder.config.processor is runtime._state.service.pipeline
    finally:
        ragtrace.shutdown(5.0)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda run: run([]), "there is no record to score"),
        (lambda run: run([GOOD], ["Where?"]), "questions go with an application"),
        (lambda run: run(answer_by_hand), "with its questions"),
        (lambda run: run([GOOD], metrics="faithfulness").check(), "give a threshold"),
        (lambda run: run([GOOD], metrics="faithfulness").check(fathfulness=1), "did you mean 'faithfulness'"),
        (lambda run: run([GOOD], metrics="faithfulness").check(faithfulness="high"), "is not a number"),
        (
            lambda run: run([GOOD], metrics="faithfulness").check(faithfulness=1, fail_on="luck"),
            "mean, proof or doubt",
        ),
    ],
)
def test_wrong_use_is_one_line(ragtrace_eval: Evaluator, call: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as error:
        call(ragtrace_eval)
    assert "\n" not in str(error.value)


def test_a_broken_row_is_named(ragtrace_eval: Evaluator) -> None:
    with pytest.raises(InputError, match="row 2: field 'query'"):
        ragtrace_eval([RagRecord(id="1", query="Where?"), {"query": 7}])
