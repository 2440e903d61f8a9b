"""ROUGE beside rouge-score: equal on ASCII; other scripts count here alone."""

from __future__ import annotations

import random
import string
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from ragtrace.metrics import rouge

if TYPE_CHECKING:
    from tests.peers.process import Peers

FORMS = {"rouge1": "rouge1", "rouge2": "rouge2", "rougeL": "rouge_l"}


def texts(number: int) -> list[str]:
    draw = random.Random(7)
    words = [
        "the",
        "The",
        "cat",
        "cats",
        "sat",
        "on",
        "a",
        "mat",
        "don't",
        "x_y",
        "3.14",
        "e-mail",
        "RAG",
        "--",
        "?!",
    ]
    made = [" ".join(draw.choice(words) for _ in range(draw.randint(1, 25))) for _ in range(number)]
    return made + ["".join(draw.choice(string.printable) for _ in range(60)) for _ in range(number // 4)]


def test_equal_on_ascii(peers: Peers) -> None:
    given = texts(200)
    pairs = [(a, b) for a, b in pairwise(given) if rouge(a, b) is not None]
    assert len(pairs) > 200
    found = peers.ask("rouge", pairs=pairs)
    for (reference, prediction), theirs in zip(pairs, found, strict=True):
        ours = rouge(prediction, reference)
        for form, own in FORMS.items():
            assert list(getattr(ours, own)) == pytest.approx(theirs[form], rel=0, abs=1e-12)


def test_other_scripts_score_nothing_there(peers: Peers) -> None:
    """The package rouge-score throws away what is not ASCII, so that equal Chinese texts score 0."""
    text = "东京在日本"
    assert peers.ask("rouge", pairs=[(text, text)])[0]["rouge1"] == [0, 0, 0]
    assert rouge(text, text).rouge1.f1 == 1.0
