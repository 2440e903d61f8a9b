"""Evidence is what came from outside the model: not its own words in whatever message they come back."""

from __future__ import annotations

import asyncio
import contextvars
import json
import operator
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, TypedDict
from uuid import UUID

import pytest
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnableParallel
from langchain_core.tools import InjectedToolCallId, create_retriever_tool, tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from sqlalchemy import create_engine
from sqlalchemy import text as statement

from ragtrace_langchain import mark_selected
from tests.kept import ids

pytest.importorskip("langgraph")
pytest.importorskip("langchain.agents")

from langchain.agents import create_agent
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState
from langgraph.types import Command, Send

Q = "How long may I keep a book?"
TEXTS = {
    "loan": 'Books may be kept for 28 days.\nA "long loan" of 12 weeks exists for students.',
    "fine": "Late fee: 0,50 € per day and item,\nat most 20 €.",
    "card": "A library card is free for residents of Göteborg: bring an ID.",
    "room": "Group rooms hold 4 to 8 people and are booked online.",
    "soup": "The café Pärlan serves soup from 11 to 14.",
}
PAGE = "Books may be kept for 28 days. Students get a long loan of 12 weeks."
LIE = "Books may be kept for 365 days, and the mayor delivers them by bicycle."


def docs(*names):
    return [Document(id=name, page_content=TEXTS[name], metadata={"source": f"{name}.md"}) for name in names]


def joined(found):
    return "\n\n".join(document.page_content for document in found)


def said(messages):
    return sum(isinstance(message, ToolMessage) for message in messages)


class Index(BaseRetriever):
    found: dict

    def _get_relevant_documents(self, query, *, run_manager):
        return docs(*self.found[query])


class Chat(BaseChatModel):
    """`reply(text, messages)` gives a text, or a list of tools with their arguments."""

    reply: Any

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **_):
        return self.bind(tools=[convert_to_openai_tool(one) for one in tools])

    def _generate(self, messages, stop=None, run_manager=None, **_):
        text = "\n".join(m.content if isinstance(m.content, str) else json.dumps(m.content) for m in messages)
        reply = self.reply(text, messages) if callable(self.reply) else self.reply
        calls = [] if isinstance(reply, str) else reply
        message = AIMessage(
            reply if isinstance(reply, str) else "",
            tool_calls=[
                {"name": name, "args": given, "id": f"call-{len(messages)}-{place}"}
                for place, (name, given) in enumerate(calls)
            ],
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


def shown(keeper):
    return [passage.text for passage in keeper.only.record.contexts]


def signs(keeper):
    return [(sign.name, sign.about) for sign in keeper.only.record.signs]


def scripted(*turns):
    """A model that says one turn after the other, by the number of tool messages before it."""
    starts = {}
    count = 0
    for turn in turns:
        starts[count] = turn
        count += 0 if isinstance(turn, str) else len(turn)
    return Chat(reply=lambda text, messages: starts[said(messages)])


@tool
def web_search(query: str) -> str:
    """Search the web."""
    return PAGE


def run_tool(config, one, arguments, *, answer=LIE):
    """Run an agent that searches, calls a tool with arguments, and answers."""
    model = scripted([("web_search", {"query": "loans"})], [(one.name, arguments)], answer)
    create_agent(model, [web_search, one]).invoke({"messages": [HumanMessage(Q)]}, config)


def tool_named(name, value):
    @tool(name)
    def one(text: str, other: str = "") -> Any:
        """Do it."""
        return value(text) if callable(value) else value

    return one


REPEATS = {
    "as it is": ("think", lambda text: text),
    "behind a frame": ("think_tool", lambda text: f"Reflection recorded: {text}"),
    "in a sentence": ("f", lambda text: f"I have noted that {text}"),
    "in capitals": ("note", lambda text: text.upper()),
    "cut": ("note", lambda text: f"Noted: {text[:50]}..."),
    "as JSON": ("save_memory", lambda text: json.dumps({"status": "saved", "memory": text, "id": "m-17"})),
    "as an object": ("save_memory", lambda text: {"ok": True, "note": text}),
    "with an id of its own": ("save_memory", lambda text: {"id": "m-17", "text": text}),
    "as a list": ("add_note", lambda text: [{"id": 1, "content": text}]),
    "escaped": ("scratchpad", lambda text: json.dumps(text.replace(", ", ",\n"))),
    "a document": ("save_memory", lambda text: [Document(page_content=text)]),
    "reordered": ("plan", lambda text: f"{text.split(', ')[1]} / {text.split(', ')[0]}"),
    "only a word": ("f", lambda text: "ok"),
    "nothing": ("f", lambda text: ""),
    "none": ("f", lambda text: None),
    "Saved.": ("f", lambda text: "Saved."),
    "only a status": ("f", lambda text: {"status": "ok"}),
    "a count": ("write_file", lambda text: f"Wrote {len(text)} characters to notes"),
}


@pytest.mark.parametrize("name", REPEATS)
def test_a_result_that_repeats_the_arguments_is_no_evidence(keeper, config, name):
    run_tool(config, tool_named(*REPEATS[name]), {"text": LIE})
    assert shown(keeper) == [PAGE]


def test_a_receipt_that_a_reply_has_a_word_of_is_evidence_by_guess(keeper, config):
    receipt = "Meeting of the books club is set for May 16 at 14 with 2 people"
    run_tool(config, tool_named("schedule", lambda _: receipt), {"text": "May 16"})
    assert shown(keeper) == [PAGE, receipt]
    assert ("tool_text_guessed", "tool schedule") in signs(keeper)


def test_two_arguments_in_another_order(keeper, config):
    @tool
    def note(first: str, second: str) -> str:
        """Note."""
        return f"{second}\n---\n{first}"

    first, second = LIE.split(", and ")
    run_tool(config, note, {"first": first, "second": second})
    assert shown(keeper) == [PAGE]


FACTS = {
    "a number that was computed": ("multiply", {"text": "3", "other": "4"}, "12"),
    "an equation": ("calculator", {"text": "3 * 4"}, "3 * 4 = 12"),
    "today": ("current_date", {"text": ""}, "2026-11-27"),
    "a time": ("ferry", {"text": "May 16"}, "On May 16 at 14"),
    "the weather": ("get_weather", {"text": "Oslo"}, "It's always sunny in Oslo!"),
    "an order": ("order", {"text": "7"}, "7: shipped"),
    "a state": ("check_order", {"text": "7"}, "done"),
    "other JSON": ("order", {"text": "7"}, '{"order": "7", "status": "shipped"}'),
    "a query that is repeated": ("kb", {"text": "How late may I be?"}, "Results for 'How late may I be?': 3 days."),
}


@pytest.mark.parametrize("name", FACTS)
def test_what_a_tool_says_itself_is_evidence(keeper, config, name):
    called, arguments, text = FACTS[name]
    run_tool(config, tool_named(called, lambda _: text), arguments, answer=f"28 days. It is so: {text}")
    assert shown(keeper) == [PAGE, text]


PARCEL = "Parcel left Bergen harbour on Monday morning."


def test_a_text_of_which_no_reply_has_a_word_is_left_out_beside_others(keeper, config):
    run_tool(config, tool_named("order", lambda _: PARCEL), {"text": "7"})
    assert (shown(keeper), signs(keeper)) == (
        [PAGE],
        [("tool_unused", "tool order"), ("tool_text_guessed", "tool web_search")],
    )


def test_a_text_of_which_no_reply_has_a_word_counts_alone(keeper, config):
    model = scripted([("order", {"text": "7"})], LIE)
    create_agent(model, [tool_named("order", lambda _: PARCEL)]).invoke({"messages": [HumanMessage(Q)]}, config)
    assert (shown(keeper), signs(keeper)) == (
        [PARCEL],
        [("tool_unused", "tool order"), ("tool_text_guessed", "tool order")],
    )


def test_a_few_words_that_no_reply_says_are_no_evidence(keeper, config):
    run_tool(config, tool_named("order", lambda _: "7: shipped"), {"text": "7"}, answer="Nothing is known of it.")
    assert shown(keeper) == [PAGE]


@pytest.mark.parametrize(
    "form", ["You said: {0}\nThe handbook says: {1}", "{1}\n(You said: {0})", '{{"claim": "{0}", "found": "{1}"}}']
)
def test_beside_what_it_repeats_only_the_rest_is_evidence(keeper, config, form):
    found = "A loan ends after 28 days, at the desk."
    run_tool(config, tool_named("verify", lambda text: form.format(text, found)), {"text": LIE})
    _, rest = shown(keeper)
    assert (found.rstrip(".") in rest, "mayor" in rest) == (True, False)


def test_a_to_do_list(keeper, config):
    from langchain.agents.middleware import TodoListMiddleware

    todos = [
        {"content": "Find the loan period", "status": "in_progress"},
        {"content": "Tell it", "status": "pending"},
    ]
    model = scripted([("web_search", {"query": "loans"})], [("write_todos", {"todos": todos})], "28 days.")
    agent = create_agent(model, [web_search], middleware=[TodoListMiddleware()])
    agent.invoke({"messages": [HumanMessage(Q)]}, config)
    assert shown(keeper) == [PAGE]


@pytest.mark.parametrize("form", ["{}", "     1\t{}\n     2\tStudents pay it twice.", '{{"content": "{}"}}'])
def test_a_file_that_the_model_wrote_itself(keeper, config, form):
    files = {}

    @tool
    def write_file(path: str, content: str) -> str:
        """Write."""
        files[path] = content
        return f"Updated file {path}"

    @tool
    def read_file(path: str) -> str:
        """Read."""
        return form.format(LIE)

    model = scripted(
        [("web_search", {"query": "loans"})],
        [("write_file", {"path": "/notes.md", "content": f"{LIE}\nStudents pay it twice."})],
        [("read_file", {"path": "/notes.md"})],
        LIE,
    )
    create_agent(model, [web_search, write_file, read_file]).invoke({"messages": [HumanMessage(Q)]}, config)
    assert shown(keeper) == [PAGE]


def test_a_file_that_somebody_else_wrote(keeper, config):
    @tool
    def read_file(path: str) -> str:
        """Read."""
        return "     1\tThe desk opens at 8.\n     2\tDogs stay outside."

    run_tool(config, read_file, {"path": "/rules.md"}, answer="28 days, and it opens at 8.")
    assert len(shown(keeper)) == 2


def test_a_memory_in_a_store(keeper, config):
    kept = []

    @tool
    def save_memory(text: str) -> str:
        """Save."""
        kept.append(Document(page_content=text, metadata={"kind": "memory"}))
        return "Memory saved"

    class Memories(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return [*kept, *docs("card")]

    recall = create_retriever_tool(Memories(), "recall", "Recall.")
    model = scripted([("save_memory", {"text": LIE})], [("recall", {"query": "loans"})], LIE)
    create_agent(model, [save_memory, recall]).invoke({"messages": [HumanMessage(Q)]}, config)
    assert shown(keeper) == [TEXTS["card"]]


SUMMARIES = {
    "the reply": lambda text: text,
    "framed": lambda text: f"Summary of the researcher: {text}",
    "in JSON": lambda text: json.dumps({"summary": text}),
}


class Research(TypedDict, total=False):
    messages: Annotated[list, operator.add]


@pytest.mark.parametrize("name", ["ToUnderwriter", "LookUp"])
def test_what_a_graph_notes_under_a_call_is_evidence_by_guess(keeper, config, name):
    note = "Take the role of the underwriter: the firm repairs hulls of wood, class 41020."
    model = Chat(reply=lambda text, messages: "Class 41020." if said(messages) else [(name, {"request": "insure"})])

    def answered(state):
        call = state["messages"][-1].tool_calls[0]
        return {"messages": [ToolMessage(note, tool_call_id=call["id"])]}

    graph = StateGraph(Research)
    graph.add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("enter", answered)
    graph.add_edge(START, "agent")
    graph.add_edge("enter", "agent")
    graph.add_conditional_edges("agent", lambda s: "enter" if s["messages"][-1].tool_calls else END)
    graph.compile().invoke({"messages": [HumanMessage("Insure us.")]}, config)
    assert (shown(keeper), keeper.only.record.answer) == ([note], "Class 41020.")
    assert signs(keeper) == [("tool_text_guessed", f"tool {name}")]


@pytest.mark.parametrize("form", SUMMARIES)
@pytest.mark.parametrize("summary", [LIE, "The handbook says 28 days."])
def test_a_summary_that_a_node_puts_into_a_tool_message(keeper, config, form, summary):
    index = Index(found={"loans": ["loan"]})
    model = Chat(
        reply=lambda text, messages: (
            summary if "COMPRESS" in text or said(messages) else [("ConductResearch", {"topic": "loans"})]
        )
    )

    def researcher(state):
        found = model.invoke([SystemMessage("COMPRESS"), HumanMessage(joined(index.invoke("loans")))])
        call = state["messages"][-1].tool_calls[0]
        return {
            "messages": [ToolMessage(SUMMARIES[form](found.content), name=call["name"], tool_call_id=call["id"])]
        }

    graph = StateGraph(Research)
    graph.add_node("supervisor", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("researcher", researcher)
    graph.add_edge(START, "supervisor")
    graph.add_edge("researcher", "supervisor")
    graph.add_conditional_edges("supervisor", lambda s: "researcher" if s["messages"][-1].tool_calls else END)
    graph.compile().invoke({"messages": [HumanMessage(Q)]}, config)
    assert shown(keeper) == [TEXTS["loan"]]


@pytest.mark.parametrize("result", ["content", "message", "state"])
def test_a_sub_agent_in_a_tool(keeper, config, result):
    inner = create_agent(scripted([("web_search", {"query": "loans"})], LIE), [web_search])

    @tool
    def ask_researcher(question: str) -> Any:
        """Ask."""
        state = inner.invoke({"messages": [HumanMessage(question)]})
        last = state["messages"][-1]
        return {"content": last.content, "message": last, "state": f"Report: {last.content}"}[result]

    model = scripted([("ask_researcher", {"question": "How long?"})], LIE)
    create_agent(model, [ask_researcher]).invoke({"messages": [HumanMessage(Q)]}, config)
    assert shown(keeper) == [PAGE]


def hand_off(name, to, *, note="Successfully transferred to {}", graph=Command.PARENT):
    @tool(name)
    def transfer(state: Annotated[dict, InjectedState], tool_call_id: Annotated[str, InjectedToolCallId]) -> Any:
        """Hand over."""
        message = ToolMessage(note.format(to), name=name, tool_call_id=tool_call_id)
        return Command(goto=to, graph=graph, update={"messages": [*state["messages"], message]})

    return transfer


def skip_where_agents_stay(app, given):
    try:
        app.invoke(given)
    except GraphRecursionError:
        pytest.skip("in this langgraph an agent goes on behind a hand-off of its tool")


@pytest.mark.parametrize(
    "note", ["Successfully transferred to {}", "Over to you, dear {}!", "Task: find the loan period"]
)
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_hand_off_by_a_command(keeper, config, note, is_async):
    kb = create_retriever_tool(Index(found={"loans": ["loan", "card", "fine"]}), "kb", "Search.")
    researcher = create_agent(
        Chat(
            reply=lambda t, m: "The handbook says 28 days." if "Books may be" in t else [("kb", {"query": "loans"})]
        ),
        [kb],
        name="researcher",
    )
    supervisor = create_agent(
        Chat(reply=lambda t, m: "28 days." if "The handbook says" in t else [("transfer_to_researcher", {})]),
        [hand_off("transfer_to_researcher", "researcher", note=note)],
        name="supervisor",
    )
    graph = StateGraph(MessagesState)
    graph.add_node("supervisor", supervisor, destinations=("researcher", END))
    graph.add_node("researcher", researcher)
    graph.add_edge(START, "supervisor")
    graph.add_edge("researcher", "supervisor")
    app, given = graph.compile(name="team"), {"messages": [HumanMessage(Q)]}
    skip_where_agents_stay(app, given)
    await app.ainvoke(given, config) if is_async else app.invoke(given, config)
    assert shown(keeper) == [TEXTS[name] for name in ("loan", "card", "fine")]


def test_agents_that_hand_over_to_each_other_keep_the_passages_before(keeper, config):
    """As a swarm does: the one that searched hands over, and the other answers from the history."""
    kb = create_retriever_tool(Index(found={"loans": ["loan"]}), "kb", "Search.")
    first = create_agent(
        Chat(reply=lambda t, m: [("transfer_to_bob", {})] if "Books may be" in t else [("kb", {"query": "loans"})]),
        [kb, hand_off("transfer_to_bob", "bob")],
        name="alice",
    )
    second = create_agent(Chat(reply="28 days."), [hand_off("transfer_to_alice", "alice")], name="bob")
    graph = StateGraph(MessagesState)
    graph.add_node("alice", first, destinations=("bob", END))
    graph.add_node("bob", second)
    graph.add_edge(START, "alice")
    app, given = graph.compile(), {"messages": [HumanMessage(Q)]}
    skip_where_agents_stay(app, given)
    app.invoke(given, config)
    assert (shown(keeper), keeper.only.prompt_ids) == ([TEXTS["loan"]], ("loan",))


@pytest.mark.parametrize("is_search", [True, False])
def test_a_history_that_is_forwarded_repeats_no_evidence(keeper, config, is_search):
    kb = create_retriever_tool(Index(found={"loans": ["loan"]}), "kb", "Search.") if is_search else web_search
    called = "kb" if is_search else "web_search"

    def researcher(state):
        inner = create_agent(scripted([(called, {"query": "loans"})], "The handbook says 28 days."), [kb])
        return {"messages": inner.invoke({"messages": state["messages"]})["messages"]}

    def writer(state):
        copied = [
            ToolMessage(m.content, name=m.name, tool_call_id=f"copy-{m.tool_call_id}")
            if isinstance(m, ToolMessage)
            else AIMessage("", tool_calls=[{**call, "id": f"copy-{call['id']}"} for call in m.tool_calls])
            if isinstance(m, AIMessage)
            else m
            for m in state["messages"]
        ]
        return {"messages": [Chat(reply="28 days.").invoke(copied)]}

    graph = StateGraph(Research)
    graph.add_node("researcher", researcher)
    graph.add_node("writer", writer)
    graph.add_edge(START, "researcher")
    graph.add_edge("researcher", "writer")
    graph.compile().invoke({"messages": [HumanMessage(Q)]}, config)
    assert shown(keeper) == [TEXTS["loan"] if is_search else PAGE]


def test_a_command_that_updates_more_than_messages(keeper, config):
    @tool
    def lookup_user(tool_call_id: Annotated[str, InjectedToolCallId]) -> Any:
        """Look up."""
        note = ToolMessage("Ada is a student of Lund.", tool_call_id=tool_call_id)
        return Command(update={"messages": [note], "jump_to": None})

    model = scripted([("lookup_user", {})], "12 weeks.")
    create_agent(model, [lookup_user]).invoke({"messages": [HumanMessage(Q)]}, config)
    assert shown(keeper) == ["Ada is a student of Lund."]


def test_documents_that_a_model_wrote_are_none(keeper, config):
    class State(TypedDict, total=False):
        question: str
        documents: list
        answer: str

    model = Chat(reply=lambda text, _: LIE if "Imagine" in text else "28 days.")
    graph = StateGraph(State)
    graph.add_node("imagine", lambda s: {"documents": [Document(model.invoke("Imagine a page").content)]})
    graph.add_node("answer", lambda s: {"answer": model.invoke(joined(s["documents"])).content})
    graph.add_edge(START, "imagine")
    graph.add_edge("imagine", "answer")
    graph.compile().invoke({"question": Q}, config)
    assert LIE not in shown(keeper)


# --- extracts


def extracted(document):
    return document.page_content.split("\n")[0]


CUTS = {
    "a new document": lambda found: [Document(page_content=extracted(d)) for d in found],
    "with its metadata": lambda found: [Document(page_content=extracted(d), metadata=d.metadata) for d in found],
    "with its id": lambda found: [d.model_copy(update={"page_content": extracted(d)}) for d in found],
    "texts": lambda found: [extracted(d) for d in found],
    "with a header": lambda found: [
        Document(page_content=f"Source: {d.metadata['source']}\n{d.page_content}") for d in found
    ],
    "widened": lambda found: [
        Document(page_content=f"{d.page_content}\nThis page was checked in May, by the desk.") for d in found
    ],
    "in lower case": lambda found: [
        Document(page_content=extracted(d).lower(), metadata=d.metadata) for d in found
    ],
    "summarised": lambda found: [
        Document(page_content=f"In short: {' '.join(extracted(d).split()[:4])}", metadata={**d.metadata, "n": 1})
        for d in found
    ],
    "in two parts": lambda found: [
        Document(page_content=part, metadata=d.metadata) for d in found for part in d.page_content.split("\n")
    ],
    "in one text": lambda found: [Document(page_content=joined(found))],
    "sentences as mappings": lambda found: [{"text": extracted(d), "source": d.metadata["source"]} for d in found],
}


def cutting(cut, *, keeps):
    return Index(found={Q: ["loan", "card", "fine", "room"]}) | RunnableLambda(
        lambda found: cut([d for d in found if d.id in keeps]), name="cut"
    )


@pytest.mark.parametrize("name", CUTS)
@pytest.mark.parametrize("keeps", [("loan", "fine"), ("loan", "card", "fine", "room")])
def test_an_extract_keeps_the_id_of_its_passage(keeper, config, name, keeps):
    def text_of(found):
        return "\n\n".join(
            d if isinstance(d, str) else d["text"] if isinstance(d, dict) else d.page_content for d in found
        )

    chain = cutting(CUTS[name], keeps=keeps) | RunnableLambda(text_of, name="format") | Chat(reply="28 days.")
    chain.invoke(Q, config)
    run = keeper.only
    assert ids(run, "retrieved") == ["loan", "card", "fine", "room"]
    assert (ids(run, "reranked") or ids(run, "retrieved")) == list(keeps)
    assert run.prompt_ids == tuple(keeps)
    assert run.record.signs == ()


@pytest.mark.parametrize("name", CUTS)
def test_an_extract_in_a_graph_s_state_keeps_the_id_of_its_passage(keeper, config, name):
    class State(TypedDict, total=False):
        question: str
        documents: list
        best: list
        answer: str

    def text_of(found):
        return "\n\n".join(
            d if isinstance(d, str) else d["text"] if isinstance(d, dict) else d.page_content for d in found
        )

    graph = StateGraph(State)
    graph.add_node("retrieve", lambda s: {"documents": Index(found={Q: ["loan", "card", "fine"]}).invoke(Q)})
    graph.add_node("cut", lambda s: {"documents": CUTS[name](s["documents"])})
    graph.add_node("rank", lambda s: {"documents": s["documents"][:2]})
    graph.add_node("answer", lambda s: {"answer": Chat(reply="28 days.").invoke(text_of(s["documents"])).content})
    for one, other in (
        (START, "retrieve"),
        ("retrieve", "cut"),
        ("cut", "rank"),
        ("rank", "answer"),
        ("answer", END),
    ):
        graph.add_edge(one, other)
    graph.compile().invoke({"question": Q}, config)
    kept = {"in two parts": ["loan"], "in one text": ["loan", "card", "fine"]}.get(name, ["loan", "card"])
    assert (ids(keeper.only, "reranked") or ids(keeper.only, "retrieved")) == kept
    assert keeper.only.prompt_ids == tuple(kept)


class Starting(BaseDocumentCompressor):
    texts: list

    def compress_documents(self, documents, query, callbacks=None):
        return [one for one in documents if one.page_content in self.texts]


@pytest.mark.parametrize("kind", ["traced", "llm", "pipeline"])
@pytest.mark.parametrize("is_async", [False, True])
async def test_compressors_that_extract(keeper, config, kind, is_async):
    classic = pytest.importorskip("langchain_classic.retrievers")
    from langchain_classic.retrievers import document_compressors as compressors
    from langchain_text_splitters import CharacterTextSplitter

    wanted = [extracted(d) for d in docs("loan", "fine")]
    reply = Chat(reply=lambda text, _: next((one for one in wanted if one in text), "NO_OUTPUT"))
    if kind == "pipeline":
        base = compressors.DocumentCompressorPipeline(
            transformers=[
                CharacterTextSplitter(separator="\n", chunk_size=40, chunk_overlap=0),
                Starting(texts=wanted),
            ]
        )
    elif kind == "llm":
        base = compressors.LLMChainExtractor.from_llm(reply)
    else:
        from ragtrace_langchain import TracedCompressor

        base = TracedCompressor(base=compressors.LLMChainExtractor.from_llm(reply))
    kept = classic.ContextualCompressionRetriever(
        base_compressor=base, base_retriever=Index(found={Q: ["loan", "card", "fine", "room"]})
    )
    chain = kept | joined | Chat(reply="28 days.")
    await chain.ainvoke(Q, config) if is_async else chain.invoke(Q, config)
    run = keeper.only
    assert ids(run, "retrieved") == ["loan", "card", "fine", "room"]
    assert (ids(run, "reranked"), run.prompt_ids) == (["loan", "fine"], ("loan", "fine"))
    assert shown(keeper) == wanted


def test_an_extract_of_several_passages_stands_for_each_of_them(keeper, config):
    def cut(documents):
        return [Document(page_content="\n\n".join(one.page_content.split(".")[0] + "." for one in documents[:2]))]

    chain = Index(found={Q: ["loan", "room", "card"]}) | cut | joined | Chat(reply="28 days.")
    chain.invoke(Q, config)
    assert ids(keeper.only, "retrieved") == ["loan", "room", "card"]
    assert (ids(keeper.only, "reranked"), keeper.only.prompt_ids) == (["loan", "room"], ("loan", "room"))
    assert shown(keeper) == [TEXTS[name].split(".")[0] + "." for name in ("loan", "room")]


def test_texts_that_are_new_stay_new(keeper, config):
    class State(TypedDict, total=False):
        question: str
        documents: list
        answer: str

    web = Document("The branch in Lund lends for 14 days.", metadata={"source": "web"})
    graph = StateGraph(State)
    graph.add_node("retrieve", lambda s: {"documents": Index(found={Q: ["loan", "card"]}).invoke(Q)})
    graph.add_node("web", lambda s: {"documents": [web]})
    graph.add_node("answer", lambda s: {"answer": Chat(reply="14 days.").invoke(joined(s["documents"])).content})
    for one, other in ((START, "retrieve"), ("retrieve", "web"), ("web", "answer"), ("answer", END)):
        graph.add_edge(one, other)
    graph.compile().invoke({"question": Q}, config)
    assert shown(keeper) == [web.page_content]


@pytest.mark.parametrize("line", [0, 1])
@pytest.mark.parametrize("where", ["after the retriever", "around the retriever", "in a tool"])
def test_a_function_that_writes_sentences_of_passages(keeper, config, line, where):
    def write(found):
        return "\n".join(f"- {d.page_content.splitlines()[line]}" for d in found[:2])

    index = Index(found={Q: ["loan", "fine", "card"]})

    @tool
    def search(query: str) -> str:
        """Search."""
        return write(index.invoke(Q))

    if where == "after the retriever":
        (index | RunnableLambda(write) | Chat(reply="28 days.")).invoke(Q, config)
    elif where == "around the retriever":
        (RunnableLambda(lambda q: write(index.invoke(q))) | Chat(reply="28 days.")).invoke(Q, config)
    else:
        agent = create_agent(scripted([("search", {"query": Q})], "28 days."), [search])
        agent.invoke({"messages": [HumanMessage(Q)]}, config)
    assert (ids(keeper.only, "retrieved"), keeper.only.prompt_ids) == (["loan", "fine", "card"], ("loan", "fine"))
    assert shown(keeper) == [TEXTS[name].splitlines()[line] for name in ("loan", "fine")]


# --- order of pools


class Hops(TypedDict, total=False):
    question: str
    todo: list
    documents: Annotated[list, operator.add]
    answer: str


HOPS = {"a1": ["loan", "card"], "a2": ["loan", "room"], "b1": ["fine", "loan"], "b2": ["card", "fine"]}
ORDER = ["loan", "card", "room", "fine"]


def in_turn(queries):
    return [d for q in queries for d in Index(found=HOPS).invoke(q)]


def in_batch(queries):
    return [d for found in Index(found=HOPS).batch(list(queries)) for d in found]


def in_threads(queries):
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(contextvars.copy_context().run, Index(found=HOPS).invoke, q) for q in queries]
        return [d for job in jobs for d in job.result()]


def in_tasks(queries):
    async def gather():
        return await asyncio.gather(*(Index(found=HOPS).ainvoke(q) for q in queries))

    return [d for found in asyncio.run(gather()) for d in found]


@pytest.mark.parametrize("search", [in_turn, in_batch, in_threads, in_tasks])
@pytest.mark.parametrize("is_new_only", [False, True])
def test_a_pool_of_hops_stands_as_the_state_holds_it(keeper, config, search, is_new_only):
    def hop(state):
        found = search(state["todo"][0])
        if is_new_only:
            known = {d.id for d in state["documents"]}
            found = list({d.id: d for d in found if d.id not in known}.values())
        return {"documents": found, "todo": state["todo"][1:]}

    graph = StateGraph(Hops)
    graph.add_node("hop", hop)
    graph.add_node("answer", lambda s: {"answer": Chat(reply="28 days.").invoke(joined(s["documents"])).content})
    graph.add_edge(START, "hop")
    graph.add_conditional_edges("hop", lambda s: "hop" if s["todo"] else "answer")
    graph.compile().invoke({"question": Q, "todo": [["a1", "a2"], ["b1", "b2"]], "documents": []}, config)
    run = keeper.only
    assert ids(run, "retrieved") == ORDER
    assert [passage.id for passage in run.record.contexts] == ORDER
    assert ids(run, "reranked") in ([], ORDER)


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_pool_of_a_fan_out_stands_as_the_state_holds_it(keeper, config, is_async):
    waits = {"a1": 0.06, "a2": 0.03, "b1": 0.0}

    def search(state):
        time.sleep(waits[state["question"]])
        return {"documents": Index(found=HOPS).invoke(state["question"])}

    graph = StateGraph(Hops)
    graph.add_node("search", search)
    graph.add_node("answer", lambda s: {"answer": Chat(reply="28 days.").invoke(joined(s["documents"])).content})
    graph.add_conditional_edges(START, lambda s: [Send("search", {"question": q}) for q in waits])
    graph.add_edge("search", "answer")
    app = graph.compile()
    await app.ainvoke({"question": Q}, config) if is_async else app.invoke({"question": Q}, config)
    assert ids(keeper.only, "retrieved") == ORDER
    assert [passage.id for passage in keeper.only.record.contexts] == ORDER


def test_a_fan_out_whose_branches_choose_stands_as_the_state_holds_it(keeper, config):
    waits = {"a1": 0.05, "b1": 0.0}

    def search(state):
        time.sleep(waits[state["question"]])
        return {"documents": Index(found=HOPS).invoke(state["question"])[:1]}

    graph = StateGraph(Hops)
    graph.add_node("search", search)
    graph.add_node("answer", lambda s: {"answer": Chat(reply="28 days.").invoke(joined(s["documents"])).content})
    graph.add_conditional_edges(START, lambda s: [Send("search", {"question": q}) for q in waits])
    graph.add_edge("search", "answer")
    graph.compile().invoke({"question": Q}, config)
    run = keeper.only
    assert (ids(run, "retrieved"), ids(run, "reranked")) == (["loan", "card", "fine"], ["loan", "fine"])


def search_tool(name, names, wait, form):
    index = Index(found={Q: names})

    def found():
        time.sleep(wait)
        return index.invoke(Q)

    if form == "artifact":

        @tool(name, response_format="content_and_artifact")
        def search(query: str):
            """Search."""
            hits = found()
            return joined(hits), hits

    elif form == "hidden":

        @tool(name, response_format="content_and_artifact")
        def search(query: str):
            """Search."""
            time.sleep(wait)
            return joined(docs(*names)), docs(*names)

    else:

        @tool(name)
        def search(query: str) -> str:
            """Search."""
            return joined(found()[:1] if form == "best" else found())

    return search


@pytest.mark.parametrize("form", ["artifact", "hidden", "text"])
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_pool_of_parallel_tools_stands_as_the_messages_do(keeper, config, form, is_async):
    calls = [("handbook", {"query": Q}), ("menu", {"query": Q}), ("rules", {"query": Q})]
    model = Chat(reply=lambda t, m: "28 days." if said(m) else calls)
    tools = [
        search_tool("handbook", ["loan", "fine"], 0.1, form),
        search_tool("menu", ["soup", "loan"], 0, form),
        search_tool("rules", ["room", "card"], 0.05, form),
    ]
    agent, given = create_agent(model, tools), {"messages": [HumanMessage(Q)]}
    await agent.ainvoke(given, config) if is_async else agent.invoke(given, config)
    run = keeper.only
    assert ids(run, "retrieved") == ["loan", "fine", "soup", "room", "card"]
    assert run.prompt_ids == ("loan", "fine", "soup", "room", "card")


class Slow(BaseRetriever):
    """Finds the same passages whatever is asked, after a while."""

    names: list
    wait: float

    def _get_relevant_documents(self, query, *, run_manager):
        time.sleep(self.wait)
        return docs(*self.names)

    async def _aget_relevant_documents(self, query, *, run_manager):
        await asyncio.sleep(self.wait)
        return docs(*self.names)


BESIDE = [
    Slow(names=["loan", "fine"], wait=0.3),
    Slow(names=["card"], wait=0.1),
    Slow(names=["room", "loan"], wait=0.2),
]


def all_at_once(question):
    with ThreadPoolExecutor(len(BESIDE)) as pool:
        found = [pool.submit(contextvars.copy_context().run, one.invoke, question) for one in BESIDE]
        return joined(document for part in found for document in part.result())


async def all_at_once_async(question):
    return joined(
        document for part in await asyncio.gather(*(one.ainvoke(question) for one in BESIDE)) for document in part
    )


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_passage_that_two_searches_found_stands_where_the_prompt_has_it_first(keeper, config, is_async):
    chain = RunnableLambda(all_at_once, afunc=all_at_once_async) | Chat(reply="28 days, or 12 weeks.")
    await chain.ainvoke(Q, config) if is_async else chain.invoke(Q, config)
    assert ids(keeper.only, "retrieved") == ["loan", "fine", "card", "room"]
    assert keeper.only.prompt_ids == ("loan", "fine", "card", "room")


@pytest.mark.parametrize("order", [["loans", "cards"], ["cards", "loans"]])
def test_passages_behind_answers_side_by_side_stand_as_these_do(keeper, config, order):
    each = {
        "loans": BESIDE[0] | joined | Chat(reply="Books may be kept for four weeks."),
        "cards": BESIDE[1] | joined | Chat(reply="A card costs nothing here."),
    }
    told = RunnableParallel(each) | (lambda said: "\n".join(said[name].content for name in order))
    (told | Chat(reply="Four weeks, and nothing.")).invoke(Q, config)
    right = [name for part in order for name in {"loans": ["loan", "fine"], "cards": ["card"]}[part]]
    assert (ids(keeper.only, "retrieved"), list(keeper.only.prompt_ids)) == (right, right)


# --- rows of databases


class Table(TypedDict, total=False):
    question: str
    cypher: str
    rows: Any
    answer: str


PAIRS = [
    (name, 12 - number) for number, name in enumerate(("Göteborg", "Örgryte", "Kungälv", "Mölndal", "Lerum", "Ale"))
]
ROWS = [{"b.name": name, "r.number": number} for name, number in PAIRS]
WRITTEN = {
    "repr": str,
    "JSON": lambda rows: json.dumps(rows, ensure_ascii=False),
    "lines": lambda rows: "\n".join(map(str, rows)),
    "JSON lines": lambda rows: "\n".join(json.dumps(row, indent=1) for row in rows),
    "a table": lambda rows: "\n".join(
        " | ".join(map(str, getattr(row, "values", lambda row=row: row)())) for row in rows
    ),
}


def of_database(rows, written, field="rows"):
    kind = TypedDict("kind", {"question": str, "cypher": str, field: Any, "answer": str}, total=False)  # type: ignore[misc]
    model = Chat(
        reply=lambda t, m: "Göteborg has 12 rooms." if "Results:" in t else "MATCH (b)-[:HAS]->(r) RETURN b.name"
    )
    graph = StateGraph(kind)
    graph.add_node("write_cypher", lambda s: {"cypher": model.invoke("Cypher for " + s["question"]).content})
    graph.add_node("execute", lambda s: {field: rows})
    graph.add_node(
        "say",
        lambda s: {"answer": model.invoke(f"Results: {written(s[field])}\nQuestion: {s['question']}").content},
    )
    for one, other in ((START, "write_cypher"), ("write_cypher", "execute"), ("execute", "say"), ("say", END)):
        graph.add_edge(one, other)
    return graph.compile()


def test_findings_of_a_model_in_rows_are_no_rows_of_a_database(keeper, config):
    said = "Books may be kept for four weeks, says the page."
    rows = [{"topic": "loans", "summary": said, "score": 0.5}]
    chain = (
        RunnableLambda(lambda question: [{**rows[0], "summary": Chat(reply=said).invoke(question).content}])
        | (lambda found: f"Findings: {found}")
        | Chat(reply="Four weeks, as it seems.")
    )
    chain.invoke(Q, config)
    assert shown(keeper) == []


def test_rows_of_which_a_prompt_shows_less_than_one_are_not_shown(keeper, config):
    rows = [{"branch": "Göteborg, at the old harbour by the sea", "opened": 1871, "rooms": 12}]
    begins = str(rows)[: str(rows).index(", 'rooms'")]
    of_database(rows, lambda _: f"{begins}, 'beds': 40}}]", "found").invoke({"question": "How many rooms?"}, config)
    assert keeper.only.record.pools == ()


def test_queries_to_send_are_no_rows(keeper, config):
    model = Chat(reply=lambda t, m: "For 28 days." if t.startswith("Found") else "long loan; fees")

    def plan(state):
        asked = model.invoke("Queries for " + state["question"]).content.split("; ")
        return {"rows": [{"question": one, "url": "https://lib.example"} for one in asked]}

    graph = StateGraph(Table)
    graph.add_node("plan", plan)
    graph.add_node("say", lambda s: {"answer": model.invoke(f"Found: {s['rows']}").content})
    for one, other in ((START, "plan"), ("plan", "say"), ("say", END)):
        graph.add_edge(one, other)
    graph.compile().invoke({"question": Q}, config)
    assert (keeper.only.record.pools, keeper.only.record.answer) == ((), "For 28 days.")


@pytest.mark.parametrize("form", WRITTEN)
@pytest.mark.parametrize("rows", [ROWS, PAIRS, [list(pair) for pair in PAIRS]], ids=["mappings", "tuples", "lists"])
def test_rows_of_a_database_are_said_to_be_unread(keeper, config, form, rows):
    of_database(rows, WRITTEN[form], "found").invoke({"question": "How many rooms has each branch?"}, config)
    assert (shown(keeper), signs(keeper)) == ([], [("evidence_unread", "state.found")])


def test_a_query_tool_s_text_is_evidence(keeper, config):
    @tool
    def sql_db_query(query: str) -> str:
        """Query."""
        return str(PAIRS)

    model = scripted([("sql_db_query", {"query": "SELECT name, rooms FROM branches"})], "12 rooms.")
    create_agent(model, [sql_db_query]).invoke({"messages": [HumanMessage("How many rooms?")]}, config)
    assert shown(keeper) == [str(PAIRS)]


QUERY = """SELECT column1 AS name, column2 AS rooms FROM
    (VALUES ('Göteborg', 12), ('Örgryte', 11), ('Kungälv', 10), ('Mölndal', 9), ('Lerum', 8), ('Ale', 7))"""


def of_sqlite():
    database = sqlite3.connect(":memory:")
    database.row_factory = sqlite3.Row
    return database.execute(QUERY).fetchall()


def of_sqlalchemy(*, are_mappings=False):
    with create_engine("sqlite://").connect() as database:
        found = database.execute(statement(QUERY))
        return found.mappings().all() if are_mappings else found.all()


def as_mappings(rows):
    return str([dict(row) for row in rows])


@pytest.mark.parametrize(
    ("give", "written"),
    [
        (of_sqlite, as_mappings),
        (of_sqlalchemy, str),
        (lambda: of_sqlalchemy(are_mappings=True), as_mappings),
        (lambda: of_sqlalchemy(are_mappings=True), str),
    ],
    ids=["sqlite3", "SQLAlchemy", "mappings of SQLAlchemy's", "their repr"],
)
def test_rows_as_drivers_give_them_are_said_to_be_unread(keeper, config, give, written):
    of_database(give(), written).invoke({"question": "How many rooms has each branch?"}, config)
    assert (shown(keeper), signs(keeper)) == ([], [("evidence_unread", "state.rows")])


NOTED = {
    "mappings": [{"fact": "28 days"}, {"fact": "20 euros at most"}],
    "a mapping": {"duration": "28 days", "fee": "20 euros at most"},
    "sub-questions": [{"sub_question": "How long?", "answer": "28 days"}],
    "pairs": [("How long?", "28 days")],
}


class Record:
    """A class of the application's."""

    keys = ("name",)


def test_a_record_of_the_application_is_no_row(keeper, config):
    of_database([Record()], lambda _: "none").invoke({"question": Q}, config)
    assert (keeper.only.record.answer, keeper.only.record.lossy) == ("Göteborg has 12 rooms.", {})


@pytest.mark.parametrize("form", NOTED)
@pytest.mark.parametrize("field", ["facts", "result", "found"])
def test_short_facts_that_a_model_filled_in_are_no_rows(keeper, config, form, field):
    model = Chat(reply=lambda t, m: "28 days; 20 euros at most" if "Extract" in t else "For 28 days.")
    kind = TypedDict("kind", {"question": str, "documents": list, field: Any, "answer": str}, total=False)  # type: ignore[misc]

    def extract(state):
        model.invoke("Extract the facts: " + joined(state["documents"]))
        return {field: NOTED[form]}

    graph = StateGraph(kind)
    graph.add_node("search", lambda s: {"documents": Index(found={Q: ["loan", "fine"]}).invoke(Q)})
    graph.add_node("extract", extract)
    graph.add_node("say", lambda s: {"answer": model.invoke(f"Known: {s[field]}\nQuestion: {Q}").content})
    for one, other in ((START, "search"), ("search", "extract"), ("extract", "say"), ("say", END)):
        graph.add_edge(one, other)
    graph.compile().invoke({"question": Q}, config)
    assert (ids(keeper.only, "retrieved"), shown(keeper)) == (["loan", "fine"], [TEXTS["loan"], TEXTS["fine"]])


@pytest.mark.parametrize(
    "day", [date(2026, 1, 2), datetime(2026, 1, 2, tzinfo=UTC), UUID(int=4), Decimal("1.5"), Path("a.md")]
)
def test_hits_with_typed_values_that_langchain_writes_out(keeper, config, day):
    @tool
    def search_handbook(query: str) -> list[dict[str, Any]]:
        """Search."""
        return [{"id": name, "text": TEXTS[name], "seen": day} for name in ("loan", "fine")]

    create_agent(scripted([("search_handbook", {"query": "loans"})], "For 28 days."), [search_handbook]).invoke(
        {"messages": [HumanMessage(Q)]}, config
    )
    assert ids(keeper.only, "retrieved") == ["loan", "fine"]


def test_a_profile_that_the_run_was_given_is_no_unread_context(keeper, config):
    class State(TypedDict, total=False):
        question: str
        users: list
        answer: str

    graph = StateGraph(State)

    def say(state):
        user = state["users"][0]
        asked = f"The reader is {user['name']} from {user['city']}.\n{state['question']}"
        return {"answer": Chat(reply="For 28 days.").invoke(asked).content}

    graph.add_node("say", say)
    graph.add_edge(START, "say")
    graph.add_edge("say", END)
    graph.compile().invoke({"question": Q, "users": [{"name": "Anna", "city": "Oslo"}]}, config)
    assert (keeper.only.record.answer, keeper.only.record.lossy) == ("For 28 days.", {})


def test_rows_beside_passages(keeper, config):
    class State(TypedDict, total=False):
        question: str
        documents: list
        rows: list
        answer: str

    graph = StateGraph(State)
    graph.add_node("search", lambda s: {"documents": Index(found={Q: ["room"]}).invoke(Q), "rows": ROWS})
    graph.add_node(
        "answer", lambda s: {"answer": Chat(reply="12.").invoke(f"{joined(s['documents'])}\n{s['rows']}").content}
    )
    graph.add_edge(START, "search")
    graph.add_edge("search", "answer")
    graph.compile().invoke({"question": Q}, config)
    assert ids(keeper.only, "retrieved") == ["room"]
    assert (shown(keeper), signs(keeper)) == ([TEXTS["room"]], [("evidence_unread", "state.rows")])


def test_lists_that_are_no_rows(keeper, config):
    class State(TypedDict, total=False):
        question: str
        plan: list
        messages: list
        settings: dict
        found: list
        answer: str

    plan = [{"step": 1, "do": "Find the loan period"}]
    entities = [{"name": "library book", "kind": "thing to lend"}]
    model = Chat(reply=lambda t, m: json.dumps(entities) if "Entities" in t else "28 days.")
    graph = StateGraph(State)
    graph.add_node("plan", lambda s: {"plan": plan, "settings": {"k": 3}, "messages": [("user", "Where?")]})
    graph.add_node("extract", lambda s: {"found": json.loads(model.invoke("Entities?").content)})
    graph.add_node(
        "answer", lambda s: {"answer": model.invoke(f"{s['plan']} {s['found']} {s['settings']}").content}
    )
    for one, other in ((START, "plan"), ("plan", "extract"), ("extract", "answer")):
        graph.add_edge(one, other)
    graph.compile().invoke({"question": Q}, config)
    assert (keeper.only.record.pools, dict(keeper.only.record.lossy)) == ((), {})


# --- mark_selected in a tool that returns text

FORMS = {
    "documents": lambda: docs("loan", "card"),
    "texts": lambda: [TEXTS["loan"], TEXTS["card"]],
    "mappings": lambda: [{"id": name, "text": TEXTS[name]} for name in ("loan", "card")],
    "pairs": lambda: [(one, 0.9 - place / 10) for place, one in enumerate(docs("loan", "card"))],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("way", ["once", "twice", "in a thread", "in two marks", "async"])
async def test_marked_passages_are_what_the_tool_said(keeper, config, form, way):
    def mark():
        chosen = FORMS[form]()
        if way == "in two marks":
            mark_selected(chosen[:1])
            mark_selected(chosen[1:])
        else:
            mark_selected(chosen)
        if way == "twice":
            mark_selected(chosen)
        return "\n\n".join(f"## {number}\n{TEXTS[name]}" for number, name in enumerate(("loan", "card")))

    if way == "async":

        @tool
        async def search_docs(query: str) -> str:
            """Search."""
            return mark()

    else:

        @tool
        def search_docs(query: str) -> str:
            """Search."""
            if way != "in a thread":
                return mark()
            kept = []
            thread = threading.Thread(target=contextvars.copy_context().run, args=(lambda: kept.append(mark()),))
            thread.start()
            thread.join()
            return kept[0]

    agent = create_agent(
        Chat(reply=lambda t, m: "28 days." if said(m) else [("search_docs", {"query": Q})]), [search_docs]
    )
    await agent.ainvoke({"messages": [HumanMessage(Q)]}, config)
    assert shown(keeper) == [TEXTS["loan"], TEXTS["card"]]
    assert len(keeper.only.prompt_ids) == 2


def test_another_tool_s_text_stays_beside_marked_passages(keeper, config):
    @tool
    def search_docs(query: str) -> str:
        """Search."""
        return joined(mark_selected(docs("loan")))

    model = scripted([("search_docs", {"query": Q}), ("web_search", {"query": Q})], "28 days.")
    create_agent(model, [search_docs, web_search]).invoke({"messages": [HumanMessage(Q)]}, config)
    assert shown(keeper) == [TEXTS["loan"], PAGE]
