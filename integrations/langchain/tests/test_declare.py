"""Declarations reach the run: of the handler, the settings, a request, and of decorated tools and functions."""

from __future__ import annotations

import asyncio
import copy
import pickle

import pytest
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import create_retriever_tool, tool
from msgspec.structs import replace

import ragtrace
from integrations.langchain.tests.parts import PROMPT, Faq, Scripted, calls, chat, lcel
from ragtrace.capture import Recorder, Retrieval
from ragtrace.capture.declared import Declared, Place
from ragtrace.errors import ConfigError
from ragtrace.model.reading import preview
from ragtrace_langchain import RagtraceHandler, instrument, uninstrument
from tests.kept import Declaring, ids


@pytest.fixture
def keeper():
    return Declaring()


DECLARED = {
    "question": "input.ticket.body",
    "answer": "output.quote",
    "selected": "state.keys.generation",
    "evidence": {"web_search": True, "think_tool": False, "fetch_page": "output.pages[*].text", "state.rows": True},
    "roots": {"answer_chain"},
    "follows": False,
}


def test_a_run_is_told_what_handler_and_settings_declare(recorder, keeper):
    recorder.config = replace(recorder.config, declared=Declared.of(question="input.x", evidence=["kb"]))
    lcel().invoke("Where?", {"callbacks": [RagtraceHandler(recorder, **DECLARED)]})
    (told,) = keeper.told
    assert told.question() == (Place.parse("input.ticket.body"), "handler")
    assert told.answer() == (Place.parse("output.quote"), "handler")
    assert told.selected() == (Place.parse("state.keys.generation"), "handler")
    assert told.evidence("fetch_page") == (Place.parse("output.pages[*].text"), "handler")
    assert told.evidence("kb") == (True, "settings")
    assert told.evidence_places() == [(Place.parse("state.rows"), True, "handler")]
    assert told.roots() == (frozenset({"answer_chain"}), "handler")
    assert told.follows() == (False, "handler")


def test_a_request_says_its_question(handler, keeper):
    lcel().invoke("Where?", {"callbacks": [handler], "metadata": {"ragtrace.question": "Where is the lab?"}})
    assert keeper.told[0].question() == ("Where is the lab?", "metadata")


def test_calls_in_a_block_declare_once(recorder, keeper):
    handler = RagtraceHandler(recorder, question="input.a")
    with recorder.start(query="Where?"):
        lcel().invoke("Where?", {"callbacks": [handler]})
        lcel().invoke("Where?", {"callbacks": [handler]})
    assert keeper.told[0].question() == (Place.parse("input.a"), "handler")
    assert repr(keeper.told[0]).count("input.a") == 1


def test_instrument_takes_the_same(recorder, keeper):
    instrument(recorder, follows=True)
    try:
        lcel().invoke("Where?")
    finally:
        uninstrument()
    assert keeper.told[0].follows() == (True, "handler")


def pickled(handler):
    return pickle.loads(pickle.dumps(handler))  # noqa: S301 - our own


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickled])
def test_a_copy_declares_the_same(again, recorder, keeper):
    handler = RagtraceHandler(recorder, **DECLARED)
    assert again(handler)._defaults == handler._defaults


@pytest.mark.parametrize("make", [RagtraceHandler, instrument])
def test_a_wrong_declaration_is_refused_at_once(make):
    with pytest.raises(ConfigError, match=r"evidence: 'fetch' = 'pages': begins with none of .* 'output.pages'"):
        make(evidence={"fetch": "pages"})
    with pytest.raises(ConfigError, match="question=str is a function"):
        make(question=str)


# -- decorated tools and functions --

OSLO = "The laboratory is in Oslo."
PAGES = [
    Document(id="p1", page_content=OSLO),
    Document(id="p2", page_content="It opens at 8."),
]


def test_documents_of_a_function_are_a_search(config, keeper):
    @ragtrace.evidence
    def find(question):
        return PAGES

    def context(question):
        return {"context": "\n".join(one.page_content for one in find(question)), "question": question}

    (RunnableLambda(context) | PROMPT | chat()).invoke("Where?", config)
    run = keeper.only
    assert ids(run, "retrieved") == ["p1", "p2"]
    assert [one.source for one in run.steps if isinstance(one, Retrieval)] == ["find"]
    assert run.prompt_ids == ("p1", "p2")


async def test_a_text_of_a_function_is_a_context_without_rank(config, keeper):
    @ragtrace.evidence
    async def fetch(question):
        return "The laboratory is in Oslo."

    async def context(question):
        return {"context": await fetch(question), "question": question}

    await (RunnableLambda(context) | PROMPT | chat()).ainvoke("Where?", config)
    assert [one.text for one in keeper.only.record.contexts] == ["The laboratory is in Oslo."]
    assert not [one for one in keeper.only.steps if isinstance(one, Retrieval)]


@ragtrace.evidence
def told(question):
    return OSLO


@ragtrace.evidence
async def told_later(question):
    return OSLO


@ragtrace.evidence
def told_each(question):
    yield OSLO


@ragtrace.evidence
async def told_each_later(question):
    yield OSLO


async def all_of(found):
    return "".join([one async for one in found])


TOLD = {
    "told": lambda: told("Where?"),
    "told_later": lambda: asyncio.run(told_later("Where?")),
    "told_each": lambda: "".join(told_each("Where?")),
    "told_each_later": lambda: asyncio.run(all_of(told_each_later("Where?"))),
}


@pytest.mark.parametrize("name", TOLD)
def test_a_text_of_a_decorated_function_is_no_guess(name, config, keeper):
    (RunnableLambda(lambda _: {"context": TOLD[name](), "question": "?"}) | PROMPT | chat()).invoke(
        "Where?", config
    )
    reading = keeper.only.record.reading
    assert [(one.name, one.kind, one.how) for one in reading.sources] == [(name, "tool", "decorator")]
    assert reading.signs == ()


def test_texts_that_a_step_hands_on_as_passages_are_no_guess(config, keeper):
    (RunnableLambda(lambda _: {"context": [told("?")], "question": "?"}) | PROMPT | chat()).invoke("Where?", config)
    record = keeper.only.record
    assert [one.text for one in record.pool("retrieved")] == [OSLO]
    assert [(one.kind, one.how) for one in record.reading.sources] == [("search", "structure")]
    assert record.signs == ()


@ragtrace.evidence
def rows(town: str) -> str:
    """Return the rows of a town."""
    return f"| {town} | 28 rooms |"


@pytest.mark.parametrize("form", ["decorated inside", "decorated outside", "called inside"])
def test_a_text_inside_a_tool_counts_once(form, config, keeper):
    @tool
    def lookup(town: str) -> str:
        """Look a town up."""
        return f"Found: {rows(town)}"

    used = {
        "decorated inside": tool(rows),
        "decorated outside": ragtrace.evidence(tool(rows.__wrapped__)),
        "called inside": lookup,
    }[form]
    said = [calls(used.name, town="Oslo"), "There are 28 rooms."]
    create_agent(Scripted(replies=said), [used]).invoke({"messages": [("user", "How many rooms in Oslo?")]}, config)
    assert [one.text for one in keeper.only.record.contexts] == ["| Oslo | 28 rooms |"]
    assert keeper.told[0].evidence("rows") == (True, "decorator")
    assert [(one.name, one.how) for one in keeper.only.record.reading.sources] == [("rows", "decorator")]
    assert keeper.only.record.signs == ()


def test_documents_inside_a_tool_count_once(config, keeper):
    @tool
    @ragtrace.evidence
    def find(question: str) -> list:
        """Find pages."""
        return [{"id": "p1", "text": "The laboratory is in Oslo."}]

    said = [calls("find", question="lab"), "In Oslo."]
    create_agent(Scripted(replies=said), [find]).invoke({"messages": [("user", "Where is the lab?")]}, config)
    assert ids(keeper.only, "retrieved") == ["p1"]
    assert len([one for one in keeper.only.steps if isinstance(one, Retrieval)]) == 1


def test_a_tool_that_is_decorated_while_a_run_is_open_is_told_to_it(recorder, keeper):
    def build(question):
        ragtrace.evidence(False)(tool(rows.__wrapped__, description="Think."))
        return "In Oslo."

    before = RagtraceHandler(recorder)
    (RunnableLambda(build) | RunnableLambda(str)).invoke("Where?", {"callbacks": [before]})
    assert keeper.told[0].evidence("rows") == (False, "decorator")
    ragtrace.evidence(tool(rows.__wrapped__))  # as the other tests found it


def test_two_recorders_take_the_same(recorder, keeper):
    other = Declaring()
    handlers = [RagtraceHandler(recorder), RagtraceHandler(Recorder(other))]

    def context(question):
        return {"context": rows("Oslo"), "question": question}

    (RunnableLambda(context) | PROMPT | chat()).invoke("Where?", {"callbacks": handlers})
    for kept in (keeper, other):
        assert [one.text for one in kept.only.record.contexts] == ["| Oslo | 28 rooms |"]


# -- retrievers --

STAYS = "nothing left out (what a search found or the code marked always counts)"


@pytest.mark.parametrize("said", [False, "output.pages[*].text"])
@pytest.mark.parametrize("name", ["Faq", "handbook"])
def test_what_a_retriever_gave_stays_and_the_preview_says_so(said, name, recorder, keeper):
    retriever = Faq(size=2, metadata={"ragtrace.source": "handbook"})
    handler = RagtraceHandler(recorder, evidence={name: said})
    lcel(retriever, lambda found: found).invoke("Where?", {"callbacks": [handler]})
    record = keeper.only.record
    assert [one.id for one in record.pool("retrieved")] == ["d0", "d1"]
    assert preview(record.reading)[1] == (
        f"evidence: 2 passages of retriever `handbook` (2 in the prompt); of retriever `{name}` {STAYS}"
    )


@pytest.mark.parametrize("name", ["Faq", "handbook"])
def test_a_retriever_that_is_declared_is_met(name, recorder, keeper, caplog):
    retriever = Faq(size=2, metadata={"ragtrace.source": "handbook"})
    handler = RagtraceHandler(recorder, evidence={name: True})
    for _ in range(20):
        lcel(retriever, lambda found: found).invoke("Where?", {"callbacks": [handler]})
    assert "was in none of" not in caplog.text
    assert preview(keeper.runs[-1].record.reading)[1] == (
        "evidence: 2 passages of retriever `handbook` (2 in the prompt)"
    )


def test_a_tool_hides_nothing_that_its_retriever_gave(recorder, keeper):
    found = create_retriever_tool(Faq(size=1), "search", "Search.")
    said = [calls("search", query="lab"), "It moved."]
    handler = RagtraceHandler(recorder, evidence={"search": False})
    agent = create_agent(Scripted(replies=said), [found])
    agent.invoke({"messages": [("user", "Where is the lab?")]}, {"callbacks": [handler]})
    assert preview(keeper.only.record.reading)[1] == (
        f"evidence: 1 passage of retriever `Faq` (1 in the prompt); of tool `search` {STAYS}"
    )


def test_a_function_hides_nothing_that_its_retriever_gave(recorder, keeper):
    def look(question):
        return {
            "context": "\n".join(one.page_content for one in Faq(size=1).invoke(question)),
            "question": question,
        }

    handler = RagtraceHandler(recorder, evidence={"look": False})
    (RunnableLambda(look) | PROMPT | chat()).invoke("Where?", {"callbacks": [handler]})
    assert preview(keeper.only.record.reading)[1] == (
        f"evidence: 1 passage of retriever `Faq` (1 in the prompt); of tool `look` {STAYS}"
    )


# -- names of roots --


def named_chains(handler, *names):
    for name in names:
        lcel().with_config(run_name=name).invoke("Where?", {"callbacks": [handler]})


def roots(keeper):
    return [run.record.reading.roots for run in keeper.runs]


def test_roots_are_named_where_there_are_several(handler, keeper):
    named_chains(handler, "answer", "answer", "check", "answer")
    assert roots(keeper) == [(), (), ("check", "answer"), ("answer", "check")]


def test_roots_that_are_declared_are_not_offered(recorder, keeper):
    named_chains(RagtraceHandler(recorder, roots=["answer", "check"]), "answer", "check")
    assert roots(keeper) == [(), ()]


def test_roots_that_are_named_for_each_request_are_not_offered(handler, keeper):
    named_chains(handler, *(f"chat {n}" for n in range(12)))
    assert [len(one) for one in roots(keeper)] == [0, *range(2, 9), 0, 0, 0, 0]


def test_no_name_is_told_that_is_redacted(recorder, keeper):
    recorder.config = replace(recorder.config, redact=lambda text: text.replace("Ada", "[name]"))
    named_chains(RagtraceHandler(recorder), "chat of Ada", "answer", "check")
    assert roots(keeper) == [(), (), ("check", "answer")]


def test_a_block_is_no_root_to_be_named(recorder, handler, keeper):
    with recorder.start(query="Where?"):
        named_chains(handler, "answer")
    named_chains(handler, "check")
    assert roots(keeper) == [(), ()]
