from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest

from ragtrace.errors import JudgeError, JudgeInvalidOutput, JudgeTimeout, JudgeTruncated
from ragtrace.judges import OnnxPairScorer
from ragtrace.judges.nli.checking import PAIRS_A_CALL, check, identity
from tests.unit.judges.nli import tiny_models


def copied(pairs):
    return [float(hypothesis in premise) for premise, hypothesis in pairs]


@pytest.fixture
def nli(tmp_path):
    for needed in ("onnx", "onnxruntime", "tokenizers"):
        pytest.importorskip(needed, reason=f"{needed} is not installed")
    return OnnxPairScorer(tiny_models.folder(tmp_path, max_position_embeddings=32))


async def test_a_function_gets_all_contexts_as_one_premise():
    seen = []

    def scorer(pairs):
        seen.extend(pairs)
        return [1] * len(pairs)

    checked = await check(scorer, "It is red. It is big.", [(0, "First."), (2, "Second.")])
    assert seen == [("First.\n\nSecond.", "It is red."), ("First.\n\nSecond.", "It is big.")]
    assert checked.premises[0].contexts == (0, 2)


async def test_a_coroutine_function_is_awaited():
    async def scorer(pairs):
        await asyncio.sleep(0)
        return np.array(copied(pairs))

    checked = await check(scorer, "It is red.", [(0, "It is red.")])
    assert checked.sentences[0].consistency == 1.0


async def test_the_scorer_runs_off_the_event_loop_and_the_loop_stays_free():
    begun, go_on = threading.Event(), threading.Event()

    def scorer(pairs):
        begun.set()
        assert go_on.wait(10)
        return copied(pairs)

    task = asyncio.create_task(check(scorer, "It is red.", [(0, "It is red.")]))
    await asyncio.to_thread(begun.wait, 10)
    go_on.set()  # reached only because the loop was not blocked
    assert (await task).sentences[0].consistency == 1.0


async def test_a_cancelled_check_ends_with_the_call_under_way():
    begun, go_on, calls = threading.Event(), threading.Event(), []

    def scorer(pairs):
        calls.append(len(pairs))
        begun.set()
        assert go_on.wait(10)
        return copied(pairs)

    answer = " ".join(f"It is {n}." for n in range(100))
    task = asyncio.create_task(check(scorer, answer, [(0, "It is red.")]))
    await asyncio.to_thread(begun.wait, 10)
    task.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert calls == [PAIRS_A_CALL]


@pytest.mark.parametrize("given", [[], [0.5, 0.5], [float("nan")], [1.5], [-0.1], ["high"], [None], [float("inf")]])
async def test_what_is_no_score_is_an_error(given):
    with pytest.raises(JudgeInvalidOutput):
        await check(lambda pairs: given, "It is red.", [(0, "It is red.")])


def raising(error):
    def broken(pairs):
        raise error

    return broken


@pytest.mark.parametrize(
    ("scorer", "error", "words"),
    [
        (lambda pairs: None, JudgeError, "TypeError"),
        (lambda pairs: 0.5, JudgeError, "TypeError"),
        (raising(KeyError("weights")), JudgeError, "broken: KeyError: 'weights'"),
        (raising(JudgeTimeout("5 s")), JudgeTimeout, "5 s"),
    ],
    ids=["no list", "a number", "an exception", "a judge error of its own"],
)
async def test_a_scorer_that_fails_is_a_judge_error(scorer, error, words):
    with pytest.raises(error, match=words) as caught:
        await check(scorer, "It is red.", [(0, "It is red.")])
    assert caught.value.reason == error.reason


async def test_evidence_late_in_the_contexts_is_found(nli):
    contexts = [(i, "one two three four five six seven eight nine") for i in range(8)] + [(8, "the lab is in Oslo")]
    checked = await check(nli, "the lab is in Oslo .", contexts)
    assert len(checked.premises) > 3
    assert checked.premises[-1].contexts[-1] == 8
    assert checked.sentences[0].consistency < 0.5  # the full stop is a word that no premise has
    assert (await check(nli, "the lab is in Oslo", contexts)).sentences[0].consistency > 0.9


async def test_every_pair_fits_the_window_also_of_a_long_sentence(nli):
    words = " ".join(tiny_models.WORDS[:23])
    checked = await check(nli, f"{words} {words}", [(0, f"{words} {words} {words}"), (1, "red")])
    assert len(checked.sentences) > 2
    assert " ".join(one.text for one in checked.sentences).split() == f"{words} {words}".split()
    sizes = [nli.size(premise.text, one.text) for premise in checked.premises for one in checked.sentences]
    assert max(sizes) <= nli.window


async def test_contradiction_is_the_worst_premises(nli):
    contexts = [(0, "one two three four five six seven eight nine " * 3), (1, "it is red")]
    checked = await check(nli, "it is not red", contexts)
    assert checked.sentences[0].contradiction > 0.9
    assert checked.sentences[0].consistency < 0.1


async def test_an_answer_without_a_word_has_no_sentence():
    assert (await check(copied, "--- !", [(0, "It is red.")])).sentences == ()


async def test_a_model_that_refuses_a_pair_is_an_error():
    class Small:
        name, version, window = "small", "1", 100

        def size(self, premise, hypothesis):
            return 1  # wrong on purpose

        def signals(self, pairs):
            raise JudgeTruncated("too long")

        def __call__(self, pairs):
            return []

    with pytest.raises(JudgeTruncated):
        await check(Small(), "It is red.", [(0, "It is red.")])


def test_identity_of_functions_and_objects():
    class Named:
        name, version = "mine", 3

        def __call__(self, pairs): ...

    assert identity(Named()) == ("mine", "3")
    assert identity(copied) == ("function:copied", "")
