"""Values of an application that nothing good can be done with."""

from __future__ import annotations

from typing import Any


class Hostile:
    """Nothing can be asked of it."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    __str__ = __repr__
    __hash__ = None

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")


def cyclic() -> dict[str, Any]:
    facts: dict[str, Any] = {"page": 1}
    facts["self"] = facts
    facts["list"] = [facts]
    return facts
