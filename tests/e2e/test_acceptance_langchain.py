"""Promises of capture over real spans that one framework alone can show, for LangChain."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

import ragtrace
from integrations.langchain.tests.parts import PROMPT, chat, lcel, shown
from ragtrace_langchain import RagtraceHandler
from tests.kept import ANSWER
from tests.regressions.seen import (
    watching,
)

WIRE_BYTES = [  # by what is written
    pytest.param({"content": "full"}, 62_000, id="full"),
    pytest.param({"content": "none"}, 10_000, id="none"),
]


@pytest.fixture
def config():
    return {"callbacks": [RagtraceHandler()]}


def answered_from(context):
    return {"context": context, "question": RunnablePassthrough()} | PROMPT | chat()


class Many(BaseRetriever):
    """So many passages of so many characters, with scores."""

    size: int
    chars: int

    def _get_relevant_documents(self, query, *, run_manager):
        return [
            Document(
                id=f"doc-{i}",
                page_content=f"{i} ".ljust(self.chars, "x"),
                metadata={"score": 1 - i / self.size / 2},
            )
            for i in range(self.size)
        ]


def best_of(documents):
    """Eight of the pool, rescored, in another order."""
    chosen = reversed(documents[-8:])
    return [
        Document(id=d.id, page_content=d.page_content, metadata={**d.metadata, "relevance_score": 9.0 - i})
        for i, d in enumerate(chosen)
    ]


@pytest.mark.parametrize(("settings", "most"), WIRE_BYTES)
def test_what_a_run_sends_is_bounded(config, settings, most):
    """The CPU of a run is measured in benchmarks/overhead; spans, attributes and bytes are what it depends on."""
    with watching(**settings) as seen:
        answered_from(Many(size=50, chars=800) | RunnableLambda(best_of) | shown).invoke("Where?", config)
        assert len(seen.spans) == 4
        assert sum(len(span.attributes) for span in seen.spans) <= 45
        assert seen.wire_bytes() <= most


def test_with_no_network_and_no_judge_the_results_are_unchanged(config):
    """The tests' sockets reach loopback alone; a judge that answers nobody changes nothing."""
    pytest.importorskip("openai", reason="the judge over a server needs the extra openai")
    ragtrace.configure(
        judge="openai:nobody", judge_base_url="http://127.0.0.1:9/v1", judge_api_key="x", sample_rate=1.0
    )
    try:
        assert lcel().invoke("Where?", config) == ANSWER
    finally:
        ragtrace.shutdown(0.2)
