"""Metrics over several runs of one query: ROUGE, a scorer of one's own, and the spread of scores."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtrace.metrics import (
    EvalContext,
    answers_of,
    bertscore_consistency,
    by_query,
    evaluate,
    query_key,
    rouge,
    rouge_consistency,
    rouge_of_tokens,
    score_consistency,
    select,
)
from ragtrace.metrics.consistency.rouge import tokens
from ragtrace.model import Message, RagRecord
from tests import cpu

WORDS = st.lists(st.sampled_from("abcde"), max_size=14)


def common(first: list[str], second: list[str]) -> int:
    """The longest common subsequence by the plain table."""
    table = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, one in enumerate(first):
        for j, other in enumerate(second):
            table[i + 1][j + 1] = table[i][j] + 1 if one == other else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


@given(WORDS, WORDS)
def test_rouge_l_is_the_longest_common_subsequence(first, second) -> None:
    found = rouge_of_tokens(first, second).rouge_l
    assert found.precision * max(len(first), 1) == pytest.approx(common(first, second))
    assert found.recall * max(len(second), 1) == pytest.approx(common(first, second))


@given(st.text(max_size=60), st.text(max_size=60))
def test_rouge_is_total_symmetric_and_within_its_range(first, second) -> None:
    there, back = rouge(first, second), rouge(second, first)
    assert (there is None) == (back is None) == (not tokens(first) or not tokens(second))
    for one, other in zip(there or (), back or (), strict=True):
        assert all(0.0 <= value <= 1.0 for value in one)
        assert (one.precision, one.recall) == (other.recall, other.precision)
        assert one.f1 == pytest.approx(other.f1)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Ünïcode CAFÉ", "ünïcode café"),
        ("cafe\u0301", "caf\u00e9"),
        ("东京在日本", "东京在日本。"),
        ("हिन्दी में कैसे", "हिन्दी में कैसे?"),
        ("ภาษาไทย", "ภาษาไทย"),
        ("Где это?", "где это"),
        ("도쿄는 어디", "도쿄는 어디!"),
    ],
)
def test_every_script_counts(first, second) -> None:
    assert rouge(first, second).rouge1.f1 == 1.0
    assert rouge(first, second).rouge_l.f1 == 1.0


def test_scripts_without_spaces_are_told_apart_within_a_sentence() -> None:
    assert 0.5 < rouge("东京在日本", "东京不在日本").rouge2.f1 < 1.0


@pytest.mark.parametrize("text", ["", "  ", "?!", "\ud800", "🙂"])
def test_no_token_is_no_number(text) -> None:
    assert rouge(text, "word") is None
    assert rouge("word", text) is None


def test_long_answers_are_quick() -> None:
    draw = random.Random(1)
    answers = [" ".join(str(draw.randint(0, 500)) for _ in range(2_000)) for _ in range(5)]
    assert rouge_consistency(answers)[0].state == "ok"
    assert cpu.seconds(lambda: rouge_consistency(answers), rounds=2) < 2.0  # a table takes about 10 s


def test_rouge_consistency_is_the_mean_over_pairs() -> None:
    answers = ["a b c d", "a b c e", "x y"]
    pairs = [rouge(answers[i], answers[j]) for i, j in ((0, 1), (0, 2), (1, 2))]
    for place, result in enumerate(rouge_consistency([*answers, " \n"])):
        assert result.value == pytest.approx(sum(pair[place].f1 for pair in pairs) / 3)
        assert result.details["recall"] == pytest.approx(
            sum(pair[place].precision + pair[place].recall for pair in pairs) / 6
        )
        assert (result.details["runs"], result.details["pairs"]) == (3, 3)


def test_fewer_than_three_answers_are_too_few() -> None:
    for answers in ([], ["a"], ["a", "a", " "]):
        assert {result.reason for result in rouge_consistency(answers)} == {"insufficient_runs"}
        assert bertscore_consistency(answers, lambda c, r: [1.0] * len(c)).reason == "insufficient_runs"
    assert {result.reason for result in score_consistency([0.5, 0.5])} == {"insufficient_runs"}


def test_answers_of_one_word_have_no_rouge_2() -> None:
    one, two, longest = rouge_consistency(["No.", "no", "No!"])
    assert (one.value, two.reason, longest.value) == (1.0, "no_tokens", 1.0)
    assert rouge_consistency(["No.", "no", "not at all"])[1].value == 0.0  # a pair of words stands against none


def test_pairs_without_tokens_are_counted_and_left_out() -> None:
    found = rouge_consistency(["a b", "a b", "?!"])[0]
    assert (found.value, found.details["pairs"], found.details["pairs_without_tokens"]) == (1.0, 1, 2)


def test_a_scorer_sees_both_directions_of_each_pair_at_once() -> None:
    seen = []

    def scorer(candidates, references):
        seen.append(list(zip(candidates, references, strict=True)))
        return [-0.5 if candidate == "a" else 1.0 for candidate in candidates]

    found = bertscore_consistency(["a", "", "b", "c"], scorer)
    assert seen == [[("a", "b"), ("a", "c"), ("b", "c"), ("b", "a"), ("c", "a"), ("c", "b")]]
    assert found.value == pytest.approx((0.25 + 0.25 + 1.0) / 3)


@pytest.mark.parametrize(
    ("scorer", "reason"),
    [
        (lambda c, r: [1.0], "judge_invalid_output"),
        (lambda c, r: [math.nan] * len(c), "judge_invalid_output"),
        (lambda c, r: ["much"] * len(c), "judge_error"),
        (lambda c, r: None, "judge_error"),
        (lambda c, r: 1 / 0, "judge_error"),
    ],
)
def test_a_scorer_that_fails_is_an_error_and_never_a_number(scorer, reason) -> None:
    found = bertscore_consistency(["a", "b", "c"], scorer)
    assert (found.state, found.reason) == ("error", reason)
    assert found.details["message"]


def test_the_spread_of_scores_at_mean_zero() -> None:
    std, cv, index = score_consistency([0.0, 0.0, 0.0])
    assert (std.value, cv.state, cv.reason, index.value) == (0.0, "na", "missing_input:nonzero_mean", 0.0)
    assert cv.details["std_pop"] == 0.0


async def test_one_record_is_never_enough() -> None:
    metrics = select(["rouge_consistency", "bertscore_consistency", "score_cv"])
    results = await evaluate(metrics, EvalContext(RagRecord(id="1", query="Where?", answer="Oslo.")))
    assert len(results) == 7
    assert {(result.state, result.reason) for result in results} == {("na", "insufficient_runs")}


def test_runs_of_a_query_share_workflow_and_history() -> None:
    records = [
        RagRecord(id="1", query="Where?", answer="Oslo."),
        RagRecord(id="2", query=" where? ", answer=" "),
        RagRecord(id="3", query="Where?", answer="Os", outcome="partial"),
        RagRecord(id="4", query="Where?", workflow="other"),
        RagRecord(id="5", query="Where?", history=(Message(role="user", content="Who?"),)),
        RagRecord(id="6", query="  "),
    ]
    groups = by_query(records)
    assert [[record.id for record in runs] for runs in groups.values()] == [["1", "2", "3"], ["4"], ["5"]]
    assert answers_of(next(iter(groups.values()))) == ["Oslo."]
    assert query_key(records[-1]) is None
