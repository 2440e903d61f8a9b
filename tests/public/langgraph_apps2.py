"""Applications of LangGraph of the third draw: mails, bookings, a research team, a plan over a book, a shop."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_classic.retrievers.document_compressors import DocumentCompressorPipeline
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import tool
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.managed.is_last_step import RemainingSteps
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from tests.apps.langchain_parts import Replies, calls
from tests.public.kit import Directions
from tests.public.texts import ROWS, TEXTS


class RouterSchema(BaseModel):
    """Where a mail belongs."""

    reasoning: str
    classification: Literal["ignore", "respond", "notify"]


class MailInput(TypedDict):
    email_input: dict


class MailState(MessagesState, total=False):
    email_input: dict
    classification_decision: Literal["ignore", "respond", "notify"]


def email_assistant_hitl(config):
    """A mail is sorted; an agent reads the calendar, and a person accepts the meeting and the mail that it writes."""

    @tool
    def write_email(to: str, subject: str, content: str) -> str:
        """Write and send an email."""
        return f"Email sent to {to} with subject '{subject}' and content: {content}"

    @tool
    def schedule_meeting(
        attendees: list[str], subject: str, duration_minutes: int, preferred_day: str, start_time: int
    ) -> str:
        """Schedule a meeting."""
        return (
            f"Meeting '{subject}' scheduled on {preferred_day} at {start_time} for {duration_minutes} minutes "
            f"with {len(attendees)} attendees"
        )

    @tool
    def check_calendar_availability(day: str) -> str:
        """Check the calendar of a day."""
        return f"Available times on {day}: 9:00, 14:00, 16:00"

    @tool
    class Done(BaseModel):
        """The mail is dealt with."""

        done: bool

    meeting = {
        "attendees": ["ida@club.example", "office@harbour.example"],
        "subject": "Painting boats",
        "duration_minutes": 120,
        "preferred_day": "16 May",
        "start_time": 14,
    }
    mail = {
        "to": "ida@club.example",
        "subject": "Re: Boathouse",
        "content": "Yes, from 14:00 on; I have put it into the calendar.",
    }
    model = Replies(
        rules=[
            ("Triage", calls("RouterSchema", reasoning="It asks for an answer.", classification="respond")),
            ("Email sent to", calls("Done", done=True)),
            ("scheduled on", calls("write_email", **mail)),
            (TEXTS["calendar"], calls("schedule_meeting", **meeting)),
            ("", calls("check_calendar_availability", day="16 May")),
        ]
    )
    tools = {one.name: one for one in (write_email, schedule_meeting, check_calendar_availability, Done)}
    with_tools = model.bind_tools(list(tools.values()), tool_choice="any")

    def markdown_of(mail):
        return f"**Subject**: {mail['subject']}\n**From**: {mail['author']}\n**To**: {mail['to']}\n\n{mail['email_thread']}\n\n---\n"

    def triage_router(
        state: MailState,
    ) -> Command[Literal["response_agent", "triage_interrupt_handler", "__end__"]]:
        mail = state["email_input"]
        asked = f"From: {mail['author']}\nTo: {mail['to']}\nSubject: {mail['subject']}\n\n{mail['email_thread']}"
        result = model.with_structured_output(RouterSchema).invoke(
            [{"role": "system", "content": "Triage the mail."}, {"role": "user", "content": asked}]
        )
        update = {"classification_decision": result.classification}
        if result.classification == "respond":
            update["messages"] = [{"role": "user", "content": f"Respond to the email: {markdown_of(mail)}"}]
            return Command(goto="response_agent", update=update)
        return Command(goto=END if result.classification == "ignore" else "triage_interrupt_handler", update=update)

    def triage_interrupt_handler(state: MailState) -> Command[Literal["response_agent", "__end__"]]:
        shown = markdown_of(state["email_input"])
        action = {"action": f"Email Assistant: {state['classification_decision']}", "args": {}}
        (response,) = interrupt([{"action_request": action, "description": shown}])
        messages = [{"role": "user", "content": f"Email to notify user about: {shown}"}]
        return Command(
            goto="response_agent" if response["type"] == "response" else END, update={"messages": messages}
        )

    def llm_call(state):
        asked = {
            "role": "system",
            "content": "You answer the mail of a harbour office, with tools. Then call Done.",
        }
        return {"messages": [with_tools.invoke([asked, *state["messages"]])]}

    def interrupt_handler(state: MailState) -> Command[Literal["llm_call", "__end__"]]:
        result, goto = [], "llm_call"
        for call in state["messages"][-1].tool_calls:
            if call["name"] in {"write_email", "schedule_meeting"}:
                request = {
                    "action_request": {"action": call["name"], "args": call["args"]},
                    "config": {
                        "allow_ignore": True,
                        "allow_respond": True,
                        "allow_edit": True,
                        "allow_accept": True,
                    },
                    "description": markdown_of(state["email_input"]) + json.dumps(call["args"], indent=2),
                }
                response = interrupt([request])[0]
                if response["type"] == "ignore":
                    told = "User ignored this draft. Ignore this email and end the workflow."
                    result.append({"role": "tool", "content": told, "tool_call_id": call["id"]})
                    goto = END
                    continue
            observation = tools[call["name"]].invoke(call["args"])
            result.append({"role": "tool", "content": observation, "tool_call_id": call["id"]})
        return Command(goto=goto, update={"messages": result})

    def should_continue(state) -> Literal["interrupt_handler", "__end__"]:
        is_done = any(call["name"] == "Done" for call in state["messages"][-1].tool_calls)
        return END if is_done else "interrupt_handler"

    agent = StateGraph(MailState)
    agent.add_node("llm_call", llm_call)
    agent.add_node("interrupt_handler", interrupt_handler)
    agent.add_edge(START, "llm_call")
    agent.add_conditional_edges("llm_call", should_continue, {"interrupt_handler": "interrupt_handler", END: END})
    overall = (
        StateGraph(MailState, input_schema=MailInput)
        .add_node(triage_router)
        .add_node(triage_interrupt_handler)
        .add_node("response_agent", agent.compile())
        .add_edge(START, "triage_router")
    )
    graph = overall.compile(checkpointer=InMemorySaver())
    thread = {**config, "configurable": {"thread_id": "1"}}
    given = {
        "author": "Ida Moen <ida@club.example>",
        "to": "Office <office@harbour.example>",
        "subject": "Boathouse",
        "email_thread": "Could our club have the boathouse on 16 May, to paint the boats?",
    }
    waiting = []
    for step in ({"email_input": given}, *(Command(resume=[{"type": "accept"}]) for _ in range(2))):
        waiting += [
            chunk["__interrupt__"][0].value[0]["action_request"]["action"]
            for chunk in graph.stream(step, thread)
            if "__interrupt__" in chunk
        ]
    last = graph.get_state(thread).values["messages"][-1]
    return waiting, last.tool_calls[0]["name"]


class SupportState(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    user_info: str


class Assistant:
    """Asks again where the model says nothing."""

    def __init__(self, runnable):
        self.runnable = runnable

    def __call__(self, state: SupportState, config: RunnableConfig):
        while True:
            result = self.runnable.invoke(state)
            if result.tool_calls or result.content:
                return {"messages": result}
            state = {**state, "messages": [*state["messages"], ("user", "Respond with a real output.")]}


def customer_support_bot(config):
    """A passenger's bookings are read before each turn; a cancellation waits for the passenger's word."""
    columns = ("ticket_no", "book_ref", "ferry_no", "scheduled_departure", "seat_no", "fare_conditions")
    database = sqlite3.connect(":memory:", check_same_thread=False)
    database.execute(f"CREATE TABLE tickets (passenger_id, {', '.join(columns)})")
    database.execute("INSERT INTO tickets VALUES (?, ?, ?, ?, ?, ?, ?)", ("3442 587242", *ROWS["booking"]))

    @tool
    def fetch_user_ferry_information(config: RunnableConfig) -> list[dict]:
        """Fetch all tickets of the user, with ferries and seats."""
        passenger = config["configurable"]["passenger_id"]
        cursor = database.execute("SELECT * FROM tickets WHERE passenger_id = ?", (passenger,))
        return [dict(zip(columns, row[1:], strict=True)) for row in cursor.fetchall()]

    class VectorStoreRetriever:  # of the application's own, which tells nobody what it finds
        def __init__(self, docs):
            self._docs = docs

        def query(self, query, k):
            words = query.lower().split()
            return sorted(self._docs, key=lambda one: -sum(word in one["page_content"] for word in words))[:k]

    policies = VectorStoreRetriever(
        [{"page_content": one} for one in (*TEXTS["policy"].split("\n\n"), "3. Dogs travel on deck.")]
    )

    @tool
    def lookup_policy(query: str) -> str:
        """Look up what the company allows."""
        return "\n\n".join(one["page_content"] for one in policies.query(query, k=2))

    @tool
    def cancel_ticket(ticket_no: str, *, config: RunnableConfig) -> str:
        """Cancel the user's ticket."""
        passenger = config["configurable"]["passenger_id"]
        found = database.execute(
            "SELECT * FROM tickets WHERE ticket_no = ? AND passenger_id = ?", (ticket_no, passenger)
        )
        if not found.fetchone():
            return "No existing ticket found for the given ticket number."
        database.execute("DELETE FROM tickets WHERE ticket_no = ?", (ticket_no,))
        return "Ticket successfully cancelled."

    def counted(reply):
        message = AIMessage(reply) if isinstance(reply, str) else reply
        usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
        return message.model_copy(update={"usage_metadata": usage})

    safe, sensitive = [fetch_user_ferry_information, lookup_policy], [cancel_ticket]
    model = Replies(
        rules=[
            (
                "Ticket successfully cancelled.",
                counted("Done: it is cancelled, and you get half of the money back."),
            ),
            (TEXTS["policy"], counted(calls("cancel_ticket", ticket_no=ROWS["booking"][0]))),
            ("cancel it", counted(calls("lookup_policy", query="ticket economy cancelled fare paid"))),
            ("what time", counted("It leaves on 18 May at half past six in the morning.")),
        ]
    )
    prompt = ChatPromptTemplate.from_messages(
        [
            (
                "system",
                "You help the passengers of a ferry line.\n\nCurrent user:\n<User>\n{user_info}\n</User>\nTime: {time}.",
            ),
            ("placeholder", "{messages}"),
        ]
    ).partial(time="2026-05-01 09:00")

    def handle_tool_error(state):
        return {
            "messages": [
                ToolMessage(f"Error: {state['error']!r}\n please fix your mistakes.", tool_call_id=call["id"])
                for call in state["messages"][-1].tool_calls
            ]
        }

    def tool_node(tools):
        return ToolNode(tools).with_fallbacks([RunnableLambda(handle_tool_error)], exception_key="error")

    def route_tools(state):
        if tools_condition(state) == END:
            return END
        name = state["messages"][-1].tool_calls[0]["name"]
        return "sensitive_tools" if name in {one.name for one in sensitive} else "safe_tools"

    builder = StateGraph(SupportState)
    builder.add_node("fetch_user_info", lambda state: {"user_info": fetch_user_ferry_information.invoke({})})
    builder.add_edge(START, "fetch_user_info")
    builder.add_node("assistant", Assistant(prompt | model.bind_tools([*safe, *sensitive])))
    builder.add_node("safe_tools", tool_node(safe))
    builder.add_node("sensitive_tools", tool_node(sensitive))
    builder.add_edge("fetch_user_info", "assistant")
    builder.add_conditional_edges("assistant", route_tools, ["safe_tools", "sensitive_tools", END])
    builder.add_edge("safe_tools", "assistant")
    builder.add_edge("sensitive_tools", "assistant")
    graph = builder.compile(checkpointer=InMemorySaver(), interrupt_before=["sensitive_tools"])
    thread = {**config, "configurable": {"passenger_id": "3442 587242", "thread_id": "7"}}
    answers = []
    for question in ("Hi there, what time is my ferry?", "Am I allowed to cancel it? If so, please do."):
        *_, event = graph.stream({"messages": ("user", question)}, thread, stream_mode="values")
        snapshot = graph.get_state(thread)
        while snapshot.next:  # the passenger types "y"
            event = graph.invoke(None, thread)
            snapshot = graph.get_state(thread)
        answers.append(event["messages"][-1].content)
    return answers


class TeamState(TypedDict, total=False):
    task: dict
    initial_research: str
    sections: list[str]
    research_data: list[dict]
    human_feedback: str | None
    title: str
    headers: dict
    date: str
    table_of_contents: str
    introduction: str
    conclusion: str
    sources: list[str]
    fact_check_notes: str | None
    diagrams: list[str]
    report: str


class DraftState(TypedDict, total=False):
    task: dict
    topic: str
    draft: dict
    review: str | None
    revision_notes: str


class SearchAPIRetriever(BaseRetriever):
    """The pages of a search, read whole."""

    pages: list[dict]

    def _get_relevant_documents(self, query, *, run_manager):
        return [
            Document(page_content=page["raw_content"], metadata={"title": page["title"], "source": page["url"]})
            for page in self.pages
        ]


class RelevanceFilter(BaseDocumentCompressor):
    """Keeps the pieces that share a long word with the query."""

    def compress_documents(self, documents, query, callbacks=None):
        words = [word for word in query.lower().split() if len(word) > 4]
        return [one for one in documents if any(word in one.page_content.lower() for word in words)]


async def gpt_researcher_team(config):
    """A first search, a plan, sections that are searched and written side by side, checks, and a report of all."""
    question = "Is Lake Ilm going to freeze over again?"
    web = {
        "frozen each winter": ["page_freezing", "page_races"],
        question: ["page_trend"],
        "freezing point measured": ["page_buoys"],
        "warm water inflow": ["page_inflow"],
    }
    queries = {
        question: ["frozen each winter"],
        "What the instruments say": ["freezing point measured"],
        "Where warmth comes from": ["warm water inflow"],
    }
    drafts = {
        "What the instruments say": "## What the instruments say\nTwo of them float, one shallow and one deep.",
        "Where warmth comes from": "## Where warmth comes from\nMainly from industry, in twelve cubic metres a second.",
    }
    layout = {
        "table_of_contents": "- What the instruments say\n- Where warmth comes from",
        "introduction": "A lake that used to close each winter is measured by floats, and fed by a factory.",
        "conclusion": "With this inflow it will hardly close again.",
        "sources": ["- Buoys, 1998, [buoys](https://page-buoys.example)"],
    }

    def replying_by_topic(replies):
        return lambda messages: next(
            reply
            for topic, reply in replies.items()
            if f'"{topic}"' in "\n".join(str(one.content) for one in messages)
        )

    plan = {"title": "The ice of Lake Ilm", "date": "2 May", "sections": list(drafts)}
    model = Replies(
        rules=[
            ("choose an agent", json.dumps({"server": "Lake Agent", "agent_role_prompt": "You know lakes."})),
            (
                "Write search queries",
                replying_by_topic({topic: json.dumps(made) for topic, made in queries.items()}),
            ),
            (
                "Write a report",
                replying_by_topic({question: "In 1900 ice was common; a decade takes some days of it.", **drafts}),
            ),
            ("Research summary report", f"```json\n{json.dumps(plan)}\n```"),
            ("Fact Checker", "None"),
            ("Data Visualizer", "None"),
            ("Research data", json.dumps(layout)),
        ]
    )

    async def call_model(prompt, response_format=None):
        roles = {"system": SystemMessage, "user": HumanMessage}
        said = (await model.ainvoke([roles[one["role"]](one["content"]) for one in prompt])).content
        return json.loads(said.removeprefix("```json").removesuffix("```")) if response_format == "json" else said

    class GPTResearcher:
        def __init__(self, query, report_type, parent_query=""):
            self.query, self.report_type, self.parent_query, self.context = query, report_type, parent_query, ""

        async def conduct_research(self):
            role = [
                {"role": "system", "content": "You choose an agent for a research task."},
                {"role": "user", "content": f"task: {self.query}"},
            ]
            self.role = (await call_model(role, "json"))["agent_role_prompt"]
            asked = f'Write search queries, as a list of strings, on: "{self.query}"'
            found = await call_model([{"role": "user", "content": asked}], "json")
            if self.report_type != "subtopic_report":
                found.append(self.query)
            self.context = " ".join(await asyncio.gather(*(self.context_of(one) for one in found)))

        async def context_of(self, query):
            pages = [
                {"url": f"https://{name.replace('_', '-')}.example", "title": name, "raw_content": TEXTS[name]}
                for name in web[query]
            ]
            splitter = RecursiveCharacterTextSplitter(chunk_size=90, chunk_overlap=0)
            retriever = ContextualCompressionRetriever(
                base_compressor=DocumentCompressorPipeline(transformers=[splitter, RelevanceFilter()]),
                base_retriever=SearchAPIRetriever(pages=pages),
            )
            found = await asyncio.to_thread(retriever.invoke, query)
            return "\n".join(
                f"Source: {one.metadata['source']}\nTitle: {one.metadata['title']}\nContent: {one.page_content}\n"
                for one in found
            )

        async def write_report(self):
            asked = f'Information: "{self.context}"\n---\nWrite a report on "{self.query}", in markdown.'
            return await call_model([{"role": "system", "content": self.role}, {"role": "user", "content": asked}])

    async def researched(query, report_type="research_report", parent_query=""):
        researcher = GPTResearcher(query, report_type, parent_query)
        await researcher.conduct_research()
        return await researcher.write_report()

    async def browser(state):
        return {"task": state["task"], "initial_research": await researched(state["task"]["query"])}

    async def planner(state):
        asked = (
            f"Research summary report: '{state['initial_research']}'\nGenerate an outline of section headers, at most "
            f"{state['task']['max_sections']}, as JSON."
        )
        made = await call_model(
            [{"role": "system", "content": "You are a research editor."}, {"role": "user", "content": asked}],
            "json",
        )
        return {"title": made["title"], "date": made["date"], "sections": made["sections"]}

    async def human(state):
        return {"human_feedback": None}  # nobody sits at a websocket

    async def depth(state):
        made = await researched(state["topic"], "subtopic_report", state["task"]["query"])
        return {"draft": {state["topic"]: made}}

    async def reviewer(state):
        return {"review": None}  # no guidelines are followed

    draft = StateGraph(DraftState)
    draft.add_node("researcher", depth)
    draft.add_node("reviewer", reviewer)
    draft.add_node("reviser", lambda state: {"revision_notes": "none"})
    draft.set_entry_point("researcher")
    draft.add_edge("researcher", "reviewer")
    draft.add_edge("reviser", "reviewer")
    draft.add_conditional_edges(
        "reviewer",
        lambda state: "accept" if state["review"] is None else "revise",
        {"accept": END, "revise": "reviser"},
    )

    async def parallel(state):
        chain = draft.compile()
        made = [
            chain.ainvoke(
                {"task": state["task"], "topic": topic, "title": state["title"]},
                config={"tags": ["gpt-researcher"]},
            )
            for topic in state["sections"]
        ]
        return {"research_data": [result["draft"] for result in await asyncio.gather(*made)]}

    async def writer(state):
        asked = (
            f"Query or Topic: {state['title']}\nResearch data: {state['research_data']!s}\n"
            "Write an introduction and a conclusion, as JSON."
        )
        made = await call_model(
            [{"role": "system", "content": "You are a research writer."}, {"role": "user", "content": asked}],
            "json",
        )
        names = ("introduction", "table_of_contents", "conclusion")
        headers = {name: name.replace("_", " ").title() for name in names}
        return {**made, "headers": {"title": state["title"], "date": "Date", "references": "References", **headers}}

    async def fact_checker(state):
        text = f"Introduction:\n{state['introduction']}\n\nSections Data:\n{state['research_data']}"
        said = await call_model(
            [
                {"role": "system", "content": "You are a diligent Fact Checker Agent."},
                {
                    "role": "user",
                    "content": f"Review the following draft:\n\n{text}\n\nIf it is sound, return 'None'.",
                },
            ]
        )
        return {"fact_check_notes": None if said == "None" else said}

    async def visualizer(state):
        said = await call_model(
            [
                {"role": "system", "content": "You are a Data Visualizer Agent."},
                {
                    "role": "user",
                    "content": f"Research Data:\n{state['research_data']}\n\nDraw it, or return 'None'.",
                },
            ]
        )
        return {"diagrams": [] if "None" in said else [said]}

    async def publisher(state):
        headers = state["headers"]
        sections = "\n\n".join(f"{text}" for one in state["research_data"] for text in one.values())
        return {
            "report": (
                f"# {headers['title']}\n#### {headers['date']}: {state['date']}\n\n"
                f"## {headers['introduction']}\n{state['introduction']}\n\n"
                f"## {headers['table_of_contents']}\n{state['table_of_contents']}\n\n{sections}\n\n"
                f"## {headers['conclusion']}\n{state['conclusion']}\n\n"
                f"## {headers['references']}\n" + "\n".join(state["sources"]) + "\n"
            )
        }

    team = StateGraph(TeamState)
    for name, node in {
        "browser": browser,
        "planner": planner,
        "researcher": parallel,
        "writer": writer,
        "fact_checker": fact_checker,
        "visualizer": visualizer,
        "publisher": publisher,
        "human": human,
    }.items():
        team.add_node(name, node)
    for edge in (
        ("browser", "planner"),
        ("planner", "human"),
        ("researcher", "writer"),
        ("writer", "fact_checker"),
        ("visualizer", "publisher"),
        ("publisher", END),
    ):
        team.add_edge(*edge)
    team.set_entry_point("browser")
    team.add_conditional_edges(
        "human",
        lambda state: "accept" if state["human_feedback"] is None else "revise",
        {"accept": "researcher", "revise": "planner"},
    )
    team.add_conditional_edges(
        "fact_checker",
        lambda state: "accept" if state["fact_check_notes"] is None else "revise",
        {"accept": "visualizer", "revise": "writer"},
    )
    task = {
        "query": question,
        "max_sections": 2,
        "publish_formats": {"markdown": True},
        "include_human_feedback": False,
        "follow_guidelines": False,
        "guidelines": ["The report is short."],
        "model": "replies",
        "verbose": False,
    }
    return (await team.compile().ainvoke({"task": task}, config))["report"]


class RetrievalState(TypedDict, total=False):
    question: str
    context: str
    relevant_context: str


class AnswerState(TypedDict, total=False):
    question: str
    context: str
    answer: str


class PlanExecute(TypedDict, total=False):
    curr_state: str
    question: str
    anonymized_question: str
    query_to_retrieve_or_answer: str
    plan: list[str]
    past_steps: list[str]
    mapping: dict
    curr_context: str
    aggregated_context: str
    tool: str
    response: Any


class Steps(BaseModel):
    """Steps to follow."""

    steps: list[str]


class Anonymized(BaseModel):
    """A question without names, and the names."""

    anonymized_question: str
    mapping: dict
    explanation: str


class DeAnonymized(BaseModel):
    """The plan with the names."""

    plan: list[str]


class TaskHandlerOutput(BaseModel):
    """What to do for a task."""

    query: str
    curr_context: str
    tool: Literal["retrieve_chunks", "retrieve_summaries", "retrieve_quotes", "answer_from_context"]


class RelevantContent(BaseModel):
    """What is left of the documents."""

    relevant_content: str


class Grounded(BaseModel):
    """Whether the distilled content is in the original."""

    grounded: bool
    explanation: str


class FromContext(BaseModel):
    """An answer from the context."""

    answer_based_on_content: str


class GroundedOnFacts(BaseModel):
    """Whether an answer is in the context."""

    grounded_on_facts: bool


class ActPossibleResults(BaseModel):
    """The plan that is left."""

    plan: Steps
    explanation: str


class CanBeAnswered(BaseModel):
    """Whether the context is enough."""

    can_be_answered: bool


def controllable_rag_agent(config):
    """A plan without names; what is found for each step is distilled and checked, until the answer can be given."""
    question = "Why was Ask sorry in the morning?"
    distilled = {
        "lock_night": "Ask noted that the lock was left open on 14 April, then slept.",
        "quotes": "He says that it was him; Rut calls the meadow a mirror, of his making.",
    }

    def checked_enough(messages):
        return calls("CanBeAnswered", can_be_answered="a mirror" in messages[-1].content)

    def handled(messages):
        is_first = "task: Find the night" in messages[-1].content
        tool, query = (
            ("retrieve_chunks", "lock at night") if is_first else ("retrieve_quotes", "words on the meadow")
        )
        return calls("TaskHandlerOutput", query=query, curr_context="", tool=tool)

    def kept(messages):
        return calls(
            "RelevantContent",
            relevant_content=distilled["quotes" if "lock at night" not in messages[-1].content else "lock_night"],
        )

    model = Replies(
        rules=[
            (
                "Replace the names",
                calls(
                    "Anonymized",
                    anonymized_question="Why was X sorry in the morning?",
                    mapping={"X": "Ask"},
                    explanation="X is a person.",
                ),
            ),
            ("Put the names", calls("DeAnonymized", plan=["Find the night of Ask", "Find the words on it"])),
            ("Plan for the query", calls("Steps", steps=["Find the night of X", "Find the words on it"])),
            (
                "Refine the plan ['Find the night",
                calls("Steps", steps=["Find the night of Ask", "Find the words on it"]),
            ),
            ("Refine the plan", calls("Steps", steps=["Find the words on it"])),
            ("You handle", handled),
            ("Filter out", kept),
            ("Is the distilled content", calls("Grounded", grounded=True, explanation="All of it.")),
            (
                "Update the plan",
                calls(
                    "ActPossibleResults", plan={"steps": ["Find the words on it"]}, explanation="Words are missing."
                ),
            ),
            ("Can the question be answered", checked_enough),
            (
                "Reason step by step",
                calls("FromContext", answer_based_on_content="Since his open lock had drowned a field."),
            ),
            ("Is the answer grounded", calls("GroundedOnFacts", grounded_on_facts=True)),
        ]
    )

    def asking(asked, schema):
        return PromptTemplate.from_template(asked) | model.with_structured_output(schema)

    def store_of(queries, names, k, **metadata):
        documents = [Document(page_content=TEXTS[name], metadata=metadata) for name in names]
        return InMemoryVectorStore.from_documents(documents, Directions(queries)).as_retriever(
            search_kwargs={"k": k}
        )

    chunks = store_of({"lock at night": ("lock_night",)}, ["lock_night", "mill", "dam"], 1)
    summaries = store_of({}, ["chapter_8"], 1, chapter=8)
    quotes = store_of({"words on the meadow": ("quote_meadow", "quote_guilt")}, ["quote_guilt", "quote_meadow"], 10)

    def escaped(text):
        return text.replace('"', '\\"').replace("'", "\\'")

    keep = asking(
        "You receive a query: {query} and documents: {retrieved_documents}.\nFilter out what is not relevant.",
        RelevantContent,
    )
    is_distilled = asking(
        "Is the distilled content: {distilled_content} grounded on the original context: {original_context}?",
        Grounded,
    )
    answer_cot = asking("Reason step by step.\nContext\n{context}\nQuestion\n{question}", FromContext)
    is_grounded = asking("Is the answer grounded? Answer {answer}, context {context}", GroundedOnFacts)
    anonymize = asking("Replace the names of the question by variables: {question}", Anonymized)
    plan_chain = asking("Plan for the query {question}, step by step.", Steps)
    de_anonymize = asking("Put the names {mapping} into the tasks {plan}.", DeAnonymized)
    break_down = asking("Refine the plan {plan}, so that each step is a search or an answer.", Steps)
    handle = asking(
        "You handle the task: {curr_task}. Tools: chunks, summaries, quotes, an answer from {aggregated_context}.\n"
        "Last tool: {last_tool}. Past steps: {past_steps}. Question: {question}",
        TaskHandlerOutput,
    )
    replan_chain = asking(
        "Update the plan {plan} for {question}. Done: {past_steps}. Known: {aggregated_context}", ActPossibleResults
    )
    enough = asking("Can the question be answered? Query: {question}, context: {context}", CanBeAnswered)

    def keep_only_relevant_content(state):
        given = {"query": state["question"], "retrieved_documents": state["context"]}
        return {"relevant_context": escaped(keep.invoke(given).relevant_content)}

    def distilled_is_grounded(state):
        given = {"distilled_content": state["relevant_context"], "original_context": state["context"]}
        return "grounded" if is_distilled.invoke(given).grounded else "not grounded"

    def retrieval_app(name, retriever):
        def retrieve(state):
            found = retriever.invoke(state["question"])
            text = " ".join(
                f"{one.page_content} (Chapter {one.metadata['chapter']})"
                if "chapter" in one.metadata
                else one.page_content
                for one in found
            )
            return {"context": escaped(text), "question": state["question"]}

        built = StateGraph(RetrievalState)
        built.add_node(name, retrieve)
        built.add_node("keep_only_relevant_content", keep_only_relevant_content)
        built.set_entry_point(name)
        built.add_edge(name, "keep_only_relevant_content")
        built.add_conditional_edges(
            "keep_only_relevant_content",
            distilled_is_grounded,
            {"grounded": END, "not grounded": "keep_only_relevant_content"},
        )
        return built.compile()

    def answer_question_from_context(state):
        made = answer_cot.invoke({"question": state["question"], "context": state["context"]})
        return {"answer": made.answer_based_on_content, "context": state["context"], "question": state["question"]}

    def answer_is_grounded(state):
        made = is_grounded.invoke({"context": state["context"], "answer": state["answer"]})
        return "grounded" if made.grounded_on_facts else "hallucination"

    answering = StateGraph(AnswerState)
    answering.add_node("answer_question_from_context", answer_question_from_context)
    answering.set_entry_point("answer_question_from_context")
    answering.add_conditional_edges(
        "answer_question_from_context",
        answer_is_grounded,
        {"hallucination": "answer_question_from_context", "grounded": END},
    )
    answer_app = answering.compile()

    def anonymize_queries(state):
        made = anonymize.invoke({"question": state["question"]})
        return {
            "curr_state": "anonymize_question",
            "anonymized_question": made.anonymized_question,
            "mapping": made.mapping,
        }

    def plan_step(state):
        made = plan_chain.invoke({"question": state["anonymized_question"]})
        return {"curr_state": "planner", "plan": made.steps}

    def de_anonymize_queries(state):
        made = de_anonymize.invoke({"plan": state["plan"], "mapping": state["mapping"]})
        return {"curr_state": "de_anonymize_plan", "plan": made.plan}

    def break_down_plan_step(state):
        return {"curr_state": "break_down_plan", "plan": break_down.invoke({"plan": state["plan"]}).steps}

    def run_task_handler(state):
        task, *rest = state["plan"]
        made = handle.invoke(
            {
                "curr_task": task,
                "aggregated_context": state.get("aggregated_context", ""),
                "last_tool": state.get("tool"),
                "past_steps": state.get("past_steps", []),
                "question": state["question"],
            }
        )
        return {
            "curr_state": "task_handler",
            "past_steps": [*state.get("past_steps", []), task],
            "plan": rest,
            "query_to_retrieve_or_answer": made.query,
            "curr_context": made.curr_context,
            "tool": "answer" if made.tool == "answer_from_context" else made.tool,
        }

    def run_retrieval(name, app):
        def run(state):
            output = {}
            for update in app.stream({"question": state["query_to_retrieve_or_answer"]}):
                output |= update.get("keep_only_relevant_content", {})
            aggregated = state.get("aggregated_context", "") + output["relevant_context"]
            return {"curr_state": name, "aggregated_context": aggregated}

        return run

    def run_answer(state):
        given = {"question": state["query_to_retrieve_or_answer"], "context": state["curr_context"]}
        *_, update = answer_app.stream(given)
        aggregated = state.get("aggregated_context", "") + update["answer_question_from_context"]["answer"]
        return {"curr_state": "answer", "aggregated_context": aggregated}

    def replan_step(state):
        names = ("question", "plan", "past_steps", "aggregated_context")
        made = replan_chain.invoke({name: state[name] for name in names})
        return {"curr_state": "replan", "plan": made.plan.steps}

    def can_be_answered(state):
        made = enough.invoke({"question": state["question"], "context": state["aggregated_context"]})
        return "can_be_answered_already" if made.can_be_answered else "cannot_be_answered_yet"

    def get_final_answer(state):
        value = {}
        for update in answer_app.stream({"question": state["question"], "context": state["aggregated_context"]}):
            (value,) = update.values()
        return {"curr_state": "get_final_answer", "response": value}

    agent = StateGraph(PlanExecute)
    for name, node in {
        "anonymize_question": anonymize_queries,
        "planner": plan_step,
        "break_down_plan": break_down_plan_step,
        "de_anonymize_plan": de_anonymize_queries,
        "retrieve_chunks": run_retrieval("retrieve_chunks", retrieval_app("retrieve_chunks_context", chunks)),
        "retrieve_summaries": run_retrieval(
            "retrieve_summaries", retrieval_app("retrieve_summaries_context", summaries)
        ),
        "retrieve_book_quotes": run_retrieval(
            "retrieve_book_quotes", retrieval_app("retrieve_quotes_context", quotes)
        ),
        "answer": run_answer,
        "task_handler": run_task_handler,
        "replan": replan_step,
        "get_final_answer": get_final_answer,
    }.items():
        agent.add_node(name, node)
    agent.set_entry_point("anonymize_question")
    for edge in (
        ("anonymize_question", "planner"),
        ("planner", "de_anonymize_plan"),
        ("de_anonymize_plan", "break_down_plan"),
        ("break_down_plan", "task_handler"),
        ("retrieve_chunks", "replan"),
        ("retrieve_summaries", "replan"),
        ("retrieve_book_quotes", "replan"),
        ("answer", "replan"),
        ("get_final_answer", END),
    ):
        agent.add_edge(*edge)
    agent.add_conditional_edges(
        "task_handler",
        lambda state: state["tool"],
        {
            "retrieve_chunks": "retrieve_chunks",
            "retrieve_summaries": "retrieve_summaries",
            "retrieve_quotes": "retrieve_book_quotes",
            "answer": "answer",
        },
    )
    agent.add_conditional_edges(
        "replan",
        can_be_answered,
        {"can_be_answered_already": "get_final_answer", "cannot_be_answered_yet": "break_down_plan"},
    )
    response = {}
    for output in agent.compile().stream({"question": question}, config):
        for value in output.values():
            response = value.get("response", response)
    return response["answer"]


class ShopInput(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


class MemberState(ShopInput):
    customer_id: NotRequired[int]
    loaded_memory: NotRequired[str]


class ShopState(MemberState):
    remaining_steps: NotRequired[RemainingSteps]


class UserInput(BaseModel):
    """The account that a customer gives."""

    identifier: str


def music_store_supervisor(config):
    """A customer is asked who it is; then a supervisor asks an agent for purchases, and one for the catalogue."""
    database = sqlite3.connect(":memory:", check_same_thread=False)
    for statement in (
        "CREATE TABLE Customer (CustomerId, Phone)",
        "INSERT INTO Customer VALUES (1, '+46 70 123')",
        "CREATE TABLE Invoice (InvoiceId, CustomerId, InvoiceDate, City, Total)",
        "INSERT INTO Invoice VALUES (12, 1, '2025-09-02', 'Näs', 0.99), (98, 1, '2026-03-11', 'Näs', 3.98)",
        "CREATE TABLE Album (Title, Name)",
        "INSERT INTO Album VALUES ('War', 'U2'), ('Zooropa', 'U2'), ('Blue', 'Joni Mitchell')",
    ):
        database.execute(statement)

    def run_sql(query, *values, include_columns=False):
        cursor = database.execute(query, values)
        rows = cursor.fetchall()
        names = [column[0] for column in cursor.description]
        return str([dict(zip(names, row, strict=True)) for row in rows] if include_columns else rows)

    @tool
    def get_invoices_by_customer_sorted_by_date(runtime: ToolRuntime) -> list[dict]:
        """Look up the invoices of the customer, latest first."""
        customer = runtime.state["customer_id"]
        return run_sql("SELECT * FROM Invoice WHERE CustomerId = ? ORDER BY InvoiceDate DESC", customer)

    @tool
    def get_albums_by_artist(artist: str):
        """Get albums by an artist."""
        return run_sql("SELECT Title, Name FROM Album WHERE Name LIKE ?", f"%{artist}%", include_columns=True)

    purchases = Replies(
        rules=[
            (TEXTS["rows_purchases"], "You last bought something in March, for 3.98."),
            ("", calls("get_invoices_by_customer_sorted_by_date")),
        ]
    )
    invoice_agent = create_agent(
        purchases,
        tools=[get_invoices_by_customer_sorted_by_date],
        name="invoice_information_subagent",
        system_prompt="You retrieve invoices.",
        state_schema=MemberState,
    )

    catalogue = Replies(
        rules=[
            (TEXTS["rows_albums"], "Two of their records are here: War and Zooropa."),
            ("", calls("get_albums_by_artist", artist="U2")),
        ]
    ).bind_tools([get_albums_by_artist])

    def music_assistant(state: ShopState):
        asked = f"You help to find music. Prior saved user preferences: {state.get('loaded_memory', 'None')}"
        return {"messages": [catalogue.invoke([SystemMessage(asked), *state["messages"]])]}

    music = StateGraph(ShopState, input_schema=ShopInput)
    music.add_node("music_assistant", music_assistant)
    music.add_node("music_tool_node", ToolNode([get_albums_by_artist]))
    music.add_edge(START, "music_assistant")
    music.add_conditional_edges(
        "music_assistant",
        lambda state: "continue" if state["messages"][-1].tool_calls else "end",
        {"continue": "music_tool_node", "end": END},
    )
    music.add_edge("music_tool_node", "music_assistant")
    music_agent = music.compile(name="music_catalog_subagent")

    @tool("invoice_information_subagent", description="Answers questions on purchases.")
    def call_invoice_information_subagent(runtime: ToolRuntime, query: str):
        given = {"messages": [HumanMessage(query)], "customer_id": runtime.state.get("customer_id", {})}
        return invoice_agent.invoke(given)["messages"][-1].content

    @tool("music_catalog_subagent", description="Answers questions on music.")
    def call_music_catalog_subagent(runtime: ToolRuntime, query: str):
        given = {"messages": [HumanMessage(query)], "loaded_memory": runtime.state.get("loaded_memory", "")}
        return music_agent.invoke(given)["messages"][-1].content

    supervising = Replies(
        rules=[
            ("Two of their records", "It was 3.98, in March. Of U2 we have War and Zooropa."),
            ("for 3.98", calls("music_catalog_subagent", query="albums by U2")),
            ("", calls("invoice_information_subagent", query="most recent purchase")),
        ]
    )
    supervisor = create_agent(
        model=supervising,
        tools=[call_invoice_information_subagent, call_music_catalog_subagent],
        name="supervisor",
        system_prompt="You lead a team of two, and answer from what they say.",
        state_schema=MemberState,
    )

    desk = Replies(
        rules=[
            (
                "Extract the identifier",
                lambda messages: calls("UserInput", identifier=identifier_in(messages[-1].content)),
            ),
            ("", "Please tell me your customer id, e-mail or phone number first."),
        ]
    )

    def identifier_in(text):
        return text.partition("phone is ")[2].rstrip(".")

    def customer_of(identifier):
        if identifier.isdigit():
            return int(identifier)
        found = database.execute("SELECT CustomerId FROM Customer WHERE Phone = ?", (identifier,)).fetchall()
        return found[0][0] if found else None

    def verify_info(state: ShopState):
        if state.get("customer_id") is not None:
            return None
        asked = [SystemMessage("Extract the identifier of the customer's account."), state["messages"][-1]]
        identifier = desk.with_structured_output(UserInput).invoke(asked).identifier
        customer = customer_of(identifier) if identifier else ""
        if customer:
            verified = f"Thank you! I was able to verify your account with customer id {customer}."
            return {"customer_id": customer, "messages": [AIMessage(verified)]}
        asked = SystemMessage("You verify who the customer is, and ask for an identifier.")
        return {"messages": [desk.invoke([asked, *state["messages"]])]}

    def human_input(state: ShopState):
        return {"messages": [HumanMessage(interrupt("Please provide input."))]}

    shop = StateGraph(ShopState, input_schema=ShopInput)
    shop.add_node("verify_info", verify_info)
    shop.add_node("human_input", human_input)
    shop.add_node("supervisor", supervisor)
    shop.add_edge(START, "verify_info")
    shop.add_conditional_edges(
        "verify_info",
        lambda state: "continue" if state.get("customer_id") is not None else "interrupt",
        {"continue": "supervisor", "interrupt": "human_input"},
    )
    shop.add_edge("human_input", "verify_info")
    shop.add_edge("supervisor", END)
    graph = shop.compile(name="multi_agent_verify", checkpointer=InMemorySaver())
    thread = {**config, "configurable": {"thread_id": "12"}}
    question = "How much was my most recent purchase? And which albums do you have by U2?"
    graph.invoke({"messages": [HumanMessage(question)]}, thread)
    return graph.invoke(Command(resume="My phone is +46 70 123."), thread)["messages"][-1].content


WITH_HANDLER = {
    "email-assistant-hitl": email_assistant_hitl,
    "customer-support-bot": customer_support_bot,
    "gpt-researcher-team": gpt_researcher_team,
    "controllable-rag-agent": controllable_rag_agent,
    "music-store-supervisor": music_store_supervisor,
}
