"""Kinds of questions: clusters over hashed letters, learnt once and frozen, so that they stay comparable."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

MOST_KINDS: Final = 50
NEW: Final = "new"
"""Kind of a question that is like none of the codebook."""

_DIMENSIONS: Final = 1_024
_PER_KIND: Final = 25  # questions: fewer make kinds that are empty on most days
_ROUNDS: Final = 20
_FAR_SHARE: Final = 0.02  # of the learnt questions are the farthest from the centre of the others
_STRANGE: Final = 0.6  # of their cosine: where all questions are nearly alike, another wording is not new
_MOST_CHARS: Final = 400
_NUMBER: Final = re.compile(r"\d+")


@dataclass(frozen=True, eq=False)
class Codebook:
    """Centres of kinds of questions.

    A question becomes its letters, three neighbours at a time, which needs no language: Chinese, German and English
    questions have their places. Frequent triples weigh less, and every number is the same. The kind is the nearest
    centre by cosine, or `NEW` where all centres are farther away than from nearly all learnt questions.

    Attributes:
        weights: of the triples, shape (1024,).
        centres: unit rows, shape (kinds, 1024).
        least: cosine below which a question is new.
    """

    weights: Array
    centres: Array
    least: float

    @classmethod
    def learnt(cls, questions: Sequence[str]) -> Codebook:
        """Learn a codebook by spherical k-means: one kind for every 25 questions, at most 50.

        The same questions give the same codebook. 500 of them take about .1 s.

        Raises:
            ValueError: there is no question.

        Example:
            >>> asked = [f"{text} {n}" for n in range(30) for text in ("refund of order", "opening hours on day")]
            >>> book = Codebook.learnt(asked)
            >>> book.kind("refund of order 99") == book.kind("refund of order 1")
            True
            >>> book.kind("refund of order 99") == book.kind("opening hours on day 1")
            False
        """
        import numpy as np  # noqa: PLC0415 - the application's process may import this module

        if not questions:
            raise ValueError("a codebook needs a question")
        counts = np.array([_hashed(question) for question in questions])
        weights = np.log((1.0 + len(questions)) / (1.0 + (counts > 0.0).sum(axis=0)))
        rows = _units(counts * weights)
        centres = _centres(rows, min(max(len(questions) // _PER_KIND, 2), MOST_KINDS))
        return cls(weights, centres, _least(rows, centres))

    def kind(self, question: str) -> str:
        """Return the kind of a question: the number of its centre, or `NEW`; also of an empty one."""
        near = self.centres @ _units((_hashed(question) * self.weights)[None, :])[0]
        best = int(near.argmax())
        return str(best) if near[best] >= self.least else NEW

    def to_json(self) -> str:
        """Return the codebook as JSON, about 5 kB a kind."""
        shown = {name: _packed(getattr(self, name)) for name in ("weights", "centres")}
        return json.dumps({**shown, "least": self.least})

    @classmethod
    def from_json(cls, text: str) -> Codebook:
        """Return the codebook of some JSON.

        Raises:
            ValueError: it is none.

        Example:
            >>> book = Codebook.learnt(["Where is the lab?", "Who was ill?"])
            >>> Codebook.from_json(book.to_json()).kind("Who was ill?") == book.kind("Who was ill?")
            True
        """
        try:
            given = json.loads(text)
            weights, centres = _unpacked(given["weights"]), _unpacked(given["centres"])
            return cls(weights, centres.reshape(-1, _DIMENSIONS), float(given["least"]))
        except (KeyError, TypeError) as error:
            raise ValueError("the text is no codebook") from error


def _hashed(question: str) -> Array:
    import numpy as np  # noqa: PLC0415 - as above

    row = np.zeros(_DIMENSIONS)
    text = f" {' '.join(_NUMBER.sub('0', question[:_MOST_CHARS].casefold()).split())} "
    for place in range(len(text) - 2):
        row[zlib.crc32(text[place : place + 3].encode("utf-8", "replace")) % _DIMENSIONS] = 1.0
    return row


def _units(rows: Array) -> Array:
    import numpy as np  # noqa: PLC0415 - as above

    norms = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    units: Array = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0.0)
    return units


def _least(rows: Array, centres: Array) -> float:
    """Return the cosine that nearly all questions reach with the centre of the others of their kind."""
    import numpy as np  # noqa: PLC0415 - as above

    nearest = (rows @ centres.T).argmax(axis=1)
    sums = np.zeros_like(centres)
    np.add.at(sums, nearest, rows)
    others = _units(sums[nearest] - rows)
    return _STRANGE * float(np.quantile((others * rows).sum(axis=1), _FAR_SHARE))


def _centres(rows: Array, kinds: int) -> Array:
    """Return centres by k-means, begun as k-means++ with a fixed seed."""
    import numpy as np  # noqa: PLC0415 - as above

    rng = np.random.default_rng(0)
    chosen = [0]
    far = np.clip(1.0 - rows @ rows[0], 0.0, 1.0)
    while len(chosen) < min(kinds, len(rows)) and far.sum() > 0.0:
        chosen.append(int(rng.choice(len(rows), p=far / far.sum())))
        far = np.clip(np.minimum(far, 1.0 - rows @ rows[chosen[-1]]), 0.0, 1.0)
    centres = rows[chosen]
    for _ in range(_ROUNDS):
        nearest = (rows @ centres.T).argmax(axis=1)
        sums = np.zeros_like(centres)
        np.add.at(sums, nearest, rows)
        is_empty = ~sums.any(axis=1)
        sums[is_empty] = centres[is_empty]
        moved = _units(sums)
        if np.allclose(moved, centres):
            break
        centres = moved
    return centres


def _packed(array: Array) -> str:
    return b64encode(array.astype("<f4").tobytes()).decode()


def _unpacked(text: str) -> Array:
    import numpy as np  # noqa: PLC0415 - as above

    return np.frombuffer(b64decode(text), dtype="<f4").astype(np.float64)
