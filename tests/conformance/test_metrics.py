"""Our own metrics pass the suite for metrics."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ragtrace.metrics import all_metrics
from ragtrace.model import MetricResult
from ragtrace.testing.metric_conformance import MetricConformance

TESTS = [name for name in dir(MetricConformance) if name.startswith("test_")]


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("name", all_metrics())
def test_a_metric_of_ours(name, test):
    kind = type("TestMetric", (MetricConformance,), {"metric": all_metrics()[name]})
    getattr(kind(), test)()


class _Broken:
    """A metric whose value leaves its range, and which raises on a record without passages."""

    def __init__(self, of):
        self.spec = replace(of.spec, needs=(), task=None)

    async def compute(self, ctx):
        value = float(len(ctx.record.pools[0].passages))
        return [MetricResult(name=output.name, value=value, state="ok") for output in self.spec.outputs]


@pytest.mark.parametrize("test", ["test_values_stay_in_range", "test_no_exception_escapes"])
def test_a_defect_is_seen(test):
    kind = type("TestBroken", (MetricConformance,), {"metric": _Broken(all_metrics()["answer_relevancy"])})
    with pytest.raises(AssertionError):
        getattr(kind(), test)()
