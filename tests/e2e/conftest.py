"""A real chain, and a service that ends with its test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import ragtrace
from tests.e2e.chains import make_chain

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def chain() -> Any:
    return make_chain()


@pytest.fixture
def service() -> Iterator[Any]:
    """Configure in the test; whatever was configured ends here."""
    yield ragtrace
    ragtrace.shutdown(10)
