"""Statistics of a few numbers, against numpy and at the edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtrace.stats import dispersion

NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=12)


@given(NUMBERS)
def test_equal_to_numpy(values) -> None:
    found = dispersion(values)
    size = max(map(abs, values)) + 1e-300
    for own, theirs, unit in (
        (found.mean, np.mean(values), size),
        (found.variance, np.var(values, ddof=1), size**2),
        (found.std_pop, np.std(values), size),
        (found.median, np.median(values), size),
        (found.iqr, np.subtract(*np.percentile(values, [75, 25])), size),
    ):
        # numpy's squares of deviations below 1e-154 are 0, and so is its standard deviation; ours is not.
        assert own == pytest.approx(theirs, rel=0, abs=1e-7 * unit + 1e-150)
    shown = found.to_json()
    assert {name for name, value in shown.items() if value is None} <= {"cv", "cv_pop"}
    assert all(math.isfinite(value) for value in shown.values() if value is not None)


def test_too_few_or_too_large_have_none() -> None:
    assert dispersion([]) is None
    assert dispersion([0.5]) is None
    assert dispersion([1e308, -1e308]) is None


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_finite_is_refused(value) -> None:
    with pytest.raises(ValueError, match="finite"):
        dispersion([0.5, value])
