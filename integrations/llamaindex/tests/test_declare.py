"""Declarations reach the run: of `instrument` and its kin, a request, and of decorated tools and functions."""

from __future__ import annotations

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.tools import FunctionTool

import ragtrace
from integrations.llamaindex.tests.parts import TOOLS_KNOW_THEIR_RUN, Faq, Llm, ToolCaller, engine, until
from ragtrace.capture import Retrieval
from ragtrace.capture.declared import Place
from ragtrace.errors import ConfigError
from ragtrace.model.reading import preview
from ragtrace_llamaindex import instrument, instrumented, request
from tests.kept import ANSWER, Declaring, ids


@pytest.fixture
def keeper():
    return Declaring()


DECLARED = {
    "question": "input.ticket.body",
    "answer": "output.quote",
    "selected": "state.chosen",
    "evidence": {"web_search": True, "fetch_page": "output.pages[*].text", "state.rows": True},
    "roots": ["Answering"],
    "follows": False,
}


@pytest.mark.parametrize("way", ["instrument", "instrumented"])
def test_a_run_is_told_what_is_declared(way, recorder, keeper):
    if way == "instrument":
        instrument(recorder, **DECLARED)
        engine().query("Where?")
    else:
        with instrumented(recorder, **DECLARED):
            engine().query("Where?")
    (told,) = keeper.told
    assert told.question() == (Place.parse("input.ticket.body"), "handler")
    assert told.evidence("fetch_page") == (Place.parse("output.pages[*].text"), "handler")
    assert told.evidence_places() == [(Place.parse("state.rows"), True, "handler")]
    assert (told.roots(), told.follows()) == ((frozenset({"Answering"}), "handler"), (False, "handler"))


def test_a_request_says_its_question(keeper):
    with request(question="Where is the lab?"):
        engine().query("Where?")
    assert keeper.told[0].question() == ("Where is the lab?", "metadata")


def test_a_block_is_told_too(recorder, keeper):
    instrument(recorder, question="input.a")
    with recorder.start(query="Where?"), request(question="Where is the lab?"):
        engine().query("Where?")
    assert keeper.told[0].question() == ("Where is the lab?", "metadata")


@pytest.mark.parametrize("make", [instrument, instrumented])
def test_a_wrong_declaration_is_refused_at_once(make):
    with pytest.raises(
        ConfigError, match=r"question='messages\[-1\]' begins with none of .* 'state.messages\[-1\]'"
    ):
        make(question="messages[-1]")


# -- decorated tools and functions --


@ragtrace.evidence
def find(question):
    return [NodeWithScore(node=TextNode(id_="p1", text="The laboratory is in Oslo."), score=0.5)]


@ragtrace.evidence
def rows(query: str) -> str:
    """Return the rows of a town."""
    return "| Oslo | 28 rooms |"


class Own(CustomQueryEngine):
    """Searches with a function of its own."""

    llm: Llm = Llm()
    way: object = find

    def custom_query(self, query_str):
        return str(self.llm.complete(f"{self.way(query_str)}\n\n{query_str}"))


def test_nodes_of_a_function_are_a_search(keeper):
    Own().query("Where?")
    assert ids(keeper.only, "retrieved") == ["p1"]
    assert [one.source for one in keeper.only.steps if isinstance(one, Retrieval)] == ["find"]


def test_a_text_of_a_function_is_a_context_without_rank(keeper):
    Own(way=rows).query("Where?")
    assert [one.text for one in keeper.only.record.contexts] == ["| Oslo | 28 rooms |"]
    assert not [one for one in keeper.only.steps if isinstance(one, Retrieval)]
    assert [(one.name, one.how) for one in keeper.only.record.reading.sources] == [("rows", "decorator")]
    assert keeper.only.record.signs == ()


def test_it_is_reported_in_a_block_too(recorder, keeper):
    with recorder.start(query="Where?") as run:
        find("Where?")
        run.answered("In Oslo.")
    assert ids(keeper.only, "retrieved") == ["p1"]


@TOOLS_KNOW_THEIR_RUN
@pytest.mark.parametrize("form", ["decorated inside", "decorated outside", "called inside"])
async def test_a_text_inside_a_tool_counts_once(form, keeper):
    def lookup(query: str) -> str:
        """Look a town up."""
        return f"Found: {rows(query)}"

    used = {
        "decorated inside": FunctionTool.from_defaults(rows),
        "decorated outside": ragtrace.evidence(FunctionTool.from_defaults(rows.__wrapped__)),
        "called inside": FunctionTool.from_defaults(lookup),
    }[form]
    call = {"name": used.metadata.name, "args": {"query": "Oslo"}}
    agent = FunctionAgent(tools=[used], llm=ToolCaller(replies=[call, ANSWER]), streaming=False)
    await agent.run(user_msg="How many rooms in Oslo?")
    await until(lambda: keeper.runs)
    assert [one.text for one in keeper.only.record.contexts] == ["| Oslo | 28 rooms |"]
    assert keeper.told[-1].evidence("rows") == (True, "decorator")
    assert [(one.name, one.how) for one in keeper.only.record.reading.sources] == [("rows", "decorator")]
    assert keeper.only.record.signs == ()


def test_a_root_that_is_not_declared_is_no_run(recorder, keeper):
    instrument(recorder, roots=["RetrieverQueryEngine"])
    engine().query("Where?")
    Faq().retrieve("Where is the lab?")
    assert [run.record.query for run in keeper.runs] == ["Where?"]


@pytest.mark.parametrize("said", [False, "output.pages[*].text"])
def test_what_a_retriever_gave_stays_and_the_preview_says_so(said, recorder, keeper):
    instrument(recorder, evidence={"Faq": said})
    engine().query("Where?")
    assert preview(keeper.only.record.reading)[1] == (
        "evidence: 6 passages of retriever `Faq` (2 chosen, 2 in the prompt);"
        " of retriever `Faq` nothing left out (what a search found or the code marked always counts)"
    )


def test_a_retriever_that_is_declared_is_met(recorder, keeper, caplog):
    instrument(recorder, evidence={"Faq": True})
    for _ in range(20):
        engine().query("Where?")
    assert "was in none of" not in caplog.text
    assert preview(keeper.runs[-1].record.reading)[1] == (
        "evidence: 6 passages of retriever `Faq` (2 chosen, 2 in the prompt)"
    )
