"""LangChain against the conformance suite."""

from __future__ import annotations

import pytest
from langchain_core.runnables import RunnableLambda

from ragtrace.capture import Rerank
from ragtrace.testing.conformance import CHOICE
from ragtrace.testing.plan import plan_of
from ragtrace.testing.recording import Recording
from ragtrace_langchain import TracedCompressor
from tests.conformance.langchain import CompressionApplication, Compressor, LcelApplication


class TestLcel(LcelApplication):
    """A chain with a reranking function."""


class _HandsOn(LcelApplication):
    """A step behind the reranker looks at its documents, or copies their list, and hands them on."""

    def reranker(self, plans):
        return super().reranker(plans) | RunnableLambda(list, name="look")


def test_a_step_that_hands_documents_on_is_no_choice():
    plan = plan_of(6, choice=CHOICE)
    kept = Recording()
    _HandsOn().ask(plan, kept.recorder)
    assert [step.model for step in kept.only.steps if isinstance(step, Rerank)] == ["rerank"]


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


class TestLcelWithDifficultTexts(LcelApplication):
    """The chain with newlines, quotes, backslashes, tabs and non-ASCII."""

    texts = "difficult"


class TestCompressionWithDifficultTexts(TestCompression):
    """The compression retriever with such texts."""

    texts = "difficult"


class TestTracedCompressionWithDifficultTexts(TestTracedCompression):
    """The wrapped compressor with such texts."""

    texts = "difficult"
