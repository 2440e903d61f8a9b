"""Providers in memory."""

from __future__ import annotations

import pytest

from tests import make


@pytest.fixture
def spans():
    return make.Spans()


@pytest.fixture
def make_spans():
    return make.Spans
