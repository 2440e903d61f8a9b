"""LangChain against the conformance suite."""

from __future__ import annotations

import pytest

from ragtrace_langchain import TracedCompressor
from tests.conformance.langchain import CompressionApplication, Compressor, LcelApplication


class TestLcel(LcelApplication):
    """A chain with a reranking function."""


class TestCompression(CompressionApplication):
    """A compression retriever, of which LangChain reports the outside alone."""

    @pytest.fixture(autouse=True)
    def _langchain_is_there(self):
        pytest.importorskip("langchain_classic", reason="ContextualCompressionRetriever is in langchain-classic")


class TestTracedCompression(TestCompression):
    """The same with the compressor wrapped."""

    selection_source = "explicit"

    def compressor(self, plans):
        return TracedCompressor(base=Compressor(plans=plans))
