"""Real onnxruntime and tokenizers over tiny models."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from ragtrace.errors import ConfigError, JudgeInvalidOutput, JudgeTruncated, MissingExtra
from ragtrace.judges import OnnxPairScorer, make_pairs
from tests.unit.judges.nli import tiny_models

if TYPE_CHECKING:
    from pathlib import Path

for needed in ("onnx", "onnxruntime", "tokenizers"):
    pytest.importorskip(needed, reason=f"{needed} is not installed")

RED = ("it is red", "it is red")
BIG = ("it is red", "it is big")
NOT = ("it is red", "it is not red")


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def softmax(place: int, *logits: float) -> float:
    return math.exp(logits[place]) / sum(map(math.exp, logits))


def test_an_nli_model_gives_entailment_and_contradiction_by_its_labels(tmp_path):
    scorer = make_pairs(f"onnx:{tiny_models.folder(tmp_path / 'nli')}")
    signals = scorer.signals([RED, BIG, NOT])
    assert [s.consistency for s in signals] == pytest.approx(
        [softmax(1, -4, 4, 0), softmax(1, -4, -4, 0), softmax(1, 8, -4, 0)]
    )
    assert [s.contradiction for s in signals] == pytest.approx(
        [softmax(0, -4, 4, 0), softmax(0, -4, -4, 0), softmax(0, 8, -4, 0)]
    )
    assert scorer.name == "onnx:nli"
    assert list(scorer([RED])) == [signals[0].consistency]


def test_the_order_of_labels_is_the_configs(tmp_path):
    labels = {"0": "ENTAILMENT", "1": "neutral", "2": "Contradiction"}
    (signal,) = OnnxPairScorer(tiny_models.folder(tmp_path, id2label=labels)).signals([RED])
    assert signal.consistency == pytest.approx(softmax(0, -4, 4, 0))
    assert signal.contradiction == pytest.approx(softmax(2, -4, 4, 0))


@pytest.mark.parametrize("said", [{"consistent": 1}, {"consistent": "LABEL_1"}])
def test_what_a_person_says_wins_over_labels(tmp_path, said):
    folder = tiny_models.folder(tmp_path, id2label={"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"})
    with pytest.raises(ConfigError, match=r"LABEL_0.*ragtrace\.json"):
        OnnxPairScorer(folder)
    (folder / "ragtrace.json").write_text(json.dumps(said))
    (signal,) = OnnxPairScorer(folder).signals([RED])
    assert signal.consistency == pytest.approx(softmax(1, -4, 4, 0))
    assert signal.contradiction is None
    assert OnnxPairScorer(folder, consistent=2)([RED]) == pytest.approx([softmax(2, -4, 4, 0)])


def test_a_single_logit_is_a_sigmoid(tmp_path):
    scorer = OnnxPairScorer(tiny_models.folder(tmp_path, "logit"))
    assert scorer([RED, BIG]) == pytest.approx([sigmoid(4), sigmoid(-4)])
    assert scorer.signals([RED])[0].contradiction is None


@pytest.mark.parametrize(
    "config",
    [
        {"architectures": ["ModernBertForTokenClassification"]},
        {"id2label": {"0": "supported", "1": "hallucinated"}},
    ],
)
def test_a_token_model_is_as_consistent_as_the_worst_token_of_the_hypothesis(tmp_path, config):
    scorer = OnnxPairScorer(tiny_models.folder(tmp_path, "tokens", **config))
    # "small" stands in the premise alone, and two pairs of different length share a batch.
    scores = scorer([("it is red small", "it is red"), ("it is red", "it is big"), ("it", "red red red red")])
    assert scores == pytest.approx([sigmoid(8), sigmoid(-8), sigmoid(-8)])


def test_hhem_brings_its_prompt_and_its_class(tmp_path):
    prompt = "premise : {text1} hypothesis : {text2}"
    folder = tiny_models.folder(tmp_path, "bag", model_type="HHEMv2", prompt=prompt)
    scorer = OnnxPairScorer(folder)
    assert scorer.size("it is red", "big") == 10
    # Different lengths in one batch: the padding counts 50 when it is not masked.
    scores = scorer([("it", "big"), ("it is red and red and red", "it is red")])
    assert scores == pytest.approx([softmax(1, 0, 0), softmax(1, 0, 8)])


def test_hhem_exported_as_it_is_has_its_class_at_the_first_token(tmp_path):
    folder = tiny_models.folder(tmp_path, "tokens", model_type="HHEMv2", prompt="{text1} {text2}")
    # The first token is no word of a hypothesis: its numbers are 4 and -4 whatever the texts are.
    assert OnnxPairScorer(folder)([RED, BIG]) == pytest.approx([sigmoid(-8)] * 2)


def test_a_template_with_the_premise_alone_leaves_the_hypothesis_second(tmp_path):
    scorer = OnnxPairScorer(tiny_models.folder(tmp_path), template="the lab : {premise}")
    assert scorer([RED, ("it is red", "lab")]) == pytest.approx([softmax(1, -4, 4, 0)] * 2)


def test_a_slot_in_the_data_is_data(tmp_path):
    scorer = OnnxPairScorer(
        tiny_models.folder(tmp_path, "bag", model_type="hhemv2"), template="{premise} {hypothesis}"
    )
    assert scorer([("{hypothesis}", "red")]) == pytest.approx([softmax(1, 0, 2)])


def test_a_special_token_in_the_data_does_not_end_the_premise(tmp_path):
    scorer = OnnxPairScorer(tiny_models.folder(tmp_path))
    plain = scorer.size("it is", "red")
    # As a token it would take one place; as text "[ SEP]" takes three.
    assert scorer.size("it is [SEP]", "red") == plain + 3
    assert scorer([("it is [SEP] red", "red")]) == pytest.approx([softmax(1, -4, 4, 0)])


def test_half_a_surrogate_pair_is_scored(tmp_path):
    assert OnnxPairScorer(tiny_models.folder(tmp_path))([("it \ud83d is", "it \ud83d")])[0] > 0.9


def test_batches_and_their_order_change_no_score(tmp_path):
    scorer = OnnxPairScorer(tiny_models.folder(tmp_path))
    words = tiny_models.WORDS
    pairs = [(" ".join(words[: i % 17]), " ".join(words[i % 5 : i % 11])) for i in range(40)]
    assert scorer(pairs) == pytest.approx([scorer([pair])[0] for pair in pairs])
    assert scorer([]) == []


def test_threads_share_one_scorer(tmp_path):
    scorer = OnnxPairScorer(tiny_models.folder(tmp_path))
    pairs = [RED, BIG, NOT] * 10
    alone = scorer(pairs)
    with ThreadPoolExecutor(8) as pool:
        assert all(found == alone for found in pool.map(lambda _: scorer(pairs), range(40)))


def test_truncation_and_padding_of_the_tokenizer_file_do_not_hold(tmp_path):
    scorer = OnnxPairScorer(tiny_models.folder(tmp_path, truncation=8))
    premise = "it is the lab in Oslo . one two three four five red"
    assert scorer.size(premise, "red") == 17
    assert scorer([(premise, "red")]) == pytest.approx([softmax(1, -4, 4, 0)])


def test_a_pair_beyond_the_window_is_an_error_not_a_cut(tmp_path):
    scorer = OnnxPairScorer(tiny_models.folder(tmp_path, max_position_embeddings=16))
    assert scorer.window == 16
    with pytest.raises(JudgeTruncated, match="17 tokens, the window 16"):
        scorer([RED, ("it " * 13, "red")])


@pytest.mark.parametrize(
    ("config", "tokenizer", "window"),
    [
        ({"max_position_embeddings": 514, "model_type": "xlm-roberta"}, {}, 512),
        ({"max_position_embeddings": 8192}, {"model_max_length": 512}, 512),
        ({"max_position_embeddings": 512}, {"model_max_length": 10**30}, 512),
        ({"max_position_embeddings": None}, {"model_max_length": 2048}, 2048),
    ],
)
def test_the_window_is_what_the_files_say(tmp_path, config, tokenizer, window):
    folder = tiny_models.folder(tmp_path, **config)
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    assert OnnxPairScorer(folder).window == window
    assert OnnxPairScorer(folder, window=32).window == 32


def test_the_version_follows_every_file_and_override(tmp_path):
    folder = tiny_models.folder(tmp_path)
    versions = [OnnxPairScorer(folder).version, OnnxPairScorer(folder, window=32).version]
    for head, config in (("labels", {"x": 1}), ("logit", {"id2label": {}})):
        versions.append(OnnxPairScorer(tiny_models.folder(tmp_path, head, **config)).version)
    assert len(set(versions)) == 4
    assert OnnxPairScorer(tiny_models.folder(tmp_path / "other")).version == versions[0]


@pytest.mark.parametrize(
    ("head", "config", "said", "message"),
    [
        ("tokens", {}, {}, "output of 2 x .* numbers means"),
        ("labels", {"id2label": {"0": "a", "1": "b"}}, {}, r"2 x 3 numbers means \(labels of config.json: 2\)"),
        ("labels", {}, {"kind": "tokens"}, "does not fit an output of 2 axes"),
        ("labels", {}, {"kind": "regression"}, "valid: labels, logit, first, tokens"),
        ("labels", {}, {"consistent": "entails"}, "its labels are"),
        ("labels", {}, {"consistent": 3}, "its labels are"),
        ("labels", {}, {"consistant": 1}, "did you mean 'consistent'"),
        ("labels", {}, {"output": "scores"}, r"the outputs \['logits'\]"),
        ("labels", {}, {"template": "no slot"}, "needs {premise} once"),
        ("labels", {}, {"window": 4}, "no window of at least 16"),
        ("labels", {"max_position_embeddings": None}, {}, 'write {"window": 512}'),
        ("bag", {"model_type": "HHEMv2"}, {}, "trained on a prompt"),
        (
            "tokens",
            {"architectures": ["XForTokenClassification"]},
            {"template": "{premise} {hypothesis}"},
            "second",
        ),
    ],
)
def test_what_is_not_clear_is_a_config_error_in_one_line(tmp_path, head, config, said, message):
    with pytest.raises(ConfigError, match=message) as caught:
        OnnxPairScorer(tiny_models.folder(tmp_path, head, **config), **said)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "config.json"])
@pytest.mark.parametrize("damage", ["gone", "garbage"])
def test_a_missing_or_broken_file_is_named(tmp_path: Path, name, damage):
    folder = tiny_models.folder(tmp_path)
    if damage == "gone":
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(b"\x00garbage")
    with pytest.raises(ConfigError, match=name):
        OnnxPairScorer(folder)


def test_a_folder_that_is_none_and_a_name_that_is_none(tmp_path):
    with pytest.raises(ConfigError, match="is not a folder"):
        make_pairs(f"onnx:{tmp_path / 'nothing'}")
    with pytest.raises(ConfigError, match="unknown pair scorer 'onyx'; did you mean 'onnx'"):
        make_pairs("onyx:somewhere")


def test_a_model_with_a_decoder_is_refused(tmp_path):
    import onnx

    folder = tiny_models.folder(tmp_path)
    model = onnx.load(folder / "model.onnx")
    extra = onnx.helper.make_tensor_value_info("decoder_input_ids", onnx.TensorProto.INT64, ["batch", "tokens"])
    model.graph.input.append(extra)
    onnx.save(model, folder / "model.onnx")
    with pytest.raises(ConfigError, match="decoder_input_ids"):
        OnnxPairScorer(folder)


def test_a_model_that_gives_nan_is_an_error(tmp_path):
    import numpy as np
    import onnx

    folder = tiny_models.folder(tmp_path, "bag", model_type="hhemv2", prompt="{text1} {text2}")
    scorer = OnnxPairScorer(folder)
    assert scorer([("red", "it")])[0] > 0.5
    model = onnx.load(folder / "model.onnx")
    for tensor in model.graph.initializer:
        if len(tensor.dims) == 2:
            table = onnx.numpy_helper.to_array(tensor).copy()
            table[tiny_models.VOCABULARY["red"]] = np.nan
            tensor.CopyFrom(onnx.numpy_helper.from_array(table, tensor.name))
    onnx.save(model, folder / "model.onnx")
    with pytest.raises(JudgeInvalidOutput, match="not finite"):
        OnnxPairScorer(folder)([("red", "it")])


def test_neither_package_is_imported_unless_asked(tmp_path):
    folder = tiny_models.folder(tmp_path)
    code = (
        "import sys; from ragtrace.settings import Settings; from ragtrace.service import build_scorer;"
        "import ragtrace.judges.nli.onnx, ragtrace.judges.offline.static_vectors;"
        "both = {'onnxruntime', 'tokenizers', 'safetensors'};"
        "build_scorer(Settings.resolve({'metrics': 'all'}, {})); print(sorted(both & set(sys.modules)));"
        f"build_scorer(Settings.resolve({{'pairs': 'onnx:{folder}'}}, {{}})); print(sorted(both & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split("\n")[:2] == ["[]", "['onnxruntime', 'tokenizers']"]


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers"])
def test_a_missing_package_names_the_extra(tmp_path, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        MissingExtra, match=rf"{package} is not installed: pip install \"\.\[onnx\]\" in your clone"
    ):
        OnnxPairScorer(
            tiny_models.folder(tmp_path) if package == "onnxruntime" else made_before(tmp_path, monkeypatch)
        )


def made_before(where, monkeypatch):
    with monkeypatch.context() as patched:
        patched.delitem(sys.modules, "tokenizers")
        return tiny_models.folder(where)
