"""Values of an application that are hard to read: none of them costs a run, or its time."""

from __future__ import annotations

import dataclasses
import gc
import weakref
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass as checked

from integrations.langchain.tests.parts import Broken, Compressor, Faq, Scripted, chat, lcel, shown
from ragtrace.capture import Recorder, internal_errors, run_reader
from ragtrace_langchain import RagtraceHandler, TracedCompressor
from tests.kept import ANSWER, Keeper, Waiting, ids


@dataclasses.dataclass(slots=True)
class Unset:
    known: int = 1
    later: Any = dataclasses.field(init=False)


@checked(config=ConfigDict(), slots=True)
class Checked:
    docs: Any = None


class Unbound:
    """As a proxy of a web framework outside a request."""

    @property
    def __class__(self):
        raise RuntimeError("unbound")


class Closed(dict):
    """As rows of a cursor that was closed."""

    def __iter__(self):
        raise RuntimeError("closed")

    def keys(self):
        raise RuntimeError("closed")


@pytest.mark.parametrize("kind", [Unset, Checked])
def test_a_slot_that_is_empty(keeper, config, kind):
    RunnableLambda(lambda question: {"answer": lcel().invoke(question), "more": kind()}).invoke("Where?", config)
    assert (keeper.only.record.answer, len(ids(keeper.only, "retrieved"))) == (ANSWER, 6)


def test_documents_in_a_checked_dataclass_with_slots(keeper, config):
    def search(question):
        return Checked(Faq().invoke(question))

    chain = RunnableLambda(search) | (lambda found: Checked(found.docs[1:3])) | (lambda kept: shown(kept.docs))
    (chain | chat()).invoke("Where?", config)
    assert ids(keeper.only, "reranked") == ["d1", "d2"]


@pytest.mark.parametrize("kind", [Unbound, Closed])
def test_an_object_that_cannot_be_read_costs_itself_only(keeper, recorder, config, loses, kind):
    before = internal_errors()
    RunnableLambda(lambda question: {"answer": lcel().invoke(question), "more": kind()}).invoke("Where?", config)
    lost = {site for site, count in internal_errors().items() if count != before.get(site)}
    assert (keeper.only.record.answer, recorder.open_runs) == (ANSWER, 0)
    assert lost == {"ragtrace_langchain.values.of"}


@pytest.mark.parametrize("is_added", [True, False])
def test_blocks_of_a_message_that_are_changed_between_two_calls(keeper, config, is_added):
    message, model = HumanMessage([{"type": "text", "text": "Say hello."}]), Scripted(replies=["Hello.", ANSWER])

    def ask(_question):
        found = shown(Faq().invoke("?")[:2])
        model.invoke([message])
        if is_added:
            message.content.append({"type": "text", "text": found})
        else:
            message.content[0]["text"] = found
        return model.invoke([message]).content

    RunnableLambda(ask).invoke("Where?", config)
    assert ids(keeper.only, "used") == ["d0", "d1"]


def test_a_call_of_a_tool_that_lacks_an_id(keeper, config):
    def ask(question):
        message = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "c1"}])
        message.tool_calls.append({"name": "see", "args": {}})
        return chat().invoke([HumanMessage(question + shown(Faq().invoke(question)[:2])), message]).content

    RunnableLambda(ask).invoke("Where?", config)
    assert ids(keeper.only, "used") == ["d0", "d1"]


def hashed(text):
    return f"[{sum(map(ord, text))}]"


def test_redact_is_not_given_what_the_run_says_itself():
    keeper = Keeper()
    recorder = Recorder(keeper, redact=hashed)
    compressor = TracedCompressor(base=Compressor())
    chain = RunnableLambda(lambda question: compressor.compress_documents(Faq().invoke(question), question))
    (chain | shown | chat()).invoke("Where?", {"callbacks": [RagtraceHandler(recorder)]})
    assert keeper.only.record.selection_source == "explicit"


def test_redact_is_not_given_the_outcome():
    keeper = Keeper()
    recorder = Recorder(keeper, redact=lambda text: text.replace("error", "[word]"))
    with pytest.raises(ConnectionError):
        lcel(Broken()).invoke("Where?", {"callbacks": [RagtraceHandler(recorder)]})
    assert (keeper.only.record.outcome, keeper.only.failure.kind) == ("error", "ConnectionError")


def test_ids_of_search_results_stay_where_texts_are_redacted():
    keeper = Keeper()
    recorder = Recorder(keeper, redact=hashed)

    def search_docs(_question):
        return [{"id": f"p-{i}", "text": f"The lab has moved {i} times by now."} for i in range(3)]

    chain = RunnableLambda(search_docs) | (lambda hits: "\n".join(hit["text"] for hit in hits)) | chat()
    chain.invoke("Where?", {"callbacks": [RagtraceHandler(recorder)]})
    assert ids(keeper.only, "retrieved") == ["p-0", "p-1", "p-2"]


def test_texts_that_cannot_be_taken_out_are_not_looked_at_again_and_again(monkeypatch, config):
    looks = []
    shed = run_reader.shed
    monkeypatch.setattr(run_reader, "shed", lambda *given: looks.append(1) or shed(*given))
    step = RunnableLambda(lambda state: {**state, "n": state["n"] + 1})

    def steps(question):
        state = {"big": "x" * (run_reader.MAX_CHARS + 1), "n": 0}
        for _ in range(50):
            state = step.invoke(state)
        return lcel().invoke(question)

    RunnableLambda(steps).invoke("Where?", config)
    assert len(looks) == 1


def test_no_object_of_the_application_outlives_the_run():
    class Held:
        pass

    held, keeper = Held(), Waiting()
    seen = weakref.ref(held)
    given = {"question": "Where?", "held": held}
    RunnableLambda(lambda state: lcel().invoke(state["question"])).invoke(
        given, {"callbacks": [RagtraceHandler(Recorder(keeper))]}
    )
    del given, held
    gc.collect()
    assert seen() is None
