"""Each value is read once: the work of a turn does not grow with the turns before it."""

from __future__ import annotations

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step

from integrations.llamaindex.tests.parts import Best, Faq, ToolCaller, nodes
from ragtrace.capture import Recorder
from ragtrace.capture.events import Redactor
from ragtrace_llamaindex import calls, instrumented
from ragtrace_llamaindex import values as module
from ragtrace_llamaindex.messages import with_pictures
from ragtrace_llamaindex.values import Values
from tests.kept import ANSWER, Waiting


async def search(query: str) -> str:
    """Search the manual."""
    return f"The manual says {query}."


async def agent(turns, _recorder):
    tools = [FunctionTool.from_defaults(async_fn=search, name="search", description="Searches.")]
    replies = [{"name": "search", "args": {"query": f"v{turn}"}} for turn in range(turns)]
    model = ToolCaller(replies=[*replies, ANSWER])
    await FunctionAgent(tools=tools, llm=model, streaming=False, timeout=None).run("Where?", max_iterations=10_000)


async def loop(turns, recorder):
    found, said, model = [], [], ToolCaller(replies=[ANSWER] * turns)
    with recorder.start(query="Where?"):
        for turn in range(turns):
            found = found + Faq(size=3, prefix=f"{turn}-").retrieve("Where?")
            kept = Best().postprocess_nodes(found, query_str="Where?")
            said = [*said, ChatMessage(role="user", content=kept[0].text)]
            said = [*said, model.chat(said).message]


class Turn(Event):
    said: list[ChatMessage]


class Talk(Workflow):
    """An agent that is written by hand: its events hold all that was said."""

    turns: int = 0
    model: ToolCaller

    @step
    async def begin(self, event: StartEvent) -> Turn:
        return Turn(said=[ChatMessage(role="user", content=event.question)])

    @step
    async def answer(self, event: Turn) -> Turn | StopEvent:
        reply = self.model.chat(event.said).message
        said = [*event.said, reply, ChatMessage(role="user", content=f"Go on {len(event.said)}.")]
        return StopEvent(result=reply.content) if len(said) > 2 * self.turns else Turn(said=said)


async def talk(turns, _recorder):
    workflow = Talk(timeout=None)
    workflow.turns, workflow.model = turns, ToolCaller(replies=[ANSWER] * turns)
    await workflow.run(question="Where?")


@pytest.mark.parametrize("asks", [agent, loop, talk])
@pytest.mark.parametrize("redact", [None, str.upper], ids=["plain", "redacted"])
async def test_the_work_of_a_turn_does_not_grow(monkeypatch, asks, redact):
    read = []
    counted = ((Values, "_part"), (Values, "_document"), (Values, "turn"), (Redactor, "_of"))
    for kind, name in (*counted, (calls, "with_pictures"), (module, "copied")):
        inner = getattr(kind, name)
        monkeypatch.setattr(kind, name, lambda *given, inner=inner: read.append(1) or inner(*given))

    async def values_of_a_turn(turns):
        read.clear()
        recorder = Recorder(Waiting(), redact=redact)
        with instrumented(recorder):
            await asks(turns, recorder)
        return len(read) / turns

    assert 0 < await values_of_a_turn(100) <= 1.1 * await values_of_a_turn(25)


def test_scores_that_are_written_into_all_nodes_of_a_long_list():
    values, found = Values(), nodes(size=200)
    values.documents(found)
    for i, node in enumerate(found):
        node.score = i / 200
    assert [one.score for one in values.documents([*found])] == [i / 200 for i in range(200)]


@pytest.mark.parametrize("is_set", [True, False])
def test_a_text_that_is_changed_in_a_node(is_set):
    values, found = Values(), [NodeWithScore(node=TextNode(text=f"Passage {i}.")) for i in range(99)]
    values.documents(found)
    if is_set:
        found[3].node.text = "Changed."
    else:
        found[3].node = TextNode(text="Changed.")
    assert values.documents([*found])[3].text == "Changed."


@pytest.mark.parametrize("is_set", [True, False])
def test_one_old_message_that_is_changed_before_a_prompt(is_set):
    values, messages = Values(), [ChatMessage(role="user", content=f"Turn {i}.") for i in range(200)]
    values.prompt(messages, with_pictures)
    if is_set:
        messages[7].content = "Forgotten."
    else:
        messages[7].blocks[0].text = "Forgotten."
    (shown,) = values.prompt([*messages], with_pictures)[7:8]
    assert (shown.message.content, shown.turn.content) == ("Forgotten.", "Forgotten.")
