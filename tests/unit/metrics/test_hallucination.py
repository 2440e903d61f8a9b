from __future__ import annotations

import json

import pytest

from ragtrace.errors import ConfigError
from ragtrace.judges import OnnxPairScorer, OverlapJudge, PairSignals
from ragtrace.metrics import EvalContext, MetricOptions, evaluate, expected, select
from ragtrace.service import build_scorer
from ragtrace.settings import Settings
from tests import make
from tests.unit.judges.nli import tiny_models

BOTH = select(["hallucination", "pair_contradiction"])


def copied(pairs):
    return [0.9 if hypothesis in premise else 0.2 for premise, hypothesis in pairs]


class Signals:
    """A model with a window of 40 characters, counting its calls."""

    name, version, window = "signals", "0a1b2c3d", 40

    def __init__(self):
        self.calls = 0

    def size(self, premise, hypothesis):
        return len(premise) + len(hypothesis)

    def signals(self, pairs):
        self.calls += 1
        return [PairSignals(consistency=s, contradiction=1 - s) for s in copied(pairs)]

    def __call__(self, pairs):
        return copied(pairs)


def record(answer="It is red. It is big.", contexts=("It is red.", " ", "Nobody knows."), **given):
    return make.record(pools=(make.pool(*contexts),), answer=answer, **given)


async def scored(*, given=None, pairs=copied, **options):
    return await evaluate(BOTH, EvalContext(given or record(), pairs=pairs, options=MetricOptions(**options)))


async def test_mean_and_minimum_with_details_of_every_sentence_and_premise():
    mean, least, contradiction = await scored(pairs=Signals())
    assert (mean.value, least.value) == (pytest.approx(0.55), 0.2)
    assert (mean.passed, least.passed) == (True, False)
    assert mean.details["sentences"] == [
        {"text": "It is red.", "score": 0.9, "premise": 0, "scores": [0.9]},
        {"text": "It is big.", "score": 0.2, "premise": 0, "scores": [0.2]},
    ]
    assert mean.details["premises"] == [{"contexts": [0, 2]}]
    assert mean.details["unsupported"] == ["It is big."] == least.details["unsupported"]
    assert mean.details["truncated"] is least.details["truncated"] is False
    assert (contradiction.value, contradiction.passed) == (pytest.approx(0.8), False)
    json.dumps([dict(one.details) for one in (mean, least, contradiction)])


async def test_a_sentence_counts_with_its_best_premise_and_places_are_the_records():
    contexts = ("Nobody ever knew that.", "", "It was built by hand.", "It is big.")
    mean, least, _ = await scored(given=record(contexts=contexts, answer="It is big."), pairs=Signals())
    assert mean.details["premises"] == [{"contexts": [0]}, {"contexts": [2]}, {"contexts": [3]}]
    assert mean.details["sentences"][0]["premise"] == 2
    assert mean.value == least.value == 0.9


async def test_both_metrics_share_one_check():
    scorer = Signals()
    await scored(pairs=scorer)
    assert scorer.calls == 1


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (record(answer="  "), "no_answer"),
        (record(contexts=()), "no_contexts"),
        (record(contexts=(" ", "\n")), "no_contexts"),
        (record(outcome="partial"), "partial_run"),
        (record(answer="--- !"), "no_claims"),
    ],
)
async def test_what_cannot_be_checked_is_na(given, reason):
    results = await scored(given=given, pairs=Signals())
    assert [(one.state, one.reason) for one in results] == [("na", reason)] * 3


async def test_without_a_scorer_it_is_na_and_without_the_label_contradiction_is():
    assert {one.reason for one in await scored(pairs=None)} == {"unsupported_by_judge"}
    mean, _, contradiction = await scored()
    assert mean.state == "ok"
    assert (contradiction.state, contradiction.reason) == ("na", "unsupported_by_judge")


async def test_a_failure_is_an_error_of_every_output_and_never_a_number():
    def broken(pairs):
        raise RuntimeError("no memory")

    for scorer, reason in ((broken, "judge_error"), (lambda pairs: [2.0], "judge_invalid_output")):
        results = await scored(pairs=scorer)
        assert [(one.state, one.reason, one.value) for one in results] == [("error", reason, None)] * 3


async def test_the_scorer_stands_on_the_score_and_in_its_version():
    mean, *_ = await evaluate(BOTH, EvalContext(record(), pairs=Signals(), judge=OverlapJudge()))
    assert (mean.judge.model, mean.judge.prompt_hash) == ("pairs:signals", "0a1b2c3d")
    other = Signals()
    other.version = "ffffffff"
    versions = {(await scored(pairs=scorer))[0].version for scorer in (Signals(), other, copied)}
    assert len(versions) == 3
    (announced, *_) = expected(BOTH, None, None, MetricOptions(), Signals())
    assert (announced.name, announced.version) == ("hallucination", mean.version)


async def test_the_threshold_moves_what_passes_and_what_is_unsupported():
    mean, least, _ = await scored(hallucination_threshold=0.1)
    assert (mean.passed, least.passed, mean.details["unsupported"]) == (True, True, [])
    mean, least, _ = await scored(hallucination_threshold=0.95)
    assert (mean.passed, len(mean.details["unsupported"])) == (False, 2)


async def test_settings_reach_a_real_model_and_a_function(tmp_path):
    for needed in ("onnx", "onnxruntime", "tokenizers"):
        pytest.importorskip(needed, reason=f"{needed} is not installed")
    folder = tiny_models.folder(tmp_path / "nli")
    environ = {"RAGTRACE_PAIRS": f"onnx:{folder}", "RAGTRACE_METRIC_OPTIONS_HALLUCINATION_THRESHOLD": "0.7"}
    scorer = build_scorer(Settings.resolve({"metrics": ("hallucination",)}, environ))
    assert isinstance(scorer.pairs, OnnxPairScorer)
    assert [scorer.threshold_of(output) for output in scorer.metrics[0].spec.outputs] == [0.7, 0.7]
    (mean, least) = await scorer.results(record(answer="is red"))
    assert mean.state == "ok"
    assert mean.value == least.value > 0.9
    assert mean.judge.model == "pairs:onnx:nli"
    given = build_scorer(Settings.resolve({"metrics": ("hallucination",), "pairs": copied}, {}))
    assert (await given.results(record()))[0].judge.model == "pairs:function:copied"


def test_what_is_no_scorer_is_refused():
    with pytest.raises(ConfigError, match="pairs=5 must be onnx:FOLDER, or a function"):
        Settings.resolve({"pairs": 5}, {})
    with pytest.raises(ConfigError, match="hallucination_threshold"):
        Settings.resolve({"metric_options": {"hallucination_threshold": 1.5}}, {})
