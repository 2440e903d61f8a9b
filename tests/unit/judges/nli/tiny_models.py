"""Real ONNX models and tokenizers, small enough to be made in a test.

A word of the hypothesis is missing when the premise lacks it. The heads are those of the models that people use:
``labels`` (NLI: entailment falls with missing words, contradiction rises with "not"), ``logit`` (one number),
``tokens`` (each missing word is hallucinated), ``bag`` (two classes over one sequence without segments).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

_TEXT = "it is red big not small the lab in Oslo Bergen opened 2010 . one two three four five six seven eight nine"
WORDS = [*_TEXT.split(), "premise", "hypothesis", ":", "SEP", "]", "["]
VOCABULARY = {word: place for place, word in enumerate(["[PAD]", "[CLS]", "[SEP]", "[UNK]", *WORDS])}
NLI = {"0": "contradiction", "1": "entailment", "2": "neutral"}


def tokenizer(folder: Path, *, truncation: int | None = None) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    made = Tokenizer(models.WordLevel(VOCABULARY, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.add_special_tokens(["[PAD]", "[CLS]", "[SEP]", "[UNK]"])
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    if truncation:
        made.enable_truncation(truncation)
        made.enable_padding(length=truncation)
    made.save(str(folder / "tokenizer.json"))


def folder(where: Path, head: str = "labels", *, truncation: int | None = None, **config: Any) -> Path:
    """Write a whole model folder; `config` is its config.json, with a window of 64 unless it says otherwise."""
    where.mkdir(parents=True, exist_ok=True)
    tokenizer(where, truncation=truncation)
    (where / "model.onnx").write_bytes(model(head))
    defaults = {"max_position_embeddings": 64, **({"id2label": NLI} if head == "labels" else {})}
    (where / "config.json").write_text(json.dumps({**defaults, **config}))
    return where


def model(head: str) -> bytes:
    from onnx import TensorProto, helper

    graph = _Graph()
    inputs = ["input_ids", "attention_mask"] + ([] if head == "bag" else ["token_type_ids"])
    kind = TensorProto.INT32 if head == "bag" else TensorProto.INT64
    output = getattr(graph, f"_{head}")()
    made = helper.make_graph(
        graph.nodes,
        "tiny",
        [helper.make_tensor_value_info(name, kind, ["batch", "tokens"]) for name in inputs],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        graph.constants,
    )
    whole = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return whole.SerializeToString()


class _Graph:
    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def op(self, kind: str, *inputs: Any, name: str | None = None, **attributes: Any) -> str:
        from onnx import helper

        out = name or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, [self._named(value) for value in inputs], [out], **attributes))
        return out

    def _named(self, value: Any) -> str:
        import numpy as np
        from onnx import numpy_helper

        if isinstance(value, str):
            return value
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def _words(self) -> tuple[str, str]:
        """Return which tokens are words of the hypothesis, and which of these the premise lacks."""
        import numpy as np

        mask, types = (self.op("Cast", name, to=1) for name in ("attention_mask", "token_type_ids"))
        is_word = self.op("Cast", self.op("Greater", "input_ids", np.int64(2)), to=1)
        words = self.op("Mul", self.op("Mul", is_word, mask), types)
        others = self.op("Sub", mask, self.op("Mul", mask, types))
        one, two = np.array([1], dtype=np.int64), np.array([2], dtype=np.int64)
        equal = self.op("Equal", self.op("Unsqueeze", "input_ids", two), self.op("Unsqueeze", "input_ids", one))
        seen = self.op("Mul", self.op("Cast", equal, to=1), self.op("Unsqueeze", others, two))
        found = self.op("ReduceMax", seen, axes=[1], keepdims=0)
        return words, self.op("Mul", words, self.op("Sub", np.float32(1), found))

    def _entailed(self) -> str:
        import numpy as np

        _, missing = self._words()
        count = self.op("ReduceSum", missing, np.array([1], dtype=np.int64), keepdims=1)
        return self.op("Sub", np.float32(4), self.op("Mul", np.float32(8), count))

    def _logit(self) -> str:
        return self.op("Identity", self._entailed(), name="logits")

    def _labels(self) -> str:
        import numpy as np

        entailed = self._entailed()
        is_not = self.op("Cast", self.op("Equal", "input_ids", np.int64(VOCABULARY["not"])), to=1)
        hypothesis = self.op("Mul", is_not, self.op("Cast", "token_type_ids", to=1))
        count = self.op("ReduceSum", hypothesis, np.array([1], dtype=np.int64), keepdims=1)
        against = self.op("Sub", self.op("Mul", np.float32(12), count), np.float32(4))
        neutral = self.op("Mul", entailed, np.float32(0))
        return self.op("Concat", against, entailed, neutral, axis=1, name="logits")

    def _tokens(self) -> str:
        import numpy as np

        _, missing = self._words()
        last = np.array([2], dtype=np.int64)
        bad = self.op("Unsqueeze", self.op("Mul", np.float32(8), missing), last)
        good = self.op("Sub", np.float32(4), bad)
        return self.op("Concat", good, self.op("Sub", bad, np.float32(4)), axis=2, name="logits")

    def _bag(self) -> str:
        import numpy as np

        ids = self.op("Cast", "input_ids", to=7)
        mask = self.op("Cast", "attention_mask", to=1)
        table = np.zeros((len(VOCABULARY), 2), dtype=np.float32)
        table[VOCABULARY["red"]] = [0, 2]
        table[VOCABULARY["[PAD]"]] = [50, 0]  # shows whether padding is masked
        masked = self.op(
            "Mul", self.op("Gather", table, ids), self.op("Unsqueeze", mask, np.array([2], dtype=np.int64))
        )
        return self.op("ReduceSum", masked, np.array([1], dtype=np.int64), keepdims=0, name="logits")
