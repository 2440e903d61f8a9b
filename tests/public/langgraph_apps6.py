"""Applications of LangGraph of the seventh draw: sessions in a node, an act that a person approves, a talk over a user's
own documents, a researcher and a colleague who draws."""

from __future__ import annotations

import contextlib
import io
import tempfile
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict
from uuid import uuid4

from langchain_classic.agents import AgentExecutor, create_tool_calling_agent
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, trim_messages
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableConfig, ensure_config
from langchain_core.tools import BaseTool, tool
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph, add_messages
from langgraph.prebuilt import create_react_agent
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from tests.apps.langchain_parts import Replies, calls
from tests.public.kit import Directions
from tests.public.texts import TEXTS


class SearchResults(BaseTool):
    """A search whose results are one text; the results themselves are its artifact."""

    name: str = "duckduckgo_results_json"
    description: str = "Search the web; the input is a query."
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    found: dict[str, tuple[str, ...]]

    def _run(self, query: str):
        results = [
            {"snippet": TEXTS[name], "title": name.replace("_", " "), "link": f"https://{name}.example"}
            for name in self.found[query]
        ]
        return ", ".join(", ".join(f"{key}: {value}" for key, value in one.items()) for one in results), results


class CareerState(TypedDict):
    query: str
    category: str
    response: str


def career_assistant(config):
    """A query is sorted twice, and a node holds a session with the person; what was said goes to a file."""
    kinds = {
        "I want to learn how a pilot's chart is read. Make a tutorial of it.": ("1", "Category: Tutorial"),
        "I waver between pilot and dredger master: which of them is for whom?": ("1", "Category: Question"),
        "I want to discuss questions of job interviews.": ("3", "Category: Question"),
        "I need a mock interview to practice.": ("3", "Category: Mock"),
        "Can you help me to write a résumé for a ship's cook?": ("2", ""),
        "I want to search jobs.": ("4", ""),
    }
    typed = iter(
        [
            *("I sleep badly by day.", "exit"),
            *("For a pilot, at the start.", "exit"),
            *("I stop the engine and sound the horn.", "exit"),
            *("Six years at the inn of Vester, and I can salt herring.", "exit"),
            "Find jobs on the quay, location Vester",
        ]
    )
    search = SearchResults(
        found={
            "how to read a pilot chart": ("chart_marks",),
            "interview questions pilot Vester": ("pilot_exam",),
            "Find jobs on the quay, location Vester": ("job_crane", "job_ropes"),
        }
    )

    def sorted_into(messages):
        prompt = messages[-1].content
        first, second = next(kind for query, kind in kinds.items() if query in prompt)
        return second if "Default to Question" in prompt else first

    llm = Replies(rules=[("", sorted_into)])
    model = Replies(
        rules=[
            (
                TEXTS["chart_marks"],
                "# How to read a pilot's chart\n\n1. Times 1.83 gives metres.\n2. Keep both beacons in one.",
            ),
            ("write tutorials", calls("duckduckgo_results_json", query="how to read a pilot chart")),
            ("I sleep badly by day", "Then become a dredger master, and keep your nights."),
            ("I waver", "Pilots go out at night. How do you sleep?"),
            (TEXTS["pilot_exam"], "# Questions\n\n- Which buoys do you know?\n- Can you tie a bowline blindly?"),
            (
                "For a pilot, at the start",
                calls("duckduckgo_results_json", query="interview questions pilot Vester"),
            ),
            ("finding interview questions", "For which job, and for which level?"),
            ("I stop the engine", "Well done.\n\n**Evaluation:** calm and correct; I would take you."),
            ("You interview candidates", "Welcome aboard. What do you do first in a fog?"),
            ("I can salt herring", "# Ship's cook\n\n- Inn of Vester, six years\n- Salting of herring"),
            ("skilled in résumés", "Gladly. Where have you cooked, and what?"),
            (TEXTS["job_crane"], "# Jobs\n\n| job | at |\n|---|---|\n| crane | outer quay |\n| ropes | ferry |"),
        ]
    )

    def save_file(data, name):
        path = folder / f"{name}_{datetime.now(tz=UTC):%Y%m%d%H%M%S}.md"
        path.write_text(data, encoding="utf-8")
        return str(path)

    def show_md_file(path):
        shown.append(Path(path).read_text(encoding="utf-8"))

    def markdown(output):
        return str(output).replace("```markdown", "").strip()

    def trimmed(prompt):
        return trim_messages(
            prompt,
            max_tokens=10,
            strategy="last",
            token_counter=len,
            start_on="human",
            include_system=True,
            allow_partial=False,
        )

    def executor(prompt):
        agent = create_tool_calling_agent(model, [search], prompt)
        return AgentExecutor(agent=agent, tools=[search], handle_parsing_errors=True)

    def category_of(state, template):
        return {"category": (template | llm).invoke({"query": state["query"]}).content}

    def categorize(state: CareerState):
        template = ChatPromptTemplate.from_template(
            "Sort this query of a customer into one of these categories:\n1: Learn a trade\n2: Write a résumé\n"
            "3: Prepare for an interview\n4: Search for a job\nGive the number only.\n\nExamples:\n"
            "1. Query: 'What does a pilot have to know?' -> 1\n2. Query: 'Can you better my résumé?' -> 2\n\n"
            "Query: {query}"
        )
        return category_of(state, template)

    def handle_learning_resource(state: CareerState):
        template = ChatPromptTemplate.from_template(
            "Sort this query of a user into one of these categories:\n\n- Tutorial: to write tutorials, blogs or pages.\n"
            "- Question: to ask about a trade.\n- Default to Question if it is neither.\n\nThe user query is: {query}\n"
        )
        return category_of(state, template)

    def handle_interview_preparation(state: CareerState):
        template = ChatPromptTemplate.from_template(
            "Sort this query of a user into one of these categories:\n\n- Mock: to hold a mock interview.\n"
            "- Question: to ask about interviews.\n- Default to Question if it is neither.\n\nThe user query is: {query}\n"
        )
        return category_of(state, template)

    def talked(prompt, user_input, record, name, labels):
        """Hold a session in which the model is shown all that was said; return the file of it."""
        you, other = labels
        record.append(f"{you}: {user_input} \n")
        prompt.append(HumanMessage(content=user_input))
        while True:
            prompt = trimmed(prompt)
            response = model.invoke(prompt)
            prompt.append(AIMessage(content=response.content))
            record.append(f"\n{other}: {response.content} \n")
            user_input = next(typed)
            record.append(f"\n{you}: {user_input} \n")
            prompt.append(HumanMessage(content=user_input))
            if user_input.lower() == "exit":
                return save_file("".join(record), name)

    def advised(prompt, user_input):
        """Hold a session with an agent; return what it said in each turn."""
        agent_executor, chat_history, outputs = executor(prompt), [], []
        while user_input.lower() != "exit":
            response = agent_executor.invoke({"input": user_input, "chat_history": chat_history})
            outputs.append(response["output"])
            chat_history.extend([HumanMessage(content=user_input), response["output"]])
            chat_history = chat_history[-10:]
            user_input = next(typed)
        return outputs

    def tutorial_agent(state: CareerState):
        prompt = ChatPromptTemplate.from_messages(
            [
                ("system", "You know the trades of the sea, and write tutorials of them as .md files."),
                ("placeholder", "{chat_history}"),
                ("human", "{input}"),
                ("placeholder", "{agent_scratchpad}"),
            ]
        )
        response = executor(prompt).invoke({"input": state["query"]})
        path = save_file(markdown(response["output"]), "Tutorial")
        show_md_file(path)
        return {"response": path}

    def ask_query_bot(state: CareerState):
        prompt = [SystemMessage(content="You have worked at sea for long. Talk with users about their queries.")]
        path = talked(prompt, state["query"], [], "Q&A_Doubt_Session", ("User Query", "Expert Response"))
        show_md_file(path)
        return {"response": path}

    def interview_topics_questions(state: CareerState):
        prompt = ChatPromptTemplate.from_messages(
            [
                ("system", "You are good at finding interview questions for jobs at sea. Make a .md file of them."),
                MessagesPlaceholder("chat_history"),
                ("human", "{input}"),
                ("placeholder", "{agent_scratchpad}"),
            ]
        )
        bank = "".join(f"{markdown(output)}\n" for output in advised(prompt, state["query"]))
        path = save_file(bank, "Interview_questions")
        show_md_file(path)
        return {"response": path}

    def mock_interview(state: CareerState):
        prompt = [SystemMessage(content="You interview candidates for jobs at sea, and evaluate them at the end.")]
        ready = "I am ready for the interview.\n"
        path = talked(prompt, ready, [], "Mock_Interview", ("Candidate", "Interviewer"))
        show_md_file(path)
        return {"response": path}

    def handle_resume_making(state: CareerState):
        prompt = ChatPromptTemplate.from_messages(
            [
                ("system", "You are skilled in résumés for jobs at sea. Ask for what you need; write a .md file."),
                MessagesPlaceholder("chat_history"),
                ("human", "{input}"),
                ("placeholder", "{agent_scratchpad}"),
            ]
        )
        path = save_file(markdown(advised(prompt, state["query"])[-1]), "Resume")
        show_md_file(path)
        return {"response": path}

    def job_search(state: CareerState):
        prompt = ChatPromptTemplate.from_template(
            "Make a .md file of this content, which has the jobs that are open, so that a user finds them. "
            "Content: {result}"
        )
        results = search.invoke(next(typed))
        jobs = (prompt | model).invoke({"result": results}).content
        path = save_file(markdown(jobs), "Job_search")
        show_md_file(path)
        return {"response": path}

    def route_query(state: CareerState):
        routes = {
            "1": "handle_learning_resource",
            "2": "handle_resume_making",
            "3": "handle_interview_preparation",
            "4": "job_search",
        }
        return next(route for number, route in routes.items() if number in state["category"])

    def route_learning(state: CareerState):
        return "ask_query_bot" if "question" in state["category"].lower() else "tutorial_agent"

    def route_interview(state: CareerState):
        return "interview_topics_questions" if "question" in state["category"].lower() else "mock_interview"

    ends = [
        handle_resume_making,
        job_search,
        mock_interview,
        interview_topics_questions,
        tutorial_agent,
        ask_query_bot,
    ]
    workflow = StateGraph(CareerState)
    for node in (categorize, handle_learning_resource, handle_interview_preparation, *ends):
        workflow.add_node(node.__name__, node)
    for node in ends:
        workflow.add_edge(node.__name__, END)
    workflow.add_edge(START, "categorize")
    workflow.add_conditional_edges(
        "categorize",
        route_query,
        ["handle_learning_resource", "handle_resume_making", "handle_interview_preparation", "job_search"],
    )
    workflow.add_conditional_edges("handle_learning_resource", route_learning, ["tutorial_agent", "ask_query_bot"])
    workflow.add_conditional_edges(
        "handle_interview_preparation", route_interview, ["mock_interview", "interview_topics_questions"]
    )
    app = workflow.compile()
    shown: list[str] = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        results = [app.invoke({"query": query}, config) for query in kinds]
        assert all(Path(one["response"]).parent == folder for one in results)
    return shown


@dataclass(frozen=True)
class ApprovalDecision:
    """What a reviewer says to an act that waits."""

    decision: str
    reviewer: str
    reason: str = ""
    modified_args: dict[str, Any] | None = None

    def __post_init__(self):
        if self.decision not in {"approve", "reject", "modify"}:
            raise ValueError("decision must be approve, reject, or modify")
        if self.decision == "modify" and self.modified_args is None:
            raise ValueError("modify requires modified_args")


class ApprovalState(TypedDict, total=False):
    action: dict[str, Any]
    status: str
    approval_request: dict[str, Any] | None
    audit_log: list
    tool_result: dict[str, Any]


def approval_agent(config):
    """A look-up is done at once; a refund waits until a person has approved it, with a lower amount. No model is asked."""

    def lookup_order(order_id):
        return {"order_id": order_id, "status": "paid", "total": 240}

    def issue_refund(order_id, amount):
        return {"order_id": order_id, "refunded": amount, "simulated": True}

    tools = {"lookup_order": lookup_order, "issue_refund": issue_refund}
    needed = {"lookup_order": {"order_id"}, "issue_refund": {"order_id", "amount"}}

    def validate_action(action):
        if action["tool"] not in tools:
            raise ValueError(f"unsupported tool: {action['tool']}")
        if set(action["args"]) != needed[action["tool"]]:
            raise ValueError(f"wrong arguments of {action['tool']}: {sorted(action['args'])}")
        amount = action["args"].get("amount", 1)
        if not isfinite(amount) or amount <= 0:
            raise ValueError("amount must be a finite positive number")

    def classify_risk(action):
        validate_action(action)
        return "low" if action["tool"] == "lookup_order" else "high"

    def audit(event, **details):
        return {"event": event, "at": datetime.now(tz=UTC).isoformat(), **details}

    def new_request(name, args):
        action = {"tool": name, "args": deepcopy(args)}
        validate_action(action)
        return {
            "action": action,
            "status": "planned",
            "approval_request": None,
            "audit_log": [audit("action_proposed", action=deepcopy(action))],
        }

    def execute_tool(state, reviewer=None):
        updated = deepcopy(state)
        action = updated["action"]
        if classify_risk(action) == "high" and updated["status"] != "authorized":
            raise PermissionError("high-risk actions require authorization")
        updated["tool_result"] = tools[action["tool"]](**action["args"])
        updated["status"], updated["approval_request"] = "completed", None
        updated["audit_log"].append(audit("tool_executed", tool=action["tool"], reviewer=reviewer))
        return updated

    def run_until_pause(state):
        updated = deepcopy(state)
        risk = classify_risk(updated["action"])
        updated["audit_log"].append(audit("risk_classified", risk=risk))
        if risk == "low":
            return execute_tool(updated)
        updated["status"] = "awaiting_approval"
        updated["approval_request"] = {
            "risk": risk,
            "action": deepcopy(updated["action"]),
            "allowed_decisions": ["approve", "reject", "modify"],
        }
        updated["audit_log"].append(audit("approval_requested", risk=risk))
        return updated

    def resume_with_decision(state, decision):
        updated = deepcopy(state)
        if decision.decision == "reject":
            updated["status"], updated["approval_request"] = "rejected", None
            updated["audit_log"].append(
                audit("action_rejected", reviewer=decision.reviewer, reason=decision.reason)
            )
            return updated
        if decision.decision == "modify":
            before = updated["action"]["args"]
            updated["action"] = {**updated["action"], "args": deepcopy(decision.modified_args)}
            validate_action(updated["action"])
            after = deepcopy(decision.modified_args)
            updated["audit_log"].append(
                audit("action_modified", reviewer=decision.reviewer, before=before, after=after)
            )
        updated["audit_log"].append(
            audit("action_authorized", reviewer=decision.reviewer, decision=decision.decision)
        )
        updated["status"] = "authorized"
        return execute_tool(updated, reviewer=decision.reviewer)

    def policy_node(state: ApprovalState) -> ApprovalState:
        return run_until_pause(dict(state))

    def approval_node(state: ApprovalState) -> ApprovalState:
        raw_decision = interrupt(state["approval_request"])
        return resume_with_decision(dict(state), ApprovalDecision(**raw_decision))

    def route_after_policy(state: ApprovalState) -> str:
        return "approval_gate" if state["status"] == "awaiting_approval" else END

    builder = StateGraph(ApprovalState)
    builder.add_node("policy", policy_node)
    builder.add_node("approval_gate", approval_node)
    builder.add_edge(START, "policy")
    builder.add_conditional_edges("policy", route_after_policy, {"approval_gate": "approval_gate", END: END})
    builder.add_edge("approval_gate", END)
    approval_graph = builder.compile(checkpointer=InMemorySaver())
    lookup = run_until_pause(new_request("lookup_order", {"order_id": "A-100"}))
    settings = {**config, "configurable": {"thread_id": "refund-1"}}
    request = new_request("issue_refund", {"order_id": "A-100", "amount": 240})
    updates = list(approval_graph.stream(request, config=settings, stream_mode="updates"))
    waiting = next(one["__interrupt__"][0].value for one in updates if "__interrupt__" in one)
    assert approval_graph.get_state(settings).values["approval_request"] == waiting
    completed = approval_graph.invoke(
        Command(
            resume={
                "decision": "modify",
                "reviewer": "desk@vester.example",
                "reason": "Within what the desk may give back",
                "modified_args": {"order_id": "A-100", "amount": 80},
            }
        ),
        config=settings,
    )
    return [lookup["tool_result"], waiting["action"], completed["tool_result"]]


class SearchQuery(BaseModel):
    """Search the indexed documents for a query."""

    query: str


@dataclass(kw_only=True)
class IndexConfiguration:
    """Whose documents are indexed and searched."""

    user_id: str
    search_kwargs: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_runnable_config(cls, config: RunnableConfig | None = None):
        configurable = ensure_config(config).get("configurable") or {}
        known = {one.name for one in fields(cls)}
        return cls(**{key: value for key, value in configurable.items() if key in known})


@dataclass(kw_only=True)
class Configuration(IndexConfiguration):
    """How the agent talks."""

    response_system_prompt: str = (
        "You are a helpful AI assistant. Answer the user's questions from the documents that were retrieved.\n\n"
        "{retrieved_docs}\n\nSystem time: {system_time}"
    )
    query_system_prompt: str = (
        "Write search queries for documents that may help to answer the user's question. "
        "Previously, you made the following queries:\n\n<previous_queries/>\n{queries}\n</previous_queries>\n\n"
        "System time: {system_time}"
    )


def reduce_docs(existing, new):
    """Turn texts into documents with an id, and delete all at the word for it."""
    if new == "delete":
        return []
    if isinstance(new, str):
        new = [new]
    if not isinstance(new, list):
        return existing or []
    return [
        Document(page_content=one, metadata={"id": str(uuid4())}) if isinstance(one, str) else one for one in new
    ]


@dataclass(kw_only=True)
class IndexState:
    docs: Annotated[list[Document], reduce_docs]


def add_queries(existing, new):
    """Keep each query behind the earlier ones."""
    return [*existing, *new]


@dataclass(kw_only=True)
class InputState:
    messages: Annotated[list[AnyMessage], add_messages]


@dataclass(kw_only=True)
class RetrievalState(InputState):
    queries: Annotated[list[str], add_queries] = field(default_factory=list)
    retrieved_docs: list[Document] = field(default_factory=list)


async def retrieval_agent_template(config):
    """Documents are indexed for a user. Each turn searches with the question, or later with a query that a model writes."""
    first, second = "How does the windmill of Vester face the wind?", "And how much does it grind in a day?"
    rewritten = "flour that the windmill of Vester grinds a day"
    vstore = InMemoryVectorStore(
        Directions({first: ("mill_tail", "mill_sails"), rewritten: ("mill_stones", "mill_tail")})
    )
    query_model = Replies(rules=[("", calls("SearchQuery", query=rewritten))])
    response_model = Replies(
        rules=[
            ("<documents></documents>", "Your documents do not say it."),
            (second, "Up to 900 kg, where it blows well."),
            ("", "A small wheel at its back turns the whole cap."),
        ]
    )

    @contextmanager
    def make_retriever(config):
        configuration = IndexConfiguration.from_runnable_config(config)
        search_kwargs = {
            **configuration.search_kwargs,
            "filter": lambda one: one.metadata["user_id"] == configuration.user_id,
        }
        yield vstore.as_retriever(search_kwargs=search_kwargs)

    def get_message_text(message):
        content = message.content
        if isinstance(content, str):
            return content
        return "".join(one if isinstance(one, str) else one.get("text") or "" for one in content).strip()

    def format_doc(one):
        meta = "".join(f" {key}={value!r}" for key, value in one.metadata.items())
        return f"<document {meta}>\n{one.page_content}\n</document>"

    def format_docs(docs):
        if not docs:
            return "<documents></documents>"
        return "<documents>\n" + "\n".join(format_doc(one) for one in docs) + "\n</documents>"

    async def index_docs(state: IndexState, *, config: RunnableConfig):
        user_id = config["configurable"]["user_id"]
        with make_retriever(config) as retriever:
            stamped = [
                Document(page_content=one.page_content, metadata={**one.metadata, "user_id": user_id})
                for one in state.docs
            ]
            await retriever.aadd_documents(stamped)
        return {"docs": "delete"}

    async def generate_query(state: RetrievalState, *, config: RunnableConfig):
        messages = state.messages
        if len(messages) == 1:
            return {"queries": [get_message_text(messages[-1])]}
        configuration = Configuration.from_runnable_config(config)
        prompt = ChatPromptTemplate.from_messages(
            [("system", configuration.query_system_prompt), ("placeholder", "{messages}")]
        )
        message_value = await prompt.ainvoke(
            {
                "messages": messages,
                "queries": "\n- ".join(state.queries),
                "system_time": datetime.now(tz=UTC).isoformat(),
            },
            config,
        )
        generated = await query_model.with_structured_output(SearchQuery).ainvoke(message_value, config)
        return {"queries": [generated.query]}

    async def retrieve(state: RetrievalState, *, config: RunnableConfig):
        with make_retriever(config) as retriever:
            return {"retrieved_docs": await retriever.ainvoke(state.queries[-1], config)}

    async def respond(state: RetrievalState, *, config: RunnableConfig):
        configuration = Configuration.from_runnable_config(config)
        prompt = ChatPromptTemplate.from_messages(
            [("system", configuration.response_system_prompt), ("placeholder", "{messages}")]
        )
        message_value = await prompt.ainvoke(
            {
                "messages": state.messages,
                "retrieved_docs": format_docs(state.retrieved_docs),
                "system_time": datetime.now(tz=UTC).isoformat(),
            },
            config,
        )
        return {"messages": [await response_model.ainvoke(message_value, config)]}

    index_builder = StateGraph(IndexState, context_schema=IndexConfiguration)
    index_builder.add_node(index_docs)
    index_builder.add_edge(START, "index_docs")
    index_graph = index_builder.compile()
    index_graph.name = "IndexGraph"
    builder = StateGraph(RetrievalState, input_schema=InputState, context_schema=Configuration)
    builder.add_node(generate_query)
    builder.add_node(retrieve)
    builder.add_node(respond)
    builder.add_edge(START, "generate_query")
    builder.add_edge("generate_query", "retrieve")
    builder.add_edge("retrieve", "respond")
    graph = builder.compile(checkpointer=InMemorySaver())
    graph.name = "RetrievalGraph"

    def settings(user_id, thread_id):
        configurable = {"user_id": user_id, "thread_id": thread_id, "search_kwargs": {"k": 2}}
        return {**config, "configurable": configurable}

    names = ("mill_tail", "mill_sails", "mill_stones", "mill_cat")
    indexed = await index_graph.ainvoke({"docs": [TEXTS[name] for name in names]}, settings("anna", "index"))
    assert not indexed["docs"]
    answers = []
    for asked, user_id, thread_id in ((first, "anna", "1"), (second, "anna", "1"), (first, "bo", "2")):
        result = await graph.ainvoke({"messages": [("user", asked)]}, settings(user_id, thread_id))
        answers.append(result["messages"][-1].content)
    return answers


def multi_agent_collaboration(config):
    """A researcher searches, a colleague runs a program that draws; each gets all messages, until one says that it is over."""
    web = {"seal pups Vester 2024 2025 2026": ("seals_reef", "seals_storm", "seals_count")}
    code = (
        "years = [2024, 2025, 2026]\npups = [41, 47, 58]\n"
        "bars = [f'{year} ' + '#' * number for year, number in zip(years, pups)]\nchart = '\\n'.join(bars)"
    )
    numbers = "Pups by year:\n\n2024: 41\n2025: 47\n2026: 58\n\nNow it is your turn, chart generator colleague!"

    def says(text, reply):
        return AIMessage(text, tool_calls=reply.tool_calls)

    llm = Replies(
        rules=[
            (
                "Successfully executed",
                "FINAL ANSWER: Here is the bar chart of seal pups; each year has a longer bar.",
            ),
            ("You can only generate charts", says("I will draw bars.", calls("python_repl_tool", code=code))),
            (TEXTS["seals_reef"], numbers),
            ("", says("I will look for numbers.", calls("tavily_search", query=next(iter(web))))),
        ]
    )

    @tool
    def tavily_search(query: str) -> dict:
        """Search the web."""
        results = [
            {
                "url": f"https://{name.replace('_', '-')}.example",
                "title": name.replace("_", " "),
                "content": TEXTS[name],
                "score": 0.9,
                "raw_content": None,
            }
            for name in web[query]
        ]
        return {
            "query": query,
            "follow_up_questions": None,
            "answer": None,
            "images": [],
            "results": results,
            "response_time": 1.2,
        }

    def run(program):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(program, {})  # noqa: S102 - the application runs what a model wrote
        return printed.getvalue()

    @tool
    def python_repl_tool(code: Annotated[str, "The python code that makes the chart."]):
        """Run python code; print what you want to see."""
        try:
            result = run(code)
        except Exception as error:
            return f"Failed to execute. Error: {error!r}"
        done = f"Successfully executed:\n```python\n{code}\n```\nStdout: {result}"
        return f"{done}\n\nIf you have completed all tasks, respond with FINAL ANSWER."

    def make_system_prompt(suffix):
        return (
            "You are a helpful AI assistant, and work with other assistants. Use the tools to get on with the question; "
            "another assistant goes on where you end. If you or another one has the final answer or deliverable, "
            f"begin your response with FINAL ANSWER, so that the team stops.\n{suffix}"
        )

    def get_next_node(last_message, goto):
        return END if "FINAL ANSWER" in last_message.content else goto

    def shared(result, name, goto):
        last = result["messages"][-1]
        result["messages"][-1] = HumanMessage(content=last.content, name=name)
        return Command(update={"messages": result["messages"]}, goto=get_next_node(last, goto))

    research_agent = create_react_agent(
        llm,
        tools=[tavily_search],
        prompt=make_system_prompt("You can only do research. You work with a chart generator colleague."),
    )
    chart_agent = create_react_agent(
        llm,
        [python_repl_tool],
        prompt=make_system_prompt("You can only generate charts. You work with a researcher colleague."),
    )

    def research_node(state: MessagesState) -> Command[Literal["chart_generator", "__end__"]]:
        return shared(research_agent.invoke(state), "researcher", "chart_generator")

    def chart_node(state: MessagesState) -> Command[Literal["researcher", "__end__"]]:
        return shared(chart_agent.invoke(state), "chart_generator", "researcher")

    workflow = StateGraph(MessagesState)
    workflow.add_node("researcher", research_node)
    workflow.add_node("chart_generator", chart_node)
    workflow.add_edge(START, "researcher")
    graph = workflow.compile()
    asked = (
        "First, get the number of seal pups of Vester in the past 3 years, then make a bar chart of it. "
        "Once you make the chart, finish."
    )
    last: dict[str, Any] = {}
    for step in graph.stream({"messages": [("user", asked)]}, {**config, "recursion_limit": 150}):
        last = next(iter(step.values()))
    return last["messages"][-1].content


WITH_HANDLER = {
    "career-assistant": career_assistant,
    "approval-agent": approval_agent,
    "retrieval-agent-template": retrieval_agent_template,
    "multi-agent-collaboration": multi_agent_collaboration,
}
