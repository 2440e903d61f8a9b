"""Commands see no setting of the environment that runs the tests."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch):
    for name in list(os.environ):
        if name.startswith("RAGTRACE_"):
            monkeypatch.delenv(name)
