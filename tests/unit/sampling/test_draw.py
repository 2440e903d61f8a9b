"""The draw: reproducible, uniform, nested."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from ragtrace.sampling import draw, uniform

if TYPE_CHECKING:
    import uuid


def test_it_is_the_first_53_bits_of_the_salted_hash() -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    bits = int(hashlib.sha256(b"ragtrace:v1\x00" + trace.encode()).hexdigest(), 16) >> (256 - 53)
    assert uniform(trace) == bits / 2**53


@given(st.uuids(), st.floats(0, 1), st.floats(0, 1))
def test_draws_are_nested(trace: uuid.UUID, one: float, other: float) -> None:
    low, high = sorted((one, other))
    if draw(trace.hex, low).decision == "random":
        assert draw(trace.hex, high).decision == "random"


def test_the_share_drawn_is_the_probability() -> None:
    drawn = sum(draw(f"{i:032x}", 0.2).decision == "random" for i in range(20_000))
    assert abs(drawn / 20_000 - 0.2) < 0.01
