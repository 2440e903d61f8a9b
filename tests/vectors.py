"""Values as an application may hold them: vectors, long ones, and such without an end."""

from __future__ import annotations

from collections import deque
from itertools import count

import numpy as np

VECTOR = [number / 7 for number in range(1_536)]


class Endless(list):
    def __iter__(self):
        return count()

    def __len__(self):
        return 10**18


VALUES = {
    "lists": [list(VECTOR) for _ in range(1_000)],
    "a few lists": [list(VECTOR) for _ in range(100)],
    "arrays": [np.array(VECTOR) for _ in range(1_000)],
    "by id": {f"d{number}": list(VECTOR) for number in range(1_000)},
    "beside a name": [{"id": number, "vector": VECTOR} for number in range(300)],
    "numbers": list(range(1_000_000)),
    "deque": deque(range(1_000_000)),
    "texts": [str(number) for number in range(500_000)],
    "names": {str(number): number for number in range(500_000)},
    "no end": Endless(),
    "nothing but an end": count(),
}
