"""Applications of LangGraph of the fourth draw: a paper that is judged, a running summary, a plan that is carried out."""

from __future__ import annotations

import json
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, TypedDict

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from pydantic import BaseModel

from tests.apps.langchain_parts import Replies, calls
from tests.public.langgraph_apps import said, web_search
from tests.public.texts import TEXTS


class SearchPapersInput(BaseModel):
    """What to search for."""

    query: str
    max_papers: int = 1


class DecisionMakingOutput(BaseModel):
    """Whether research is needed."""

    requires_research: bool
    answer: str | None = None


class JudgeOutput(BaseModel):
    """Whether an answer is good."""

    is_good_answer: bool
    feedback: str | None = None


class PaperState(TypedDict, total=False):
    requires_research: bool
    num_feedback_requests: int
    is_good_answer: bool
    messages: Annotated[Sequence[BaseMessage], add_messages]


async def scientific_paper_agent(config):
    """A plan, a search for papers and a download; a judge sends the first answer back to the plan."""

    @tool("search-papers", args_schema=SearchPapersInput)
    def search_papers(query: str, max_papers: int = 1) -> str:
        """Search for scientific papers."""
        return TEXTS["paper_found"]

    @tool("download-paper")
    def download_paper(url: str) -> str:
        """Download a paper."""
        return TEXTS["paper_text"]

    @tool("ask-human-feedback")
    def ask_human_feedback(question: str) -> str:
        """Ask for human feedback, on unexpected errors."""
        raise NotImplementedError

    tools = [search_papers, download_paper, ask_human_feedback]
    tools_dict = {one.name: one for one in tools}
    first = "They went further down over the years."
    second = "Within six years they left 9 m for 15 m (Berg and Lund, 2021)."

    def judged(messages):
        if second in said(messages):
            return calls("JudgeOutput", is_good_answer=True)
        return calls("JudgeOutput", is_good_answer=False, feedback="Give numbers, and name who wrote it.")

    def planned(messages):
        if "Give numbers" in said(messages):
            return "1. Answer again with both depths and with authors."
        return "1. Look for one paper (search-papers).\n2. Fetch it (download-paper).\n3. Answer."

    model = Replies(
        rules=[
            ("Decide whether to do research", calls("DecisionMakingOutput", requires_research=True)),
            ("Make a step by step plan", planned),
            ("Review the final answer", judged),
            ("Answer again with both depths", second),
            ("None was met above", first),
            ("echo sounder", calls("download-paper", url="https://papers.example/7741.pdf")),
            ("", calls("search-papers", query="smelt AND yearPublished>=2019", max_papers=1)),
        ]
    )
    agent_llm = model.bind_tools(tools)

    def decision_making_node(state):
        system = SystemMessage(
            "You are a scientific researcher. Decide whether to do research, or to answer directly."
        )
        response = model.with_structured_output(DecisionMakingOutput).invoke([system, *state["messages"]])
        output = {"requires_research": response.requires_research}
        if response.answer:
            output["messages"] = [AIMessage(response.answer)]
        return output

    def planning_node(state):
        shown = "\n\n".join(f"- {one.name}: {one.description}\n Input arguments: {one.args}" for one in tools)
        system = SystemMessage(f"You are a scientific researcher. Make a step by step plan.\n\n# TOOLS\n\n{shown}")
        return {"messages": [model.invoke([system, *state["messages"]])]}

    def tools_node(state):
        return {
            "messages": [
                ToolMessage(
                    json.dumps(tools_dict[call["name"]].invoke(call["args"])),
                    name=call["name"],
                    tool_call_id=call["id"],
                )
                for call in state["messages"][-1].tool_calls
            ]
        }

    def agent_node(state):
        system = SystemMessage("You are a scientific researcher. Follow the plan, and cite what you claim.")
        return {"messages": [agent_llm.invoke([system, *state["messages"]])]}

    def judge_node(state):
        asked = state.get("num_feedback_requests", 0)
        if asked >= 2:
            return {"is_good_answer": True}
        system = SystemMessage("You are a scientific researcher. Review the final answer that you gave.")
        response = model.with_structured_output(JudgeOutput).invoke([system, *state["messages"]])
        output = {"is_good_answer": response.is_good_answer, "num_feedback_requests": asked + 1}
        if response.feedback:
            output["messages"] = [AIMessage(response.feedback)]
        return output

    workflow = StateGraph(PaperState)
    for name, node in {
        "decision_making": decision_making_node,
        "planning": planning_node,
        "tools": tools_node,
        "agent": agent_node,
        "judge": judge_node,
    }.items():
        workflow.add_node(name, node)
    workflow.set_entry_point("decision_making")
    workflow.add_conditional_edges(
        "decision_making",
        lambda state: "planning" if state["requires_research"] else "end",
        {"planning": "planning", "end": END},
    )
    workflow.add_edge("planning", "agent")
    workflow.add_edge("tools", "agent")
    workflow.add_conditional_edges(
        "agent",
        lambda state: "continue" if state["messages"][-1].tool_calls else "end",
        {"continue": "tools", "end": "judge"},
    )
    workflow.add_conditional_edges(
        "judge",
        lambda state: "end" if state["is_good_answer"] else "planning",
        {"planning": "planning", "end": END},
    )
    app = workflow.compile()
    asked = "Find a paper on smelt in warm lakes, and tell me what it says."
    messages = []
    async for chunk in app.astream({"messages": [asked]}, config, stream_mode="updates"):
        for updates in chunk.values():
            messages.extend(updates.get("messages", []))
    return messages[-1].content


@dataclass(kw_only=True)
class SummaryState:
    """A topic, what was found on it, and the summary so far."""

    research_topic: str | None = None
    search_query: str | None = None
    web_research_results: Annotated[list, operator.add] = field(default_factory=list)
    sources_gathered: Annotated[list, operator.add] = field(default_factory=list)
    research_loop_count: int = 0
    running_summary: str | None = None


@dataclass(kw_only=True)
class SummaryStateInput:
    """A topic."""

    research_topic: str | None = None


@dataclass(kw_only=True)
class SummaryStateOutput:
    """A report."""

    running_summary: str | None = None


def local_deep_researcher(config):
    """A query, a page and a summary in a loop, with a reflection that asks for more; a report with its sources."""
    web = {"depth of smelt in July": "page_layer", "where do smelt gather besides": "page_springs"}
    first_query, second_query = web
    layer = "Smelt avoid heat; in July they keep to fourteen metres of depth."
    springs = f"{layer} They also gather at the springs near Näs."

    reflection = {"knowledge_gap": "It is not said where else.", "follow_up_query": second_query}
    model = Replies(
        rules=[
            ("Generate a query for web search:", json.dumps({"query": first_query, "rationale": "Depth matters."})),
            ("Reflect on our existing knowledge:", json.dumps(reflection)),
            ("<New Context>", springs),
            ("<Context>", f"<think>Depth is the point here, I think.</think>{layer}"),
        ]
    )
    json_model = model.bind(format="json")

    def strip_thinking_tokens(text):
        while "<think>" in text and "</think>" in text:
            text = text[: text.find("<think>")] + text[text.find("</think>") + len("</think>") :]
        return text

    def tavily_search(query, fetch_full_page, max_results):
        name = web[query]
        page = {"title": name.removeprefix("page_").title(), "url": f"https://{name.removeprefix('page_')}.example"}
        snippet = TEXTS[name].partition(".")[0] + "."
        return {"results": [{**page, "content": snippet, "raw_content": TEXTS[name] if fetch_full_page else None}]}

    def deduplicate_and_format_sources(response, max_tokens_per_source):
        shown = "Sources:\n\n"
        for one in {one["url"]: one for one in response["results"]}.values():
            shown += f"Source: {one['title']}\n===\nURL: {one['url']}\n===\n"
            shown += f"Most relevant content from source: {one['content']}\n===\n"
            whole = one["raw_content"][: max_tokens_per_source * 4]
            shown += f"Full source content limited to {max_tokens_per_source} tokens: {whole}\n\n"
        return shown.strip()

    def query_of(messages, field_name, topic):
        content = json_model.invoke(messages).content
        return {"search_query": json.loads(content).get(field_name) or f"Tell me more about {topic}"}

    def generate_query(state: SummaryState, config: RunnableConfig):
        asked = f"You write a web search query.\n\n<TOPIC>\n{state.research_topic}\n</TOPIC>\n\nReply as JSON: query, rationale."
        messages = [SystemMessage(asked), HumanMessage("Generate a query for web search:")]
        return query_of(messages, "query", state.research_topic)

    def web_research(state: SummaryState, config: RunnableConfig):
        found = tavily_search(state.search_query, fetch_full_page=True, max_results=1)
        return {
            "sources_gathered": ["\n".join(f"* {one['title']} : {one['url']}" for one in found["results"])],
            "research_loop_count": state.research_loop_count + 1,
            "web_research_results": [deduplicate_and_format_sources(found, 1000)],
        }

    def summarize_sources(state: SummaryState, config: RunnableConfig):
        newest = state.web_research_results[-1]
        topic = f"on this topic: \n <User Input> \n {state.research_topic} \n <User Input>\n\n"
        if state.running_summary:
            asked = (
                f"<Existing Summary> \n {state.running_summary} \n <Existing Summary>\n\n"
                f"<New Context> \n {newest} \n <New Context>Update the Existing Summary with the New Context {topic}"
            )
        else:
            asked = f"<Context> \n {newest} \n <Context>Create a Summary using the Context {topic}"
        result = model.invoke(
            [SystemMessage("You summarise what was found, or extend a summary."), HumanMessage(asked)]
        )
        return {"running_summary": strip_thinking_tokens(result.content)}

    def reflect_on_summary(state: SummaryState, config: RunnableConfig):
        asked = (
            f"Reflect on our existing knowledge: \n === \n {state.running_summary}, \n === \n "
            "And now identify a knowledge gap and generate a follow-up web search query:"
        )
        system = f"You look for gaps in a summary about {state.research_topic}. Reply as JSON: knowledge_gap, follow_up_query."
        return query_of([SystemMessage(system), HumanMessage(asked)], "follow_up_query", state.research_topic)

    def finalize_summary(state: SummaryState):
        sources = dict.fromkeys(line for one in state.sources_gathered for line in one.split("\n") if line.strip())
        state.running_summary = f"## Summary\n{state.running_summary}\n\n ### Sources:\n" + "\n".join(sources)
        return {"running_summary": state.running_summary}

    def route_research(state: SummaryState, config: RunnableConfig):
        loops = config["configurable"]["max_web_research_loops"]
        return "web_research" if state.research_loop_count < loops else "finalize_summary"

    builder = StateGraph(SummaryState, input_schema=SummaryStateInput, output_schema=SummaryStateOutput)
    for node in (generate_query, web_research, summarize_sources, reflect_on_summary, finalize_summary):
        builder.add_node(node.__name__, node)
    builder.add_edge(START, "generate_query")
    builder.add_edge("generate_query", "web_research")
    builder.add_edge("web_research", "summarize_sources")
    builder.add_edge("summarize_sources", "reflect_on_summary")
    builder.add_conditional_edges("reflect_on_summary", route_research, ["web_research", "finalize_summary"])
    builder.add_edge("finalize_summary", END)
    given = {"research_topic": "Where do smelt spend the summer?"}
    settings = {**config, "configurable": {"max_web_research_loops": 2}}
    return builder.compile().invoke(given, settings)["running_summary"]


class PlanExecute(TypedDict, total=False):
    input: str
    plan: list[str]
    past_steps: Annotated[list[tuple], operator.add]
    response: str


class Plan(BaseModel):
    """A plan to follow."""

    steps: list[str]


class Response(BaseModel):
    """An answer to the user."""

    response: str


class Act(BaseModel):
    """What to do next."""

    action: Response | Plan


async def plan_and_execute(config):
    """A plan whose first step an agent carries out with a search; then a plan anew, until there is an answer."""
    question = "Which village does the winner of the regatta of 2024 come from?"
    search = web_search(
        {"winner of the regatta": ("regatta_2024", "regatta_calm"), "home village of Ebba Lund": ("village",)}
    )
    agent_llm = Replies(
        rules=[
            (TEXTS["village"], "Her home is Södra Näs, the place with the lighthouse."),
            ("executing step 1, Find the home", calls(search.name, query="home village of Ebba Lund")),
            (TEXTS["regatta_2024"], "That year's winner was Ebba Lund."),
            ("executing step 1, Find who", calls(search.name, query="winner of the regatta 2024")),
        ]
    )
    llm = Replies(
        rules=[
            (
                "Her home is Södra Näs",
                calls("Act", action={"response": "From Södra Näs: that is where Ebba Lund lives."}),
            ),
            ("winner was Ebba Lund", calls("Act", action={"steps": ["Find the home village of Ebba Lund"]})),
            ("", calls("Plan", steps=["Find who won the regatta of 2024", "Find the home village of that person"])),
        ]
    )
    agent_executor = create_agent(agent_llm, [search], system_prompt="You are a helpful assistant.")
    objective = "For the given objective, come up with a simple step by step plan."
    planner_prompt = ChatPromptTemplate.from_messages([("system", objective), ("placeholder", "{messages}")])
    planner = planner_prompt | llm.with_structured_output(Plan)
    replanner_prompt = ChatPromptTemplate.from_template(
        f"{objective}\n\nYour objective was this:\n{{input}}\n\nYour original plan was this:\n{{plan}}\n\n"
        "You have currently done the follow steps:\n{past_steps}\n\nUpdate your plan accordingly, or respond to the user."
    )
    replanner = replanner_prompt | llm.with_structured_output(Act)

    async def execute_step(state: PlanExecute):
        plan = state["plan"]
        shown = "\n".join(f"{place}. {step}" for place, step in enumerate(plan, start=1))
        asked = f"For the following plan:\n{shown}\n\nYou are tasked with executing step 1, {plan[0]}."
        result = await agent_executor.ainvoke({"messages": [("user", asked)]})
        return {"past_steps": [(plan[0], result["messages"][-1].content)]}

    async def plan_step(state: PlanExecute):
        plan = await planner.ainvoke({"messages": [("user", state["input"])]})
        return {"plan": plan.steps}

    async def replan_step(state: PlanExecute):
        output = await replanner.ainvoke(state)
        if isinstance(output.action, Response):
            return {"response": output.action.response}
        return {"plan": output.action.steps}

    workflow = StateGraph(PlanExecute)
    workflow.add_node("planner", plan_step)
    workflow.add_node("agent", execute_step)
    workflow.add_node("replan", replan_step)
    workflow.add_edge(START, "planner")
    workflow.add_edge("planner", "agent")
    workflow.add_edge("agent", "replan")
    workflow.add_conditional_edges(
        "replan", lambda state: END if state.get("response") else "agent", ["agent", END]
    )
    app = workflow.compile()
    events = [event async for event in app.astream({"input": question}, {**config, "recursion_limit": 50})]
    return events[-1]["replan"]["response"]


WITH_HANDLER = {
    "scientific-paper-agent": scientific_paper_agent,
    "local-deep-researcher": local_deep_researcher,
    "plan-and-execute": plan_and_execute,
}
