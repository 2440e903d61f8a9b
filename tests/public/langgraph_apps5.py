"""Applications of LangGraph of the sixth draw: records that are filled in, tasks side by side, a fleet over a database,
a tree of attempts, a report whose plan a person approves."""

from __future__ import annotations

import asyncio
import json
import math
import operator
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import networkx as nx
from langchain_classic.agents import AgentExecutor, create_tool_calling_agent
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.output_parsers.openai_tools import JsonOutputToolsParser, PydanticToolsParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables import chain as as_runnable
from langchain_core.tools import InjectedToolArg, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.prebuilt import InjectedState, ToolNode
from langgraph.types import Command, Send, interrupt
from pydantic import BaseModel

from tests.apps.langchain_parts import Replies, calls
from tests.public.texts import TEXTS


def formatted(names):
    """Return pages as one text, as a search service's results are set beside each other."""
    parts = [
        f"Source {name.replace('_', ' ')}:\n===\nURL: https://{name.replace('_', '-')}.example\n===\n"
        f"Most relevant content from source: {TEXTS[name]}\n===\n"
        for name in names
    ]
    return "Sources:\n\n" + "\n".join(parts)


class Queries(BaseModel):
    """A list of search queries."""

    queries: list[str]


@dataclass(kw_only=True)
class EnrichmentInput:
    topic: str
    extraction_schema: dict[str, Any]
    info: dict[str, Any] | None = None


@dataclass(kw_only=True)
class EnrichmentState(EnrichmentInput):
    messages: Annotated[list, add_messages] = field(default_factory=list)
    loop_step: Annotated[int, operator.add] = 0


@dataclass(kw_only=True)
class EnrichmentOutput:
    info: dict[str, Any]


class InfoIsSatisfactory(BaseModel):
    """Whether what was gathered is complete."""

    reason: list[str]
    is_satisfactory: bool
    improvement_instructions: str | None = None


async def data_enrichment(config):
    """A model searches with a tool that takes notes of pages, and calls a form with what it has; another checks that."""
    schema = {
        "type": "object",
        "properties": {"founded": {"type": "integer"}, "ships": {"type": "array", "items": {"type": "string"}}},
        "required": ["founded", "ships"],
    }
    found = {"Vester ferry line history": ("ferry_line",), "Vester ferries today": ("ferry_fleet", "ferry_line")}
    main_prompt = (
        "You are doing web research on behalf of a user. You are trying to figure out this information:\n\n<info>\n{info}\n"
        "</info>\n\nHere is the information you have about the topic you are researching:\n\nTopic: {topic}"
    )
    model = Replies(
        rules=[
            ("Is this good?", calls("InfoIsSatisfactory", reason=["a", "b", "c"], is_satisfactory=True)),
            ("<Website contents>", "founded: by eleven farmers, in 1897\nships: Hilda, Ran, Sif"),
            ("You are a search query generator", calls("Queries", queries=list(found))),
            ("founded: by eleven farmers", calls("Info", founded=1897, ships=["Hilda", "Ran", "Sif"])),
            ("", calls("perform_web_research", query="ferry line of Vester")),
        ]
    )

    async def search(query):
        await asyncio.sleep(0)
        return found[query]

    @tool
    async def perform_web_research(
        query: str,
        *,
        state: Annotated[EnrichmentState, InjectedState],
        config: Annotated[RunnableConfig, InjectedToolArg],
    ) -> str:
        """Search the web and take notes of what is there."""
        asked = [
            SystemMessage(f"You are a search query generator. For the initial query: {query}"),
            HumanMessage("Go."),
        ]
        results = model.with_structured_output(Queries).invoke(asked)
        pages = await asyncio.gather(*(search(one) for one in results.queries))
        names = list(dict.fromkeys(name for page in pages for name in page))
        content = (
            f"Take notes by this schema:\n{json.dumps(state.extraction_schema)}\n\n<Website contents>\n{formatted(names)}\n"
            "</Website contents>"
        )
        return str((await model.ainvoke(content)).content)

    async def call_agent_model(state: EnrichmentState):
        info_tool = {"name": "Info", "description": "Call this when done", "parameters": state.extraction_schema}
        p = main_prompt.format(info=json.dumps(state.extraction_schema), topic=state.topic)
        bound = model.bind_tools([perform_web_research, info_tool], tool_choice="any")
        response = await bound.ainvoke([HumanMessage(content=p), *state.messages])
        info = next((call["args"] for call in response.tool_calls if call["name"] == "Info"), None)
        return {"messages": [response], "info": info, "loop_step": 1}

    async def reflect(state: EnrichmentState):
        p = main_prompt.format(info=json.dumps(state.extraction_schema), topic=state.topic)
        checker = (
            f"I am thinking of calling the info tool with the info below. Is this good?\n\n{json.dumps(state.info)}"
        )
        messages = [HumanMessage(content=p), *state.messages[:-1], HumanMessage(content=checker)]
        response = await model.with_structured_output(InfoIsSatisfactory).ainvoke(messages)
        assert response.is_satisfactory
        call = state.messages[-1].tool_calls[0]["id"]
        told = ToolMessage("\n".join(response.reason), tool_call_id=call, name="Info", status="success")
        return {"info": state.info, "messages": [told]}

    workflow = StateGraph(EnrichmentState, input_schema=EnrichmentInput, output_schema=EnrichmentOutput)
    workflow.add_node(call_agent_model)
    workflow.add_node(reflect)
    workflow.add_node("tools", ToolNode([perform_web_research]))
    workflow.add_edge(START, "call_agent_model")
    workflow.add_conditional_edges(
        "call_agent_model",
        lambda state: "reflect" if state.messages[-1].tool_calls[0]["name"] == "Info" else "tools",
        ["reflect", "tools"],
    )
    workflow.add_edge("tools", "call_agent_model")
    workflow.add_edge("reflect", END)
    graph = workflow.compile()
    graph.name = "ResearchTopic"
    result = await graph.ainvoke({"topic": "The ferry line of Vester", "extraction_schema": schema}, config)
    return result["info"]


class TaskState(TypedDict):
    user_task: str
    subtasks: list[dict]
    parallel_results: Annotated[list[str], operator.add]
    num_subtasks: int
    completion_rate: float
    avg_quality_score: float
    weak_sections: list[str]
    synthesized_output: str
    final_quality_score: float
    quality_assessment: str


def task_decomposition_parallel(config):
    """A task is split by a model, its parts are written side by side, joined by a model, and graded by another."""
    user_task = "Write a short guide to collecting amber on a winter beach, with gear, tides and the law."
    parts = {"st_1": "Which gear is needed", "st_2": "When tides help", "st_3": "What the law says"}
    subtasks = [
        {
            "subtask_id": name,
            "description": text,
            "assigned_agent": "research_agent",
            "payload": {},
            "status": "pending",
        }
        for name, text in parts.items()
    ]
    written = {
        "st_1": "A lamp with ultraviolet light, gloves, and a net on a pole.",
        "st_2": "Go two hours before low water, after an onshore storm.",
        "st_3": "What lies on the beach may be kept; digging in dunes is forbidden.",
    }
    final = (
        "# Amber in winter\n\nTake a lamp and gloves, go before low water after a storm, and leave the dunes alone."
    )

    def result(name):
        return json.dumps({"subtask_id": name, "output": written[name], "quality_score": 8.0})

    graded = {"final_quality_score": 8.5, "quality_assessment": "Good guide.", "sections_to_improve": []}
    llm = Replies(
        rules=[
            ("Evaluate this final output", json.dumps(graded)),
            ("You are a synthesis expert", final),
            *((f"Subtask: {text}", f"```json\n{result(name)}\n```") for name, text in parts.items()),
            ("", f"```json\n{json.dumps({'subtasks': subtasks})}\n```"),
        ]
    )

    def unfenced(content):
        return content.split("```json")[1].split("```")[0].strip() if "```json" in content else content

    def decomposer_agent(state: TaskState):
        prompt = f'\n    You are a task decomposition expert. Break this task into parallelizable subtasks:\n\n    Task: "{state["user_task"]}"\n'
        made = json.loads(unfenced(llm.invoke(prompt).content))["subtasks"]
        return {"subtasks": made, "num_subtasks": len(made)}

    def worker_router(state: TaskState):
        pending = [one for one in state["subtasks"] if one["status"] == "pending"]
        return [
            Send("parallel_worker", {"subtask": one, "user_task": state["user_task"], "instance_id": place})
            for place, one in enumerate(pending, start=1)
        ]

    def parallel_worker(state):
        subtask = state["subtask"]
        prompt = (
            f"\n    You are a {subtask['assigned_agent'].replace('_', ' ')}. Perform this subtask:\n\n"
            f'    Subtask: {subtask["description"]}\n    Context: Part of larger task: "{state["user_task"]}"\n'
        )
        return {"parallel_results": [json.dumps(json.loads(unfenced(llm.invoke(prompt).content)))]}

    def completeness_validator(state: TaskState):
        made = state["subtasks"]
        for text in state["parallel_results"]:
            data = json.loads(text)
            for one in made:
                if one["subtask_id"] == data["subtask_id"]:
                    one.update(status="completed", result=data["output"], quality_score=data["quality_score"])
        scores = [one["quality_score"] for one in made]
        return {
            "subtasks": made,
            "completion_rate": len(scores) / len(made),
            "avg_quality_score": sum(scores) / len(scores),
            "weak_sections": [one["description"] for one in made if one["quality_score"] < 6],
        }

    def synthesis_agent(state: TaskState):
        results = [one["result"] for one in state["subtasks"] if one["status"] == "completed"]
        prompt = (
            "\n    You are a synthesis expert. Combine these subtask results into a comprehensive, coherent final output:\n\n"
            f'    Original task: "{state["user_task"]}"\n\n    Subtask results:\n    {json.dumps(results, indent=2)[:8000]}\n'
        )
        return {"synthesized_output": llm.invoke(prompt).content}

    def quality_checker(state: TaskState):
        prompt = (
            f'\n    Evaluate this final output for quality.\n    Task: "{state["user_task"]}"\n'
            f"    Output: {state['synthesized_output'][:3000]}\n    Score each 0-10: completeness, accuracy, clarity.\n"
        )
        assessment = json.loads(llm.invoke(prompt).content)
        return {name: assessment[name] for name in ("final_quality_score", "quality_assessment")}

    graph = StateGraph(TaskState)
    graph.add_node("decomposer", decomposer_agent)
    graph.add_node("parallel_worker", parallel_worker)
    graph.add_node("validator", completeness_validator)
    graph.add_node("synthesis", synthesis_agent)
    graph.add_node("quality_checker", quality_checker)
    graph.add_edge(START, "decomposer")
    graph.add_conditional_edges("decomposer", worker_router, ["parallel_worker"])
    graph.add_edge("parallel_worker", "validator")
    graph.add_conditional_edges(
        "validator", lambda state: "re_decompose" if state["weak_sections"] else "synthesize",
        {"synthesize": "synthesis", "re_decompose": "decomposer"},
    )  # fmt: skip
    graph.add_edge("synthesis", "quality_checker")
    graph.add_edge("quality_checker", END)
    initial: dict[str, Any] = {
        "user_task": user_task, "subtasks": [], "parallel_results": [], "num_subtasks": 0, "completion_rate": 0.0,
        "avg_quality_score": 0.0, "weak_sections": [], "synthesized_output": "", "final_quality_score": 0.0,
        "quality_assessment": "",
    }  # fmt: skip
    return graph.compile().invoke(initial, config)["synthesized_output"]


def _kept(previous, new):
    return new if previous is None else previous


class FleetState(TypedDict):
    question: str
    input_type: str
    plan: list[str]
    db_results: NotRequired[str]
    response: NotRequired[str]
    db_graph: Annotated[nx.Graph | None, _kept]


def database_discovery_fleet(config):
    """Greetings are answered at once; for a question the database is discovered, a plan is made, and rows are read."""
    question = "Which two ferries carried the most passengers?"
    tables = [
        {
            "tableName": "ferries",
            "columns": [
                {"columnName": "name", "columnType": "TEXT", "isOptional": True, "foreignKeyReference": None},
                {
                    "columnName": "passengers",
                    "columnType": "INTEGER",
                    "isOptional": True,
                    "foreignKeyReference": None,
                },
            ],
        }
    ]

    @tool
    def sql_db_schema(table_names: str) -> str:
        """Show the schemas of tables."""
        return TEXTS["schema_ferries"]

    @tool
    def sql_db_query(query: str) -> str:
        """Run a query."""
        return TEXTS["rows_ferries"]

    llm = Replies(
        rules=[
            ("You are a response coordinator", "- Hilda: 91,200\n- Ran: 77,150"),
            ("You are a friendly AI assistant", "Very well, thank you! How are you?"),
            (
                "You are a friendly planning agent",
                "Inference: Get the two ferries with the most passengers\nGeneral: Say it kindly",
            ),
            ("Hi there", "GREETING"),
            ("You are an input classifier", "DATABASE_QUERY"),
            (
                TEXTS["rows_ferries"],
                "Query Executed: SELECT ...\nResults: Hilda 91200, Ran 77150\nSummary: Hilda leads.",
            ),
            (
                "database inference expert",
                calls("sql_db_query", query="SELECT * FROM ferries ORDER BY 2 DESC LIMIT 2"),
            ),
            (TEXTS["schema_ferries"], f"```json\n{json.dumps(tables)}\n```"),
            ("", calls("sql_db_schema", table_names="ferries")),
        ]
    )

    def executor(system, tools):
        prompt = ChatPromptTemplate.from_messages(
            [("system", system), ("human", "{input}"), ("placeholder", "{agent_scratchpad}")]
        )
        return AgentExecutor(agent=create_tool_calling_agent(llm, tools, prompt), tools=tools, max_iterations=15)

    discovery = executor(
        "You are an AI assistant for querying a SQLite database named {db_name}. Only output json.",
        [sql_db_schema],
    )
    inference = executor(
        "You are a database inference expert for a SQLite database named {db_name}.", [sql_db_query]
    )
    planner = ChatPromptTemplate.from_messages(
        [
            ("system", "You are a friendly planning agent that creates specific plans."),
            ("human", "Question: {question}\n\nCreate a focused plan with appropriate action steps."),
        ]
    )
    db_response = ChatPromptTemplate.from_messages(
        [
            (
                "system",
                "You are a response coordinator that creates final responses based on:\nOriginal Question: {question}\nDatabase Results: {db_results}\n",
            )
        ]
    )
    chat_response = ChatPromptTemplate.from_messages(
        [("system", "You are a friendly AI assistant.\nRespond naturally to the user's message.\n")]
    )

    def classify_user_input(state: FleetState):
        response = llm.invoke(
            [
                ("system", "You are an input classifier. Respond with ONLY the category name."),
                ("user", state["question"]),
            ]
        )
        return {**state, "input_type": response.content.strip()}

    def discover_database(state: FleetState):
        if state.get("db_graph") is not None:
            return state
        asked = "For all tables in this database, show the table name, column name, column type, if its optional. Output only as json."
        output = discovery.invoke({"input": asked, "db_name": "vester.db"})["output"]
        made = nx.Graph()
        for table in json.loads(output[output.find("\n") + 1 : output.rfind("\n")]):
            made.add_node(table["tableName"], tableName=table["tableName"])
            for column in table["columns"]:
                made.add_edge(table["tableName"], (table["tableName"], column["columnName"]))
        return {**state, "db_graph": made}

    def create_plan(state: FleetState):
        response = llm.invoke(planner.format(question=state["question"]))
        return {**state, "plan": [one.strip() for one in response.content.split("\n") if one.strip()]}

    def execute_plan(state: FleetState):
        results = []
        known = [facts["tableName"] for _, facts in state["db_graph"].nodes(data=True) if "tableName" in facts]
        for one in state["plan"]:
            kind, content = one.split(":", 1)
            if kind == "Inference":
                enhanced = f"Database Structure Analysis:\n- Available Tables: {known}\n\nUser Question: {content.strip()}\n"
                content = inference.invoke({"input": enhanced, "db_name": "vester.db"})["output"]
            results.append(f"Step: {one}\nResult: {content.strip()}")
        return {**state, "db_results": "\n\n".join(results)}

    def generate_response(state: FleetState):
        prompt = chat_response if state["input_type"] in {"GREETING", "CHITCHAT", "FAREWELL"} else db_response
        response = llm.invoke(prompt.format(question=state["question"], db_results=state.get("db_results", "")))
        return {**state, "response": response.content, "plan": []}

    builder = StateGraph(FleetState)
    builder.add_node("classify_input", classify_user_input)
    builder.add_node("discover_database", discover_database)
    builder.add_node("create_plan", create_plan)
    builder.add_node("execute_plan", execute_plan)
    builder.add_node("generate_response", generate_response)
    builder.add_edge(START, "classify_input")
    builder.add_conditional_edges(
        "classify_input",
        lambda state: "discover_database" if state["input_type"] == "DATABASE_QUERY" else "generate_response",
        ["discover_database", "generate_response"],
    )
    builder.add_edge("discover_database", "create_plan")
    builder.add_edge("create_plan", "execute_plan")
    builder.add_edge("execute_plan", "generate_response")
    builder.add_edge("generate_response", END)
    graph = builder.compile()
    state = graph.invoke({"question": "Hi there, how goes it?"}, config)
    first = state["response"]
    state = graph.invoke({**state, "question": question}, config)
    return [first, state["response"]]


class ReflectionOutput(BaseModel):
    """Whether a record is complete, and what is missing."""

    is_satisfactory: bool
    missing_fields: list[str]
    search_queries: list[str]
    reasoning: str


@dataclass(kw_only=True)
class CompanyInput:
    company: str
    extraction_schema: dict[str, Any]
    user_notes: str | None = None


@dataclass(kw_only=True)
class CompanyState(CompanyInput):
    search_queries: list[str] = field(default_factory=list)
    search_results: list[dict] = field(default_factory=list)
    completed_notes: Annotated[list, operator.add] = field(default_factory=list)
    info: dict[str, Any] | None = None
    is_satisfactory: bool = False
    reflection_steps_taken: int = 0


@dataclass(kw_only=True)
class CompanyOutput:
    info: dict[str, Any]
    search_results: list[dict]


async def company_researcher(config):
    """Pages about a company are searched and noted, a record is filled in; what is missing is searched once more."""
    schema = {
        "title": "Company",
        "description": "Facts of a company",
        "type": "object",
        "properties": {"founded": {"type": "integer"}, "products": {"type": "array"}, "staff": {"type": "integer"}},
        "required": ["founded", "products", "staff"],
    }
    found = {
        "Nordhav Seaweed founders": ("line_history", "line_products"),
        "Nordhav Seaweed shop": ("line_products",),
        "Nordhav Seaweed employees": ("line_people",),
    }
    first, last = list(found)[:2], list(found)[2:]
    short = {"founded": 2011, "products": ["dulse", "sugar kelp"]}
    whole = {**short, "staff": 34}
    missing = {
        "is_satisfactory": False,
        "missing_fields": ["staff"],
        "search_queries": last,
        "reasoning": "No staff.",
    }
    done = {"is_satisfactory": True, "missing_fields": [], "search_queries": [], "reasoning": "All there."}
    claude = Replies(
        rules=[
            ("'staff': 34", calls("ReflectionOutput", **done)),
            ("Produce a structured reflection output", calls("ReflectionOutput", **missing)),
            ("34 at work", calls("Company", **whole)),
            ("Produce a structured output from these notes", calls("Company", **short)),
            ("Nordhav employs", "staff: 34 at work all year"),
            ("Nordhav Seaweed was set up", "founded: 2011\nproducts: dulse, sugar kelp"),
            ("", calls("Queries", queries=first)),
        ]
    )

    async def tavily(query):
        await asyncio.sleep(0)
        return [
            {
                "title": name,
                "url": f"https://{name.replace('_', '-')}.example",
                "content": TEXTS[name],
                "score": 0.9,
            }
            for name in found[query]
        ]

    def generate_queries(state: CompanyState):
        instructions = f"You are a search query generator. Company: {state.company}\nSchema: {json.dumps(state.extraction_schema)}"
        asked = [
            {"role": "system", "content": instructions},
            {
                "role": "user",
                "content": "Please generate a list of search queries related to the schema that you want to populate.",
            },
        ]
        return {"search_queries": claude.with_structured_output(Queries).invoke(asked).queries}

    async def research_company(state: CompanyState):
        search_docs = await asyncio.gather(*(tavily(query) for query in state.search_queries))
        unique = {one["url"]: one for docs in search_docs for one in docs}
        source_str = formatted([one["title"] for one in unique.values()])
        p = (
            f"You are doing web research on a company, {state.company}.\n\nThe following schema shows the type of information we're "
            f"interested in:\n{json.dumps(state.extraction_schema)}\n\nYou have just scraped website content. Your task is to take clear, "
            f"organized notes about the company.\n\n<Website contents>\n{source_str}\n</Website contents>"
        )
        result = await claude.ainvoke(p)
        return {"completed_notes": [str(result.content)], "search_results": list(unique.values())}

    def gather_notes_extract_schema(state: CompanyState):
        notes = "\n".join(
            f"Notes {place}:\n{'-' * 60}\n{text}" for place, text in enumerate(state.completed_notes, start=1)
        )
        asked = [
            {
                "role": "system",
                "content": f"Your task is to take notes gathered from web research and extract them into a schema.\n\n{notes}",
            },
            {"role": "user", "content": "Produce a structured output from these notes."},
        ]
        return {"info": claude.with_structured_output(state.extraction_schema).invoke(asked)}

    def reflection(state: CompanyState):
        asked = [
            {
                "role": "system",
                "content": f"You are a research analyst tasked with reviewing the quality of extracted company information.\n{state.info}",
            },
            {"role": "user", "content": "Produce a structured reflection output."},
        ]
        result = claude.with_structured_output(ReflectionOutput).invoke(asked)
        if result.is_satisfactory:
            return {"is_satisfactory": True}
        return {
            "is_satisfactory": False,
            "search_queries": result.search_queries,
            "reflection_steps_taken": state.reflection_steps_taken + 1,
        }

    def route_from_reflection(state: CompanyState) -> Literal["__end__", "research_company"]:
        return END if state.is_satisfactory else "research_company"

    builder = StateGraph(CompanyState, input_schema=CompanyInput, output_schema=CompanyOutput)
    builder.add_node("gather_notes_extract_schema", gather_notes_extract_schema)
    builder.add_node("generate_queries", generate_queries)
    builder.add_node("research_company", research_company)
    builder.add_node("reflection", reflection)
    builder.add_edge(START, "generate_queries")
    builder.add_edge("generate_queries", "research_company")
    builder.add_edge("research_company", "gather_notes_extract_schema")
    builder.add_edge("gather_notes_extract_schema", "reflection")
    builder.add_conditional_edges("reflection", route_from_reflection)
    result = await builder.compile().ainvoke({"company": "Nordhav Seaweed", "extraction_schema": schema}, config)
    return result["info"]


class Reflection(BaseModel):
    """Critique of a response, and whether it solves the task."""

    reflections: str
    score: int
    found_solution: bool

    def as_message(self):
        return HumanMessage(content=f"Reasoning: {self.reflections}\nScore: {self.score}")


class Node:
    """An attempt, with its parent and its children."""

    def __init__(self, messages, reflection, parent=None):
        self.messages, self.reflection, self.parent = messages, reflection, parent
        self.children: list[Node] = []
        self.value, self.visits = 0.0, 0
        self.is_solved = reflection.found_solution
        node: Node | None = self
        while node is not None:
            node.is_solved = node.is_solved or self.is_solved
            node.visits += 1
            node.value = (node.value * (node.visits - 1) + reflection.score / 10) / node.visits
            node = node.parent

    @property
    def best_child(self):
        """The child with the highest upper confidence bound."""
        return max(
            self.children,
            key=lambda child: child.value / child.visits + math.sqrt(math.log(self.visits) / child.visits),
        )

    def get_trajectory(self, *, include_reflections=True):
        """Return the messages from the root to here."""
        messages, node = [], self
        while node is not None:
            own = [*node.messages, node.reflection.as_message()] if include_reflections else node.messages
            messages.extend(own[::-1])
            node = node.parent
        return messages[::-1]

    def get_best_solution(self):
        """Return the best attempt that solves the task."""
        nodes, every = deque([self]), [self]
        while nodes:
            node = nodes.popleft()
            every.extend(node.children)
            nodes.extend(node.children)
        return max(every, key=lambda node: int(not node.children and node.is_solved) * node.value)


class TreeState(TypedDict):
    root: Node
    input: str


class Sampling(Replies):
    """Gives out as many replies as it is asked for."""

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        if kwargs.get("n", 1) == 1:
            return super()._generate(messages, stop, run_manager, **kwargs)
        replies = next(reply for words, reply in self.rules if words == "candidates")
        return ChatResult(generations=[ChatGeneration(message=one.model_copy()) for one in replies])


def lats(config):
    """A first search is graded; two further steps are tried side by side, and the one that solves the task is taken."""
    question = "When do herring come to Vester, and how large are they?"
    answer = "In April, with 24 cm; the fatter ones of autumn keep off until November."
    searches = {"herring at Vester": ("herring_spring", "herring_autumn"), "herring barrels": ("herring_salt",)}

    @tool
    def tavily_search_results_json(query: str) -> list[dict]:
        """Search the web."""
        return [
            {"url": f"https://{name.replace('_', '-')}.example", "content": TEXTS[name]} for name in searches[query]
        ]

    def graded(score, *, is_found):
        return calls(
            "Reflection",
            reflections="It says when and how large." if is_found else "Not yet.",
            score=score,
            found_solution=is_found,
        )

    llm = Sampling(
        rules=[
            ("candidates", [calls("tavily_search_results_json", query="herring barrels"), AIMessage(answer)]),
            (answer, graded(9, is_found=True)),
            ("Reflect and grade", graded(4, is_found=False)),
            ("", calls("tavily_search_results_json", query="herring at Vester")),
        ]
    )
    tools = [tavily_search_results_json]
    tool_node = ToolNode(tools=tools)
    reflection_prompt = ChatPromptTemplate.from_messages(
        [
            ("system", "Reflect and grade the assistant response to the user question below."),
            ("user", "{input}"),
            MessagesPlaceholder(variable_name="candidate"),
        ]
    )
    reflection_llm_chain = (
        reflection_prompt
        | llm.bind_tools(tools=[Reflection], tool_choice="Reflection").with_config(run_name="Reflection")
        | PydanticToolsParser(tools=[Reflection])
    )

    @as_runnable
    def reflection_chain(inputs):
        reflection = reflection_llm_chain.invoke(inputs)[0]
        if not isinstance(inputs["candidate"][-1], AIMessage):
            reflection.found_solution = False
        return reflection

    prompt_template = ChatPromptTemplate.from_messages(
        [
            ("system", "You are an AI assistant."),
            ("user", "{input}"),
            MessagesPlaceholder(variable_name="messages", optional=True),
        ]
    )
    initial_answer_chain = prompt_template | llm.bind_tools(tools=tools).with_config(
        run_name="GenerateInitialCandidate"
    )
    parser = JsonOutputToolsParser(return_id=True)

    def called(one):
        call = {"name": one["type"], "args": one["args"], "id": one["id"], "type": "tool_call"}
        return tool_node.invoke({"messages": [AIMessage(content="", tool_calls=[call])]})["messages"][0]

    def generate_initial_response(state: TreeState):
        res = initial_answer_chain.invoke({"input": state["input"]})
        output_messages = [res, *(called(one) for one in parser.invoke(res))]
        reflection = reflection_chain.invoke({"input": state["input"], "candidate": output_messages})
        return {**state, "root": Node(output_messages, reflection=reflection)}

    def generate_candidates(messages, config: RunnableConfig):
        chat_result = llm.generate(
            [messages.to_messages()], n=2, callbacks=config["callbacks"], run_name="GenerateCandidates"
        )
        return [one.message for one in chat_result.generations[0]]

    expansion_chain = prompt_template | generate_candidates

    def expand(state: TreeState, config: RunnableConfig):
        root = state["root"]
        best_candidate = root.best_child if root.children else root
        given = {"input": state["input"], "messages": best_candidate.get_trajectory()}
        new_candidates = expansion_chain.invoke(given, config)
        collected = defaultdict(list)
        for place, calls_of in enumerate(parser.batch(new_candidates)):
            collected[place] += [called(one) for one in calls_of]
        output_messages = [[candidate, *collected[place]] for place, candidate in enumerate(new_candidates)]
        reflections = reflection_chain.batch(
            [{"input": state["input"], "candidate": messages} for messages in output_messages], config
        )
        best_candidate.children += [
            Node(messages, parent=best_candidate, reflection=reflection)
            for messages, reflection in zip(output_messages, reflections, strict=True)
        ]
        return state

    def should_loop(state: TreeState):
        return END if state["root"].is_solved else "expand"

    builder = StateGraph(TreeState)
    builder.add_node("start", generate_initial_response)
    builder.add_node("expand", expand)
    builder.add_edge(START, "start")
    builder.add_conditional_edges("start", should_loop, ["expand", END])
    builder.add_conditional_edges("expand", should_loop, ["expand", END])
    last: dict[str, Any] = {}
    for step in builder.compile().stream({"input": question}, config):
        last = next(iter(step.values()))
    return last["root"].get_best_solution().get_trajectory(include_reflections=False)[-1].content


class Section(BaseModel):
    """A section of a report."""

    name: str
    description: str
    research: bool
    content: str = ""


class Sections(BaseModel):
    """The sections of a report."""

    sections: list[Section]


class SearchQuery(BaseModel):
    """A query."""

    search_query: str


class SearchQueries(BaseModel):
    """Queries of a section."""

    queries: list[SearchQuery]


class Feedback(BaseModel):
    """A grade, and what is still to be searched."""

    grade: Literal["pass", "fail"]
    follow_up_queries: list[SearchQuery]


class ReportInput(TypedDict):
    topic: str


class ReportOutput(TypedDict):
    final_report: str


class ReportState(TypedDict):
    topic: str
    feedback_on_report_plan: Annotated[list[str], operator.add]
    sections: list[Section]
    completed_sections: Annotated[list, operator.add]
    report_sections_from_research: str
    final_report: str


class SectionState(TypedDict):
    topic: str
    section: Section
    search_iterations: int
    search_queries: list[SearchQuery]
    source_str: str
    report_sections_from_research: str
    completed_sections: list[Section]


class SectionOutput(TypedDict):
    completed_sections: list[Section]


async def open_deep_research_legacy(config):
    """A plan is made and approved by a person; sections are searched and written side by side, a conclusion behind them."""
    topic = "How does the harbour of Vester stay open?"
    found = {
        "harbour of Vester": ("harbour_overview",),
        "sand in Vester's harbour": ("harbour_sand",),
        "quays of Vester": ("harbour_quays",),
    }
    overview, sand, quays = found
    plan = [
        {"name": "Sand", "description": "How sand is kept out", "research": True, "content": ""},
        {"name": "Quays", "description": "Who lands where", "research": True, "content": ""},
        {"name": "Conclusion", "description": "What it amounts to", "research": False, "content": ""},
    ]

    def queries(one):
        return calls("SearchQueries", queries=[{"search_query": one}])

    llm = Replies(
        rules=[
            ("Grade the report", calls("Feedback", grade="pass", follow_up_queries=[])),
            (
                "Generate a report section based on the provided sources",
                "## Conclusion\nA dredger and a timetable keep it open.",
            ),
            ("A dredger takes 40,000", "## Sand\nEach March 40,000 m³ are taken out and given to the beach."),
            (
                "The ferry has the outer quay",
                "## Quays\nFerries land by day at the outer quay, fish at night at the inner one.",
            ),
            ("How sand is kept out\nqueries", queries(sand)),
            ("Who lands where\nqueries", queries(quays)),
            ("Generate the sections of the report", calls("Sections", sections=plan)),
            ("", queries(overview)),
        ]
    )

    async def select_and_execute_search(query_list):
        await asyncio.sleep(0)
        return formatted([name for query in query_list for name in found[query]])

    async def generate_report_plan(state: ReportState):
        asked = [
            SystemMessage(content=f"You are planning a report. <Report topic>\n{state['topic']}\n</Report topic>"),
            HumanMessage(
                content="Generate search queries that will help with planning the sections of the report."
            ),
        ]
        results = await llm.with_structured_output(SearchQueries).ainvoke(asked)
        source_str = await select_and_execute_search([one.search_query for one in results.queries])
        planned = [
            SystemMessage(
                content=f"I want a plan for a report.\n<Report topic>\n{state['topic']}\n</Report topic>\n<Context>\n{source_str}\n</Context>"
            ),
            HumanMessage(
                content="Generate the sections of the report. Your response must include a 'sections' field."
            ),
        ]
        report_sections = await llm.with_structured_output(Sections).ainvoke(planned)
        return {"sections": report_sections.sections}

    def human_feedback(
        state: ReportState,
    ) -> Command[Literal["generate_report_plan", "build_section_with_web_research"]]:
        listed = "\n\n".join(f"Section: {one.name}\nDescription: {one.description}\n" for one in state["sections"])
        feedback = interrupt(
            f"Please provide feedback on the following report plan.\n\n{listed}\n\nDoes the report plan meet your needs?"
        )
        assert feedback is True
        return Command(
            goto=[
                Send(
                    "build_section_with_web_research",
                    {"topic": state["topic"], "section": one, "search_iterations": 0},
                )
                for one in state["sections"]
                if one.research
            ]
        )

    async def generate_queries(state: SectionState):
        asked = [
            SystemMessage(
                content=f"You are writing search queries for a section.\n{state['topic']}\n{state['section'].description}\nqueries"
            ),
            HumanMessage(content="Generate search queries on the provided topic."),
        ]
        return {"search_queries": (await llm.with_structured_output(SearchQueries).ainvoke(asked)).queries}

    async def search_web(state: SectionState):
        source_str = await select_and_execute_search([one.search_query for one in state["search_queries"]])
        return {"source_str": source_str, "search_iterations": state["search_iterations"] + 1}

    async def write_section(state: SectionState) -> Command[Literal["__end__", "search_web"]]:
        section = state["section"]
        asked = [
            SystemMessage(content="Write one section of a research report."),
            HumanMessage(
                content=f"<Report topic>\n{state['topic']}\n</Report topic>\n<Section name>\n{section.name}\n</Section name>\n<Source material>\n{state['source_str']}\n</Source material>"
            ),
        ]
        section.content = (await llm.ainvoke(asked)).content
        graded = [
            SystemMessage(
                content=f"Review a report section relative to the specified topic:\n{state['topic']}\n{section.content}"
            ),
            HumanMessage(content="Grade the report and consider follow-up questions for missing information."),
        ]
        feedback = await llm.with_structured_output(Feedback).ainvoke(graded)
        assert feedback.grade == "pass"
        return Command(update={"completed_sections": [section]}, goto=END)

    def gather_completed_sections(state: ReportState):
        parts = [
            f"\n{'=' * 60}\nSection {place}: {one.name}\n{'=' * 60}\nDescription:\n{one.description}\n\nContent:\n{one.content}\n"
            for place, one in enumerate(state["completed_sections"], start=1)
        ]
        return {"report_sections_from_research": "".join(parts)}

    def initiate_final_section_writing(state: ReportState):
        given = {"topic": state["topic"], "report_sections_from_research": state["report_sections_from_research"]}
        return [
            Send("write_final_sections", {**given, "section": one}) for one in state["sections"] if not one.research
        ]

    async def write_final_sections(state: SectionState):
        section = state["section"]
        instructions = (
            f"Write a section that sums up the rest.\n{section.name}\n{state['report_sections_from_research']}"
        )
        asked = [
            SystemMessage(content=instructions),
            HumanMessage(content="Generate a report section based on the provided sources."),
        ]
        section.content = (await llm.ainvoke(asked)).content
        return {"completed_sections": [section]}

    def compile_final_report(state: ReportState):
        completed = {one.name: one.content for one in state["completed_sections"]}
        return {"final_report": "\n\n".join(completed[one.name] for one in state["sections"])}

    section_builder = StateGraph(SectionState, output_schema=SectionOutput)
    section_builder.add_node("generate_queries", generate_queries)
    section_builder.add_node("search_web", search_web)
    section_builder.add_node("write_section", write_section)
    section_builder.add_edge(START, "generate_queries")
    section_builder.add_edge("generate_queries", "search_web")
    section_builder.add_edge("search_web", "write_section")
    builder = StateGraph(ReportState, input_schema=ReportInput, output_schema=ReportOutput)
    builder.add_node("generate_report_plan", generate_report_plan)
    builder.add_node("human_feedback", human_feedback)
    builder.add_node("build_section_with_web_research", section_builder.compile())
    builder.add_node("gather_completed_sections", gather_completed_sections)
    builder.add_node("write_final_sections", write_final_sections)
    builder.add_node("compile_final_report", compile_final_report)
    builder.add_edge(START, "generate_report_plan")
    builder.add_edge("generate_report_plan", "human_feedback")
    builder.add_edge("build_section_with_web_research", "gather_completed_sections")
    builder.add_conditional_edges(
        "gather_completed_sections", initiate_final_section_writing, ["write_final_sections"]
    )
    builder.add_edge("write_final_sections", "compile_final_report")
    builder.add_edge("compile_final_report", END)
    graph = builder.compile(checkpointer=InMemorySaver())
    settings = {**config, "configurable": {"thread_id": "1"}}
    waiting = await graph.ainvoke({"topic": topic}, settings)
    assert "__interrupt__" in waiting
    return (await graph.ainvoke(Command(resume=True), settings))["final_report"]


WITH_HANDLER = {
    "data-enrichment": data_enrichment,
    "task-decomposition-parallel": task_decomposition_parallel,
    "database-discovery-fleet": database_discovery_fleet,
    "company-researcher": company_researcher,
    "lats": lats,
    "open-deep-research-legacy": open_deep_research_legacy,
}
