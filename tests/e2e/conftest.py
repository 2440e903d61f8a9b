"""A real chain, a service that ends with its test, and the spans of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import ragtrace
from tests.e2e.chains import make_chain
from tests.regressions.seen import watching

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.regressions.seen import Seen


@pytest.fixture
def chain() -> Any:
    return make_chain()


@pytest.fixture
def service() -> Iterator[Any]:
    """Configure in the test; whatever was configured ends here."""
    yield ragtrace
    ragtrace.shutdown(10)


@pytest.fixture
def seen() -> Iterator[Seen]:
    with watching() as spans:
        yield spans
