"""The manual API against the conformance suite."""

from __future__ import annotations

from tests.conformance.manual import ManualApplication


class TestManual(ManualApplication):
    """Every scenario of the suite."""


class TestManualWithDifficultTexts(ManualApplication):
    """Every scenario with newlines, quotes, backslashes, tabs and non-ASCII."""

    texts = "difficult"
