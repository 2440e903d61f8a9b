"""What came from outside the model: not its own words in a tool's result, and passages in any form of theirs."""

import asyncio
import json
import threading
from contextvars import copy_context

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.postprocessor import LongContextReorder
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.core.tools import FunctionTool, QueryEngineTool, RetrieverTool
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step

from integrations.llamaindex.tests.parts import (
    TOOLS_KNOW_THEIR_RUN,
    Faq,
    First,
    Given,
    Llm,
    ToolCaller,
    engine,
    nodes,
    until,
)
from ragtrace_llamaindex import mark_retrieved, mark_selected
from tests.kept import ANSWER, ids

ASKED = "How long may I keep a book?"
PAGE = "Books may be kept for 28 days. Students get a long loan of 12 weeks."
LIE = "Books may be kept for 365 days, and the mayor delivers them by bicycle."


def call(name, **arguments):
    return {"name": name, "args": arguments}


async def run_of(keeper, tools, *calls, says=ANSWER):
    model = ToolCaller(replies=[*calls, says])
    agent = FunctionAgent(tools=tools, llm=model, streaming=False)
    assert str(await agent.run(user_msg=ASKED)) == says
    await until(lambda: keeper.runs)
    return keeper.only


def shown(run):
    return [passage.text for passage in run.record.contexts]


def web_search(query: str) -> str:
    return PAGE


def think(reflection: str) -> str:
    return f"Reflection recorded: {reflection}"


def note(text: str) -> str:
    return text


def write_todos(todos: list) -> str:
    return f"Updated todo list to {todos}"


def save_memory(text: str) -> str:
    return json.dumps({"status": "ok", "saved": text})


def save_note(text: str) -> str:
    return "Saved."


def found_again(text: str) -> list:
    return [NodeWithScore(node=TextNode(text=text), score=1.0)]


OWN = {
    think: {"reflection": LIE},
    note: {"text": LIE},
    write_todos: {"todos": [{"content": LIE, "status": "pending"}]},
    save_memory: {"text": LIE},
    save_note: {"text": LIE},
    found_again: {"text": LIE},
}


@pytest.mark.parametrize("function", [pytest.param(one, id=one.__name__) for one in OWN])
async def test_the_model_s_own_words_are_no_context(keeper, function):
    tools = [FunctionTool.from_defaults(one) for one in (web_search, function)]
    calls = (call("web_search", query="loans"), call(function.__name__, **OWN[function]))
    assert shown(await run_of(keeper, tools, *calls)) == [PAGE]


async def test_a_file_that_the_model_wrote_is_no_context(keeper):
    files = {}

    def write_file(path: str, text: str) -> str:
        files[path] = text
        return f"Updated file {path}"

    def read_file(path: str) -> str:
        return files[path]

    tools = [FunctionTool.from_defaults(one) for one in (web_search, write_file, read_file)]
    calls = (call("web_search", query="loans"), call("write_file", path="a", text=LIE), call("read_file", path="a"))
    assert shown(await run_of(keeper, tools, *calls)) == [PAGE]


@pytest.mark.parametrize(("says", "found"), [("It is 12.", ["12"]), (ANSWER, [])])
async def test_a_computed_number_is_a_context_where_the_answer_says_it(keeper, says, found):
    def multiply(a: int, b: int) -> int:
        return a * b

    run = await run_of(keeper, [FunctionTool.from_defaults(multiply)], call("multiply", a=3, b=4), says=says)
    assert shown(run) == found


async def test_a_sub_agent_s_reply_is_no_context(keeper):
    async def research(topic: str) -> str:
        inner = ToolCaller(replies=[call("web_search", query=topic), LIE])
        agent = FunctionAgent(tools=[FunctionTool.from_defaults(web_search)], llm=inner, streaming=False)
        return f"Research says: {await agent.run(user_msg=topic)}"

    tool = FunctionTool.from_defaults(async_fn=research)
    assert shown(await run_of(keeper, [tool], call("research", topic="loans"))) == [PAGE]


@pytest.mark.parametrize("prompt", [None, "Now {to_agent} works: {reason}"])
async def test_a_hand_off_leaves_the_passages(keeper, prompt):
    kb = RetrieverTool.from_defaults(Faq(size=3), name="kb", description="Searches.")
    replies = [call("kb", input="loans"), call("handoff", to_agent="writer", reason=LIE)]
    first = FunctionAgent(
        name="finder", description="f", tools=[kb], llm=ToolCaller(replies=replies), streaming=False
    )
    last = FunctionAgent(
        name="writer", description="w", tools=[], llm=ToolCaller(replies=[ANSWER]), streaming=False
    )
    team = AgentWorkflow(agents=[first, last], root_agent="finder", handoff_output_prompt=prompt)
    await team.run(user_msg=ASKED)
    await until(lambda: keeper.runs)
    assert (ids(keeper.only, "retrieved"), keeper.only.prompt_ids) == (["d0", "d1", "d2"], ("d0", "d1", "d2"))


@pytest.mark.parametrize("order", [("menu", "handbook"), ("handbook", "menu")])
async def test_passages_behind_an_engine_stay_when_another_search_follows(keeper, order):
    llm = Llm(says="Twenty-eight days, says the handbook.")
    handbook = QueryEngineTool.from_defaults(engine(Faq(size=2), [], llm), name="handbook", description="h")
    menu = RetrieverTool.from_defaults(Faq(size=1, prefix="m"), name="menu", description="m")
    run = await run_of(keeper, [handbook, menu], *(call(name, input="lab") for name in order))
    parts = {"menu": ["m0"], "handbook": ["d0", "d1"]}
    assert list(run.prompt_ids) == [*parts[order[0]], *parts[order[1]]]


TEXT = {
    "loan": 'Books may be kept for 28 days.\nA "long loan" of 12 weeks exists for students.',
    "card": "A library card is free for residents of Göteborg: bring an ID.",
    "fine": "Late fee: 0,50 € per day and item,\nat most 20 €.",
}


def remade(one, text, *, has_facts=True):
    return NodeWithScore(node=TextNode(text=text, metadata=one.metadata if has_facts else {}), score=one.score)


FORMS = {
    "an extract": lambda one: [remade(one, one.text.split("\n")[0])],
    "an extract without metadata": lambda one: [remade(one, one.text.split("\n")[0], has_facts=False)],
    "a header above": lambda one: [remade(one, f"From the handbook\n{one.text}")],
    "a shorter form": lambda one: [remade(one, f"In short: {one.text.replace('may be', 'are')}")],
    "parts": lambda one: [remade(one, part) for part in one.text.split("\n")],
}


class Made(BaseNodePostprocessor):
    """Leaves out the card, and makes the rest anew."""

    form: str

    def _postprocess_nodes(self, nodes, query_bundle=None):
        return [made for one in nodes if one.node_id != "card" for made in FORMS[self.form](one)]


@pytest.mark.parametrize("form", FORMS)
def test_a_part_or_a_form_of_a_passage_stays_it(keeper, form):
    found = [
        NodeWithScore(node=TextNode(id_=name, text=text, metadata={"file": f"{name}.md"}), score=0.5)
        for name, text in TEXT.items()
    ]
    made = RetrieverQueryEngine(
        Given(found), get_response_synthesizer(llm=Llm()), node_postprocessors=[Made(form=form)]
    )
    made.query(ASKED)
    run = keeper.only
    assert ids(run, "retrieved") == ["loan", "card", "fine"]
    assert (ids(run, "reranked"), run.prompt_ids) == (["loan", "fine"], ("loan", "fine"))


def test_a_new_order_keeps_the_ids(keeper):
    engine(Faq(size=3), [LongContextReorder()]).query(ASKED)
    assert sorted(ids(keeper.only, "reranked")) == ["d0", "d1", "d2"]


def test_chunks_of_one_document_are_passages_of_their_own(keeper):
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="manual")}
    chunks = [TextNode(id_=f"c{i}", text=text, relationships=source) for i, text in enumerate(TEXT.values())]
    found = [NodeWithScore(node=one, score=0.5) for one in chunks]
    engine(Given(found), [First(n=1)]).query(ASKED)
    assert (ids(keeper.only, "retrieved"), ids(keeper.only, "reranked")) == (["c0", "c1", "c2"], ["c0"])


class Twice(Workflow):
    """Searches in three places at once; the first takes longest, and the last finds a passage of its again."""

    @step
    async def only(self, ev: StartEvent) -> StopEvent:
        async def found(wait, *some):
            await asyncio.sleep(wait)
            return await Given(list(some)).aretrieve(ev.query)

        a, b, c, d = nodes(4)
        parts = await asyncio.gather(found(0.1, a, b), found(0, c), found(0.05, d, a))
        text = "\n".join(one.text for part in parts for one in part)
        return StopEvent(result=(await Llm().acomplete(text)).text)


async def test_a_passage_that_two_searches_found_stands_where_the_prompt_has_it_first(keeper):
    await Twice().run(query=ASKED)
    await until(lambda: keeper.runs)
    assert ids(keeper.only, "retrieved") == ["d0", "d1", "d2", "d3"]
    assert keeper.only.prompt_ids == ("d0", "d1", "d2", "d3")


class Parallel(Workflow):
    """Searches in two places at once; the first takes longer."""

    @step
    async def only(self, ev: StartEvent) -> StopEvent:
        async def slow():
            await asyncio.sleep(0.05)
            return await Faq(size=2).aretrieve(ev.query)

        parts = await asyncio.gather(slow(), Faq(size=1, prefix="m").aretrieve(ev.query))
        text = "\n".join(one.text for part in parts for one in part)
        return StopEvent(result=(await Llm().acomplete(text)).text)


async def test_parallel_searches_stand_in_the_prompt_s_order(keeper):
    await Parallel().run(query=ASKED)
    await until(lambda: keeper.runs)
    assert (ids(keeper.only, "retrieved"), keeper.only.prompt_ids) == (["d0", "d1", "m0"], ("d0", "d1", "m0"))


class Hops(Workflow):
    """Searches four times, and finds some passages again."""

    @step
    async def only(self, ev: StartEvent) -> StopEvent:
        found = {}
        for size, prefix in ((2, "a"), (1, "b"), (3, "a"), (2, "b")):
            for one in await Faq(size=size, prefix=prefix).aretrieve(ev.query):
                found.setdefault(one.node_id, one)
        return StopEvent(result=(await Llm().acomplete("\n".join(one.text for one in found.values()))).text)


async def test_hops_stand_in_the_order_of_their_first_results(keeper):
    await Hops().run(query=ASKED)
    await until(lambda: keeper.runs)
    assert ids(keeper.only, "retrieved") == ["a0", "a1", "b0", "a2", "b1"]
    assert keeper.only.prompt_ids == ("a0", "a1", "b0", "a2", "b1")


ROWS = [{"b.name": name, "r.number": 12} for name in ("Göteborg", "Örgryte", "Lund", "Visby")]


class Records(Event):
    records: list
    query: str


class Sql(Workflow):
    @step
    async def find(self, ev: StartEvent) -> Records:
        return Records(records=ROWS, query=ev.query)

    @step
    async def answer(self, ev: Records) -> StopEvent:
        return StopEvent(result=(await Llm().acomplete(f"Results: {ev.records}\nQuestion: {ev.query}")).text)


async def test_rows_of_a_database_are_text_that_nobody_read(keeper):
    await Sql().run(query="How many rooms?")
    await until(lambda: keeper.runs)
    signs = [(sign.name, sign.about) for sign in keeper.only.record.signs]
    assert (shown(keeper.only), signs) == ([], [("evidence_unread", "state.records")])


def marked_nodes(query: str) -> str:
    return "\n\n".join(f"## {one.node_id}\n{one.text}" for one in mark_selected(nodes(2)))


def marked_texts(query: str) -> str:
    return "\n\n".join(mark_selected([PAGE, LIE]))


def marked_pairs(query: str) -> str:
    pairs = mark_selected([(one, 0.5) for one in nodes(2)])
    return "\n\n".join(one.text for one, _ in pairs)


def marked_twice(query: str) -> str:
    mark_selected([{"id": "k1", "text": PAGE}])
    mark_selected([{"id": "k2", "text": LIE}])
    return f"{PAGE}\n\n{LIE}"


def marked_in_a_thread(query: str) -> str:
    thread = threading.Thread(target=copy_context().run, args=(marked_twice, query))
    thread.start()
    thread.join()
    return f"{PAGE}\n\n{LIE}"


MARKED = {marked_nodes: ["d0", "d1"], marked_pairs: ["d0", "d1"], marked_twice: ["k1", "k2"]}


@pytest.mark.parametrize("function", [marked_nodes, marked_texts, marked_pairs, marked_twice, marked_in_a_thread])
@TOOLS_KNOW_THEIR_RUN
async def test_marked_in_a_tool_that_returns_text(keeper, function):
    run = await run_of(keeper, [FunctionTool.from_defaults(function)], call(function.__name__, query="x"))
    assert len(run.record.contexts) == len(run.prompt_ids) == 2
    assert list(run.prompt_ids) == MARKED.get(function, list(run.prompt_ids))
    assert run.record.selection_source == "explicit"


class Chooses(BaseRetriever):
    def _retrieve(self, query_bundle):
        found = mark_retrieved(nodes(3))
        return [found[2], found[0]]


def test_marked_in_a_retriever_what_it_returns_was_chosen(keeper):
    RetrieverQueryEngine.from_args(Chooses(), llm=Llm()).query("Where?")
    Chooses().retrieve("Where?")
    for run in keeper.runs:
        assert (ids(run, "retrieved"), ids(run, "reranked")) == (["d0", "d1", "d2"], ["d2", "d0"])
    assert keeper.runs[0].prompt_ids == ("d2", "d0")
