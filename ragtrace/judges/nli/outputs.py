"""Finds the meaning of a pair model's output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ragtrace.errors import ConfigError
from ragtrace.judges.stances import SIDES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ragtrace.judges.stances import Stance

Kind = Literal["labels", "logit", "first", "tokens"]

OVERRIDES = "ragtrace.json"
_AXES: dict[Kind, int] = {"labels": 2, "logit": 1, "first": 3, "tokens": 3}
HHEM = "hhemv2"  # its configuration names no labels; its authors read class 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Meaning of a model's output.

    Attributes:
        kind: ``labels`` (softmax over classes of a pair), ``logit`` (sigmoid of one number), ``first`` (softmax
            over classes of the first token, as HHEM-2.1-Open) or ``tokens`` (softmax over classes of each token; a
            hypothesis is as consistent as its worst token).
        label: the column of consistency, for ``tokens`` that of hallucination; 0 for ``logit``.
        contradiction: the column of contradiction, where there is one.
    """

    kind: Kind
    label: int = 0
    contradiction: int | None = None


def reading_of(config: Mapping[str, object], shape: Sequence[int], overrides: Mapping[str, object]) -> Reading:
    """Find the meaning of a model's output.

    Args:
        config: the model's config.json.
        shape: of the output for a batch: (batch,), (batch, labels) or (batch, tokens, labels).
        overrides: keys of ``ragtrace.json``: ``kind``, ``consistent``, ``contradiction``, ``hallucinated`` (a
            label's name or its number).

    Raises:
        ConfigError: the meaning cannot be told from shape and labels; the message says how to mend it.

    Example:
        >>> labels = {"0": "contradiction", "1": "entailment", "2": "neutral"}
        >>> reading_of({"id2label": labels}, (2, 3), {})
        Reading(kind='labels', label=1, contradiction=0)
        >>> reading_of({}, (2, 1), {}).kind
        'logit'
    """
    kind = _fitting(overrides.get("kind") or _kind(config, shape), shape)
    if kind == "logit":
        return Reading(kind="logit")
    names = _names(config, shape[-1])
    if kind == "tokens":
        return Reading(kind="tokens", label=_hallucinated(names, config, overrides))
    label = _chosen("consistent", overrides, names)
    if label is None:
        label = _only(names, {"for"})
    if label is None:
        if not is_hhem(config):
            raise ConfigError(_ask(f"which of the labels {names} means consistent", '{"consistent": 1}'))
        label = 1
    against = _chosen("contradiction", overrides, names)
    return Reading(kind=kind, label=label, contradiction=_only(names, {"against"}) if against is None else against)


def probabilities(
    reading: Reading, logits: NDArray[np.float64], of_hypothesis: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Return consistency and contradiction of each pair of a batch.

    Contradiction is None where the model has no such label.

    Args:
        reading: of this model.
        logits: the output; finite.
        of_hypothesis: for each pair, which tokens belong to the hypothesis; at least one does.

    Example:
        >>> import numpy as np
        >>> scores, against = probabilities(Reading(kind="logit"), np.zeros((1, 1)), np.ones((1, 1), dtype=bool))
        >>> float(scores[0]), against
        (0.5, None)
    """
    import numpy as np  # noqa: PLC0415 - the application's process may import this module

    if reading.kind == "logit":
        # exp of a large number overflows; tanh does not.
        return 0.5 * (1.0 + np.tanh(0.5 * logits.reshape(len(logits)))), None
    if reading.kind == "first":
        logits = logits[:, 0, :]
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares = raised / raised.sum(axis=-1, keepdims=True)
    if reading.kind == "tokens":
        worst = np.where(of_hypothesis, shares[:, :, reading.label], 0.0).max(axis=1)
        return 1.0 - worst, None
    against = None if reading.contradiction is None else shares[:, reading.contradiction]
    return shares[:, reading.label], against


def is_hhem(config: Mapping[str, object]) -> bool:
    """Return whether a config.json is that of HHEM-2.1-Open."""
    return str(config.get("model_type", "")).lower() == HHEM


def whole(value: object) -> int | None:
    """Return an integer as it is, and None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _kind(config: Mapping[str, object], shape: Sequence[int]) -> Kind:
    names = _labels(config)
    if len(shape) == 1 or (len(shape) == 2 and shape[1] == 1):
        return "logit"
    if len(shape) == 2 and (not names or len(names) == shape[1]):
        return "labels"
    if len(shape) == 3 and is_hhem(config):
        return "first"
    if len(shape) == 3 and (_is_token_classifier(config) or _only(list(names.values()), {"absent"}) is not None):
        return "tokens"
    shown = " x ".join(str(size) for size in shape)
    raise ConfigError(
        _ask(
            f"what an output of {shown} numbers means (labels of config.json: {len(names)}); expected "
            "batch x labels, batch x 1, or batch x tokens x labels of a token classification",
            '{"kind": "tokens"}' if len(shape) == 3 else '{"kind": "labels"}',
        )
    )


def _fitting(said: object, shape: Sequence[int]) -> Kind:
    kind = next((known for known in _AXES if known == said), None)
    if kind is None:
        raise ConfigError(f"{OVERRIDES}: kind {said!r} is not valid; valid: labels, logit, first, tokens")
    if kind == "logit":
        is_right = len(shape) == 1 or tuple(shape[1:]) == (1,)
    else:
        is_right = len(shape) == _AXES[kind] and shape[-1] > 1
    if not is_right:
        raise ConfigError(f"{OVERRIDES}: kind {kind!r} does not fit an output of {len(shape)} axes {tuple(shape)}")
    return kind


def _labels(config: Mapping[str, object]) -> dict[str, str]:
    given = config.get("id2label")
    return {str(key): str(value) for key, value in given.items()} if isinstance(given, dict) else {}


def _names(config: Mapping[str, object], n: int) -> list[str]:
    given = _labels(config)
    return [given.get(str(place), f"LABEL_{place}") for place in range(n)]


def _hallucinated(names: list[str], config: Mapping[str, object], overrides: Mapping[str, object]) -> int:
    label = _chosen("hallucinated", overrides, names)
    if label is None:
        label = _only(names, {"absent"})
    if label is None and len(names) == 2 and _is_token_classifier(config) and names == ["LABEL_0", "LABEL_1"]:
        return 1  # LettuceDetect names no labels; 1 is what it trains on hallucinated tokens
    if label is None:
        raise ConfigError(_ask(f"which of the token labels {names} means hallucinated", '{"hallucinated": 1}'))
    return label


def _chosen(key: str, overrides: Mapping[str, object], names: list[str]) -> int | None:
    said = overrides.get(key)
    if said is None:
        return None
    place = whole(said)
    if place is not None and 0 <= place < len(names):
        return place
    if isinstance(said, str) and said in names:
        return names.index(said)
    raise ConfigError(f"{OVERRIDES}: {key} {said!r} is no label of the model; its labels are {names}")


def _only(names: list[str], wanted: set[Stance]) -> int | None:
    found = [place for place, name in enumerate(names) if SIDES.stance_of(name) in wanted]
    return found[0] if len(found) == 1 else None


def _is_token_classifier(config: Mapping[str, object]) -> bool:
    names = config.get("architectures")
    return isinstance(names, list) and any(str(name).endswith("ForTokenClassification") for name in names)


def _ask(unknown: str, example: str) -> str:
    return f"the pair model does not tell {unknown}: say it in {OVERRIDES} beside it, for example {example}"
