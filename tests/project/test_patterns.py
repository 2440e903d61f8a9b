"""Every compiled pattern of the package takes linear time, over pumped texts."""

import pytest

from benchmarks.patterns import MOST_SECONDS, misplaced, patterns, slow


def test_patterns_are_compiled_at_module_level() -> None:
    assert misplaced() == []


@pytest.mark.slow
def test_no_pattern_takes_the_square_of_its_text() -> None:
    """The benchmark allows 50 ms; a square takes minutes, so four times as much is allowed beside other tests."""
    found = patterns()
    assert len(found) > 200
    assert [it for one in found if (it := slow(one, 4 * MOST_SECONDS))] == []
