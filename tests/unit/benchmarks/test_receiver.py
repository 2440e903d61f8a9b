"""The receiver's rates stay above the floors that are promised; what it reaches is far above (`make bench`)."""

from __future__ import annotations

import pytest

from benchmarks.receiver import BOUND, BOUND_GRPC, cases, over_grpc, rate


@pytest.mark.slow
def test_a_core_walks_100_000_spans_a_second_and_loopback_carries_20_000():
    work = cases()["protobuf, documents as JSON"]
    assert max(rate(work) for _ in range(3)) >= BOUND
    wall, _ = over_grpc()
    assert wall >= BOUND_GRPC
