"""Applications under the rules of ``langgraph dev``: a line of ``[{"apps": ...}, "FILE FOR THE ANSWER"]`` each.

``langgraph dev`` has blockbuster raise an error at a blocking call on any thread that runs an event loop. An application
asks its questions on such a loop, and the process prints as JSON what came of them. It runs in a process of its own:
blockbuster changes builtin types, and a service is configured once a process. That process is forked from one that has
imported the frameworks and done nothing else, since imports take longer than most tasks.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sqlite3
import sys
import threading
import time
import traceback
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import blockbuster.blockbuster as guard
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

import ragtrace
import ragtrace_langchain
import ragtrace_llamaindex
from ragtrace.capture import internal_errors
from ragtrace.service import baseline_monitor
from ragtrace.service.means import mix
from tests.guards.judge_server import Answer, JudgeServer, completion

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from langchain_core.callbacks import BaseCallbackHandler

# The list of langgraph_runtime_inmem.queue._enable_blockbuster.
ALLOWED = {"os.stat", "os.listdir", "os.remove", "threading.Lock.acquire"}
ALLOWED |= {f"io.{kind}.{do}" for kind in ("BufferedReader", "TextIOWrapper") for do in ("read",)}
ALLOWED |= {f"io.{kind}.{do}" for kind in ("BufferedWriter", "TextIOWrapper") for do in ("write",)}
QUESTION = "How do I cancel?"
FACT = "You can cancel in Settings, under Billing."
ANSWER = "You cancel in Settings, under Billing."
OURS = tuple(f"{Path(one.__file__).parent}{os.sep}" for one in (ragtrace, ragtrace_langchain, ragtrace_llamaindex))
blocked: list[str] = []
logged: list[str] = []


class Noted(guard.BlockingError):
    """A blocking call, noted with the place in ragtrace behind it; an error that is swallowed is seen too."""

    def __init__(self, func: str) -> None:
        super().__init__(func)
        ours = [one for one in traceback.extract_stack() if one.filename.startswith(OURS)]
        if ours:
            blocked.append(f"{func} at {Path(ours[-1].filename).name}:{ours[-1].name}")


def forbid(rules: str) -> None:
    """Forbid what ``langgraph dev`` forbids; with ``files`` all but a wait for a lock, in ragtrace's own calls."""
    guard.BlockingError = Noted  # type: ignore[misc]
    if rules == "files":
        ours = ["ragtrace", "ragtrace_langchain", "ragtrace_llamaindex"]
        rule = guard.BlockBuster(scanned_modules=ours)
        allowed = {"threading.Lock.acquire", "threading.Lock.acquire_lock"}
    else:
        rule = guard.BlockBuster(excluded_modules=[])
        allowed = ALLOWED | {one for one in rule.functions if one.startswith("os.path.")}
    for name in allowed:
        rule.functions.pop(name).deactivate()
    rule.activate()


class Said(logging.Handler):
    """Keeps what ragtrace says from the level of warnings on."""

    def emit(self, record: logging.LogRecord) -> None:
        logged.append(record.getMessage())


# Applications: each asks three questions, unless it says otherwise.


class Help(BaseRetriever):
    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [Document(id="faq-1", page_content=FACT), Document(id="faq-2", page_content="Refunds take 5 days.")]


class State(TypedDict, total=False):
    question: str
    documents: list[Document]
    answer: str


def model() -> FakeListChatModel:
    return FakeListChatModel(responses=[ANSWER])


def chain() -> Any:
    prompt = ChatPromptTemplate.from_messages([("human", "From this:\n{context}\n\n{question}")])
    return {"context": Help(), "question": RunnablePassthrough()} | prompt | model() | StrOutputParser()


def graph(*, is_async: bool = False) -> Any:
    def retrieve(state: State) -> State:
        return {"documents": Help().invoke(state["question"])}

    async def aretrieve(state: State) -> State:
        return {"documents": await Help().ainvoke(state["question"])}

    def told(state: State) -> str:
        texts = "\n".join(one.page_content for one in state["documents"])
        return f"From this:\n{texts}\n\n{state['question']}"

    def generate(state: State) -> State:
        return {"answer": str(model().invoke(told(state)).content)}

    async def agenerate(state: State) -> State:
        return {"answer": str((await model().ainvoke(told(state))).content)}

    built = StateGraph(State)
    built.add_node("retrieve", aretrieve if is_async else retrieve)
    built.add_node("generate", agenerate if is_async else generate)
    built.add_edge(START, "retrieve")
    built.add_edge("retrieve", "generate")
    built.add_edge("generate", END)
    return built.compile(checkpointer=InMemorySaver(), name="help-centre")


def thread(i: int) -> Any:
    return {"configurable": {"thread_id": f"t-{i}"}}


async def chain_ainvoke() -> list[str]:
    return [await chain().ainvoke(QUESTION) for _ in range(3)]


async def chain_together() -> list[str]:
    return await chain().abatch([QUESTION] * 3)


async def chain_invoke_on_the_loop() -> list[str]:
    return [chain().invoke(QUESTION) for _ in range(3)]


async def chain_invoke_in_a_thread() -> list[str]:
    return [await asyncio.to_thread(chain().invoke, QUESTION) for _ in range(3)]


async def chain_astream() -> list[str]:
    return ["".join([piece async for piece in chain().astream(QUESTION)]) for _ in range(3)]


async def chain_events() -> list[str]:
    said = []
    for _ in range(3):
        events = [one async for one in chain().astream_events(QUESTION, version="v2")]
        said.append(events[-1]["data"]["output"])
    return said


async def graph_ainvoke() -> list[str]:
    app = graph()
    return [(await app.ainvoke({"question": QUESTION}, thread(i)))["answer"] for i in range(3)]


async def graph_of_coroutines() -> list[str]:
    app = graph(is_async=True)
    return [(await app.ainvoke({"question": QUESTION}, thread(i)))["answer"] for i in range(3)]


async def graph_in_a_thread() -> list[str]:
    app = graph()
    return [(await asyncio.to_thread(app.invoke, {"question": QUESTION}, thread(i)))["answer"] for i in range(3)]


async def graph_astream() -> list[str]:
    app, said = graph(is_async=True), []
    for i in range(3):
        states = [one async for one in app.astream({"question": QUESTION}, thread(i), stream_mode="values")]
        said.append(states[-1]["answer"])
    return said


async def graph_events() -> list[str]:
    app, said = graph(is_async=True), []
    for i in range(3):
        events = [one async for one in app.astream_events({"question": QUESTION}, thread(i), version="v2")]
        said.append(events[-1]["data"]["output"]["answer"])
    return said


async def agent_ainvoke() -> list[str]:
    from langchain.agents import create_agent
    from langchain_core.tools import create_retriever_tool

    said = []
    for _ in range(3):
        call = {"name": "help", "args": {"query": QUESTION}, "id": "c1", "type": "tool_call"}
        replies = iter([AIMessage("", tool_calls=[call]), AIMessage(ANSWER)])

        class Caller(GenericFakeChatModel):
            def bind_tools(self, *_: Any, **__: Any) -> Any:
                return self

        agent: Any = create_agent(
            Caller(messages=replies), [create_retriever_tool(Help(), "help", "The help pages.")]
        )
        found = await agent.ainvoke({"messages": [("human", QUESTION)]})
        said.append(str(found["messages"][-1].content))
    return said


async def handler_made_on_the_loop() -> list[str]:
    ragtrace_langchain.uninstrument()
    said = []
    for _ in range(3):
        handlers: list[BaseCallbackHandler] = [ragtrace_langchain.RagtraceHandler()]
        said.append(await chain().ainvoke(QUESTION, {"callbacks": handlers}))
    return said


async def by_hand(answers: list[str] | None = None) -> list[str]:
    said = answers or [ANSWER] * 3
    for i, answer in enumerate(said):
        async with ragtrace.query(QUESTION, session=f"s-{i}") as run:
            run.retrieved([{"id": "faq-1", "text": FACT}])
            run.answered(answer)
            await asyncio.sleep(0)
    return said


async def by_hand_with_feedback() -> list[str]:
    for _ in range(3):
        async with ragtrace.query(QUESTION) as run:
            run.retrieved([{"id": "faq-1", "text": FACT}])
            run.answered(ANSWER)
            run.feedback(1.0)
        assert ragtrace.feedback(run.trace_id, 0.5, metric="faithfulness", rater="ada")
    return [ANSWER] * 3


async def slowly() -> list[str]:
    """Ask for longer than the scorer's rounds of a second take."""
    said = []
    for _ in range(3):
        said.append(await chain().ainvoke(QUESTION))
        await asyncio.sleep(1.5)
    return said


async def engine_aquery() -> list[str]:
    return [str(await _engine().aquery(QUESTION)) for _ in range(3)]


async def engine_query_in_a_thread() -> list[str]:
    return [str(await asyncio.to_thread(_engine().query, QUESTION)) for _ in range(3)]


async def workflow_run() -> list[str]:
    from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step

    class Flow(Workflow):
        @step
        async def answer(self, ev: StartEvent) -> StopEvent:
            return StopEvent(result=str(await _engine().aquery(ev.get("query"))))

    return [str(await Flow(timeout=20).run(query=QUESTION)) for _ in range(3)]


def _engine() -> Any:
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.response_synthesizers import get_response_synthesizer
    from llama_index.core.retrievers import BaseRetriever as Retriever
    from llama_index.core.schema import NodeWithScore, TextNode

    from tests.apps.llamaindex_parts import Replies

    class Pages(Retriever):
        def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
            return [NodeWithScore(node=TextNode(id_="faq-1", text=FACT), score=0.9)]

    writer = get_response_synthesizer(llm=Replies(rules=[("", ANSWER)]), response_mode="compact")
    return RetrieverQueryEngine(Pages(), response_synthesizer=writer)


APPLICATIONS: dict[str, Callable[[], Awaitable[list[str]]]] = {
    one.__name__: one
    for one in (
        chain_ainvoke, chain_together, chain_invoke_on_the_loop, chain_invoke_in_a_thread, chain_astream, chain_events,
        graph_ainvoke, graph_of_coroutines, graph_in_a_thread, graph_astream, graph_events, agent_ainvoke,
        handler_made_on_the_loop, by_hand, by_hand_with_feedback, slowly, engine_aquery,
        engine_query_in_a_thread, workflow_run,
    )
}  # fmt: skip


# The process


def judged(_: Any) -> Answer:
    """A reply that fits each prompt of the default metrics."""
    reply = {
        "sufficient": True, "attempted": True, "noncommittal": False, "claims": ["The setting is under Billing."],
        "verdicts": [{"id": 1, "verdict": "supported", "sources": [1], "reason": ""}], "citations": [],
        "grades": [{"id": i, "grade": 4} for i in (1, 2)], "grade": 4, "reason": "",
        "questions": [{"question": QUESTION, "noncommittal": False}] * 3,
    }  # fmt: skip
    return Answer(200, completion(reply))


def written(path: str) -> dict[str, Any]:
    """Return what a store holds."""
    if not Path(path).exists():
        return {}
    with closing(sqlite3.connect(path)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if not {"runs", "scored"} <= tables:
            return {}
        one = "SELECT count(*) FROM scored WHERE name = 'faithfulness' AND state = 'ok' AND source != 'human'"
        asked = {
            "runs": "SELECT count(DISTINCT run) FROM scored WHERE source != 'human'",
            "scores": "SELECT count(*) FROM scored WHERE source != 'human'",
            "faithful": one,
            "people": "SELECT count(*) FROM scored WHERE source = 'human'",
            "errors": "SELECT count(*) FROM scored WHERE state = 'error'",
        }
        return {name: connection.execute(query).fetchone()[0] for name, query in asked.items()}


async def ask(task: dict[str, Any]) -> dict[str, Any]:
    """Ask on this loop, and end as the task says: in a thread (``thread``), or by calls on the loop itself."""
    if task.get("how") == "inside":
        ragtrace.configure(**task["settings"])
    said = [answer for app in task["apps"] for answer in await APPLICATIONS[app]()]
    if task.get("again"):  # configured anew while the loop runs
        ragtrace.configure(**task["settings"])
        said += [answer for app in task["apps"] for answer in await APPLICATIONS[app]()]
    ends = task.get("ends", "thread")
    done: dict[str, Any] = {"said": said}
    if ends == "thread":
        done["flushed"] = await asyncio.to_thread(ragtrace.flush, 20)
    elif ends == "flush on the loop":
        done["flushed"] = ragtrace.flush(20)
    elif ends == "shutdown on the loop":
        done["ended"] = ragtrace.shutdown(20)
    elif ends == "all on the loop":
        done["flushed"], done["ended"] = ragtrace.flush(20), ragtrace.shutdown(20)
    elif ends == "shutdown in a thread":
        done["ended"] = await asyncio.to_thread(ragtrace.shutdown, 20)
    return done


def asked(task: dict[str, Any]) -> dict[str, Any]:
    """Ask on the loop of this thread, or on three loops in threads of their own."""
    if not task.get("loops"):
        return asyncio.run(ask(task))
    found: list[dict[str, Any]] = []
    threads = [threading.Thread(target=lambda: found.append(asyncio.run(ask(task)))) for _ in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return {name: [it[name] for it in found] for name in found[0]}


def main(task: dict[str, Any]) -> dict[str, Any]:
    logging.getLogger("ragtrace").addHandler(Said(logging.WARNING))
    settings: dict[str, Any] = {"sample_rate": 1.0, "content": "full", **task.get("settings", {})}
    server = None
    if task.get("judge"):
        server = JudgeServer(judged)
        prices = {"price_input_usd_per_million": 1.0, "price_output_usd_per_million": 2.0}
        settings |= {"judge": "openai:m", "judge_base_url": server.url, "judge_api_key": "k", **prices}
    task["settings"] = settings
    if "learnt" in task:  # runs that a mix and a baseline are learnt from
        mix.LEARNT_RUNS = baseline_monitor.LEARNT_SCORES = task["learnt"]
    how = task.setdefault("how", "hand")
    if how == "hand":
        ragtrace.configure(**settings)
    elif how == "environment":
        os.environ.update({f"RAGTRACE_{name.upper()}": str(value) for name, value in settings.items()})
    ragtrace_langchain.instrument()
    if any(app.startswith(("engine", "workflow")) for app in task["apps"]):
        ragtrace_llamaindex.instrument()
    if task.get("rules") != "none":
        forbid(task.get("rules", "dev"))
    began = time.monotonic()
    done = asked(task)
    done["took_s"] = time.monotonic() - began
    if "ended" not in done:
        done["ended"] = ragtrace.shutdown(20)
    if server is not None:
        server.stop()
    own = {"blocked": sorted(set(blocked)), "logged": logged, "internal": internal_errors()}
    return {**done, **own, "store": written(settings["store"])}


def answered(task: dict[str, Any], path: Path) -> None:
    """End this process after a task, what it has to tell in a file: the answer as JSON, or why there is none."""
    sys.stdout = sys.stderr = path.open("w", encoding="utf-8", buffering=1)
    try:
        told = main(task)
        sys.stdout.write(f"\n{json.dumps(told)}\n")
        sys.stdout.flush()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def serve() -> None:
    """Run the tasks of standard input, a line each, in a child each: the frameworks are imported once for all."""
    for line in sys.stdin:
        task, path = json.loads(line)
        child = os.fork()
        if child == 0:
            answered(task, Path(path))
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
