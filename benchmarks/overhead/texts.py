"""The passages and the question of both applications: a pool of 50 passages of 800 characters, 8 of them chosen."""

from __future__ import annotations

import random
import re

POOL, LENGTH = 50, 800
CHOSEN = slice(40, 48)
ANSWER = "The parcel is refunded within five days."
TEMPLATE = "Context:\n{context}\n\nQuestion: {question}"
WORDS = "refund parcel invoice account address delivery warehouse password contract payment".split()


def passages() -> list[tuple[str, str, float]]:
    """Return (id, text, score), best first."""
    rng = random.Random(0)
    texts = (" ".join(rng.choices(WORDS, k=120))[:LENGTH].ljust(LENGTH, ".") for _ in range(POOL))
    return [(f"doc-{i:02d}", text, 1 - i / 100) for i, text in enumerate(texts)]


def question(number: int) -> str:
    return f"What about number {number}?"


def pieces(count: int) -> list[str]:
    """Return an answer in `count` chunks; one chunk is the whole answer."""
    return [ANSWER] if count == 1 else [f"word{i} " for i in range(count)]


def found_in(written: str) -> dict[str, float]:
    """Return how many of the pool's texts and ids stand in what was written, and how often a text stands there."""
    copies = [written.count(text) for _, text, _ in passages()]
    ids = sum(bool(re.search(rf"\b{one}\b", written)) for one, _, _ in passages())
    return {"texts": sum(map(bool, copies)), "ids": ids, "copies": sum(copies) / POOL}
