"""What a person asked in a run, and what the run gave the person: nothing of an inner step or an earlier turn."""

from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.tools import FunctionTool, RetrieverTool
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step
from llama_index_instrumentation import get_dispatcher
from pydantic import BaseModel, Field

from integrations.llamaindex.tests.parts import TOOLS_KNOW_THEIR_RUN, Faq, Llm, ToolCaller, engine, until
from ragtrace.model import preview
from ragtrace_llamaindex import instrumented
from tests.kept import ANSWER

ASKED = "Where is the lab these days?"
NEXT = "And where was it before?"


def reply(found, question, says=ANSWER):
    return Llm(says=says).complete("\n".join(one.text for one in found) + question).text


class Ticket(BaseModel):
    says: str
    lang: str = "de"


class Loan(BaseModel):
    days: int
    remark: str


@pytest.mark.parametrize("mode", ["compact", "refine", "tree_summarize"])
def test_an_object_that_a_synthesizer_makes_is_the_answer(keeper, mode):
    filled = {"name": "Loan", "args": {"days": 28, "remark": "länger nur auf Antrag"}}
    model = ToolCaller(replies=[filled, filled])
    made = get_response_synthesizer(llm=model, response_mode=mode, output_cls=Loan)
    made.get_response("Wie lange leihe ich ein Buch?", ["Bücher leiht man 28 Tage."])
    record = keeper.only.record
    assert (record.query, record.answer, record.outcome) == (
        "Wie lange leihe ich ein Buch?", '{"days":28,"remark":"länger nur auf Antrag"}', "answered",
    )  # fmt: skip


class Own(StartEvent):
    ticket: Ticket


class OwnNames(Workflow):
    @step
    async def only(self, ev: StartEvent) -> StopEvent:
        Llm(says="German").complete(f"Name the language {ev.lang}")
        return StopEvent(result=reply(await Faq().aretrieve(ev.customer_message), ev.customer_message))


class Rewrites(Workflow):
    @step
    async def only(self, ev: Own) -> StopEvent:
        query = Llm(says="lab city").complete(f"Condense {ev.ticket.says}").text
        return StopEvent(result=reply(await Faq().aretrieve(query), ev.ticket.says))


@get_dispatcher(__name__).span
def function(customer_message, style="Answer in a kind way"):
    return reply(Faq().retrieve(f"{customer_message} (de)"), customer_message)


INPUTS = {
    "own names": lambda: OwnNames().run(customer_message=ASKED, lang="de"),
    "one text, asked otherwise": lambda: Rewrites().run(ticket=Ticket(says=ASKED)),
}


@pytest.mark.parametrize("asked", INPUTS.values(), ids=INPUTS)
async def test_a_question_under_a_name_of_its_own(keeper, asked):
    assert await asked() == ANSWER
    await until(lambda: keeper.runs)
    assert keeper.only.record.query == ASKED


def test_a_question_among_a_function_s_arguments(keeper):
    function(ASKED)
    assert keeper.only.record.query == ASKED


def direct(returns):
    def desk(query: str) -> str:
        return returns(query)

    return FunctionTool.from_defaults(desk, return_direct=True)


def retriever_tool():
    tool = RetrieverTool.from_defaults(Faq(size=1), name="desk", description="d")
    tool.metadata.return_direct = True
    return tool


DIRECT = {
    "a text": lambda: direct(lambda _: ANSWER),
    "a search": lambda: direct(lambda query: Faq(size=1).retrieve(query)[0].text),
    "a retriever": retriever_tool,
}


@pytest.mark.parametrize(
    "tool",
    [
        pytest.param(tool, id=name, marks=TOOLS_KNOW_THEIR_RUN if name == "a search" else ())
        for name, tool in DIRECT.items()
    ],
)
async def test_a_tool_that_answers_itself(keeper, tool):
    calls = ToolCaller(replies=[{"name": "desk", "args": {"query": "x"}}])
    made = tool()
    if isinstance(made, RetrieverTool):
        calls = ToolCaller(replies=[{"name": "desk", "args": {"input": "x"}}])
    answer = str(await FunctionAgent(tools=[made], llm=calls, streaming=False).run(user_msg=ASKED))
    await until(lambda: keeper.runs)
    record = keeper.only.record
    assert (record.query, record.answer, record.is_answer_expected) == (ASKED, answer, True)


class Keeps(Workflow):
    """Keeps its answers in the context, and gives out the last one when its model is down."""

    @step
    async def only(self, ctx: Context, ev: StartEvent) -> StopEvent:
        found = await Faq().aretrieve(ev.query)
        turns = await ctx.store.get("turns", default=[])
        if ev.query == ASKED or ev.get("says", None):
            turns = [*turns, ChatMessage(reply(found, ev.query, ev.get("says", ANSWER)), role="assistant")]
        await ctx.store.set("turns", turns)
        await ctx.store.set("answer", turns[-1].content)
        return StopEvent(result={"messages": turns, "answer": turns[-1].content})


async def turns_of(keeper, **second):
    flow = Keeps()
    ctx = Context(flow)
    await flow.run(query=ASKED, ctx=ctx)
    await flow.run(query=NEXT, ctx=ctx, **second)
    await until(lambda: len(keeper.runs) == 2)
    return [(run.record.query, run.record.answer) for run in keeper.runs]


async def test_an_answer_that_the_context_kept_is_none_of_this_run(keeper):
    assert await turns_of(keeper) == [(ASKED, ANSWER), (NEXT, "")]


async def test_the_same_answer_said_again_is_one(keeper):
    assert await turns_of(keeper, says=ANSWER) == [(ASKED, ANSWER), (NEXT, ANSWER)]


CHECKS = {
    "Fully supported": "Given the response '{answer}' and the context, determine if it is supported by the context.",
    "Yes, the answer is grounded.": "Determine if {answer} is grounded.",
    "Score: 4": "Rate the answer: {answer}",
    '{"binary_score": "no"}': "{answer}",
}


@pytest.mark.parametrize("says", CHECKS)
@pytest.mark.parametrize("is_chat", [False, True])
def test_a_check_behind_the_answer_follows_its_run(keeper, says, is_chat):
    answer = str(engine().query(ASKED))
    prompt = CHECKS[says].format(answer=answer)
    Llm(says=says).chat([ChatMessage(prompt)]) if is_chat else Llm(says=says).complete(prompt)
    first, check = (run.record for run in keeper.runs)
    assert (first.answer, first.signs, check.answer) == (ANSWER, (), says)
    assert [(sign.name, sign.about) for sign in check.signs] == [("follows_answer", first.trace_id)]


def asked_and_checked():
    Llm(says="Yes.").complete(f"Is it grounded? {engine().query(ASKED)}")


def test_the_preview_of_a_check_gives_the_roots_to_declare(keeper, recorder):
    asked_and_checked()
    lines = [preview(run.record.reading) for run in keeper.runs]
    (name,) = keeper.runs[1].record.reading.roots[1:]
    assert "root `" not in lines[0][0]
    assert lines[1][0].endswith("; root `Llm`")
    assert lines[1][2].endswith(f'.  Declare: follows=False.  Where it is no run: roots=["{name}"]')
    keeper.runs.clear()
    with instrumented(recorder, roots=[name]):
        asked_and_checked()
    (only,) = keeper.runs
    assert (only.record.answer, only.record.reading.roots) == (ANSWER, ())


def test_the_engine_behind_another_root_is_named(keeper):
    Llm(says="A title.").complete("Give this talk a title.")
    engine().query(ASKED)
    assert preview(keeper.runs[1].record.reading)[0].endswith("; root `RetrieverQueryEngine`")


@pytest.mark.parametrize("says", CHECKS)
def test_a_check_inside_a_block_leaves_its_answer(keeper, recorder, says):
    with recorder.start(query=ASKED):
        answer = str(engine().query(ASKED))
        Llm(says=says).complete(CHECKS[says].format(answer=answer))
    assert keeper.only.record.answer == ANSWER


@pytest.mark.parametrize("says", ["Oslo.", "28", "Yes.", "A short form of it."])
def test_a_plain_answer_is_a_run(keeper, says):
    Llm(says=says).complete("Tell me of the lab.")
    assert keeper.only.record.answer == says


class Kept(CustomQueryEngine):
    """Asks the engine once, and keeps its response."""

    responses: dict[str, Any] = Field(default_factory=dict)

    def custom_query(self, query_str: str) -> Any:
        if query_str not in self.responses:
            self.responses[query_str] = engine().query(query_str)
        return self.responses[query_str]


def test_a_kept_response_has_its_passages(keeper):
    kept = Kept()
    kept.query(ASKED)
    kept.query(ASKED)
    first, second = (run.record for run in keeper.runs)
    given = [passage.text for passage in first.contexts]
    assert (second.answer, [passage.text for passage in second.pool("retrieved")]) == (ANSWER, given)


def test_two_instrumentations_capture_once(keeper, recorder):
    import ragtrace_llamaindex

    ragtrace_llamaindex.instrument(recorder)
    ragtrace_llamaindex.LlamaIndexInstrumentor().instrument()
    ragtrace_llamaindex.instrument(recorder)
    engine().query(ASKED)
    assert keeper.only.record.query == ASKED


class Piece(Event):
    delta: str


class Reports(Workflow):
    """Streams its report, and ends with a result of its own."""

    ends_with: str = ""

    @step
    async def only(self, ctx: Context, ev: StartEvent) -> StopEvent:
        found = await Faq().aretrieve(ev.question)
        prompt = "\n".join(one.text for one in found) + ev.question
        for part in Llm(says=ANSWER).stream_complete(prompt):
            ctx.write_event_to_stream(Piece(delta=part.delta or ""))
        return StopEvent(result=self.ends_with)


@pytest.mark.parametrize("ends_with", ["", "Saved as report 12."])
async def test_a_report_that_was_streamed_is_the_answer_where_the_result_is_blank(keeper, ends_with):
    workflow = Reports()
    workflow.ends_with = ends_with
    handler = workflow.run(question=ASKED)
    read = "".join([event.delta async for event in handler.stream_events() if isinstance(event, Piece)])
    await handler
    await until(lambda: keeper.runs)
    assert (keeper.only.record.query, keeper.only.record.answer) == (ASKED, ends_with or read)
