"""Applications of LangGraph of the eighth draw: a plan whose steps name each other's results, an answer that is revised
by what it lets search, a supervisor whose researchers search side by side."""

from __future__ import annotations

import asyncio
import operator
import re
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypedDict

from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    MessageLikeRepresentation,
    SystemMessage,
    ToolMessage,
    filter_messages,
    get_buffer_string,
)
from langchain_core.output_parsers.openai_tools import PydanticToolsParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph, add_messages
from langgraph.prebuilt import ToolNode
from langgraph.types import Command
from pydantic import BaseModel, Field, ValidationError

from tests.apps.langchain_parts import Replies, calls
from tests.public.texts import TEXTS


def url_of(name):
    return f"https://{name.replace('_', '-')}.example"


class TavilySearchResults(BaseTool):
    """A web search whose results are a list; what it finds goes by the words in the query."""

    name: str = "tavily_search_results_json"
    description: str = "Search the web; the input is a query."
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    found: dict[str, tuple[str, ...]]

    def _run(self, query: str):
        names = next(names for words, names in self.found.items() if words in query)
        results = [{"url": url_of(name), "content": TEXTS[name]} for name in names]
        return results, {"query": query, "answer": None, "results": results}


class ReWOO(TypedDict):
    task: str
    plan_string: str
    steps: list
    results: dict
    result: str


def rewoo(config):
    """A plan is written at once; its searches and calls of a model run in turn, and a solver gets all results."""
    task = "In which village was the winner of Vester's rowing race of 2026 born?"
    plan = (
        "Plan: Use Google to search for who won the race in 2026.\n"
        "#E1 = Google[winner of the rowing race round Vester in 2026]\n\n"
        "Plan: Take the name of the winner out of the search results.\n"
        "#E2 = LLM[What is the name of the winner, given #E1]\n\n"
        "Plan: Use Google to search for the winner's place of birth.\n"
        "#E3 = Google[birthplace of the rower, given #E2]\n\n"
        "Plan: Take the village out of the search results.\n"
        "#E4 = LLM[What is the village of birth, given #E3]"
    )
    model = Replies(
        rules=[
            ("Solve the following task", "Nordby, on the north shore"),
            ("make plans that can solve", plan),
            ("What is the village of birth", "The winner comes from Nordby."),
            ("What is the name of the winner", "Signe Dahl"),
        ]
    )
    search = TavilySearchResults(
        found={
            "winner of the rowing race": ("rowing_result", "rowing_course"),
            "birthplace": ("dahl_life", "rowing_result"),
        }
    )
    prompt = (
        "For the following task, make plans that can solve the problem step by step. For each plan, say which tool "
        "with which input retrieves evidence; a variable #E keeps it for later tools. (Plan, #E1, Plan, #E2, ...)\n\n"
        "Tools can be one of the following:\n"
        "(1) Google[input]: searches the web. The input is a search query.\n"
        "(2) LLM[input]: a model like yourself. The input can be any instruction.\n\n"
        "For example,\nTask: Ida and Per worked 30 hours; Ida worked twice as long as Per. How long did Per work?\n"
        "Plan: Translate the problem into an equation, and solve it. #E1 = LLM[Solve x + 2x = 30]\n\n"
        "Begin!\nDescribe your plans with rich details. Each Plan is followed by only one #E.\n\nTask: {task}"
    )
    solve_prompt = (
        "Solve the following task or problem. To solve it, we have made step-by-step Plan and retrieved Evidence for "
        "each Plan. Use them with caution, since long evidence may contain irrelevant information.\n\n{plan}\n\n"
        "Now solve the task by the Evidence above. Respond with the answer directly, with no extra words.\n\n"
        "Task: {task}\nResponse:"
    )
    pattern = r"Plan:\s*(.+)\s*(#E\d+)\s*=\s*(\w+)\s*\[([^\]]+)\]"
    planner = ChatPromptTemplate.from_messages([("user", prompt)]) | model

    def get_plan(state: ReWOO):
        result = planner.invoke({"task": state["task"]})
        return {"steps": re.findall(pattern, result.content), "plan_string": result.content}

    def get_current_task(state):
        if state.get("results") is None:
            return 1
        if len(state["results"]) == len(state["steps"]):
            return None
        return len(state["results"]) + 1

    def filled(text, results):
        for name, result in results.items():
            text = text.replace(name, result)
        return text

    def tool_execution(state: ReWOO):
        _, step_name, name, tool_input = state["steps"][get_current_task(state) - 1]
        results = state.get("results") or {}
        tool_input = filled(tool_input, results)
        if name == "Google":
            result = search.invoke(tool_input)
        elif name == "LLM":
            result = model.invoke(tool_input)
        else:
            raise ValueError(name)
        results[step_name] = str(result)
        return {"results": results}

    def solve(state: ReWOO):
        plan = ""
        for one, step_name, name, tool_input in state["steps"]:
            results = state.get("results") or {}
            plan += f"Plan: {one}\n{filled(step_name, results)} = {name}[{filled(tool_input, results)}]"
        result = model.invoke(solve_prompt.format(plan=plan, task=state["task"]))
        return {"result": result.content}

    def route(state):
        return "solve" if get_current_task(state) is None else "tool"

    graph = StateGraph(ReWOO)
    graph.add_node("plan", get_plan)
    graph.add_node("tool", tool_execution)
    graph.add_node("solve", solve)
    graph.add_edge("plan", "tool")
    graph.add_edge("solve", END)
    graph.add_conditional_edges("tool", route, ["solve", "tool"])
    graph.add_edge(START, "plan")
    app = graph.compile()
    last: dict[str, Any] = {}
    for step in app.stream({"task": task}, config):
        last = step
    return last["solve"]["result"]


class Reflection(BaseModel):
    missing: str = Field(description="What is missing.")
    superfluous: str = Field(description="What is superfluous.")


class AnswerQuestion(BaseModel):
    """Answer the question, reflect on the answer, and give search queries that may improve it."""

    answer: str = Field(description="A detailed answer to the question.")
    reflection: Reflection = Field(description="Your reflection on the answer.")
    search_queries: list[str] = Field(description="1-3 queries for what the critique asks for.")


class ReviseAnswer(AnswerQuestion):
    """Revise your answer to the question, with a reflection, references and search queries."""

    references: list[str] = Field(description="What the answer is built on.")


class ResponderWithRetries:
    """Asks until the form is filled in rightly, three times at most."""

    def __init__(self, runnable, validator):
        self.runnable, self.validator = runnable, validator

    def respond(self, state):
        messages, response = state["messages"], None
        for attempt in range(3):
            response = self.runnable.invoke({"messages": messages}, {"tags": [f"attempt:{attempt}"]})
            try:
                self.validator.invoke(response)
            except ValidationError as error:
                schema = self.validator.tools[0].model_json_schema()
                told = f"{error!r}\n\nPay attention to the schema.\n\n{schema} Respond by fixing all validation errors."
                messages = [*messages, response, ToolMessage(told, tool_call_id=response.tool_calls[0]["id"])]
            else:
                break
        return {"messages": response}


class ReflexionState(TypedDict):
    messages: Annotated[list, add_messages]


def reflexion(config):
    """An answer as a form, which lets search for what it lacks, is revised until there were enough turns."""
    web = {
        "fresh water below Vester": ("water_lens", "water_wells"),
        "cisterns of Vester": ("water_cisterns",),
        "ground water of Vester is filled up": ("water_pond", "water_lens"),
        "how much water Vester uses": ("water_meter",),
        "water pipe to Vester": ("water_pipe",),
    }
    below, cisterns, filled_up, use, pipe = web
    cited = ("water_lens", "water_cisterns", "water_pond", "water_pipe")
    final = (
        "Pump less than lets salt in [1], fill cisterns by law [2], and let winter rain seep back [3]; "
        "a pipe has no majority [4].\n\nReferences:\n"
        + "\n".join(f"- [{place}] {url_of(name)}" for place, name in enumerate(cited, start=1))
    )

    def filled(form, number, answer, missing, *queries, text=None, **more):
        """Return a reply that fills in a form, behind some words where there is a text."""
        reflection = {"missing": missing, "superfluous": "Nothing much."}
        args = {"answer": answer, "reflection": reflection, **more}
        if queries:
            args["search_queries"] = list(queries)
        named = {"name": form.__name__, "id": f"toolu_{number}"}
        content = [{"type": "text", "text": text}, {"type": "tool_use", "input": args, **named}]
        return AIMessage(content if text else "", tool_calls=[{"args": args, **named}])

    draft = "Islanders should save water, and dig deeper wells."
    llm = Replies(
        rules=[
            (
                "voted down twice",
                filled(
                    ReviseAnswer,
                    5,
                    final,
                    "Some numbers.",
                    "law of cisterns",
                    text="Okay, let me reflect on my revised answer so far.",
                    references=[url_of(name) for name in cited],
                ),
            ),
            (
                "winter rain seeps back",
                filled(
                    ReviseAnswer,
                    4,
                    "Let rain seep back, and pump less.",
                    "Who uses it.",
                    use,
                    pipe,
                    text="Let me revise it once more.",
                    references=[url_of("water_pond")],
                ),
            ),
            (
                "salt creeps in",
                filled(
                    ReviseAnswer,
                    3,
                    "Pump little: wells have become salt.",
                    "How it fills up.",
                    filled_up,
                    references=[url_of("water_lens")],
                ),
            ),
            ("fixing all validation errors", filled(AnswerQuestion, 2, draft, "Where it is.", below, cisterns)),
            ("", filled(AnswerQuestion, 1, draft, "Where it is.")),
        ]
    )
    tavily_tool = TavilySearchResults(found=web)
    system = (
        "You are an expert researcher.\nCurrent time: {time}\n\n1. {first_instruction}\n"
        "2. Reflect and critique your answer. Be severe.\n3. Recommend search queries to improve your answer."
    )
    reminder = (
        "\n\n<reminder>Reflect on the user's original question and the actions taken thus far. "
        "Respond using the {function_name} function.</reminder>"
    )
    actor_prompt_template = ChatPromptTemplate.from_messages(
        [("system", system), MessagesPlaceholder(variable_name="messages"), ("user", reminder)]
    ).partial(time=lambda: datetime.now(tz=UTC).isoformat())
    revise_instructions = (
        "Revise your previous answer using the new information.\n"
        "- Use the critique to add what is important, and to remove what is superfluous.\n"
        "- Cite by numbers, and add a References section to the bottom of your answer."
    )

    def responder(form, instruction):
        partial = actor_prompt_template.partial(first_instruction=instruction, function_name=form.__name__)
        return ResponderWithRetries(partial | llm.bind_tools(tools=[form]), PydanticToolsParser(tools=[form]))

    first_responder = responder(AnswerQuestion, "Provide a detailed answer.")
    revisor = responder(ReviseAnswer, revise_instructions)

    def run_queries(search_queries: list[str], **kwargs):
        """Run the generated queries."""
        return tavily_tool.batch([{"query": query} for query in search_queries])

    tool_node = ToolNode(
        [StructuredTool.from_function(run_queries, name=form.__name__) for form in (AnswerQuestion, ReviseAnswer)]
    )
    max_iterations = 5

    def get_num_iterations(messages):
        number = 0
        for message in messages[::-1]:
            if message.type not in {"tool", "ai"}:
                break
            number += 1
        return number

    def event_loop(state: ReflexionState):
        return END if get_num_iterations(state["messages"]) > max_iterations else "execute_tools"

    builder = StateGraph(ReflexionState)
    builder.add_node("draft", first_responder.respond)
    builder.add_node("execute_tools", tool_node)
    builder.add_node("revise", revisor.respond)
    builder.add_edge("draft", "execute_tools")
    builder.add_edge("execute_tools", "revise")
    builder.add_conditional_edges("revise", event_loop, ["execute_tools", END])
    builder.add_edge(START, "draft")
    graph = builder.compile()
    step: dict[str, Any] = {}
    asked = {"messages": [("user", "How should Vester keep its fresh water?")]}
    for step in graph.stream(asked, config, stream_mode="values"):  # noqa: B007 - the last one is read
        pass
    return step["messages"][-1].tool_calls[0]["args"]["answer"]


class ConductResearch(BaseModel):
    """Call this to conduct research on a topic."""

    research_topic: str = Field(description="A single topic, in high detail.")


class ResearchComplete(BaseModel):
    """Call this when the research is complete."""


class Summary(BaseModel):
    """A page, summarised."""

    summary: str
    key_excerpts: str


class ClarifyWithUser(BaseModel):
    """Whether the user is to be asked."""

    need_clarification: bool
    question: str
    verification: str


class ResearchQuestion(BaseModel):
    """A question that guides the research."""

    research_brief: str


def override_reducer(current, new):
    """Append what is new; what overrides takes the place of all."""
    if isinstance(new, dict) and new.get("type") == "override":
        return new.get("value", new)
    return operator.add(current, new)


class AgentInputState(MessagesState):
    """Messages alone."""


class AgentState(MessagesState):
    supervisor_messages: Annotated[list[MessageLikeRepresentation], override_reducer]
    research_brief: str | None
    raw_notes: Annotated[list[str], override_reducer]
    notes: Annotated[list[str], override_reducer]
    final_report: str


class SupervisorState(TypedDict):
    supervisor_messages: Annotated[list[MessageLikeRepresentation], override_reducer]
    research_brief: str
    notes: Annotated[list[str], override_reducer]
    research_iterations: int
    raw_notes: Annotated[list[str], override_reducer]


class ResearcherState(TypedDict):
    researcher_messages: Annotated[list[MessageLikeRepresentation], operator.add]
    tool_call_iterations: int
    research_topic: str
    compressed_research: str
    raw_notes: Annotated[list[str], override_reducer]


class ResearcherOutputState(BaseModel):
    compressed_research: str
    raw_notes: Annotated[list[str], override_reducer] = []


@dataclass(kw_only=True)
class Configuration:
    """What may be set for a run."""

    max_structured_output_retries: int = 3
    allow_clarification: bool = True
    max_concurrent_research_units: int = 5
    max_researcher_iterations: int = 6
    max_react_tool_calls: int = 10
    max_content_length: int = 50000

    @classmethod
    def from_runnable_config(cls, config=None):
        given = (config or {}).get("configurable", {})
        return cls(**{one.name: given[one.name] for one in fields(cls) if one.name in given})


CLARIFY = (
    "These are the messages that have been exchanged so far from the user asking for the report:\n<Messages>\n{messages}\n"
    "</Messages>\n\nToday's date is {date}.\n\nAssess whether you need to ask a clarifying question. Respond in JSON with "
    "the keys need_clarification, question and verification."
)
BRIEF = (
    "Translate the messages that have been exchanged into a more detailed research question.\n<Messages>\n{messages}\n"
    "</Messages>\n\nToday's date is {date}.\n\nReturn a single research question. Use the first person."
)
LEAD = (
    "You are a research supervisor. You conduct research by calling ConductResearch. Today's date is {date}.\n"
    "Think with think_tool before and after it, and call ResearchComplete when you are satisfied.\n"
    "Stop after {max_researcher_iterations} calls. At most {max_concurrent_research_units} agents work at once."
)
RESEARCH = (
    "You are a research assistant conducting research on the user's input topic. Today's date is {date}.\n"
    "Use tavily_search to search the web, and think_tool to reflect after each search."
)
COMPRESS = (
    "You are a research assistant that has conducted research on a topic. Clean up the findings, but preserve all "
    "relevant statements and sources. Today's date is {date}."
)
COMPRESS_NOW = (
    "All above messages are about research conducted by an AI Researcher. Please clean up these findings.\n\n"
    "DO NOT summarize the information."
)
REPORT = (
    "Based on all the research conducted, create a comprehensive, well-structured answer to the research brief:\n"
    "<Research Brief>\n{research_brief}\n</Research Brief>\n\nThese are all of the messages so far.\n<Messages>\n{messages}\n"
    "</Messages>\nToday's date is {date}.\n\nHere are the findings from the research that you conducted:\n<Findings>\n"
    "{findings}\n</Findings>\n\nUse headings, and end with the sources."
)
SUMMARIZE = (
    "You are tasked with summarizing the raw content of a webpage from a web search.\n\n<webpage_content>\n"
    "{webpage_content}\n</webpage_content>\n\nKeep key facts, dates and quotes. Today's date is {date}."
)


def get_today_str():
    now = datetime.now(tz=UTC)
    return f"{now:%a} {now:%b} {now.day}, {now:%Y}"


def get_notes_from_tool_calls(messages):
    return [one.content for one in filter_messages(messages, include_types="tool")]


@tool(description="Strategic reflection tool for research planning")
def think_tool(reflection: str) -> str:
    """Record a reflection."""
    return f"Reflection recorded: {reflection}"


class OpenDeepResearch:
    """The graph, the supervisor's graph in it, and the researcher's graph that the supervisor calls."""

    def __init__(self, model, web, *, pages, snippets):
        self.model, self.web, self.pages, self.snippets = model, web, pages, snippets
        self.researcher_subgraph = self._researcher()

    async def tavily(self, query, max_results):
        """Return what the search service replies to a query; of some pages it has no raw content."""
        await asyncio.sleep(0)
        results = [
            {
                "title": title,
                "url": url_of(name),
                "content": self.snippets[name],
                "score": 0.9,
                "raw_content": self.pages.get(name),
            }
            for name, title in self.web[query]
        ]
        return {"query": query, "answer": None, "images": [], "results": results[:max_results]}

    def asked(self, schema, configurable):
        """Return the model that fills in a form."""
        attempts = configurable.max_structured_output_retries
        return self.model.with_structured_output(schema).with_retry(stop_after_attempt=attempts)

    def with_tools(self, tools, configurable):
        attempts = configurable.max_structured_output_retries
        return self.model.bind_tools(tools).with_retry(stop_after_attempt=attempts)

    async def summarize_webpage(self, model, webpage_content):
        prompt = SUMMARIZE.format(webpage_content=webpage_content, date=get_today_str())
        summary = await asyncio.wait_for(model.ainvoke([HumanMessage(content=prompt)]), timeout=60.0)
        return (
            f"<summary>\n{summary.summary}\n</summary>\n\n<key_excerpts>\n{summary.key_excerpts}\n</key_excerpts>"
        )

    def get_all_tools(self):
        @tool(description="A search engine optimized for comprehensive, accurate, and trusted results.")
        async def tavily_search(
            queries: list[str],
            max_results: Annotated[int, InjectedToolArg] = 5,
            config: RunnableConfig = None,
        ) -> str:
            """Search the web, and summarise each page that was found."""
            responses = await asyncio.gather(*(self.tavily(query, max_results) for query in queries))
            unique = {}
            for response in responses:
                for result in response["results"]:
                    unique.setdefault(result["url"], {**result, "query": response["query"]})
            configurable = Configuration.from_runnable_config(config)
            summarization_model = self.asked(Summary, configurable)

            async def noop():
                return None

            tasks = [
                self.summarize_webpage(
                    summarization_model, result["raw_content"][: configurable.max_content_length]
                )
                if result.get("raw_content")
                else noop()
                for result in unique.values()
            ]
            summaries = await asyncio.gather(*tasks)
            if not unique:
                return "No valid search results found. Please try different search queries."
            shown = "Search results: \n\n"
            for place, (result, summary) in enumerate(zip(unique.values(), summaries, strict=True), start=1):
                content = result["content"] if summary is None else summary
                shown += f"\n\n--- SOURCE {place}: {result['title']} ---\nURL: {result['url']}\n\n"
                shown += f"SUMMARY:\n{content}\n\n\n\n" + "-" * 80 + "\n"
            return shown

        return [tool(ResearchComplete), think_tool, tavily_search]

    async def clarify_with_user(
        self, state: AgentState, config: RunnableConfig
    ) -> Command[Literal["write_research_brief", "__end__"]]:
        configurable = Configuration.from_runnable_config(config)
        if not configurable.allow_clarification:
            return Command(goto="write_research_brief")
        prompt = CLARIFY.format(messages=get_buffer_string(state["messages"]), date=get_today_str())
        response = await self.asked(ClarifyWithUser, configurable).ainvoke([HumanMessage(content=prompt)])
        if response.need_clarification:
            return Command(goto=END, update={"messages": [AIMessage(content=response.question)]})
        return Command(goto="write_research_brief", update={"messages": [AIMessage(content=response.verification)]})

    async def write_research_brief(
        self, state: AgentState, config: RunnableConfig
    ) -> Command[Literal["research_supervisor"]]:
        configurable = Configuration.from_runnable_config(config)
        prompt = BRIEF.format(messages=get_buffer_string(state["messages"]), date=get_today_str())
        response = await self.asked(ResearchQuestion, configurable).ainvoke([HumanMessage(content=prompt)])
        lead = LEAD.format(
            date=get_today_str(),
            max_concurrent_research_units=configurable.max_concurrent_research_units,
            max_researcher_iterations=configurable.max_researcher_iterations,
        )
        messages = [SystemMessage(content=lead), HumanMessage(content=response.research_brief)]
        return Command(
            goto="research_supervisor",
            update={
                "research_brief": response.research_brief,
                "supervisor_messages": {"type": "override", "value": messages},
            },
        )

    async def supervisor(
        self, state: SupervisorState, config: RunnableConfig
    ) -> Command[Literal["supervisor_tools"]]:
        configurable = Configuration.from_runnable_config(config)
        llm = self.with_tools([ConductResearch, ResearchComplete, think_tool], configurable)
        response = await llm.ainvoke(state["supervisor_messages"])
        return Command(
            goto="supervisor_tools",
            update={
                "supervisor_messages": [response],
                "research_iterations": state.get("research_iterations", 0) + 1,
            },
        )

    async def supervisor_tools(
        self, state: SupervisorState, config: RunnableConfig
    ) -> Command[Literal["supervisor", "__end__"]]:
        configurable = Configuration.from_runnable_config(config)
        messages = state["supervisor_messages"]
        made = messages[-1].tool_calls
        is_over = state["research_iterations"] > configurable.max_researcher_iterations
        if is_over or not made or any(one["name"] == "ResearchComplete" for one in made):
            return Command(
                goto=END,
                update={
                    "notes": get_notes_from_tool_calls(messages),
                    "research_brief": state.get("research_brief", ""),
                },
            )
        told = [
            ToolMessage(
                content=f"Reflection recorded: {one['args']['reflection']}",
                name="think_tool",
                tool_call_id=one["id"],
            )
            for one in made
            if one["name"] == "think_tool"
        ]
        update: dict[str, Any] = {}
        conducted = [one for one in made if one["name"] == "ConductResearch"]
        if conducted:
            allowed = conducted[: configurable.max_concurrent_research_units]
            topics = [one["args"]["research_topic"] for one in allowed]
            results = await asyncio.gather(
                *(
                    self.researcher_subgraph.ainvoke(
                        {"researcher_messages": [HumanMessage(content=topic)], "research_topic": topic}, config
                    )
                    for topic in topics
                )
            )
            told += [
                ToolMessage(content=result["compressed_research"], name=one["name"], tool_call_id=one["id"])
                for result, one in zip(results, allowed, strict=True)
            ]
            update["raw_notes"] = ["\n".join("\n".join(result["raw_notes"]) for result in results)]
        return Command(goto="supervisor", update={"supervisor_messages": told, **update})

    async def researcher(
        self, state: ResearcherState, config: RunnableConfig
    ) -> Command[Literal["researcher_tools"]]:
        llm = self.with_tools(self.get_all_tools(), Configuration.from_runnable_config(config))
        system = SystemMessage(content=RESEARCH.format(date=get_today_str()))
        response = await llm.ainvoke([system, *state["researcher_messages"]])
        return Command(
            goto="researcher_tools",
            update={
                "researcher_messages": [response],
                "tool_call_iterations": state.get("tool_call_iterations", 0) + 1,
            },
        )

    async def researcher_tools(
        self, state: ResearcherState, config: RunnableConfig
    ) -> Command[Literal["researcher", "compress_research"]]:
        configurable = Configuration.from_runnable_config(config)
        made = state["researcher_messages"][-1].tool_calls
        if not made:
            return Command(goto="compress_research")
        by_name = {one.name: one for one in self.get_all_tools()}

        async def execute_tool_safely(one):
            try:
                return await by_name[one["name"]].ainvoke(one["args"], config)
            except Exception as error:
                return f"Error executing tool: {error}"

        observations = await asyncio.gather(*(execute_tool_safely(one) for one in made))
        outputs = [
            ToolMessage(content=observation, name=one["name"], tool_call_id=one["id"])
            for observation, one in zip(observations, made, strict=True)
        ]
        is_over = state["tool_call_iterations"] >= configurable.max_react_tool_calls
        is_over = is_over or any(one["name"] == "ResearchComplete" for one in made)
        return Command(
            goto="compress_research" if is_over else "researcher", update={"researcher_messages": outputs}
        )

    async def compress_research(self, state: ResearcherState, config: RunnableConfig):
        messages = [*state["researcher_messages"], HumanMessage(content=COMPRESS_NOW)]
        system = SystemMessage(content=COMPRESS.format(date=get_today_str()))
        response = await self.model.ainvoke([system, *messages])
        kept = filter_messages(messages, include_types=["tool", "ai"])
        return {
            "compressed_research": str(response.content),
            "raw_notes": ["\n".join(str(one.content) for one in kept)],
        }

    async def final_report_generation(self, state: AgentState, config: RunnableConfig):
        prompt = REPORT.format(
            research_brief=state.get("research_brief", ""),
            messages=get_buffer_string(state["messages"]),
            findings="\n".join(state["notes"]),
            date=get_today_str(),
        )
        report = await self.model.ainvoke([HumanMessage(content=prompt)])
        return {
            "final_report": report.content,
            "messages": [report],
            "notes": {"type": "override", "value": []},
        }

    def _researcher(self):
        builder = StateGraph(ResearcherState, output_schema=ResearcherOutputState, context_schema=Configuration)
        builder.add_node("researcher", self.researcher)
        builder.add_node("researcher_tools", self.researcher_tools)
        builder.add_node("compress_research", self.compress_research)
        builder.add_edge(START, "researcher")
        builder.add_edge("compress_research", END)
        return builder.compile()

    def compiled(self):
        supervisor_builder = StateGraph(SupervisorState, context_schema=Configuration)
        supervisor_builder.add_node("supervisor", self.supervisor)
        supervisor_builder.add_node("supervisor_tools", self.supervisor_tools)
        supervisor_builder.add_edge(START, "supervisor")
        builder = StateGraph(AgentState, input_schema=AgentInputState, context_schema=Configuration)
        builder.add_node("clarify_with_user", self.clarify_with_user)
        builder.add_node("write_research_brief", self.write_research_brief)
        builder.add_node("research_supervisor", supervisor_builder.compile())
        builder.add_node("final_report_generation", self.final_report_generation)
        builder.add_edge(START, "clarify_with_user")
        builder.add_edge("research_supervisor", "final_report_generation")
        builder.add_edge("final_report_generation", END)
        return builder.compile(checkpointer=InMemorySaver())


async def open_deep_research(config):
    """A user is asked back, then a supervisor sends out researchers, whose searches summarise pages; a report at the end."""
    first = "Write a report on the geese of Vester."
    second = "On both: how many of the wild ones come, and what farms do with theirs."
    wild = "The wild geese that spend the winter on Vester: how many, since when, and where they feed."
    tame = "The geese that farms of Vester keep: where they are kept, and how they are sold."
    web = {
        "wild geese Vester winter": (("geese_count", "Geese counted"), ("geese_meadow", "The south meadow")),
        "brent geese Vester count": (("geese_count", "Geese counted"),),
        "geese farms Vester": (("farm_geese", "Farm geese"),),
        "Martinmas geese Vester": (("farm_geese", "Farm geese"),),
    }
    count, counted, farms, martinmas = web
    snippets = {
        "geese_count": "More brent geese than ever.",
        "geese_meadow": "Grass for geese.",
        "farm_geese": TEXTS["farm_geese"],
    }
    pages = {name: TEXTS[name] for name in ("geese_count", "geese_meadow")}
    wild_found = (
        "**Queries**\n- wild geese, and a count of them\n\n**Findings**\nIn January 2026 brent geese numbered 6,400, seven "
        "times those of 1990 [1]. A meadow is kept for them, and farmers are paid [2].\n\n### Sources\n"
        f"[1] Geese counted: {url_of('geese_count')}\n[2] The south meadow: {url_of('geese_meadow')}"
    )
    tame_found = (
        "**Queries**\n- farms with geese\n\n**Findings**\nGrey geese graze on the salt marsh from May on, and are sold in "
        f"November [1].\n\n### Sources\n[1] Farm geese: {url_of('farm_geese')}"
    )
    report = (
        "# Geese of Vester\n\n## Wild geese\nSeven times as many as in 1990 spend the winter here, on a meadow that is "
        "theirs [1][2].\n\n## Geese of farms\nThey graze on the marsh until they are sold in November [3].\n\n### Sources\n"
        + "\n".join(
            f"- [{place}] {name}: {url_of(page)}"
            for place, (page, name) in enumerate((*web[count], *web[farms]), start=1)
        )
    )

    def summary(text, excerpts):
        return calls("Summary", summary=text, key_excerpts=excerpts)

    conduct = AIMessage(
        "",
        tool_calls=[
            {"name": "ConductResearch", "args": {"research_topic": topic}, "id": f"call-research-{place}"}
            for place, topic in enumerate((wild, tame))
        ],
    )

    def supervised(messages):
        results = [one for one in messages if isinstance(one, ToolMessage)]
        if not results:
            return calls(
                "think_tool", reflection="Two parts: wild geese, and those of farms. Each needs its own agent."
            )
        return conduct if results[-1].name == "think_tool" else calls("ResearchComplete")

    def researched(messages):
        topic, last = messages[1].content, messages[-1]
        if last.type == "human":
            queries = [count, counted] if topic == wild else [farms, martinmas]
            reply = calls("tavily_search", queries=queries)
        elif topic == tame:
            return "The page says where they are kept and when they are sold."
        elif last.name == "think_tool":
            reply = calls("ResearchComplete")
        else:
            reply = calls("think_tool", reflection="A count and a place are there, which is enough.")
        reply.tool_calls[0]["id"] += "-wild" if topic == wild else "-tame"
        return reply

    def compressed(messages):
        return wild_found if messages[1].content == wild else tame_found

    def clarified(messages):
        if second in messages[0].content:
            return calls(
                "ClarifyWithUser",
                need_clarification=False,
                question="",
                verification="Thank you. I start research on both kinds of geese.",
            )
        return calls(
            "ClarifyWithUser",
            need_clarification=True,
            question="Do you mean the wild geese of winter, those of the farms, or both?",
            verification="",
        )

    model = Replies(
        rules=[
            ("whether you need to ask a clarifying question", clarified),
            (
                "Translate the messages",
                calls(
                    "ResearchQuestion",
                    research_brief="I want to know how many wild geese come to Vester, and what its farms do with geese.",
                ),
            ),
            ("Based on all the research conducted", report),
            ("You are a research supervisor", supervised),
            ("Please clean up these findings", compressed),
            ("conducting research on the user's input topic", researched),
            (
                TEXTS["geese_count"],
                summary(
                    "6,400 brent geese in January 2026; 900 in 1990.",
                    "They come in October, when the first frost lies on the tundra",
                ),
            ),
            (
                TEXTS["geese_meadow"],
                summary("A meadow is left to geese.", "Farmers get 120 crowns a hectare for grass that is eaten"),
            ),
        ]
    )
    deep_researcher = OpenDeepResearch(model, web, pages=pages, snippets=snippets).compiled()
    settings = {**config, "configurable": {"thread_id": "1"}}
    answers = []
    for asked in (first, second):
        result = await deep_researcher.ainvoke({"messages": [HumanMessage(content=asked)]}, settings)
        answers.append(result["messages"][-1].content)
    assert result["final_report"] == answers[-1]
    return answers


WITH_HANDLER = {
    "rewoo": rewoo,
    "reflexion": reflexion,
    "open-deep-research": open_deep_research,
}
