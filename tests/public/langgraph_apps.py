"""Applications of LangGraph that were drawn: research, plans, hand-written agents, memories, persons in the loop."""

from __future__ import annotations

import ast
import asyncio
import json
import operator
from typing import Annotated, Any, Literal, TypedDict

from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    get_buffer_string,
)
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableConfig, RunnableLambda, chain
from langchain_core.tools import StructuredTool, tool
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, Send, interrupt
from pydantic import BaseModel

from tests.apps.langchain_parts import Replies, calls
from tests.public.kit import Directions, Found
from tests.public.texts import TEXTS


def said(messages):
    return "\n".join(str(one.content) for one in messages)


def web_search(pages):
    """Return a tool that finds pages as mappings, by a word of the query."""

    @tool("tavily_search_results_json")
    def search(query: str) -> list[dict[str, Any]]:
        """Search the web."""
        names = next(names for word, names in pages.items() if word in query)
        return [{"url": f"https://{name}.example", "content": TEXTS[name]} for name in names]

    return search


class Analyst(BaseModel):
    """A person of the research team."""

    name: str
    description: str


class Perspectives(BaseModel):
    """The team."""

    analysts: list[Analyst]


class SearchQuery(BaseModel):
    """A query for the web."""

    search_query: str


class InterviewState(MessagesState, total=False):
    max_num_turns: int
    context: Annotated[list, operator.add]
    analyst: Analyst
    interview: str
    sections: list


class ResearchState(TypedDict, total=False):
    topic: str
    max_analysts: int
    human_analyst_feedback: str
    analysts: list[Analyst]
    sections: Annotated[list, operator.add]
    introduction: str
    content: str
    conclusion: str
    final_report: str


def academy_research_assistant(config):
    """Analysts are approved by a person, interview an expert side by side, and their memos become a report."""
    model = Replies(
        rules=[
            (
                "Create analysts",
                calls(
                    "Perspectives",
                    analysts=[
                        {"name": "Ines", "description": "the physics of lake ice"},
                        {"name": "Per", "description": "fish in winter"},
                    ],
                ),
            ),
            (
                "Ask the expert",
                lambda messages: (
                    "I am Ines. Why does the ice close from above?"
                    if "physics" in said(messages)
                    else "I am Per. Where are the fish in February?"
                ),
            ),
            (
                "Make a query",
                lambda messages: calls(
                    "SearchQuery", search_query="lake ice" if "I am Ines" in said(messages) else "winter fish"
                ),
            ),
            (
                "You are the expert",
                lambda messages: (
                    "Since cold water of four degrees sinks [1]."
                    if "physics" in said(messages)
                    else "In the reeds, a few metres down [1]."
                ),
            ),
            (
                "Write a section",
                lambda messages: (
                    "## The lid\nWater is heaviest well above freezing, so the lid grows on top [1]."
                    if "physics" in said(messages)
                    else "## The guests\nPerch stay by the reeds and go on feeding [2]."
                ),
            ),
            ("these memos", "## Insights\nIce closes the lake from above [1], and perch feed below it [2]."),
            ("report introduction", "# Winter under the lid"),
            ("report conclusion", "The lake sleeps less than it seems."),
        ]
    )
    search = web_search({"ice": ("ice", "thaw"), "fish": ("perch",)})
    articles = {"ice": "wiki_ice", "fish": "wiki_perch"}

    def load(query):  # a loader, which tells nobody what it loads
        name = next(name for word, name in articles.items() if word in query)
        return [Document(page_content=TEXTS[name], metadata={"source": f"https://wiki.example/{name}", "page": ""})]

    def create_analysts(state):
        asked = f"Create analysts for {state['topic']}, at most {state['max_analysts']}. Feedback: "
        asked += state.get("human_analyst_feedback", "")
        made = model.with_structured_output(Perspectives).invoke([SystemMessage(asked), HumanMessage("Name them.")])
        return {"analysts": made.analysts}

    def ask_question(state):
        asked = SystemMessage(f"Ask the expert on {state['analyst'].description}, as {state['analyst'].name}.")
        return {"messages": [model.invoke([asked, *state["messages"]])]}

    def query_of(state):
        asked = [SystemMessage("Make a query of the last question."), *state["messages"]]
        return model.with_structured_output(SearchQuery).invoke(asked).search_query

    def search_web(state):
        found = search.invoke(query_of(state))
        pages = [f'<Document href="{one["url"]}"/>\n{one["content"]}\n</Document>' for one in found]
        return {"context": ["\n\n---\n\n".join(pages)]}

    def search_wikipedia(state):
        pages = [
            f'<Document source="{one.metadata["source"]}" page=""/>\n{one.page_content}\n</Document>'
            for one in load(query_of(state))
        ]
        return {"context": ["\n\n---\n\n".join(pages)]}

    def answer_question(state):
        asked = (
            f"You are the expert on {state['analyst'].description}. Answer from this context:\n{state['context']}"
        )
        answer = model.invoke([SystemMessage(asked), *state["messages"]])
        answer.name = "expert"
        return {"messages": [answer]}

    def route(state):
        answers = [one for one in state["messages"] if isinstance(one, AIMessage) and one.name == "expert"]
        return "save_interview" if len(answers) >= state.get("max_num_turns", 1) else "ask_question"

    def write_section(state):
        asked = SystemMessage(f"Write a section on {state['analyst'].description}.")
        sources = HumanMessage(f"Use this source to write your section: {state['context']}")
        return {"sections": [model.invoke([asked, sources]).content]}

    interview = StateGraph(InterviewState)
    interview.add_node("ask_question", ask_question)
    interview.add_node("search_web", search_web)
    interview.add_node("search_wikipedia", search_wikipedia)
    interview.add_node("answer_question", answer_question)
    interview.add_node("save_interview", lambda state: {"interview": get_buffer_string(state["messages"])})
    interview.add_node("write_section", write_section)
    interview.add_edge(START, "ask_question")
    for one in ("search_web", "search_wikipedia"):
        interview.add_edge("ask_question", one)
        interview.add_edge(one, "answer_question")
    interview.add_conditional_edges("answer_question", route, ["ask_question", "save_interview"])
    interview.add_edge("save_interview", "write_section")
    interview.add_edge("write_section", END)

    def interviews(state):
        if state.get("human_analyst_feedback", "approve") != "approve":
            return "create_analysts"
        opening = HumanMessage(f"So you were writing an article on {state['topic']}?")
        return [
            Send("conduct_interview", {"analyst": one, "messages": [opening], "context": []})
            for one in state["analysts"]
        ]

    def part(name, asked):
        def write(state):
            memos = "\n\n".join(state["sections"])
            made = model.invoke([SystemMessage(f"On {state['topic']}, from:\n{memos}"), HumanMessage(asked)])
            return {name: made.content}

        return write

    def finalize(state):
        content = state["content"].removeprefix("## Insights\n")
        return {"final_report": "\n\n---\n\n".join((state["introduction"], content, state["conclusion"]))}

    built = StateGraph(ResearchState)
    built.add_node("create_analysts", create_analysts)
    built.add_node("human_feedback", lambda state: None)
    built.add_node("conduct_interview", interview.compile())
    built.add_node("write_report", part("content", "Write a report from these memos."))
    built.add_node("write_introduction", part("introduction", "Write the report introduction."))
    built.add_node("write_conclusion", part("conclusion", "Write the report conclusion."))
    built.add_node("finalize_report", finalize)
    built.add_edge(START, "create_analysts")
    built.add_edge("create_analysts", "human_feedback")
    built.add_conditional_edges("human_feedback", interviews, ["create_analysts", "conduct_interview"])
    parts = ["write_report", "write_introduction", "write_conclusion"]
    for one in parts:
        built.add_edge("conduct_interview", one)
    built.add_edge(parts, "finalize_report")
    built.add_edge("finalize_report", END)
    graph = built.compile(interrupt_before=["human_feedback"], checkpointer=InMemorySaver())

    thread = {**config, "configurable": {"thread_id": "1"}}
    asked = {"topic": "How does Lake Ilm get through the winter?", "max_analysts": 2}
    list(graph.stream(asked, thread, stream_mode="values"))
    graph.update_state(thread, {"human_analyst_feedback": "approve"}, as_node="human_feedback")
    list(graph.stream(None, thread, stream_mode="updates"))
    return graph.get_state(thread).values["final_report"]


class ExecuteCode(BaseModel):
    """An expression to evaluate."""

    code: str


class FinalResponse(BaseModel):
    """The answer."""

    response: str


class Replan(BaseModel):
    """What to do better."""

    feedback: str


class JoinOutputs(BaseModel):
    """Whether to answer or to plan anew."""

    thought: str
    action: FinalResponse | Replan


class Messages(TypedDict):
    messages: Annotated[list, add_messages]


PLAN = """1. tavily_search_results_json("oldest pike")
2. tavily_search_results_json("average age of pike")
3. math("How many years lie between $1 and $2?", ["$1", "$2"])
4. join()
"""


def llm_compiler(config):
    """A plan whose tools run while it is streamed, with results that later tools get, and a joiner."""
    answer = {"response": "It was 33 years old, 22 above the average."}
    model = Replies(
        rules=[
            ("Plan with", PLAN),
            ("Translate", calls("ExecuteCode", code="33 - 11")),
            ("Decide", calls("JoinOutputs", thought="Both ages are known.", action=answer)),
        ]
    )
    expression = ChatPromptTemplate.from_messages(
        [("system", "Translate the problem into Python."), ("user", "{problem}\n{context}")]
    ) | model.with_structured_output(ExecuteCode)

    def calculate(problem: str, context: list[str] | None = None, config: RunnableConfig | None = None) -> str:
        left, sign, right = expression.invoke({"problem": problem, "context": context or []}, config).code.split()
        return str({"-": operator.sub, "+": operator.add}[sign](int(left), int(right)))

    search = web_search({"oldest": ("pike",), "average": ("pike_average",)})
    math = StructuredTool.from_function(name="math", func=calculate, description="Solves a problem.")
    tools = {one.name: one for one in (search, math)}

    def tasks_of(pieces):
        text = ""
        for piece in pieces:
            text += piece.content
            *lines, text = text.split("\n")
            for line in lines:
                number, _, call = line.partition(". ")
                name, _, arguments = call.partition("(")
                yield {
                    "idx": int(number),
                    "tool": name,
                    "args": ast.literal_eval(f"[{arguments.removesuffix(')')}]"),
                }

    planner_prompt = ChatPromptTemplate.from_messages(
        [
            ("system", "Plan with these tools, a line each: {tools}. Name an earlier result as $1."),
            MessagesPlaceholder("messages"),
        ]
    ).partial(tools=", ".join(tools))
    planner = (lambda messages: {"messages": messages}) | planner_prompt | model | tasks_of

    def resolved(argument, results):
        if isinstance(argument, list):
            return [resolved(one, results) for one in argument]
        for number, result in results.items():
            argument = argument.replace(f"${number}", str(result))
        return argument

    @chain
    def schedule_task(given, config):
        task, results = given["task"], given["results"]
        if task["tool"] == "join":
            results[task["idx"]] = "join"
            return
        made = tools[task["tool"]]
        arguments = dict(zip(made.args, (resolved(one, results) for one in task["args"]), strict=False))
        results[task["idx"]] = made.invoke(arguments, config)

    @chain
    def schedule_tasks(given):
        results, messages = {}, []
        for task in given["tasks"]:
            schedule_task.invoke({"task": task, "results": results})
            messages.append(
                FunctionMessage(
                    name=task["tool"],
                    content=str(results[task["idx"]]),
                    additional_kwargs={"idx": task["idx"], "args": task["args"]},
                )
            )
        return messages

    @chain
    def plan_and_schedule(state):
        tasks = planner.stream(state["messages"])
        return {"messages": schedule_tasks.invoke({"messages": state["messages"], "tasks": tasks})}

    def recent(state):
        messages = state["messages"]
        last = max(place for place, one in enumerate(messages) if isinstance(one, HumanMessage))
        return {"messages": messages[last:]}

    def joined(decision):
        thought = AIMessage(f"Thought: {decision.thought}")
        if isinstance(decision.action, Replan):
            return {"messages": [thought, SystemMessage(f"Context from last attempt: {decision.action.feedback}")]}
        return {"messages": [thought, AIMessage(decision.action.response)]}

    joiner_prompt = ChatPromptTemplate.from_messages(
        [MessagesPlaceholder("messages"), ("system", "Decide: answer from the results above, or plan anew.")]
    )
    built = StateGraph(Messages)
    built.add_node("plan_and_schedule", plan_and_schedule)
    built.add_node("join", recent | joiner_prompt | model.with_structured_output(JoinOutputs) | joined)
    built.add_edge(START, "plan_and_schedule")
    built.add_edge("plan_and_schedule", "join")
    built.add_conditional_edges(
        "join", lambda state: END if isinstance(state["messages"][-1], AIMessage) else "plan_and_schedule"
    )
    question = "How old was the oldest pike, and how many years is that above the average?"
    *_, last = built.compile().stream({"messages": [HumanMessage(question)]}, config)
    return last["join"]["messages"][-1].content


class OverallState(TypedDict, total=False):
    messages: Annotated[list, add_messages]
    query_list: list[str]
    search_query: Annotated[list, operator.add]
    web_research_result: Annotated[list, operator.add]
    sources_gathered: Annotated[list, operator.add]
    is_sufficient: bool
    follow_up_queries: list[str]
    research_loop_count: int


RESULTS = {
    "skating by-laws": [
        ("By-laws", "https://town.example/by-laws", "snip_law"),
        ("Measures", "https://ice.example/measures", "snip_ice"),
    ],
    "skating track": [("Track", "https://club.example/track", "snip_club")],
    "fine for skating": [("Fines", "https://town.example/fines", "snip_fine")],
}


def gemini_fullstack(config):
    """Queries that are searched and summarised side by side, a reflection that asks for more, and an answer with links."""

    def summary(messages):
        given = said(messages)
        return (
            "Nobody may go on before the town opens it, at ten centimetres [1][2]."
            if "By-law 7" in given
            else "The kiosk sells entrance for three euros [1]."
            if "kiosk" in given
            else "It costs fifty euros to ignore it [1]."
        )

    enough = [
        json.dumps({"is_sufficient": False, "knowledge_gap": "fines", "follow_up_queries": ["fine for skating"]}),
        json.dumps({"is_sufficient": True, "knowledge_gap": "", "follow_up_queries": []}),
    ]
    model = Replies(
        rules=[
            ("Write queries", f"```json\n{json.dumps({'query': ['skating by-laws', 'skating track']})}\n```"),
            ("Search results", summary),
            ("Is this enough", lambda messages: enough["fifty euros" in said(messages)]),
            ("Answer with", "Once the town opens it [1], at 10 cm [2]."),
        ]
    )

    @tool
    def brave_search(query: str) -> str:
        """Search the web."""
        found = RESULTS[query]
        return json.dumps([{"title": title, "link": link, "snippet": TEXTS[name]} for title, link, name in found])

    def parsed(text):
        return json.loads(text.removeprefix("```json").removesuffix("```"))

    def generate_query(state):
        asked = state["messages"][-1].content
        return {
            "query_list": parsed(model.invoke(f"Write queries as JSON, at most 2, on: {asked}").content)["query"]
        }

    def web_research(state):
        found = json.loads(brave_search.invoke(state["search_query"]))
        sources = [
            {"title": one["title"], "url": one["link"], "snippet": one["snippet"], "short_url": f"[{place}]"}
            for place, one in enumerate(found, start=1)
        ]
        shown = [f"{one['short_url']}: {one['title']}\n{one['snippet']}\nURL: {one['url']}\n" for one in sources]
        said = model.invoke(
            f"Summarise for {state['search_query']}.\nSearch results:\n" + "\n\n".join(shown)
        ).content
        return {"sources_gathered": sources, "search_query": [state["search_query"]], "web_research_result": [said]}

    def reflection(state):
        shown = "\n\n---\n\n".join(state["web_research_result"])
        asked = f"Is this enough for {state['messages'][0].content}? JSON only.\n{shown}"
        verdict = parsed(model.invoke(asked).content)
        return {
            "is_sufficient": verdict["is_sufficient"],
            "follow_up_queries": verdict["follow_up_queries"],
            "research_loop_count": state.get("research_loop_count", 0) + 1,
        }

    def finalize_answer(state):
        shown = "\n---\n\n".join(state["web_research_result"])
        answer = model.invoke(f"Answer with sources: {state['messages'][0].content}\n{shown}").content
        used = []
        for source in state["sources_gathered"]:
            if source["short_url"] in answer:
                answer = answer.replace(source["short_url"], source["url"])
                used.append(source)
        return {"messages": [AIMessage(answer)], "sources_gathered": used}

    def sent(queries):
        return [Send("web_research", {"search_query": one, "id": place}) for place, one in enumerate(queries)]

    def evaluate(state):
        is_done = state["is_sufficient"] or state["research_loop_count"] >= 3
        return "finalize_answer" if is_done else sent(state["follow_up_queries"])

    built = StateGraph(OverallState)
    for node in (generate_query, web_research, reflection, finalize_answer):
        built.add_node(node.__name__, node)
    built.add_edge(START, "generate_query")
    built.add_conditional_edges("generate_query", lambda state: sent(state["query_list"]), ["web_research"])
    built.add_edge("web_research", "reflection")
    built.add_conditional_edges("reflection", evaluate, ["web_research", "finalize_answer"])
    built.add_edge("finalize_answer", END)
    graph = built.compile(name="search-agent")
    return graph.invoke({"messages": [HumanMessage("When may I skate on Lake Ilm?")]}, config)["messages"][
        -1
    ].content


def union(known, new):
    """Add documents to those of the state, each text once; ``delete`` begins anew."""
    if new == "delete":
        return []
    found = list(known or [])
    for one in new:
        if one.page_content not in {other.page_content for other in found}:
            found.append(
                Document(id=one.id, page_content=one.page_content, metadata={**one.metadata, "uuid": one.id})
            )
    return found


class Router(TypedDict):
    """Where the question belongs."""

    logic: str
    type: Literal["more-info", "lake", "general"]


class Plan(TypedDict):
    """Steps of research."""

    steps: list[str]


class Queries(TypedDict):
    """Queries of a step."""

    queries: list[str]


class ResearcherState(TypedDict, total=False):
    question: str
    queries: list[str]
    documents: Annotated[list, union]


class QueryState(TypedDict):
    query: str


class AgentState(MessagesState, total=False):
    router: Router
    steps: list[str]
    documents: Annotated[list, union]


async def rag_research_agent(config):
    """A router, a plan, a sub-graph for each step that searches side by side, and an answer from all documents."""
    steps = {
        "Rules of ice fishing": ["ice fishing rules", "ice thickness"],
        "Prices of licences": ["licence", "fees"],
    }
    model = Replies(
        rules=[
            ("Classify", calls("Router", logic="on fishing", type="lake")),
            ("Plan the research", calls("Plan", steps=list(steps))),
            (
                "Write queries",
                lambda messages: calls("Queries", queries=steps[messages[-1].content]),
            ),
            ("<documents>", "Yes, from 15 January on, for 12,50 € a day."),
        ]
    )
    found = Found(
        queries={
            "ice fishing rules": ("rules", "ice"),
            "ice thickness": ("ice", "thaw"),
            "licence": ("dues",),
            "fees": ("dues", "rules"),
        }
    )

    async def generate_queries(state):
        asked = [SystemMessage("Write queries."), HumanMessage(state["question"])]
        return {"queries": (await model.with_structured_output(Queries).ainvoke(asked))["queries"]}

    async def retrieve_documents(state: QueryState, config: RunnableConfig):
        return {"documents": await found.ainvoke(state["query"], config)}

    research = StateGraph(ResearcherState)
    research.add_node("generate_queries", generate_queries)
    research.add_node("retrieve_documents", retrieve_documents)
    research.add_edge(START, "generate_queries")
    research.add_conditional_edges(
        "generate_queries",
        lambda state: [Send("retrieve_documents", {"query": one}) for one in state["queries"]],
        ["retrieve_documents"],
    )
    research.add_edge("retrieve_documents", END)
    researcher = research.compile(name="ResearcherGraph")

    async def analyze_and_route_query(state):
        asked = [SystemMessage("Classify the question."), *state["messages"]]
        return {"router": await model.with_structured_output(Router).ainvoke(asked)}

    async def create_research_plan(state):
        asked = [SystemMessage("Plan the research."), *state["messages"]]
        made = await model.with_structured_output(Plan).ainvoke(asked)
        return {"steps": made["steps"], "documents": "delete"}

    async def conduct_research(state):
        result = await researcher.ainvoke({"question": state["steps"][0]})
        return {"documents": result["documents"], "steps": state["steps"][1:]}

    async def respond(state):
        shown = [f"<document uuid={one.id!r}>\n{one.page_content}\n</document>" for one in state["documents"]]
        asked = SystemMessage("Answer from:\n<documents>\n" + "\n".join(shown) + "\n</documents>")
        return {"messages": [await model.ainvoke([asked, *state["messages"]])]}

    async def ask_for_more_info(state):
        return {"messages": [await model.ainvoke([SystemMessage("Ask for more."), *state["messages"]])]}

    built = StateGraph(AgentState)
    for node in (analyze_and_route_query, ask_for_more_info, create_research_plan, conduct_research, respond):
        built.add_node(node.__name__, node)
    built.add_edge(START, "analyze_and_route_query")
    built.add_conditional_edges(
        "analyze_and_route_query",
        lambda state: "create_research_plan" if state["router"]["type"] == "lake" else "ask_for_more_info",
        ["create_research_plan", "ask_for_more_info"],
    )
    built.add_edge("create_research_plan", "conduct_research")
    built.add_conditional_edges(
        "conduct_research",
        lambda state: "conduct_research" if state["steps"] else "respond",
        ["conduct_research", "respond"],
    )
    built.add_edge("ask_for_more_info", END)
    built.add_edge("respond", END)
    graph = built.compile(name="RetrievalGraph")
    asked = {"messages": [HumanMessage("May I fish through the ice, and what does it cost?")]}
    return (await graph.ainvoke(asked, config))["messages"][-1].content


def sql_agent(config):
    """Lists the tables, reads a schema, writes a query, checks it, runs it, and answers."""

    @tool
    def sql_db_list_tables() -> str:
        """List the tables."""
        return TEXTS["tables"]

    @tool
    def sql_db_schema(table_names: str) -> str:
        """Show the schemas of tables."""
        return TEXTS["schema"]

    @tool
    def sql_db_query(query: str) -> str:
        """Run a query."""
        assert query.endswith("LIMIT 2")  # the check has added it
        return TEXTS["rows_genres"]

    query = "SELECT Genre.Name, AVG(Milliseconds) FROM Track JOIN Genre USING (GenreId) GROUP BY 1 ORDER BY 2 DESC"
    model = Replies(
        rules=[
            ("Double check", calls("sql_db_query", query=f"{query} LIMIT 2")),
            (TEXTS["rows_genres"], "Sci Fi & Fantasy, with 48 minutes."),
            ("Write a query", calls("sql_db_query", query=query)),
            ("Available tables", calls("sql_db_schema", table_names="Genre, Track")),
        ]
    )

    def list_tables(state):
        call = {"name": "sql_db_list_tables", "args": {}, "id": "abc123", "type": "tool_call"}
        result = sql_db_list_tables.invoke(call)
        return {
            "messages": [AIMessage("", tool_calls=[call]), result, AIMessage(f"Available tables: {result.content}")]
        }

    def call_get_schema(state):
        return {"messages": [model.bind_tools([sql_db_schema], tool_choice="any").invoke(state["messages"])]}

    def generate_query(state):
        asked = [SystemMessage("Write a query, or answer from its rows."), *state["messages"]]
        return {"messages": [model.bind_tools([sql_db_query]).invoke(asked)]}

    def check_query(state):
        last = state["messages"][-1]
        asked = [SystemMessage("Double check the query."), HumanMessage(last.tool_calls[0]["args"]["query"])]
        checked = model.bind_tools([sql_db_query], tool_choice="any").invoke(asked)
        checked.id = last.id
        return {"messages": [checked]}

    built = StateGraph(MessagesState)
    for node in (list_tables, call_get_schema, generate_query, check_query):
        built.add_node(node.__name__, node)
    built.add_node("get_schema", ToolNode([sql_db_schema], name="get_schema"))
    built.add_node("run_query", ToolNode([sql_db_query], name="run_query"))
    built.add_edge(START, "list_tables")
    built.add_edge("list_tables", "call_get_schema")
    built.add_edge("call_get_schema", "get_schema")
    built.add_edge("get_schema", "generate_query")
    built.add_conditional_edges(
        "generate_query",
        lambda state: "check_query" if state["messages"][-1].tool_calls else END,
        ["check_query", END],
    )
    built.add_edge("check_query", "run_query")
    built.add_edge("run_query", "generate_query")
    asked = {"messages": [{"role": "user", "content": "Which genre on average has the longest tracks?"}]}
    *_, last = built.compile().stream(asked, config, stream_mode="values")
    return last["messages"][-1].content


class Section(BaseModel):
    """A section of a page."""

    section_title: str
    description: str


class Outline(BaseModel):
    """An outline of a page."""

    page_title: str
    sections: list[Section]

    @property
    def as_str(self) -> str:
        return f"# {self.page_title}\n\n" + "\n\n".join(
            f"## {one.section_title}\n\n{one.description}" for one in self.sections
        )


class RelatedSubjects(BaseModel):
    """Subjects that are near."""

    topics: list[str]


class Editor(BaseModel):
    """A person who writes."""

    name: str
    role: str


class Editors(BaseModel):
    """The persons who write."""

    editors: list[Editor]


class Searches(BaseModel):
    """Queries of a question."""

    queries: list[str]


class AnswerWithCitations(BaseModel):
    """An expert's answer."""

    answer: str
    cited_urls: list[str]


class WikiSection(BaseModel):
    """A section that is written."""

    section_title: str
    content: str
    citations: list[str]


class ExpertState(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], operator.add]
    references: Annotated[dict, operator.or_]
    editor: Editor


class StormState(TypedDict, total=False):
    topic: str
    outline: Outline
    editors: list[Editor]
    interview_results: list[Any]
    sections: list[WikiSection]
    article: str


async def storm(config):
    """Related pages, editors who interview an expert, an outline, sections from the references, and an article."""
    topic = "The ferry of Lake Ilm"
    ferry, boiler = "https://ferry.example", "https://museum.example"
    outline = {"page_title": "Ferry", "sections": [{"section_title": "Service", "description": "Years and fate"}]}
    model = Replies(
        rules=[
            ("Outline a page", calls("Outline", **outline)),
            ("Name related", calls("RelatedSubjects", topics=["lake ice"])),
            ("Choose editors", calls("Editors", editors=[{"name": "Rut", "role": "historian"}])),
            ("Ask as", "Which years did it run? Thank you so much for your help!"),
            ("Query for", calls("Searches", queries=["ferry years", "ferry boiler"])),
            (
                "Answer as an expert",
                calls(
                    "AnswerWithCitations",
                    answer="Until 1962 [1], and one part is left [2].",
                    cited_urls=[ferry, boiler],
                ),
            ),
            ("Refine the outline", calls("Outline", **outline)),
            (
                "Write the section",
                calls(
                    "WikiSection", section_title="Service", content="It ran for 71 years [1].", citations=[ferry]
                ),
            ),
            (
                "Write the article",
                "# The ferry of Lake Ilm\n\nFrom 1891 to 1962 a steam ferry crossed the lake [1].",
            ),
        ]
    )
    related = Found(queries={"lake ice": ("wiki_ice",)})
    results = {"ferry years": [(ferry, "ferry")], "ferry boiler": [(boiler, "boiler")]}
    index = InMemoryVectorStore(Directions({"Ferry: Service": ("ferry", "boiler")}))

    @tool
    async def search_engine(query: str):
        """Search the web."""
        return [{"content": TEXTS[name], "url": url} for url, name in results[query]]

    def asking(asked, schema):
        return ChatPromptTemplate.from_template(asked) | model.with_structured_output(schema)

    @chain
    async def survey_subjects(topic):
        subjects = await asking("Name related pages of {topic}", RelatedSubjects).ainvoke({"topic": topic})
        found = await related.abatch(subjects.topics, return_exceptions=True)
        pages = [f"### {one.metadata['title']}\n\nSummary: {one.page_content}" for pages in found for one in pages]
        given = {"examples": "\n\n".join(pages), "topic": topic}
        return await asking("Choose editors for {topic}. Like:\n{examples}", Editors).ainvoke(given)

    @chain
    async def generate_question(state):
        asked = ChatPromptTemplate.from_messages([("system", "Ask as {role}."), MessagesPlaceholder("messages")])
        named = RunnableLambda(lambda message: message.model_copy(update={"name": state["editor"].name}))
        given = {"role": state["editor"].role, "messages": state["messages"]}
        return {"messages": [await (asked | model | named).ainvoke(given)]}

    async def gen_answer(state, config: RunnableConfig):
        question = state["messages"][-1].content
        made = await asking("Query for: {question}", Searches).ainvoke({"question": question})
        found = await search_engine.abatch(made.queries, config, return_exceptions=True)
        pages = {one["url"]: one["content"] for results in found for one in results}
        call = calls("Searches", queries=made.queries)
        told = ToolMessage(json.dumps(pages), tool_call_id=call.tool_calls[0]["id"])
        asked = [SystemMessage("Answer as an expert, with links."), HumanMessage(question), call, told]
        answer = await model.with_structured_output(AnswerWithCitations).ainvoke(asked)
        links = "\n".join(f"[{place}]: {url}" for place, url in enumerate(answer.cited_urls, start=1))
        return {
            "messages": [AIMessage(f"{answer.answer}\n\nCitations:\n\n{links}", name="expert")],
            "references": {url: pages[url] for url in answer.cited_urls},
        }

    interview = StateGraph(ExpertState)
    interview.add_node("ask_question", generate_question)
    interview.add_node("answer_question", gen_answer)
    interview.add_edge(START, "ask_question")
    interview.add_edge("ask_question", "answer_question")
    interview.add_conditional_edges(
        "answer_question",
        lambda state: (
            END if state["messages"][-2].content.endswith("Thank you so much for your help!") else "ask_question"
        ),
        ["ask_question", END],
    )
    interviews = interview.compile(checkpointer=False).with_config(run_name="Conduct Interviews")

    async def initialize_research(state):
        made, survey = await asyncio.gather(
            asking("Outline a page on {topic}", Outline).ainvoke({"topic": state["topic"]}),
            survey_subjects.ainvoke(state["topic"]),
        )
        return {"outline": made, "editors": survey.editors}

    async def conduct_interviews(state):
        opening = AIMessage(f"So you were writing an article on {state['topic']}?", name="expert")
        asked = [{"editor": one, "messages": [opening], "references": {}} for one in state["editors"]]
        return {"interview_results": await interviews.abatch(asked)}

    async def refine_outline(state):
        talks = "\n\n".join(
            f"### {one.name}\n\n{one.content}" for talk in state["interview_results"] for one in talk["messages"]
        )
        given = {"old": state["outline"].as_str, "talks": talks}
        return {"outline": await asking("Refine the outline:\n{old}\n\nFrom:\n{talks}", Outline).ainvoke(given)}

    async def index_references(state):
        pages = {url: page for talk in state["interview_results"] for url, page in talk["references"].items()}
        await index.aadd_documents(
            [Document(page_content=page, metadata={"source": url}) for url, page in pages.items()]
        )
        return {}

    async def retrieve(given):
        found = await index.as_retriever(search_kwargs={"k": 3}).ainvoke(f"Ferry: {given['section']}")
        shown = [f'<Document href="{one.metadata["source"]}"/>\n{one.page_content}\n</Document>' for one in found]
        return {"docs": "\n".join(shown), **given}

    async def write_sections(state):
        write = retrieve | asking("Write the section {section} of:\n{outline}\nCite:\n{docs}", WikiSection)
        return {
            "sections": await write.abatch(
                [
                    {"outline": state["outline"].as_str, "section": one.section_title, "topic": state["topic"]}
                    for one in state["outline"].sections
                ]
            )
        }

    async def write_article(state):
        draft = "\n\n".join(f"## {one.section_title}\n\n{one.content}" for one in state["sections"])
        write = (
            ChatPromptTemplate.from_template("Write the article on {topic} from:\n{draft}")
            | model
            | StrOutputParser()
        )
        return {"article": await write.ainvoke({"topic": state["topic"], "draft": draft})}

    built, last = StateGraph(StormState), START
    retrieve = RunnableLambda(retrieve)
    nodes = (
        initialize_research,
        conduct_interviews,
        refine_outline,
        index_references,
        write_sections,
        write_article,
    )
    for node in nodes:
        built.add_node(node.__name__, node)
        built.add_edge(last, node.__name__)
        last = node.__name__
    built.add_edge(last, END)
    graph = built.compile()
    article = ""
    async for update in graph.astream({"topic": topic}, config):
        article = (update.get("write_article") or {}).get("article", article)
    return article


def review_tool_calls(config):
    """A person changes the arguments of a tool's call before it runs."""

    @tool
    def weather_search(city: str) -> str:
        """Search for the weather."""
        assert city == "Näs, Sweden"
        return TEXTS["weather"]

    model = Replies(
        rules=[
            (TEXTS["weather"], "It is sunny at Näs, and cold."),
            (
                "",
                AIMessage(
                    "", id="m-1", tool_calls=[{"name": "weather_search", "args": {"city": "Näs"}, "id": "c-1"}]
                ),
            ),
        ]
    ).bind_tools([weather_search])

    def call_llm(state):
        return {"messages": [model.invoke(state["messages"])]}

    def human_review_node(state) -> Command[Literal["call_llm", "run_tool"]]:
        last = state["messages"][-1]
        call = last.tool_calls[-1]
        review = interrupt({"question": "Is this correct?", "tool_call": call})
        if review["action"] == "continue":
            return Command(goto="run_tool")
        changed = {"role": "ai", "content": last.content, "id": last.id}
        changed["tool_calls"] = [{"id": call["id"], "name": call["name"], "args": review["data"]}]
        return Command(goto="run_tool", update={"messages": [changed]})

    def run_tool(state):
        return {
            "messages": [
                {
                    "role": "tool",
                    "name": one["name"],
                    "content": weather_search.invoke(one["args"]),
                    "tool_call_id": one["id"],
                }
                for one in state["messages"][-1].tool_calls
            ]
        }

    built = StateGraph(MessagesState)
    for node in (call_llm, run_tool, human_review_node):
        built.add_node(node.__name__, node)
    built.add_edge(START, "call_llm")
    built.add_conditional_edges(
        "call_llm",
        lambda state: "human_review_node" if state["messages"][-1].tool_calls else END,
        ["human_review_node", END],
    )
    built.add_edge("run_tool", "call_llm")
    graph = built.compile(checkpointer=InMemorySaver())
    thread = {**config, "configurable": {"thread_id": "2"}}
    asked = {"messages": [{"role": "user", "content": "What's the weather at Näs?"}]}
    list(graph.stream(asked, thread, stream_mode="updates"))
    *_, last = graph.stream(
        Command(resume={"action": "update", "data": {"city": "Näs, Sweden"}}), thread, stream_mode="updates"
    )
    return last["call_llm"]["messages"][-1].content


class MemoryState(MessagesState, total=False):
    recall_memories: list[str]


def long_term_memory_agent(config):
    """An agent that saves what it hears, and finds it in another conversation, beside what the web says."""
    memories = InMemoryVectorStore(Directions({"Human: Where should I go for dinner?": ("memory",)}))

    @tool
    def save_recall_memory(memory: str, config: RunnableConfig) -> str:
        """Save a memory."""
        user = config["configurable"]["user_id"]
        memories.add_documents([Document(page_content=memory, metadata={"user_id": user})])
        return memory

    @tool
    def search_recall_memories(query: str, config: RunnableConfig) -> list[str]:
        """Search the memories."""
        user = config["configurable"]["user_id"]
        if not memories.store:  # nothing is embedded yet
            return []
        found = memories.similarity_search(query, k=3, filter=lambda one: one.metadata["user_id"] == user)
        return [one.page_content for one in found]

    search = web_search({"pike dinner": ("restaurant",)})
    tools = [save_recall_memory, search_recall_memories, search]
    model = Replies(
        rules=[
            (TEXTS["restaurant"], "To the smokehouse at the pier: it serves pike today."),
            ("go for dinner", calls("tavily_search_results_json", query="pike dinner")),
            (TEXTS["memory"], "Good to know, Anna."),
            ("", calls("save_recall_memory", memory=TEXTS["memory"])),
        ]
    ).bind_tools(tools)
    prompt = ChatPromptTemplate.from_messages(
        [("system", "You have memories.\n## Recall memories\n{recall_memories}"), ("placeholder", "{messages}")]
    )

    def load_memories(state, config: RunnableConfig):
        return {"recall_memories": search_recall_memories.invoke(get_buffer_string(state["messages"]), config)}

    def agent(state, config: RunnableConfig):
        recalled = "<recall_memory>\n" + "\n".join(state["recall_memories"]) + "\n</recall_memory>"
        given = {"messages": state["messages"], "recall_memories": recalled}
        return {"messages": [(prompt | model).invoke(given)]}

    built = StateGraph(MemoryState)
    built.add_node("load_memories", load_memories)
    built.add_node("agent", agent)
    built.add_node("tools", ToolNode(tools))
    built.add_edge(START, "load_memories")
    built.add_edge("load_memories", "agent")
    built.add_conditional_edges(
        "agent", lambda state: "tools" if state["messages"][-1].tool_calls else END, ["tools", END]
    )
    built.add_edge("tools", "agent")
    graph = built.compile(checkpointer=InMemorySaver())
    answers = []
    for thread, asked in (("1", "I like smoked pike."), ("2", "Where should I go for dinner?")):
        where = {**config, "configurable": {"user_id": "1", "thread_id": thread}}
        *_, last = graph.stream({"messages": [("user", asked)]}, where)
        answers.append(last["agent"]["messages"][-1].content)
    return answers


WITH_HANDLER = {
    "academy-research-assistant": academy_research_assistant,
    "llm-compiler": llm_compiler,
    "gemini-fullstack": gemini_fullstack,
    "rag-research-agent": rag_research_agent,
    "sql-agent": sql_agent,
    "storm": storm,
    "review-tool-calls": review_tool_calls,
    "long-term-memory-agent": long_term_memory_agent,
}
