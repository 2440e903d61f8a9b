"""Means at another mix of questions: unmoved by a hot topic, with an interval that holds."""

from __future__ import annotations

import numpy as np
import pytest

from ragtrace.stats import Codebook, Sums, cluster_sums, mean_interval, mix_adjusted
from ragtrace.stats.question_kinds import MOST_KINDS, NEW

MEANS = {"orders": 0.95, "refunds": 0.85, "outage": 0.4, "rare": 0.9}
MIX = {"orders": 0.6, "refunds": 0.3, "outage": 0.08, "rare": 0.02}
TRUTH = sum(MIX[kind] * MEANS[kind] for kind in MIX)


def window(rng, n, mix):
    """Return the sums of a day by kind, and its raw mean."""
    kinds = rng.choice(list(mix), n, p=list(mix.values()))
    scores = {kind: rng.binomial(1, MEANS[kind], (kinds == kind).sum()).astype(float) for kind in mix}
    raw = np.concatenate(list(scores.values())).mean()
    return {kind: cluster_sums(list(found)) for kind, found in scores.items() if len(found)}, raw


@pytest.mark.parametrize("n", [60, 200, 1_000])
@pytest.mark.parametrize("hot", [0.08, 0.5])
def test_a_hot_topic_moves_the_raw_mean_and_not_the_adjusted_one(n, hot):
    rng, rest = np.random.default_rng(n), 1 - MIX["outage"]
    today = {kind: hot if kind == "outage" else share * (1 - hot) / rest for kind, share in MIX.items()}
    found = [window(rng, n, today) for _ in range(400)]
    adjusted = [mix_adjusted(sums, MIX) for sums, _ in found]
    assert np.mean([it.interval.mean for it in adjusted]) == pytest.approx(TRUTH, abs=0.012)
    held = np.mean([it.interval.low <= TRUTH <= it.interval.high for it in adjusted])
    assert held >= 0.93, held
    if hot == 0.5:
        assert np.mean([raw for _, raw in found]) < TRUTH - 0.15


def test_a_kind_with_few_scores_keeps_its_share_and_widens_the_interval():
    rng, today = np.random.default_rng(7), {"orders": 0.7, "refunds": 0.286, "outage": 0.008, "rare": 0.006}
    days = [sums for sums, _ in (window(rng, 300, today) for _ in range(600)) if {"outage", "rare"} <= set(sums)]
    found = [mix_adjusted(sums, MIX).interval for sums in days]
    assert np.mean([it.mean for it in found]) == pytest.approx(TRUTH, abs=0.005)
    held = np.mean([it.low <= TRUTH <= it.high for it in found])
    assert held >= 0.93, held


def test_many_kinds_with_few_scores_are_not_taken_at_the_window_s_mix():
    rng, kinds = np.random.default_rng(2), range(50)
    mix = {str(i): i + 1.0 for i in kinds}
    truth = sum(mix[str(i)] * (0.5 + i / 100) for i in kinds) / sum(mix.values())
    errors, held = [], []
    for _ in range(300):
        asked = rng.choice(50, 400, p=np.arange(50, 0, -1) / 1275)
        sums = {
            str(i): cluster_sums(list(rng.binomial(1, 0.5 + i / 100, (asked == i).sum()).astype(float)))
            for i in set(asked.tolist())
        }
        found = mix_adjusted(sums, mix).interval
        errors.append(found.mean - truth)
        held.append(found.low <= truth <= found.high)
    assert abs(np.mean(errors)) < 0.02
    assert np.mean(held) >= 0.9, np.mean(held)


def test_a_kind_that_the_mix_lacks_is_left_out():
    sums = {"orders": cluster_sums([1.0] * 50), NEW: cluster_sums([0.0] * 500)}
    assert mix_adjusted(sums, {"orders": 1.0}).interval.mean == 1.0


def test_other_questions_than_the_mix_give_no_mean():
    found = mix_adjusted({"rare": cluster_sums([1.0] * 50)}, MIX)
    assert found.interval.mean is None
    assert found.covered == pytest.approx(0.02)
    assert mix_adjusted({}, MIX).interval.mean is None
    assert mix_adjusted({"a": Sums(1.0, 1.0, 1.0, 1.0, 1.0)}, {}).interval.mean is None


def test_one_kind_gives_the_interval_of_all_means():
    sums = cluster_sums([1.0] * 40 + [0.0] * 10)
    assert mix_adjusted({"a": sums}, {"a": 3.0}).interval == pytest.approx(mean_interval(sums))


TOPICS = {
    "en": "How do I send order {n} back to the shop",
    "de": "Wie lange dauert die Lieferung an Haus {n}",
    "zh": "\u9000\u6b3e\u9700\u8981\u591a\u5c11\u5929\u624d\u80fd\u5230\u8d26 {n}",
    "ru": "\u041a\u0430\u043a \u043e\u0442\u043c\u0435\u043d\u0438\u0442\u044c \u043f\u043e\u0434\u043f\u0438\u0441\u043a\u0443 {n}",
}


def test_a_codebook_tells_topics_apart_in_any_script():
    asked = [text.format(n=n) for n in range(30) for text in TOPICS.values()]
    book = Codebook.learnt(asked)
    kinds = {name: {book.kind(text.format(n=n)) for n in range(100, 130)} for name, text in TOPICS.items()}
    assert all(len(found) == 1 for found in kinds.values()), kinds
    assert len(set.union(*kinds.values())) == len(TOPICS)
    assert book.kind("The weather in the mountains was splendid") == NEW


def test_a_codebook_is_bounded_repeatable_and_outlives_its_json():
    rng = np.random.default_rng(1)
    asked = ["".join(rng.choice(list("abcdefghij klmnop"), 30)) for _ in range(2_000)]
    book = Codebook.learnt(asked)
    assert len(book.centres) == MOST_KINDS
    again = Codebook.from_json(Codebook.learnt(asked).to_json())
    assert [book.kind(text) for text in asked[:200]] == [again.kind(text) for text in asked[:200]]


@pytest.mark.parametrize("questions", [[""], ["", "a"], ["same"] * 60])
def test_strange_questions_have_a_kind(questions):
    book = Codebook.learnt(questions)
    assert isinstance(book.kind(""), str)
    assert isinstance(book.kind("something else"), str)


@pytest.mark.parametrize("text", ["[]", "{}", '{"weights": 1, "centres": "", "least": 0}', "no JSON"])
def test_a_text_that_is_no_codebook_is_refused(text):
    with pytest.raises(ValueError):
        Codebook.from_json(text)
