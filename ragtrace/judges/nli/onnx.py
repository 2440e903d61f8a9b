"""Scores (premise, hypothesis) pairs with a model file through onnxruntime.

Nothing is fetched. Made for NLI cross-encoders (nli-deberta-v3-xsmall), HHEM-2.1-Open, MiniCheck and
LettuceDetect; see docs/how-to/pairs.md for what each needs.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ragtrace.errors import ConfigError, JudgeInvalidOutput, JudgeTruncated, nearest
from ragtrace.judges.base import PairSignals
from ragtrace.judges.model_files import files_hash, imported, read_tokenizer
from ragtrace.judges.nli.outputs import OVERRIDES, is_hhem, probabilities, reading_of, whole
from ragtrace.text import valid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

EXTRA = "onnx"
BATCH = 8  # pairs a run; a longer batch is no faster on one thread, and pads more
SMALLEST_WINDOW = 16
_KEYS = ("kind", "consistent", "contradiction", "hallucinated", "template", "window", "output")
_MODEL_FILES = ("model.onnx", "onnx/model.onnx")
_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})
_SLOTS = re.compile(r"(\{premise\}|\{hypothesis\})")
_REVISION = "pairs/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Encoded:
    ids: list[int]
    types: list[int]
    of_hypothesis: list[bool]


class _OnnxPort(Protocol):
    name: str
    type: str


class _OnnxSession(Protocol):
    """The part of `onnxruntime.InferenceSession` that is used."""

    def get_inputs(self) -> Sequence[_OnnxPort]: ...
    def get_outputs(self) -> Sequence[_OnnxPort]: ...
    def run(
        self, outputs: list[str], feeds: Mapping[str, NDArray[np.generic]]
    ) -> Sequence[NDArray[np.floating]]: ...


class OnnxPairScorer:
    """A pair scorer from a folder with ``model.onnx``, ``tokenizer.json`` and ``config.json``.

    Values are in [0, 1], higher = consistent. Which label that is is read from the config's ``id2label``; a file
    ``ragtrace.json`` in the folder, or arguments here, say it where the config does not, and win over it. A pair
    longer than the window raises `JudgeTruncated` instead of being cut. Thread-safe; each call works in the
    caller's thread, so call it outside the event loop, as `ragtrace.judges.nli.checking.check` does. A call uses
    one core unless `threads` says otherwise.

    Attributes:
        name: ``onnx:`` and the folder's name.
        version: 8 hex digits over the files and the arguments.
        window: tokens that a pair may have, special tokens included.

    Args:
        path: the folder; ``~`` is the home directory.
        overrides: keys of ``ragtrace.json``: kind (labels, logit, first, tokens), consistent, contradiction and
            hallucinated (a label's name or number), template (a text with {premise} and {hypothesis}, or with
            {premise} alone, the hypothesis being the second sequence), window (tokens), output (its name).
        threads: of the processor for one run.

    Raises:
        MissingExtra: onnxruntime or tokenizers is not installed.
        ConfigError: a file is missing or broken, or it is not clear what the model's output means.
    """

    def __init__(self, path: str | Path, *, threads: int = 1, **overrides: object) -> None:
        folder = Path(path).expanduser()
        files = _files(folder)
        self._config = _json(folder / "config.json")
        self._said = _overrides(folder, overrides)
        self._tokenizer, pad = read_tokenizer(folder / "tokenizer.json", EXTRA, "pairs")
        self._pad = pad if pad is not None else whole(self._config.get("pad_token_id")) or 0
        self._special = _special(self._tokenizer)
        self._template = _SLOTS.split(_template(self._config, self._said))
        self._session = _session(files[0], threads)
        self._inputs = _inputs(self._session, files[0])
        self._output = _output(self._session, self._said.get("output"))
        self.name = f"onnx:{folder.resolve().name}"
        self.window = _window(folder, self._config, self._said)
        self.version = files_hash(files, f"{_REVISION}\0{json.dumps(self._said, sort_keys=True, default=str)}")
        trial = self._run([self._encoded("It is red.", "Red."), self._encoded("It is red and big.", "It is.")])
        self._reading = reading_of(self._config, trial.shape, self._said)
        if self._reading.kind == "tokens" and "{hypothesis}" in self._template:
            raise ConfigError(f"{OVERRIDES}: a token model takes the hypothesis as second sequence; no template")

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the consistency of each pair, in [0, 1]; raises JudgeError."""
        return [signal.consistency for signal in self.signals(pairs)]

    def size(self, premise: str, hypothesis: str) -> int:
        """Return how many tokens a pair takes, special tokens and template included."""
        return len(self._encoded(premise, hypothesis).ids)

    def signals(self, pairs: Sequence[tuple[str, str]]) -> list[PairSignals]:
        """Return consistency and contradiction of each pair.

        Contradiction is None where the model has no such label.

        Raises:
            JudgeTruncated: a pair is longer than the window.
            JudgeInvalidOutput: the model gave a number that is not finite.
        """
        encoded = [self._encoded(*pair) for pair in pairs]
        longest = max((len(one.ids) for one in encoded), default=0)
        if longest > self.window:
            raise JudgeTruncated(f"{self.name}: a pair has {longest} tokens, the window {self.window}")
        by_length = sorted(range(len(encoded)), key=lambda place: len(encoded[place].ids))
        found: dict[int, PairSignals] = {}
        for first in range(0, len(by_length), BATCH):
            places = by_length[first : first + BATCH]
            found |= zip(places, self._batch([encoded[place] for place in places]), strict=True)
        return [found[place] for place in range(len(pairs))]

    def _batch(self, batch: list[_Encoded]) -> list[PairSignals]:
        import numpy as np  # noqa: PLC0415 - the application's process may import this module

        logits = self._run(batch)
        if not np.isfinite(logits).all():
            raise JudgeInvalidOutput(f"{self.name}: the model gave a number that is not finite")
        scores, against = probabilities(self._reading, logits, _padded(batch, "of_hypothesis", 0).astype(bool))
        return [
            PairSignals(consistency=float(score), contradiction=None if against is None else float(against[place]))
            for place, score in enumerate(scores)
        ]

    def _run(self, batch: list[_Encoded]) -> NDArray[np.float64]:
        lengths = [len(one.ids) for one in batch]
        feeds = {
            "input_ids": _padded(batch, "ids", self._pad),
            "token_type_ids": _padded(batch, "types", 0),
            "attention_mask": _mask(lengths),
        }
        fed = {name: feeds[name].astype(kind) for name, kind in self._inputs.items()}
        (output,) = self._session.run([self._output], fed)
        numbers: NDArray[np.float64] = output.astype("float64")
        return numbers

    def _encoded(self, premise: str, hypothesis: str) -> _Encoded:
        values = {"{premise}": self._plain(premise), "{hypothesis}": self._plain(hypothesis)}
        first = "".join(values.get(part, part) for part in self._template)
        is_single = "{hypothesis}" in self._template
        found = self._tokenizer.encode(first, None if is_single else values["{hypothesis}"])
        return _Encoded(
            ids=found.ids, types=found.type_ids, of_hypothesis=[place == 1 for place in found.sequence_ids]
        )

    def _plain(self, text: str) -> str:
        """Return the text without special tokens. Data that spells ``[SEP]`` must not end the premise."""
        said = valid(text)
        for word in self._special:
            said = said.replace(word, f"{word[:1]} {word[1:]}")
        return said


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise ConfigError(f"pairs: {folder} is not a folder")
    model = next((folder / name for name in _MODEL_FILES if (folder / name).is_file()), None)
    wanted = [model or folder / "model.onnx", folder / "tokenizer.json", folder / "config.json"]
    missing = [path.name for path in wanted if not path.is_file()]
    if missing:
        raise ConfigError(f"pairs: {', '.join(missing)} is missing in {folder}")
    # Large models keep their weights beside the file: model.onnx_data, model.onnx.data.
    return wanted + [path for path in sorted(wanted[0].parent.glob(f"{wanted[0].name}*")) if path != wanted[0]]


def _json(path: Path) -> dict[str, object]:
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"pairs: {path} cannot be read: {error}") from None
    if not isinstance(read, dict):
        raise ConfigError(f"pairs: {path} is not a JSON object")
    return read


def _overrides(folder: Path, given: Mapping[str, object]) -> dict[str, object]:
    path = folder / OVERRIDES
    said = {**(_json(path) if path.is_file() else {}), **given}
    for key in said:
        if key not in _KEYS:
            raise ConfigError(f"pairs: unknown key {key!r} in {path}{nearest(key, _KEYS)}")
    return said


def _special(tokenizer: Tokenizer) -> tuple[str, ...]:
    added = tokenizer.get_added_tokens_decoder().values()
    words = {token.content for token in added if token.special and len(token.content) > 1}
    return tuple(sorted(words, reverse=True))


def _template(config: Mapping[str, object], said: Mapping[str, object]) -> str:
    # HHEM-2.1-Open keeps its prompt in its configuration, with names of its own.
    own = str(config.get("prompt") or "").replace("{text1}", "{premise}").replace("{text2}", "{hypothesis}")
    template = said.get("template") or (own if "{premise}" in own else None)
    if template is None and is_hhem(config):
        raise ConfigError(f"pairs: HHEM was trained on a prompt: write it as template in {OVERRIDES}")
    template = template or "{premise}"
    if not isinstance(template, str) or template.count("{premise}") != 1 or template.count("{hypothesis}") > 1:
        raise ConfigError(f"{OVERRIDES}: template {template!r} needs {{premise}} once, {{hypothesis}} at most once")
    return template


def _session(model: Path, threads: int) -> _OnnxSession:
    runtime = imported("onnxruntime", EXTRA)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads  # the default takes every core from the application
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        session: _OnnxSession = runtime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the package has no common base of its errors
        raise ConfigError(f"pairs: {model} cannot be loaded: {str(error).splitlines()[0]}") from None
    return session


def _inputs(session: _OnnxSession, model: Path) -> dict[str, str]:
    """Return the model's inputs with the numpy type of each."""
    found = {item.name: item.type.removeprefix("tensor(").removesuffix(")") for item in session.get_inputs()}
    strange = sorted(set(found) - _INPUTS)
    if strange or "input_ids" not in found:
        raise ConfigError(
            f"pairs: {model} has the inputs {sorted(found)}; a classifier has {sorted(_INPUTS)}. "
            "Export it for sequence or token classification"
        )
    return found


def _output(session: _OnnxSession, said: object) -> str:
    names = [item.name for item in session.get_outputs()]
    wanted = said or ("logits" if "logits" in names else names[0] if len(names) == 1 else None)
    if wanted not in names:
        raise ConfigError(f'{OVERRIDES}: the model has the outputs {names}: name one, {{"output": {names[0]!r}}}')
    return str(wanted)


def _window(folder: Path, config: Mapping[str, object], said: Mapping[str, object]) -> int:
    found = said.get("window")
    if found is None:
        path = folder / "tokenizer_config.json"
        longest = whole(_json(path).get("model_max_length")) if path.is_file() else None
        places = whole(config.get("max_position_embeddings") or config.get("n_positions"))
        # RoBERTa's positions begin behind the padding index.
        offset = 2 if "roberta" in str(config.get("model_type", "")) else 0
        known = [longest, None if places is None else places - offset]
        # A tokenizer without a limit writes 1e30.
        found = min((size for size in known if size and 0 < size < 10**6), default=None)
    window = whole(found)
    if window is None or window < SMALLEST_WINDOW:
        raise ConfigError(
            f"pairs: {folder} names no window of at least {SMALLEST_WINDOW} tokens, but {found!r}: "
            f'write {{"window": 512}} in {OVERRIDES}'
        )
    return window


def _padded(batch: list[_Encoded], field: str, filler: int) -> NDArray[np.int64]:
    import numpy as np  # noqa: PLC0415 - as above

    longest = max(len(one.ids) for one in batch)
    rows = np.full((len(batch), longest), filler, dtype=np.int64)
    for row, one in zip(rows, batch, strict=True):
        row[: len(one.ids)] = getattr(one, field)
    return rows


def _mask(lengths: list[int]) -> NDArray[np.int64]:
    import numpy as np  # noqa: PLC0415 - as above

    return (np.arange(max(lengths)) < np.array(lengths)[:, None]).astype(np.int64)
