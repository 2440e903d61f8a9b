"""Real spans of a real service for every regression test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.regressions.seen import watching

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.regressions.seen import Seen


@pytest.fixture
def seen() -> Iterator[Seen]:
    with watching() as spans:
        yield spans
