# ruff: noqa: RUF001 - signs of Japanese
"""Requests, results and events in an application's own shapes, and in languages other than English."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step
from llama_index_instrumentation import get_dispatcher
from pydantic import BaseModel

from integrations.llamaindex.tests.parts import Faq, Given, Llm, ToolCaller, nodes, until
from ragtrace_llamaindex.messages import question_in, turns_in
from tests.kept import ANSWER, ids

ASKED = "Where is the lab these days?"
JAPANESE = "研究所は今どこにありますか？"
LIE = "本は365日間借りることができ、市長が自転車で配達してくれます。"
PAGE = "Books may be kept for 28 days. Students get a long loan of 12 weeks."


async def answered(question, query="lab city", says=ANSWER, prefix="d"):
    found = await Faq(size=2, prefix=prefix).aretrieve(query)
    text = "\n".join(one.text for one in found)
    return (await Llm(says=says).acomplete(f"{text}\n{question}")).text


async def run_of(keeper, workflow, **given):
    result = await workflow.run(**given)
    await until(lambda: keeper.runs)
    return keeper.only, result


# -- questions --


class Turn(BaseModel):
    role: str
    content: str


class Request(BaseModel):
    messages: list[Turn]
    id: str = "c1"


@dataclass
class Form:
    question: str
    style: str = "Be kind and brief."


SAID = [("user", "Hi there."), ("assistant", "Hello, ask me."), ("user", ASKED)]
DICTS = [{"role": role, "content": content} for role, content in SAID]
INPUTS = {
    "dicts": {"messages": DICTS},
    "blocks": {"messages": [{**one, "content": [{"type": "text", "text": one["content"]}]} for one in DICTS]},
    "a request": {"request": Request(messages=[Turn(**one) for one in DICTS])},
    "a mapping": {"input": {"question": ASKED, "style": "Be kind and brief."}},
    "a dataclass": {"form": Form(ASKED)},
    "turns alone": {"user_msg": None, "chat_history": [ChatMessage(text, role=role) for role, text in SAID]},
}


class Plain(Workflow):
    @step
    async def only(self, ev: StartEvent) -> StopEvent:
        return StopEvent(result=await answered(ASKED))


@pytest.mark.parametrize("name", INPUTS)
async def test_the_question_in_a_request_of_its_own_shape(keeper, name):
    run, _ = await run_of(keeper, Plain(), **INPUTS[name])
    assert (run.record.query, run.record.answer) == (ASKED, ANSWER)
    if name in {"dicts", "blocks", "a request"}:
        assert [turn.content for turn in run.record.history] == ["Hi there.", "Hello, ask me."]


def test_the_question_in_a_function_s_request(keeper):
    @get_dispatcher(__name__).span
    def endpoint(request):
        return asyncio.run(answered(ASKED))

    endpoint(Request(messages=[Turn(**one) for one in DICTS]))
    assert keeper.only.record.query == ASKED


async def test_an_agent_that_is_given_turns_only(keeper):
    agent = FunctionAgent(tools=[], llm=ToolCaller(replies=[ANSWER]), streaming=False)
    run, _ = await run_of(keeper, agent, chat_history=[ChatMessage(text, role=role) for role, text in SAID])
    assert run.record.query == ASKED
    assert [turn.content for turn in run.record.history] == ["Hi there.", "Hello, ask me."]


async def test_a_question_without_blanks_between_its_words(keeper):
    run, _ = await run_of(keeper, Plain(), anfrage=JAPANESE, lang="ja")
    assert run.record.query == JAPANESE


def test_old_turns_and_settings_are_no_question():
    assert question_in({"frage": ASKED, "chat_history": [ChatMessage("Hi", role="user")]}) == ""
    assert question_in({"config": {"prompt": "You are kind.", "input": "x"}, "limit": 3}) == ""
    assert question_in({"self": Form(ASKED)}) == ""
    assert turns_in([{"role": "admin"}, {"name": "x"}, "text", None]) == ()


# -- answers --


class Fertig(StopEvent):
    antwort: str


@dataclass
class Out:
    antwort: str
    n: int = 1


class Typed(Workflow):
    @step
    async def only(self, ev: StartEvent) -> Fertig:
        said = await answered(ev.query)
        await Llm(says="Shall I say when it moved?").acomplete(f"Suggest a question behind {said}")
        return Fertig(antwort=said)


class Wrapped(Workflow):
    @step
    async def only(self, ev: StartEvent) -> StopEvent:
        said = await answered(ev.query)
        await Llm(says="Shall I say when it moved?").acomplete(f"Suggest a question behind {said}")
        return StopEvent(result=ev.wrap(said))


WRAPS = {
    "mapping": lambda said: {"antwort": said, "quellen": ["d0"]},
    "tuple": lambda said: (said, ["d0"]),
    "dataclass": Out,
    "list": lambda said: [said],
}


@pytest.mark.parametrize("name", WRAPS)
async def test_the_answer_among_what_a_result_holds(keeper, name):
    run, _ = await run_of(keeper, Wrapped(), query=ASKED, wrap=WRAPS[name])
    assert (run.record.answer, run.prompt_ids) == (ANSWER, ("d0", "d1"))


async def test_the_answer_in_a_last_event_of_its_own(keeper):
    run, _ = await run_of(keeper, Typed(), query=ASKED)
    assert run.record.answer == ANSWER


class Part(Event):
    prefix: str
    wait: float


class Said(Event):
    said: str


class Branches(Workflow):
    @step
    async def begin(self, ctx: Context, ev: StartEvent) -> Part | None:
        for prefix, wait in ev.parts:
            ctx.send_event(Part(prefix=prefix, wait=wait))
        return None

    @step(num_workers=2)
    async def work(self, ev: Part) -> Said:
        await asyncio.sleep(ev.wait)
        return Said(said=await answered(ASKED, says=f"So it says in part {ev.prefix}.", prefix=ev.prefix))

    @step
    async def end(self, ctx: Context, ev: Said) -> StopEvent | None:
        found = ctx.collect_events(ev, [Said, Said])
        return None if found is None else StopEvent(result=[one.said for one in found])


@pytest.mark.parametrize("waits", [(0.03, 0), (0, 0.03)])
async def test_answers_of_two_branches(keeper, waits):
    run, _ = await run_of(keeper, Branches(), query=ASKED, parts=list(zip("ab", waits, strict=True)))
    assert run.record.answer == "So it says in part a.\n\nSo it says in part b."
    assert run.record.lossy["several_answers"] == 2
    assert sorted(run.prompt_ids) == ["a0", "a1", "b0", "b1"]


# -- evidence --


class Found(Event):
    treffer: Any


class Searches(Workflow):
    """Searches by itself, and writes what it found into its prompt."""

    @step
    async def find(self, ev: StartEvent) -> Found:
        return Found(treffer=ev.found)

    @step
    async def answer(self, ev: Found) -> StopEvent:
        held = ev.treffer
        if isinstance(held, list) and not isinstance(held[0], tuple):
            held = "\n".join(one["text"] if isinstance(one, dict) else one.text for one in held)
        says = (
            ANSWER if isinstance(ev.treffer, list) and not isinstance(ev.treffer[0], tuple) else "Oslo 12, Rom 3."
        )
        return StopEvent(result=(await Llm(says=says).acomplete(f"Kontext: {held}\nFrage: {ASKED}")).text)


@pytest.mark.parametrize("form", ["nodes", "mappings"])
async def test_passages_of_a_step_s_own_search(keeper, form):
    found = nodes(2)
    if form == "mappings":
        found = [{"id": one.node_id, "text": one.text, "score": one.score} for one in found]
    run, _ = await run_of(keeper, Searches(), query=ASKED, found=found)
    assert (ids(run, "retrieved"), run.prompt_ids) == (["d0", "d1"], ("d0", "d1"))


ROWS = [(town, 12) for town in ("Oslo", "Rom", "Bergen", "Lima", "Turku", "Bari", "Graz", "Gent")]


@pytest.mark.parametrize("rows", [ROWS, str(ROWS), json.dumps(ROWS)], ids=["tuples", "Python", "JSON"])
async def test_rows_that_a_prompt_shows_are_text_that_nobody_read(keeper, rows):
    run, _ = await run_of(keeper, Searches(), query=ASKED, found=rows)
    signs = [(sign.name, sign.about) for sign in run.record.signs]
    assert (run.record.contexts, signs) == ((), [("evidence_unread", "state.treffer")])


def web_search(query: str) -> str:
    return PAGE


def think(text: str) -> str:
    return f"反省を記録しました：{text}"


def merken(text: str) -> str:
    return "Gespeichert."


def memo(text: str) -> str:
    return "保存しました。"


def noter(text: str) -> str:
    return "C'est noté."


def review_report(text: str) -> str:
    return "Report reviewed."


@pytest.mark.parametrize("function", [think, merken, memo, noter, review_report], ids=lambda one: one.__name__)
async def test_own_words_and_status_lines_of_other_languages(keeper, function):
    calls = [{"name": "web_search", "args": {"query": "x"}}, {"name": function.__name__, "args": {"text": LIE}}]
    tools = [FunctionTool.from_defaults(one) for one in (web_search, function)]
    agent = FunctionAgent(tools=tools, llm=ToolCaller(replies=[*calls, ANSWER]), streaming=False)
    run, _ = await run_of(keeper, agent, user_msg=ASKED)
    assert [one.text for one in run.record.contexts] == [PAGE]


async def test_a_sub_agent_s_reply_in_japanese(keeper):
    async def research(topic: str) -> str:
        inner = ToolCaller(replies=[{"name": "web_search", "args": {"query": topic}}, "本は365日間借りられます"])
        team = AgentWorkflow.from_tools_or_functions([web_search], llm=inner)
        return f"要約: {await team.run(user_msg=topic)}"

    calls = [{"name": "research", "args": {"topic": "x"}}]
    tools = [FunctionTool.from_defaults(async_fn=research)]
    agent = FunctionAgent(tools=tools, llm=ToolCaller(replies=[*calls, ANSWER]), streaming=False)
    run, _ = await run_of(keeper, agent, user_msg=ASKED)
    assert [one.text for one in run.record.contexts] == [PAGE]


class Shorter(BaseNodePostprocessor):
    def _postprocess_nodes(self, nodes, query_bundle=None):
        text = nodes[0].text.replace("ことができます", "こと可")
        return [NodeWithScore(node=TextNode(text=f"要約：{text}"), score=nodes[0].score)]


def test_a_shorter_form_in_japanese_stays_its_passage(keeper):
    texts = {
        "loan": "本は28日間借りることができます。学生は12週間の長期貸出を利用できます。",
        "fine": "延滞料は1日50円です。",
    }
    found = [NodeWithScore(node=TextNode(id_=name, text=text), score=0.5) for name, text in texts.items()]
    RetrieverQueryEngine.from_args(Given(found), llm=Llm(), node_postprocessors=[Shorter()]).query(JAPANESE)
    assert (ids(keeper.only, "reranked"), keeper.only.prompt_ids) == (["loan"], ("loan",))


# -- runs --


@pytest.mark.parametrize(
    ("asked", "says"), [("Gibt es eine Bibliothek?", "Ja"), ("図書館は開いていますか？", "はい")]
)
def test_a_short_answer_of_another_language_is_a_run(keeper, asked, says):
    Llm(says=says).complete(asked)
    assert keeper.only.record.answer == says
