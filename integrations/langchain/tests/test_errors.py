"""Failures of every stage reach the application unchanged, and the run says what failed."""

from __future__ import annotations

import logging

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from integrations.langchain.tests.parts import Faq, chat, lcel, shown
from ragtrace.capture import internal_errors
from ragtrace.capture.lineage import Lineage
from ragtrace_langchain import RagtraceHandler
from tests.kept import ANSWER, ids


def failing(*_):
    raise ValueError("no")


def test_parser(keeper, config):
    with pytest.raises(ValueError, match="no"):
        (lcel() | RunnableLambda(failing)).invoke("Where?", config)
    assert (keeper.only.record.outcome, keeper.only.failure.kind) == ("error", "ValueError")


def test_tool(keeper, config):
    from langchain_core.tools import tool

    @tool
    def search(query: str) -> str:
        """Search."""
        raise LookupError(query)

    with pytest.raises(LookupError):
        search.invoke("Where?", config)
    assert keeper.runs == []  # a tool by itself answers no question


def test_a_failure_that_the_application_catches_is_none_of_the_run(keeper, config):
    chain = RunnableLambda(failing).with_fallbacks([Faq(size=1) | shown | chat()])
    assert chain.invoke("Where?", config).content == ANSWER
    assert (keeper.only.record.outcome, keeper.only.failure) == ("answered", None)
    assert ids(keeper.only, "used") == ["d0"]


@pytest.mark.parametrize("site", ["step", "search", "settle"])
@pytest.mark.usefixtures("loses")
def test_our_own_failure_is_counted_and_harmless(keeper, recorder, config, monkeypatch, site):
    def broken(*_, **__):
        raise RuntimeError("inside")

    monkeypatch.setattr(getattr(Lineage, site), "__wrapped__", broken)
    name = f"ragtrace.capture.lineage.Lineage.{site}"
    before = internal_errors().get(name, 0)
    assert lcel().invoke("Where?", config) == ANSWER
    assert internal_errors()[name] > before
    assert keeper.only.record.answer == ANSWER
    assert recorder.open_runs == 0


@pytest.mark.parametrize("event", [name for name in dir(RagtraceHandler) if name.startswith("on_")])
@pytest.mark.usefixtures("loses")
def test_every_callback_is_guarded(config, monkeypatch, caplog, event):
    method = getattr(RagtraceHandler, event)
    if event in {"on_agent_action", "on_agent_finish", "on_custom_event", "on_retry", "on_text"}:
        assert method.__module__.startswith("langchain_core")  # not ours: does nothing
        return

    def broken(*_, **__):
        raise RuntimeError("inside")

    monkeypatch.setattr(method, "__wrapped__", broken)
    with caplog.at_level(logging.WARNING, logger="langchain_core"):
        assert "".join(lcel().stream("Where?", config)) == ANSWER
    assert not [record for record in caplog.records if record.name.startswith("langchain")]


class Hostile:
    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__


@pytest.mark.parametrize(
    "documents",
    [
        [Document(page_content="a", metadata={"score": Hostile(), "x": Hostile()})],
        [Document(page_content="\ud800 lone", metadata={"id": 7})],
        [Document(page_content="a" * 1_000_000)],
        [Document.model_construct(page_content=None, metadata=None, id=None)],
        [Document.model_construct(page_content="a", metadata={"score": float("nan")}, id=3)],
        [Document(page_content="a"), "text", None, 5],
    ],
)
def test_bad_documents(keeper, config, documents):
    looped = {}
    looped["self"] = looped
    if documents[0].metadata is not None:
        documents[0].metadata["loop"] = looped
    (RunnableLambda(lambda q: documents) | RunnableLambda(lambda found: "?") | chat()).invoke("?", config)
    assert len(ids(keeper.only, "retrieved")) == len(documents)


def test_events_of_unknown_runs_are_ignored(handler, keeper):
    from uuid import uuid4

    handler.on_chain_end("x", run_id=uuid4())
    handler.on_llm_new_token("x", run_id=uuid4())
    handler.on_retriever_end([], run_id=uuid4(), parent_run_id=uuid4())
    handler.on_llm_error(ValueError(), run_id=uuid4())
    assert keeper.runs == []


def test_a_step_that_begins_after_its_root_ended_opens_no_run(handler, keeper):
    from uuid import uuid4

    root, child, late, later = (uuid4() for _ in range(4))
    handler.on_chain_start(None, "Where?", run_id=root, name="root")
    handler.on_retriever_start(None, "Where?", run_id=child, parent_run_id=root, name="child")
    handler.on_chain_error(GeneratorExit(), run_id=root)
    handler.on_chain_start(None, "x", run_id=late, parent_run_id=child, name="late")
    handler.on_retriever_start(None, "x", run_id=later, parent_run_id=late)
    handler.on_retriever_end([], run_id=later, parent_run_id=late)
    assert (keeper.only.record.outcome, keeper.begun) == ("partial", 1)
