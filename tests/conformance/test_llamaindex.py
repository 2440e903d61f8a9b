"""LlamaIndex against the conformance suite."""

from __future__ import annotations

from tests.conformance.llamaindex import QueryEngineApplication


class TestQueryEngine(QueryEngineApplication):
    """A query engine with a reranking postprocessor; conversations by a chat engine."""


class TestQueryEngineWithDifficultTexts(QueryEngineApplication):
    """The same with newlines, quotes, backslashes, tabs and non-ASCII."""

    texts = "difficult"
